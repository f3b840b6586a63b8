#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lldpd, an LLDP daemon that others have written, at the other end of the cable of `rnic serve`.

usage: check_lldpd.py CASE RNIC. Exit status 0: as it should be; 1: with a line why not; 77: cannot be tried here.
"""
import fcntl
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "system", "serve"))
from served import FOLDER, MODEL_MAC, expect, path, serve, wrong  # noqa: E402
from scapy.all import Ether, Raw  # noqa: E402

TAP = "rnic0"
DCB = ["--set", "driver.dcb.enabled=true"]
# As `custom-tlv` takes them: PFC of priority 3; classes 1 and 2 with 70 and 30 % for priorities 3 and 5; RoCE v2.
PFC = "08,08"
SHARES = "00,00,01,02,00,00,46,1e,00,00,00,00,00,00,02,02,00,00,00,00,00"
APPLICATION = "00,63,12,b7"


STARTED = []  # what is to be ended whatever goes wrong


def model(*settings):
    m = serve("model", "tap:" + TAP, *DCB, *settings)
    STARTED.append(m.process)
    return m


def end_all():
    """A daemon's two processes are a group of their own."""
    for process in STARTED:
        if process.poll() is None:
            group = os.getpgid(process.pid)
            if group == os.getpgrp():
                process.kill()
            else:
                os.killpg(group, signal.SIGKILL)
            process.wait(10)


def skip(why):
    print("skipped: %s" % why)
    sys.exit(77)


def in_own_network(arguments):
    """Nobody else's interfaces are there."""
    for program in ("lldpd", "lldpcli", "unshare"):
        if shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin") is None:
            skip("there is no %s" % program)
    if os.environ.get("RNIC_IN_NAMESPACE") == "1":
        return
    if subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode != 0:
        skip("no network namespace can be had here")
    os.environ["RNIC_IN_NAMESPACE"] = "1"
    os.execvp("unshare", ["unshare", "-n", sys.executable] + arguments)


def make_interface():
    """It stays when nobody has it open, so that lldpd sees the model come and go, and not the interface."""
    name = TAP.encode().ljust(16, b"\0")
    try:
        with open("/dev/net/tun", "rb+", buffering=0) as tun:
            fcntl.ioctl(tun, 0x400454ca, name + struct.pack("=H", 0x1002).ljust(24, b"\0"))  # TUNSETIFF: TAP, no header
            fcntl.ioctl(tun, 0x400454cb, 1)  # TUNSETPERSIST
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            fcntl.ioctl(s, 0x8914, name + struct.pack("=H", 0x41).ljust(24, b"\0"))  # SIOCSIFFLAGS: up, running
    except OSError as e:
        skip("no TAP device can be had here: %s" % e)


