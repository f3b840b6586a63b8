#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""RTL in the whole adapter: a wrong mask in one side's RTL fails in soak, latency, replay and serve, as `rtl` by what
the peer says and as `shadow` at the first difference; without a fault both are invisible; the other names of the values,
and what is refused.

usage: check_rtl_in_the_system.py PROGRAM PROGRAM_WITH_A_WRONG_MASK
"""
import json
import os
import re
import socket
import subprocess
import sys
import tempfile

# The engine has other frames too, whose result nobody takes: those of a host that speaks MLD.
REPORT = re.compile(r"rnic: (\S+): model and RTL differ in cycle (\d+) at (\S+): model 0x([0-9a-f]+), RTL 0x([0-9a-f]+); "
                    r"packet \d+ of this engine, (?:no RoCE, \d+ bytes so far|RoCE v2 over IPv4, \d+ bytes so far, opcode 0x[0-9a-f]+, "
                    r"queue pair 0x[0-9a-f]+, PSN 0x[0-9a-f]+); waveform in (\S+\.fst)")


class Checks:
    def __init__(self, plain, wrong, folder):
        self.plain, self.wrong, self.folder, self.faults, self.number = plain, wrong, folder, [], 0

    def expect(self, ok, text):
        if not ok:
            self.faults.append(text)

    def run(self, program, arguments, status):
        """A run in a folder of its own; what it printed."""
        self.number += 1
        where = os.path.join(self.folder, str(self.number))
        os.mkdir(where)
        done = subprocess.run([program] + arguments, capture_output=True, text=True, timeout=120, cwd=where)
        what = "%s %s" % (os.path.basename(program), " ".join(arguments))
        self.expect(done.returncode == status, "%s: exit status %d: %s" % (what, done.returncode, done.stderr[-400:]))
        return done, where, what

    def shadow_finds_it(self, arguments, block):
        done, where, what = self.run(self.wrong, arguments, 1)
        lines = done.stderr.splitlines()
        at = next((i for i, line in enumerate(lines) if REPORT.match(line)), None)
        self.expect(at is not None, "%s: no report: %s" % (what, done.stderr[-400:]))
        if at is None:
            return
        found = REPORT.match(lines[at])
        self.expect(re.fullmatch(block, found[1]), "%s: found in %s" % (what, found[1]))
        self.expect(found[3] == "result_crc" and found[4] != found[5], "%s: %s" % (what, lines[at]))
        history = [line for line in lines[at + 1:] if line.startswith("  cycle ")]
        self.expect(len(history) >= 4 and history[-1].startswith("  cycle %s:" % found[2]), "%s: history %s" % (what, history))
        self.expect(all("| model in_ready" in line and "| rtl in_ready" in line for line in history), what + ": both histories")
        with open(os.path.join(where, found[6]), "rb") as f:
            self.expect(len(f.read()) > 300, what + ": waveform is empty")


def shadow(side):
    return ["--set", side + "rtl.icrc=shadow", "--quiet"]


def rtl(side):
    return ["--set", side + "rtl.icrc=rtl", "--quiet"]


LATENCY = ["latency", "--sizes", "64", "--iterations", "5"]
SOAK = ["soak", "--messages", "60", "--qps", "2", "--largest", "5000"]

def serve(c, settings, finder, seconds=40):
    """A pingpong of two processes over a socket; the client's adapter has the fault."""
    c.number += 1
    link = os.path.join(c.folder, "link%d" % c.number)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    app = ["--app", "rc_pingpong", "--port", port, "--duration", str(seconds)]
    server = subprocess.Popen([c.plain, "serve", "--link", "listen:unix:" + link, "--mac", "02:00:00:00:00:01", "--ip",
                               "10.0.0.1", "--server"] + app, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        server.stdout.readline()  # "serving ..."
        finder(["serve", "--link", "connect:unix:" + link, "--mac", "02:00:00:00:00:02", "--ip", "10.0.0.2", "--client",
                "127.0.0.1"] + app + settings)
    finally:
        server.kill()
        server.communicate()


def check_invisible(c):
    """Without a fault the three are one."""
    results = []
    for settings in ([], rtl("a."), shadow(""), ["--set", "rtl.icrc=true"]):
        done, where, _ = c.run(c.plain, LATENCY + settings + ["--json", "out.json"], 0)
        with open(os.path.join(where, "out.json")) as f:
            results.append(json.load(f)["rows"])
        c.expect(not any(name.endswith(".fst") for name in os.listdir(where)), "a waveform without a difference")
    c.expect(all(r == results[0] for r in results), "latency is not the same with RTL")
    c.run(c.plain, SOAK + shadow(""), 0)


def check_refused(c):
    done, _, _ = c.run(c.plain, LATENCY + ["--set", "b.rtl.icrc=verilog"], 2)
    c.expect(done.stderr == "rnic: --set: b.rtl.icrc: 'verilog' is not legal, expected as_both, model, rtl or shadow\n", done.stderr)


def check_wrong_mask(c, capture):
    for side in ("a.", "b."):
        node = side[0]
        c.shadow_finds_it(LATENCY + shadow(side), node + r"\.adapter\.icrc_(insert|check)")
        c.shadow_finds_it(SOAK + shadow(side), node + r"\.adapter\.icrc_(insert|check)")
        c.run(c.wrong, LATENCY + rtl(side), 1)
        c.run(c.wrong, SOAK + rtl(side), 1)
    # Both ends wrong in the same way: only shadow sees it.
    c.run(c.wrong, LATENCY + rtl(""), 0)
    c.shadow_finds_it(LATENCY + rtl("") + ["--set", "b.rtl.icrc=shadow"], r"b\.adapter\.icrc_(insert|check)")
    c.shadow_finds_it(["replay", capture] + shadow("a."), r"held\.adapter\.icrc_(insert|check)")
    c.run(c.wrong, ["replay", capture] + rtl(""), 1)
    c.run(c.plain, ["replay", capture] + shadow(""), 0)
    serve(c, shadow(""), lambda arguments: c.shadow_finds_it(arguments, r"served\.adapter\.icrc_(insert|check)"))
    serve(c, rtl("a."), lambda arguments: c.run(c.wrong, arguments, 1), 6)  # by the clock, as nothing ever arrives
    serve(c, shadow(""), lambda arguments: c.run(c.plain, arguments, 0))


def main():
    with tempfile.TemporaryDirectory() as folder:
        c = Checks(sys.argv[1], sys.argv[2], folder)
        capture = os.path.join(folder, "capture.pcap")
        c.run(c.plain, LATENCY + ["--quiet", "--pcap", capture], 0)
        check_invisible(c)
        check_refused(c)
        check_wrong_mask(c, capture)
    for fault in c.faults:
        print(fault)
    return 1 if c.faults else 0


if __name__ == "__main__":
    sys.exit(main())
