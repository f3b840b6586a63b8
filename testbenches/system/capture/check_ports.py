#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--pcap FILE.pcapng, as tshark and capinfos read it: an interface for each port, with as many frames as the port counts;
what one port sends is at the other end of its cable as much later as the cable is long, byte for byte, or was lost on it;
order of time and directions; comments whose stages sum to the time since the message was posted, and are those of a
trace of the same run; a run with it gives the same results as one without.

usage: check_ports.py PROGRAM
Exit code 77: tshark or capinfos is not there.
"""
import collections
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "fabric"), os.path.dirname(HERE)]
from faults import run_checks  # noqa: E402
from network_checks import Checks, exact_times  # noqa: E402

NAMES = ["frame.time_epoch", "frame.interface_name", "frame.packet_flags_direction", "frame.md5_hash", "frame.len",
         "frame.comment", "infiniband.bth.opcode", "macc.opcode", "infiniband.bth.m"]
CNP = "129"
INBOUND, OUTBOUND = 1, 2
WORDS = re.compile(r"message (\d+) of (.+), (\w+) (\d+) B, qpn (\d+) index (\d+) of (\w+), posted (\d+)\.(\d{6}) us before(?:: (.*))?$")
STAGE = re.compile(r"(.+) (\d+)\.(\d{3}) ns(?: \((.+)\))?$")


class Comment:
    def __init__(self, text):
        found = WORDS.match(text)
        if found is None:
            raise RuntimeError("a comment that is none: %s" % text)
        number, self.flow, self.verb, size, qpn, index, self.host, us, ps, stages = found.groups()
        self.number, self.bytes, self.qpn, self.index = int(number), int(size), int(qpn), int(index)
        self.ago = int(us) * 10**6 + int(ps)
        self.stages = []  # block, stage, picoseconds
        for group in stages.split("; ") if stages else []:
            block, rest = group.split(" ", 1)
            for stage in rest.split(", "):
                name, ns, ps, _ = STAGE.match(stage).groups()
                self.stages.append((block, name, int(ns) * 1000 + int(ps)))


class Frame:
    def __init__(self, fields):
        seconds, self.port, direction, self.hash, length, comment, self.opcode, self.control, self.migrated = fields
        whole, part = seconds.split(".")
        self.ns = int(whole) * 10**9 + int(part.ljust(9, "0"))
        self.direction, self.length = int(direction, 16) & 3, int(length)
        self.comment = Comment(comment) if comment else None


def frames_of(path):
    """What tshark reads."""
    command = ["tshark", "-r", path, "-o", "frame.generate_md5_hash:TRUE", "-T", "fields", "-E", "separator=/t"]
    for name in NAMES:
        command += ["-e", name]
    read = subprocess.run(command, capture_output=True, text=True, timeout=200)
    if read.returncode != 0:
        raise RuntimeError("%s: tshark cannot read it: %s" % (path, read.stderr))
    return [Frame(line.split("\t")) for line in read.stdout.splitlines()]


class Captures(Checks):
    def captured(self, command, *arguments, name="c.pcapng", **how):
        """Results, and frames of the capture, of which all that is true of any is checked."""
        path = self.path(name)
        result, _ = self.call(command, *arguments, "--pcap", path, "--overwrite", **how)
        frames = frames_of(path)
        what = "%s %s" % (command, " ".join(os.path.basename(a) for a in arguments))
        self.expect(frames, "%s: nothing was captured" % what)
        times = [f.ns for f in frames]
        self.expect(times == sorted(times), "%s: not in order of time" % what)
        for f in frames:
            self.expect(f.direction in (INBOUND, OUTBOUND), "%s: direction %d" % (what, f.direction))
            # traces/external: a connection of a real adapter sends MigReq 1 (no other path is there), its CNPs have 0.
            if f.opcode:
                self.expect(f.migrated == ("0" if f.opcode == CNP else "1"), "%s: opcode %s has MigReq %s" %
                            (what, f.opcode, f.migrated))
        self.check_comments(what, frames)
        self.check_tool(what, path, frames)
        return result, frames, what

    def check_tool(self, what, path, frames):
        """capinfos agrees: frames of each interface, names, order, the unit of time."""
        said = subprocess.run(["capinfos", path], capture_output=True, text=True, timeout=100).stdout
        self.expect(re.search(r"Strict time order: +True", said), "%s: capinfos: not in order" % what)
        names = re.findall(r"Name = (\S+)", said)
        counts = [int(n) for n in re.findall(r"Number of packets = (\d+)", said)]
        of = collections.Counter(f.port for f in frames)
        self.expect(dict(zip(names, counts)) == {n: of[n] for n in names} and set(of) <= set(names), "%s: %s, capinfos %s" %
                    (what, dict(of), list(zip(names, counts))))
        self.expect(set(re.findall(r"Time ticks per second = (\d+)", said)) == {"1000000000"}, "%s: ticks" % what)

    def check_comments(self, what, frames):
        """Stages sum to the time since the post; all frames of a message say the same time of that."""
        posted = {}
        for f in frames:
            m = f.comment
            if m is None:
                continue
            if m.stages:
                self.expect(sum(s[2] for s in m.stages) == m.ago, "%s: message %d: stages sum to %d of %d ps" %
                            (what, m.number, sum(s[2] for s in m.stages), m.ago))
                self.expect(m.stages[-1][1] == "cable" if f.direction == INBOUND else m.stages[-1][1] == "pma tx" or
                            not m.stages[-1][0].endswith("port1"), "%s: %s ends with %s" % (what, f.port, m.stages[-1]))
            # The frame's time is rounded down.
            since = f.ns * 1000 - m.ago
            low, high = posted.get(m.number, (since, since + 999))
            low, high = max(low, since), min(high, since + 999)
            posted[m.number] = low, high
            self.expect(low <= high, "%s: message %d: its frames were posted at different times" % (what, m.number))
        return posted

    def check_cable(self, what, frames, one, other, ns, lost=0):
        """What leaves at one end is at the other one, after `ns`, in the same order."""
        sent = [f for f in frames if f.port == one and f.direction == OUTBOUND]
        came = [f for f in frames if f.port == other and f.direction == INBOUND]
        self.expect(len(sent) - len(came) == lost, "%s: %s sent %d, %s has %d" %
                    (what, one, len(sent), other, len(came)))
        at = 0
        for f in came:
            while at != len(sent) and not (sent[at].hash == f.hash and sent[at].ns + ns == f.ns):
                at += 1
            self.expect(at != len(sent), "%s: %s has at %d ns what %s did not send %d ns before" %
                        (what, other, f.ns, one, ns))
            at = min(at + 1, len(sent))

    def check_counts(self, what, frames, counters, blocks):
        """As many frames as the ports count; `blocks`: names of their counters by interface."""
        for port, block in blocks.items():
            for direction, way in (OUTBOUND, "tx"), (INBOUND, "rx"):
                got = sum(f.port == port and f.direction == direction for f in frames)
                counted = sum(counters.get("%s.%s_%s" % (block, way, kind), 0) for kind in ("frames", "pause"))
                self.expect(got == counted, "%s: %s has %d frames %s, it counts %d" % (what, port, got, way, counted))


BETWEEN = {"a.port1": "a.adapter.port1", "b.port1": "b.adapter.port1"}
CABLE = ["--cable", "20"]  # 101 ns: a whole number, so that rounding down is the same at both ends


def check_pair(c):
    """Latency: both ports, the delay of the cable, the stages of the results; verbs whose data goes back."""
    for verb, sizes in ("write", "64,5000"), ("send", "300"), ("read", "64,5000"), ("fadd", "8"):
        arguments = ["--verb", verb, "--sizes", sizes, "--iterations", "7", "--warm-up", "2", *CABLE]
        path = c.path("%s.json" % verb)
        result, frames, what = c.captured("latency", *arguments, "--trace", path)
        c.expect(compare(c, what, frames, path) >= 4 * 9, "%s: few frames were compared" % what)
        c.check_counts(what, frames, result["statistics"], BETWEEN)
        c.check_cable(what, frames, "a.port1", "b.port1", 101)
        c.check_cable(what, frames, "b.port1", "a.port1", 101)
        plain, _ = c.call("latency", *arguments)
        result.pop("trace")
        for part in [result] + result["rows"]:
            for counter in "frames", "wrong_fcs":
                part["statistics"].pop("cable.capture." + counter, None)
        c.expect(plain == result, "%s: a capture changes the results" % what)
        number = len(plain["rows"]) * 9 * (1 if verb in ("read", "fadd") else 2)
        said = {f.comment.number for f in frames if f.comment}
        c.expect(said == set(range(1, number + 1)), "%s: %d of %d messages have comments" % (what, len(said), number))
        without = [f for f in frames if f.comment is None]
        c.expect(not without, "%s: %d frames without a comment: %s" % (what, len(without), [f.opcode for f in without[:5]]))


def compare(c, what, frames, path):
    """The messages of a trace and of a capture of one run are the same, with the same stages. Frames that were compared."""
    with open(path, encoding="utf-8") as f:
        events = json.load(f)["traceEvents"]
    begins, ways = {}, collections.defaultdict(list)
    names = {e["pid"]: e["args"]["name"] for e in events if e.get("name") == "process_name"}
    rows = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e.get("name") == "thread_name"}
    for e in events:
        if e["ph"] != "X":
            continue
        row, m = rows[e["pid"], e["tid"]].split(" #")[0], e["args"]["m"]
        begin, lasts = exact_times(e)
        if row.startswith("messages of "):
            begins[m] = (begin, e["args"]["qpn"], e["args"]["index"], names[e["pid"]])
        else:
            ways[m].append((begin, e["name"], lasts))
    origins, compared = set(), 0
    for f in frames:
        m = f.comment
        if m is None:
            continue
        begin, qpn, index, host = begins[m.number]
        c.expect((qpn, index, host) == (m.qpn, m.index, m.host), "%s: message %d is another one: %s" %
                 (what, m.number, begins[m.number]))
        origins.add((f.ns * 1000 - m.ago - begin) // 1000)
        at, known = begin, set(ways[m.number])
        for block, name, lasts in m.stages:
            if block != "line":
                c.expect((at, name, lasts) in known, "%s: message %d at %s: %s of %s is not in the trace" %
                         (what, m.number, f.port, (at, name, lasts), block))
            at += lasts
        compared += bool(m.stages)
    c.expect(max(origins) - min(origins) <= 1, "%s: messages begin %d ns apart in both" % (what, max(origins) - min(origins)))
    c.expect({f.comment.number for f in frames if f.comment} == set(begins), "%s: other messages than in the trace" % what)
    return compared


def check_trace(c):
    """The messages of a trace and of a capture of one run are the same, with the same stages."""
    text = """
