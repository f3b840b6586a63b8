# SPDX-License-Identifier: Apache-2.0
"""A host on the guest's network that asks for connections and never confirms one."""
import os
import socket
import struct

try:
    from scapy.all import Ether, IP, Raw, UDP, rdpcap
    from scapy.contrib.roce import BTH
except ImportError:
    BTH = None

MAC, ADDRESS = "02:00:00:00:00:77", "10.0.0.77"
GSI_KEY = 0x80010000


class stranger:
    """Without scapy's RoCE it asks for nothing, and `asked` stays 0."""

    def __init__(self, model_socket, model_mac, model_address):
        self.to, self.mac, self.address, self.asked, self.number = model_socket, model_mac, model_address, 0, 0
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)

    def request(self, port):
        """The REQ of a Linux host, from a capture, with these addresses, another number and another queue pair."""
        trace = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../traces/cm_rping_800B.pcap")
        mad = next(bytearray(bytes(f)[62:318]) for f in rdpcap(trace) if UDP in f and f[UDP].dport == 4791 and len(f) == 322)
        own, model = socket.inet_aton(ADDRESS), socket.inet_aton(self.address)
        mapped = b"\0" * 10 + b"\xff\xff"
        self.number += 1
        mad[24:28], mad[38:40], mad[56:59] = struct.pack(">I", 0x7700 + self.number), struct.pack(">H", port), struct.pack(
            ">I", 0x500 + self.number)[1:]
        mad[80:96], mad[96:112] = mapped + own, mapped + model
        mad[180:184], mad[196:200] = own, model
        return bytes(mad)

    def ask(self, port):
        if BTH is None:
            return
        frame = (Ether(src=MAC, dst=self.mac) / IP(src=ADDRESS, dst=self.address, flags="DF", ttl=64) /
                 UDP(sport=0xc123, dport=4791, chksum=0) / BTH(opcode=0x64, padcount=0, pkey=0xffff, dqpn=1, psn=0) /
                 Raw(struct.pack(">II", GSI_KEY, 1) + self.request(port)))
        self.socket.sendto(bytes(frame), self.to)
        self.asked += 1
