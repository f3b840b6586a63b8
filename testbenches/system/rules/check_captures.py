#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Captures keep the standard's rules: those of real traffic, and those that the model writes.

usage: check_captures.py traces TRACES | check_captures.py latency|bandwidth|soak|reads|serve PROGRAM

A soak is run twice with the same seed, which is the same run: once the capture shows what was sent, once what arrived
behind the faults.
"""
import os
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "program"))
import check_rules  # noqa: E402
from process_output import rest_of  # noqa: E402

MANY = 20
DEPTH = "16"  # initiator depth of the program's connections


class Runs:
    def __init__(self, folder, subject):
        self.folder, self.subject, self.faults, self.packets, self.number = folder, subject, [], 0, 0

    def path(self, name):
        return os.path.join(self.folder, name)

    def program(self, arguments):
        done = subprocess.run([self.subject] + arguments, capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            self.faults.append("%s: exit status %d: %s" % (arguments, done.returncode, (done.stdout + done.stderr)[-300:]))

    def check(self, title, capture, received=None, options=(), least=MANY, complete=True):
        self.number += 1
        options = check_rules.arguments(["-"] + ["--complete"] * complete + list(options))
        packets, _, report = check_rules.check(capture, received, options)
        self.packets += len(packets)
        if len(packets) < least:
            self.faults.append("%s: only %d packets" % (title, len(packets)))
        self.faults += ["%s: frame %d: %s: %s" % (title, f.number, f.rule, f.text) for f in report.list[:10]]


def traces(runs):
    names = sorted(n for n in os.listdir(runs.subject) if n.endswith(".pcap"))
    for name in names:
        if ".rx." in name:
            continue
        arrived = name.replace(".pcap", ".rx.pcap")
        runs.check(name, os.path.join(runs.subject, name), os.path.join(runs.subject, arrived) if arrived in names else None,
                   ["--known", "soft-roce"], 30)
    # Taken at the card of the guest that answers: what was under way when a NAK left it comes milliseconds behind it.
    for name in sorted(os.listdir(os.path.join(runs.subject, "errors"))):
        runs.check(name, os.path.join(runs.subject, "errors", name), None,
                   ["--known", "soft-roce", "--slack-us", "25000"], 16, complete=False)
    for name in os.listdir(os.path.join(runs.subject, "external")):
        options = check_rules.arguments(["-"])
        _, _, report = check_rules.check(os.path.join(runs.subject, "external", name), None, options)
        runs.faults += ["%s: %s" % (name, f.text) for f in report.list]
    if len(names) < 10:
        runs.faults.append("only %d captures" % len(names))


VERBS = {"rc": ("write", "write_imm", "send", "read", "cas", "fadd"), "uc": ("write", "write_imm", "send"),
         "ud": ("send", "send_imm"), "xrc": ("write", "send_imm", "read", "cas")}


def measured(runs, command, ways):
    capture = runs.path("run.pcap")
    for transport, verb in ((t, v) for t in VERBS for v in VERBS[t]):
        for way in ways:
            arguments = [command, "--transport", transport, "--verb", verb, "--quiet", "--pcap", capture, "--overwrite"] + way
            if verb not in ("cas", "fadd"):
                arguments += ["--sizes", ("" if verb == "write" else "0,") + ("1,5,256" if transport == "ud" else
                                                                              "1,5,256,4096,9001")]
            runs.program(arguments)
            runs.check(" ".join(arguments[:5] + way), capture)


def latency(runs):
    measured(runs, "latency", [["--iterations", "10", "--mtu", "512"],
                               ["--iterations", "10", "--roce", "v1", "--ip", "6", "--vlan", "7"]])


def bandwidth(runs):
    measured(runs, "bandwidth", [["--messages", "40", "--qps", "5", "--bidirectional", "--mtu", "1024"],
                                 ["--messages", "300", "--qps", "1", "--ip", "6", "--roce", "v1"]])


# Runs in which answers once left out of order: the requester goes back while READs are under way.
GONE_BACK = ("--messages 500 --depth 16 --largest 3000 --mtu 512 --seed 1099 --roce v1 --drop 3 --corrupt 1",
             "--messages 500 --depth 16 --largest 3000 --mtu 1024 --seed 27056 --drop 0.2 --reorder 1 --corrupt 0.1"
             " --verbs read,fadd",
             "--messages 300 --depth 64 --largest 20000 --mtu 512 --seed 18 --drop 3 --reorder 5 --duplicate 1"
             " --verbs read,cas,write_imm")


def soak(runs):
    sent, arrived = runs.path("sent.pcap"), runs.path("arrived.pcap")

    def check(title, arguments):
        common = ["soak", "--qps", "8", "--quiet", "--overwrite"] + arguments + ["--pcap"]
        runs.program(common + [sent, "--pcap-before"])
        # The FCS shows which frames arrived damaged: a bit may be wrong in it alone.
        runs.program(common + [arrived, "--pcap-fcs"])
        # An answer to a repetition may stand behind long READs.
        runs.check(title, sent, arrived, ["--slack-us", "100", "--depth", DEPTH])

    for rate in (0, 1, 10):
        for version in ("v1", "v2"):
            for seed in ("1", "2"):
                arguments = ["--messages", "1500", "--largest", "16384", "--roce", version, "--seed", seed, "--corrupt",
                             str(rate / 10)]
                for fault in ("drop", "duplicate", "reorder"):
                    arguments += ["--" + fault, str(rate)]
                check("soak %d %% %s seed %s" % (rate, version, seed), arguments)
    for arguments in GONE_BACK:
        check("soak " + arguments, arguments.split())


def reads(runs):
    """More READs and atomics than the initiator depth lets out, answers that take long, and loss."""
    sent, arrived = runs.path("sent.pcap"), runs.path("arrived.pcap")
    for rate in (0, 1, 5, 9):
        for largest in ("65536", "3000"):
            common = ["soak", "--verbs", "read,read,fadd" if rate else "read", "--messages", "800", "--qps", "2", "--depth",
                      "128", "--largest", largest, "--drop", str(rate), "--seed", str(rate + 1), "--quiet", "--overwrite",
                      "--pcap"]
            runs.program(common + [sent, "--pcap-before"])
            runs.program(common + [arrived])
            runs.check("reads %d %% up to %s bytes" % (rate, largest), sent, arrived, ["--slack-us", "100", "--depth", DEPTH])


def serve(runs):
    """Two hosts, and the cable of each: what one sends reaches the other as it is."""
    for app in ("rc_pingpong", "uc_pingpong", "srq_pingpong"):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = str(s.getsockname()[1])
        sides = []
        for i, (role, link) in enumerate([("--server", "listen"), ("--client", "connect")]):
            command = [runs.subject, "serve", "--link", "%s:unix:%s" % (link, runs.path("link")), "--ip", "10.0.0.%d" % (i + 1),
                       "--mac", "02:00:00:00:00:0%d" % (i + 1), "--app", app, role]
            command += ["127.0.0.1"] * i + ["--port", port, "--size", "3000", "--iterations", "20", "--overwrite", "--pcap",
                                            runs.path("side%d.pcap" % i)]
            sides.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
            if i == 0:
                sides[0].stdout.readline()  # it listens
        for side in reversed(sides):
            text, killed = rest_of(side, 120)
            if killed or side.returncode != 0:
                runs.faults.append("serve %s: exit status %d: %s" % (app, side.returncode, text[-300:]))
        for i in range(2):
            runs.check("serve %s" % app, runs.path("side%d.pcap" % i), None, ["--slack-us", "100000"])


def main():
    cases = {f.__name__: f for f in (traces, latency, bandwidth, soak, reads, serve)}
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(folder, os.path.abspath(sys.argv[2]))
        cases[sys.argv[1]](runs)
    for fault in runs.faults[:MANY]:
        print(fault)
    print("%d captures, %d packets, %d faults" % (runs.number, runs.packets, len(runs.faults)))
    return 1 if runs.faults else 0


if __name__ == "__main__":
    sys.exit(main())