[topology]
kind = "dumbbell"
left = 2
right = 1
metres = 20
trunk_metres = 40
[[workload]]
name = "rpc"
from = ["h1", "h2"]
to = "h3"
verbs = { write = 2, read = 1, send = 1, fadd = 1 }
sizes = [64, 1024, 9000]
depth = 4
messages = 60
"""
    file = c.file(text)
    path = c.path("both.json")
    result, frames, what = c.captured("run", file, "--trace", path)
    compared = compare(c, what, frames, path)
    c.expect(compared > 5 * 120, "%s: %d frames were compared" % (what, compared))
    blocks = {"h%d.port1" % h: "h%d.adapter.port1" % h for h in (1, 2, 3)}
    for switch, ports in ("left", 3), ("right", 2):
        blocks.update({"%s.port%d" % (switch, p): "%s.port%d" % (switch, p) for p in range(ports)})
    c.check_counts(what, frames, result["counters"], blocks)
    for one, other, ns in (("h1.port1", "left.port0", 101), ("left.port2", "right.port1", 202), ("right.port0", "h3.port1", 101)):
        c.check_cable(what, frames, one, other, ns)
        c.check_cable(what, frames, other, one, ns)
    result2, at_host, what = c.captured("run", file, "--pcap-at", "h2", name="one.pcapng")
    c.expect({f.port for f in at_host} == {"h2.port1", "left.port1"}, "%s: ports %s" % (what, {f.port for f in at_host}))
    c.expect(result2["workloads"] == result["workloads"], "%s: other results" % what)


def check_bandwidth(c):
    result, frames, what = c.captured("bandwidth", "--sizes", "64,4096", "--messages", "100", "--qps", "2", "--bidirectional",
                                      *CABLE)
    c.check_counts(what, frames, result["statistics"], BETWEEN)
    c.check_cable(what, frames, "a.port1", "b.port1", 101)
    posts = {f.comment.number for f in frames if f.comment}
    c.expect(posts == set(range(1, 401)), "%s: %d messages have comments" % (what, len(posts)))


def check_faults(c):
    """What is lost was sent and did not arrive; a damaged frame arrives only with --pcap-fcs."""
    for arguments, damaged in (["--drop", "3"], 0), (["--corrupt", "3", "--pcap-fcs"], 1):
        result, frames, what = c.captured("soak", "--messages", "300", "--qps", "4", "--largest", "8000", "--set", "cable.metres=20", *arguments,
                                          name="f.pcapng")
        lost = result["faults"]["a_to_b"]["drop"]
        c.expect((lost > 3) == (damaged == 0), "%s: %d were lost" % (what, lost))
        if not damaged:
            c.check_counts(what, frames, result["counters"], BETWEEN)
            c.check_cable(what, frames, "a.port1", "b.port1", 101, lost)
            continue
        sent = [f.hash for f in frames if f.port == "a.port1" and f.direction == OUTBOUND]
        came = [f.hash for f in frames if f.port == "b.port1" and f.direction == INBOUND]
        other = sum(a != b for a, b in zip(sent, came))
        c.expect(len(sent) == len(came) and other == result["faults"]["a_to_b"]["corrupt"], "%s: %d frames arrive otherwise" %
                 (what, other))


def check_pauses(c):
    """Control frames are there, of switches too, and have no comments; a long cable; both ports."""
    text = """
