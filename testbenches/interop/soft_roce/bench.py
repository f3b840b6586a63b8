# SPDX-License-Identifier: Apache-2.0
"""The guest with Soft-RoCE, `rnic serve` at the other end of its cable, and what a case asks of both."""
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import threading

import guest as linux
import wire_image

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../system/program"))
from process_output import rest_of  # noqa: E402

PORT = 18800 + os.getpid() % 100 * 10
GUEST4, MODEL4, GUEST6, MODEL6 = "10.0.0.1", "10.0.0.2", "fd00::1", "fd00::2"
MODEL_MAC = "02:00:00:00:00:02"
GID4 = "0000:0000:0000:0000:0000:ffff:0a00:0001"
GID6 = "fd00:0000:0000:0000:0000:0000:0000:0001"
SECONDS = 60
PATIENT = 18  # 1.1 s until a request is repeated: an emulated guest on a busy machine may stand still for a while


def mac_of_function(mac, function):
    """At port 1 of a card with this address, as the physical function's driver gives it to a virtual one."""
    return mac if function == 0 else "02:%02x:01:%s" % (function, mac[9:])


def lost_its_channel(guest):
    """Whether the guest's rping did all that it had to, and ended by a race of its own: rping of rdma-core 44 closes
    the event channel in main() while its cm_thread, having told of DISCONNECTED, goes round to rdma_get_cm_event()
    again, whose write() to the closed file fails, and that ends the program with exit(-1). Later versions end the
    thread first. Of the other tools, cmtime and mckey have such a thread too, but it only says so; ucmatose, udaddy,
    rdma_client, rdma_server and rstream have none."""
    status, text = guest
    # What it writes to a file comes after what it says of errors; in state 10, DISCONNECTED, a server ends as it should.
    expected = "(server )?ping data: |wait for [A-Z_]+ state 10$"
    said = [line for line in text.splitlines() if line and not re.match(expected, line)]
    return (status == 255 and said[-1:] == ["rdma_get_cm_event: Bad file descriptor"] and
            said[-2:-1] in (["client DISCONNECT EVENT..."], ["server DISCONNECT EVENT..."]))


class congested_switch(threading.Thread):
    """Between the guest and the model: every third RoCE v2 packet of the guest is marked as congested."""

    def __init__(self, path, to):
        super().__init__(daemon=True)
        self.to, self.seen, self.marked = to, 0, 0
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        self.start()

    def run(self):
        while True:
            frame = bytearray(self.socket.recv(16384))
            if frame[12:14] == b"\x08\x00" and frame[23] == 17 and frame[36:38] == struct.pack(">H", 4791):
                self.seen += 1
                if self.seen % 3 == 0:
                    self.marked += 1
                    self.mark(frame)
            try:
                self.socket.sendto(frame, self.to)
            except OSError:  # nobody is there
                pass

    @staticmethod
    def mark(frame):
        frame[15] |= 3
        frame[24:26] = b"\0\0"
        total = sum(struct.unpack(">10H", frame[14:34]))
        total = (total & 0xffff) + (total >> 16)
        frame[24:26] = struct.pack(">H", ~(total + (total >> 16)) & 0xffff)


def ends_of(status, guest):
    return ": status of the model %s, of the guest %s%s" % (status, guest[0], " (its time-out)" if guest[0] == 124 else "")