class daemon:
    """lldpd on the interface, with words for lldpcli."""

    def __init__(self):
        self.socket = path("lldpd.socket")
        os.makedirs("/run/lldpd", exist_ok=True)  # it locks a part of itself up there
        os.chmod(FOLDER, 0o755)  # lldpcli is not root when it looks for the socket
        self.log = open(path("lldpd.log"), "w+")
        self.process = subprocess.Popen(["/usr/sbin/lldpd", "-d", "-u", self.socket, "-I", TAP, "-S", "a peer"],
                                        stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True)
        STARTED.append(self.process)
        self.wait_for(lambda: os.path.exists(self.socket) and self.command("show", "chassis", check=False), "answer")

    def wait_for(self, condition, what, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                self.log.seek(0)
                raise wrong("lldpd has ended: %s" % self.log.read()[-500:])
            if found := condition():
                return found
            time.sleep(0.1)
        raise wrong("lldpd: no %s within %d s" % (what, seconds))

    def command(self, *words, check=True):
        done = subprocess.run(["/usr/sbin/lldpcli", "-u", self.socket, "-f", "json"] + list(words), capture_output=True,
                              text=True, timeout=20)
        if check:
            expect(done.returncode == 0, "lldpcli %s: %s" % (" ".join(words), done.stderr))
        return done.stdout if done.returncode == 0 else ""

    def neighbour(self):
        """What it knows of the model; nothing when it does not know it."""
        found = json.loads(self.command("show", "neighbors", "details") or "{}").get("lldp", {}).get("interface")
        return found.get(TAP) if found else None

    def says(self, subtype, value):
        self.command("configure", "lldp", "custom-tlv", "replace", "oui", "00,80,c2", "subtype", str(subtype), "oui-info",
                     value)

    def end(self, how=signal.SIGTERM):
        """Both of its processes."""
        if how == signal.SIGTERM:
            self.process.terminate()
        else:
            os.killpg(self.process.pid, how)
        self.process.wait(10)


def pause_of(priority, quanta=65535):
    body = b"\x01\x01" + bytes([0, 1 << priority]) + b"".join(
        (quanta if i == priority else 0).to_bytes(2, "big") for i in range(8))
    return bytes(Ether(src="02:00:00:00:00:77", dst="01:80:c2:00:00:01", type=0x8808) / Raw(body + bytes(26)))


def send_raw(frame):
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
        s.bind((TAP, 0))
        s.send(frame)


def neighbours():
    """It shows what we say: names, addresses, and our TLVs byte for byte."""
    d = daemon()
    d.command("configure", "lldp", "tx-interval", "1")
    m = model("--set", "driver.pfc_mask=8", "--set", "driver.dcb.app.roce_v2=3")
    try:
        n = d.wait_for(d.neighbour, "neighbour")
        chassis, port = n["chassis"], n["port"]
        expect(list(chassis) == ["served"], "system name: %s" % list(chassis))
        about = chassis["served"]
        expect(about["id"] == {"type": "mac", "value": MODEL_MAC} and about["descr"].startswith("RoCE adapter model"), about)
        expect(about["capability"] == {"type": "Station", "enabled": True}, about["capability"])
        expect(port["id"] == {"type": "mac", "value": MODEL_MAC} and port["descr"] == "eth1" and port["ttl"] == "121" and
               port["mfs"] == "4222", port)
        unknown = {int(t["subtype"]): t["value"] for t in n["unknown-tlvs"]["unknown-tlv"] if t["oui"] == "00,80,C2"}
        table = "01,23,45,67" + ",00" * 16
        expect(unknown == {9: "80," + table, 10: "00," + table, 11: "88,08", 12: APPLICATION.upper()}, unknown)
        expect("PFC local: 3; with nobody" in (line := m.until("dcb:", 20)), line)  # it says nothing of DCBX by itself
        result = m.stop()
        expect(result["dcb"]["neighbours"][0]["system_name"] == socket.gethostname(), result["dcb"])
        expect(result["dcb"]["lldp"]["frames_discarded"] == 0 and result["dcb"]["lldp"]["inserts"] == 1, result["dcb"])
        d.wait_for(lambda: d.neighbour() is None, "good-bye of the model")
    finally:
        d.end()


def advice():
    """What its custom TLVs say is in force in the adapter: it obeys pauses of that priority, and of no other."""
    m = model()
    d = daemon()
    try:
        d.command("configure", "lldp", "tx-interval", "1")
        d.says(11, PFC)
        d.says(10, SHARES)
        d.says(12, APPLICATION)
        while "PFC peer: 3" not in (line := m.until("dcb:", 20)) or "70 %" not in line:
            pass
        expect("ETS peer: tc0 strict of 0,1,2,4,6,7; tc1 70 % of 3; tc2 30 % of 5" in line, line)
        d.wait_for(lambda: any(t["subtype"] == "11" and t["value"] == "88,08"
                               for t in d.neighbour()["unknown-tlvs"]["unknown-tlv"]), "PFC that the model took over")
        for priority in (3, 4, 4):
            send_raw(pause_of(priority))
        d.says(11, "08,30")
        while "PFC peer: 4,5" not in m.until("dcb:", 20):
            pass
        send_raw(pause_of(4))
        result = m.stop()
        s, dcb = result["statistics"], result["dcb"]
        counted = {p: s.get("served.adapter.port1.pause.prio%d.rx_transitions" % p, 0) for p in range(8)}
        expect(counted == {**{p: 0 for p in range(8)}, 3: 1, 4: 1}, "pauses that were obeyed: %s" % counted)
        expect(dcb["pfc"]["enabled"] == 0x30 and dcb["pfc"]["from"] == "peer" and dcb["command_errors"] == 0, dcb)
        expect(dcb["ets"]["tc_bw"] == [0, 70, 30, 0, 0, 0, 0, 0] and dcb["ets"]["from"] == "peer", dcb)
        expect(dcb["app"] == [{"selector": 3, "protocol": 4791, "priority": 3}], dcb)
        expect(dcb["peer"]["system_name"] == socket.gethostname() and dcb["lldp"]["tlvs_discarded"] == 0, dcb)
    finally:
        d.end()


def silence():
    """It goes: with a good-bye, and without one. The own configuration is in force again."""
    m = model("--set", "driver.pfc_mask=2", "--set", "driver.dcb.pfc.willing=true")
    for how in (signal.SIGTERM, signal.SIGKILL):
        d = daemon()
        d.command("configure", "lldp", "tx-interval", "1")
        d.command("configure", "lldp", "tx-hold", "3")
        d.says(11, PFC)
        while "PFC peer: 3" not in m.until("dcb:", 20):
            pass
        d.end(how)
        expect("PFC local: 1; with nobody" in (line := m.until("dcb:", 20)), line)
    lldp = m.stop()["dcb"]["lldp"]
    expect(lldp["deletes"] == 1 and lldp["ageouts"] == 1, lldp)


def main():
    in_own_network([os.path.abspath(__file__)] + sys.argv[1:])
    make_interface()
    try:
        {"neighbours": neighbours, "advice": advice, "silence": silence}[sys.argv[1]]()
        return 0
    except wrong as e:
        print("wrong: %s" % e)
        return 1
    finally:
        end_all()
        shutil.rmtree(FOLDER, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