duration_us = 200
[parameters]
switch.buffer.flow_control = "pause"
switch.buffer.bytes = 1200000
[topology]
kind = "star"
hosts = 4
metres = 2000
[[flow]]
from = ["h1", "h2", "h3"]
to = "h4"
size = 16384
qps = 4
"""
    result, frames, what = c.captured("fabric", c.file(text))
    control = [f for f in frames if f.control]
    c.expect(control and all(f.comment is None for f in control), "%s: %d control frames" % (what, len(control)))
    c.check_cable(what, frames, "h1.port1", "s1.port0", 10100)
    _, frames, what = c.captured("latency", "--sizes", "64", "--port", "2,1", "--iterations", "3")
    c.expect({f.port for f in frames} >= {"a.port2", "b.port2"}, "%s: %s" % (what, {f.port for f in frames}))


def check_files(c):
    c.write("mine", "mine.pcapng")
    c.refuse(["mine.pcapng", "exists"], "latency", "--sizes", "64", "--pcap", c.path("mine.pcapng"))
    with open(c.path("mine.pcapng"), encoding="utf-8") as f:
        c.expect(f.read() == "mine", "a file of the user's was overwritten")
    os.symlink("/dev/full", c.path("full.pcapng"))
    done = subprocess.run([c.program, "latency", "--quiet", "--sizes", "64", "--overwrite", "--pcap", c.path("full.pcapng")],
                          capture_output=True, text=True, timeout=60)
    c.expect(done.returncode == 1 and "full.pcapng" in done.stderr and "No space" in done.stderr, "a full device: %d, %s" %
             (done.returncode, done.stderr))
    c.call("latency", "--sizes", "64", "--iterations", "3", "--pcap", c.path("one.pcap"))
    with open(c.path("one.pcap"), "rb") as f:
        c.expect(f.read(4) == b"\x4d\x3c\xb2\xa1", "a name that ends in .pcap is another format")


if __name__ == "__main__":
    if shutil.which("tshark") is None or shutil.which("capinfos") is None:
        print("skipped: tshark or capinfos is not there")
        sys.exit(77)
    sys.exit(run_checks(__doc__, Captures, [check_pair, check_trace, check_bandwidth, check_faults, check_pauses, check_files]))