class bench:
    """The guest, and one `rnic serve` after the other at the other end of its cable."""

    def __init__(self, rnic, image, folder, congested=False, meets_over_tcp=False):
        """`meets_over_tcp`: the guest's TCP connections to the model's address lead to this machine's loopback."""
        self.rnic, self.folder, self.number = rnic, folder, 0
        self.own, self.peer = os.path.join(folder, "model"), os.path.join(folder, "guest")
        towards = os.path.join(folder, "switch") if congested else self.own
        if congested:
            self.switch = congested_switch(towards, self.own)
        self.link = "datagram:unix:%s,%s" % (self.own, self.peer)
        self.guest = linux.guest(image, "dgram,local.type=unix,local.path=%s,remote.type=unix,remote.path=%s" %
                                 (self.peer, towards), [PORT],
                                 "user,net=10.0.0.0/24,host=" + MODEL4 if meets_over_tcp else None)
        self.guest.set_up()
        if meets_over_tcp:
            self.guest.must("/sbin/ip link set eth2 up; /sbin/ip addr add 10.0.0.15/32 dev eth2;"
                            " /sbin/ip route add %s dev eth2 src 10.0.0.15 table 77;"
                            " /sbin/ip rule add to %s ipproto 6 lookup 77" % (MODEL4, MODEL4))
        self.failures = []
        self.lossy = self.repeat = False
        self.ack_timeout = PATIENT

    def serve(self, *arguments):
        self.number += 1
        function = int(arguments[arguments.index("--function") + 1]) if "--function" in arguments else 0
        self.mac = mac_of_function(MODEL_MAC, function)
        self.json = os.path.join(self.folder, "%d.json" % self.number)
        self.pcap = os.path.join(self.folder, "%d.pcap" % self.number)
        command = [self.rnic, "serve", "--link", self.link, "--ip", MODEL4, "--ip", MODEL6, "--mac",
                   MODEL_MAC, "--json", self.json, "--pcap", self.pcap, *arguments]
        model = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        first = model.stdout.readline()
        if not first.startswith("serving"):
            model.kill()
            raise linux.failed("rnic serve: " + first)
        return model

    def end(self, model, seconds=SECONDS):
        text, _ = rest_of(model, seconds, grace=10)
        return model.returncode, text

    def tool(self, app, size, iterations, mtu, gid, priority, more):
        mtu_option = "" if app == "ud_pingpong" else "-m %d" % mtu
        content = "-c" if app == "rc_pingpong" else ""
        return "timeout %d /usr/bin/ibv_%s -d rxe0 -g %d %s -s %d -n %d -l %d %s %s -p " % (
            SECONDS, app, self.guest.gid_index(gid), mtu_option, size, iterations, priority, content, more)

    def both_ways(self, name, app, size, iterations=8, mtu=1024, gid=GID4, gid_index=None, priority=0, serve=(),
                  tool=""):
        options = ["--app", app, "--size", str(size), "--iterations", str(iterations), "--mtu", str(mtu), "--priority",
                   str(priority), "--timeout", str(self.ack_timeout), *serve]
        if gid_index is not None:
            options += ["--gid-index", str(gid_index)]
        tool = self.tool(app, size, iterations, mtu, gid, priority, tool)
        model = self.serve(*options, "--server", "--port", str(PORT + 2))
        self.verdict(name + ", the guest is client", model, self.guest.run(tool + "%d 10.0.2.2" % (PORT + 2), SECONDS * 2))
        self.guest.start_server(tool + str(PORT), PORT)
        model = self.serve(*options, "--client", "127.0.0.1", "--port", str(PORT))
        self.verdict(name + ", the guest is server", model, self.guest.finish_server(SECONDS * 2))

    def note(self, name, ok, text="", ends=""):
        """`ends`: what became of both sides, for a log of which only the lines of failures are kept."""
        print("%-60s %s" % (name, "ok" if ok else "FAILED" + ends), flush=True)
        if not ok:
            self.failures.append(name)
            print(text, flush=True)

    def verdict(self, name, model, guest, pings=None):
        """`pings`: of rping, as many as were asked for."""
        status, text = self.end(model)
        ok = status == 0 and (guest[0] == 0 or pings is not None and lost_its_channel(guest))
        if ok:
            with open(self.json) as f:
                self.result = result = json.load(f)
            run = result["runs"][0]
            ok = run["ok"] and run["wrong_bytes"] == 0 and max(run["sent"], run["received"]) > 0
            ok = ok and pings in (None, run["received"])
            # Each of several queue pairs may be ahead by a message when the others reach the number.
            ok = ok and (run["sent"] == run["received"] or run["app"] in ("srq_pingpong", "mckey", "rdma_xserver"))
            bad = [k for k in result["statistics"] if "bad_icrc" in k or "bad_ip" in k or k.endswith("drop.bad_length")]
            ok = ok and not bad
            text += "".join("%s: %d\n" % (k, result["statistics"][k]) for k in bad)
        lost = self.lost_last(guest, text) if not ok and self.lossy else None
        if lost:
            print("%-60s once more: the %s was lost" % (name, lost), flush=True)
            self.repeat = True
            return
        self.note(name, ok, ends=ends_of(status, guest))
        if not ok:
            self.show(status, text, guest)

    def lost_last(self, guest, text):
        """What the guest sent last, if it was lost: the guest has all and has ended, so that nobody repeats it."""
        if guest[0] != 0 and not lost_its_channel(guest):
            return None
        if "work request 2 failed: transport retry counter exceeded" in text:
            return "last acknowledgement"
        if "the peer does not send any more" in text and wire_image.leaves_without_word(self.pcap, self.mac):
            return "DREQ"
        return None

    def show(self, status, text, guest):
        print("--- model, status %s\n%s--- guest, status %d\n%s---" % (status, text, guest[0], guest[1]), flush=True)
        print("the guest's card:\n%s---" % self.guest.card(), flush=True)
        if "RNIC_KEEP" in os.environ:
            shutil.copy(self.pcap, os.environ["RNIC_KEEP"])

    def wrong_memory(self, messages, mtu):
        return wire_image.differences(self.pcap, self.mac, self.result["runs"][0], messages, mtu)

    def tool_verdict(self, name, model, guest, look):
        """`look(run)` gives what is wrong with a run beside what the sides say of themselves."""
        status, text = self.end(model)
        wrong = []
        if status == 0 and guest[0] == 0:
            with open(self.json) as f:
                self.result = json.load(f)
            run = self.result["runs"][0]
            wrong = ["wrong: %s" % run] if run["wrong_bytes"] != 0 or not run["ok"] else look(run)
        ok = status == 0 and guest[0] == 0 and not wrong
        self.note(name, ok, ends=ends_of(status, guest))
        if not ok:
            self.show(status, text + "".join(w + "\n" for w in wrong), guest)
