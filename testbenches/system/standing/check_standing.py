#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same experiment gives the same results, whatever the kernel's order, the ICRC engine and the connectors.

usage: check_standing.py PROGRAM
"""
import json
import os
import subprocess
import sys
import tempfile

EXPERIMENTS = [
    ["latency", "--verb", "write", "--sizes", "1,64,4096,65536", "--iterations", "8"],
    ["latency", "--verb", "send", "--sizes", "0,200,5000", "--iterations", "8", "--ip", "6"],
    ["latency", "--verb", "read", "--sizes", "8,2048,65536", "--iterations", "8", "--roce", "v1", "--ip", "6"],
    ["bandwidth", "--verb", "write", "--sizes", "8,1024,65536", "--messages", "120", "--qps", "4", "--bidirectional"],
    ["bandwidth", "--verb", "send", "--sizes", "64,9000", "--messages", "150", "--qps", "3", "--vlan", "7",
     "--priority", "3", "--mtu", "1024"],
    ["bandwidth", "--verb", "read", "--sizes", "64,9000", "--messages", "120", "--qps", "2", "--bidirectional"],
    ["latency", "--verb", "cas", "--iterations", "80", "--roce", "v1"],
    ["bandwidth", "--transport", "uc", "--verb", "send_imm", "--sizes", "8,9000", "--messages", "120", "--qps", "3"],
    ["bandwidth", "--transport", "ud", "--verb", "send", "--sizes", "8,1000", "--messages", "150", "--bidirectional"],
    ["bandwidth", "--transport", "xrc", "--verb", "write_imm", "--sizes", "8,9000", "--messages", "120", "--qps", "2"],
    ["bandwidth", "--verb", "fadd", "--messages", "120", "--qps", "3", "--bidirectional"],
]
# What must not be visible, and how it shows in the echo of the parameters.
VARIANTS = {
    "again": [],
    "every block at every edge": ["sim.always_tick=true"],
    "another order within an edge": ["sim.shuffle_seed=7"],
    "yet another order": ["sim.shuffle_seed=123456789"],
    "one kernel activation an instant": ["sim.run_ahead=false"],
    "verilated ICRC": ["rtl.icrc=true"],
    "TLM sockets": ["tlm.sockets=true"],
    "all of these": ["sim.always_tick=true", "sim.run_ahead=false", "sim.shuffle_seed=99", "rtl.icrc=true", "tlm.sockets=true"],
}
ECHO = ("sim.always_tick", "sim.run_ahead", "sim.shuffle_seed", "rtl.icrc", "tlm.sockets")


def run(program, arguments, settings, folder, name):
    """JSON without the echo of what was set, bytes of the capture, and what was printed."""
    files = [os.path.join(folder, name + end) for end in (".json", ".pcap")]
    command = [program] + arguments + ["--json", files[0], "--pcap", files[1], "--overwrite", "--quiet"]
    for s in settings:
        command += ["--set", s]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit("%s: exit status %d: %s" % (" ".join(command), done.returncode, done.stderr))
    with open(files[0]) as f:
        text = f.read()
    result = json.loads(text)
    lines = result["parameters"].splitlines()
    for s in settings:
        if not any(line.startswith(s.replace("=", " = ")) for line in lines):
            raise SystemExit("%s: not in the echo of the parameters" % s)
    result["parameters"] = [line for line in lines if not line.startswith(ECHO)]
    del result["set"]
    with open(files[1], "rb") as f:
        capture = f.read()
    return json.dumps(result), capture, done.stdout


def check_stages(result, complain):
    """Where the time went adds up to the time."""
    for row in json.loads(result)["rows"]:
        if "stages" not in row:
            continue
        if len(row["stages"]) < 5 or any(stage["ps"] < 0 for stage in row["stages"]):
            complain("stages of %s bytes: %s" % (row["size"], row["stages"]))
        if sum(stage["ps"] for stage in row["stages"]) != row["end_to_end_ps"]:
            complain("the stages of %s bytes do not add up to %s ps" % (row["size"], row["end_to_end_ps"]))


def main():
    faults = []
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        for i, arguments in enumerate(EXPERIMENTS):
            what = " ".join(arguments[:3])
            normal = run(program, arguments, [], folder, "normal%d" % i)
            if len(normal[1]) < 10000:
                faults.append(what + ": the capture is empty")
            check_stages(normal[0], lambda text, what=what: faults.append(what + ": " + text))
            for name, settings in VARIANTS.items():
                other = run(program, arguments, settings, folder, "other")
                for part, a, b in zip(("results", "capture", "text"), normal, other):
                    if a != b:
                        faults.append("%s: %s: the %s differs" % (what, name, part))
    for fault in faults:
        print(fault)
    print("%d experiments, %d variants, %d faults" % (len(EXPERIMENTS), len(VARIANTS), len(faults)))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
