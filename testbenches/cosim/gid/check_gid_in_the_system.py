#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GID match and look-up of sources as RTL in the whole adapter: a match whose encoder has a wrong bit, or a source that
has one in its MAC, is found by `shadow` in latency and soak, on either side; without a fault `rtl` and `shadow` are
invisible; what there is no RTL of is refused.

usage: check_gid_in_the_system.py PROGRAM PROGRAM_WITH_A_WRONG_BLOCK gid_match|gid_source
"""
import json
import os
import re
import subprocess
import sys
import tempfile

REPORT = r"rnic: ([ab])\.adapter\.%s: model and RTL differ in cycle (\d+) at %s: model 0x([0-9a-f]+), RTL 0x([0-9a-f]+); look-up \d+, %s; waveform in (\S+\.fst)"
# Block: where in the adapter, the port that differs, what is in the block.
BLOCKS = {"gid_match": (r"parser1\.gid_match", "index", "RoCE v2, GID [0-9a-f:]+"),
          "gid_source": (r"(?:gather|answer_transmit)\.gid_source1", "mac", r"RoCE v2, entry \d+, function 0, MAC \d+")}
LATENCY = ["latency", "--sizes", "64", "--iterations", "5", "--quiet"]
SOAK = ["soak", "--messages", "60", "--qps", "2", "--largest", "5000", "--quiet"]


def run(program, arguments, folder, number=[0]):
    number[0] += 1
    where = os.path.join(folder, str(number[0]))
    os.mkdir(where)
    return subprocess.run([program] + arguments, capture_output=True, text=True, timeout=120, cwd=where), where


def check(plain, wrong, block, folder):
    faults = []
    report = re.compile(REPORT % BLOCKS[block])

    def expect(ok, text):
        if not ok:
            faults.append(text)

    rows = []
    for settings in ([], ["--set", "rtl.gid=rtl"], ["--set", "rtl.gid=shadow"], ["--set", "b.rtl.gid=rtl"]):
        done, where = run(plain, LATENCY + settings + ["--json", "out.json"], folder)
        expect(done.returncode == 0, "%s: %s" % (settings, done.stderr))
        with open(os.path.join(where, "out.json")) as f:
            rows.append(json.load(f)["rows"])
        expect(os.listdir(where) == ["out.json"], "a waveform without a difference")
    expect(all(r == rows[0] for r in rows), "latency is not the same with RTL")
    done, _ = run(plain, SOAK + ["--set", "rtl.gid=shadow"], folder)
    expect(done.returncode == 0, "soak beside RTL: " + done.stderr)

    for side in "ab":
        for load in (LATENCY, SOAK):
            done, where = run(wrong, load + ["--set", side + ".rtl.gid=shadow"], folder)
            found = report.search(done.stderr)
            expect(done.returncode == 1 and found is not None, "%s: %d: %s" % (load[0], done.returncode, done.stderr[-400:]))
            if found is not None:
                expect(found[1] == side and found[3] != found[4], found[0])
                expect(os.path.getsize(os.path.join(where, found[5])) > 300, "waveform is empty")
    for setting, has in (("adapter.gid.match=hashed", "adapter.gid.compare_cycles 2"),
                         ("adapter.gid.compare_cycles=3", "adapter.gid.compare_cycles 2"),
                         ("adapter.gid.source_cycles=3", "adapter.gid.source_cycles must be 2")):
        done, _ = run(plain, LATENCY + ["--set", "rtl.gid=rtl", "--set", setting], folder)
        expect(done.returncode == 2 and done.stderr.count("\n") == 1 and has in done.stderr,
               "%s: %d: %s" % (setting, done.returncode, done.stderr))
    done, _ = run(plain, LATENCY + ["--set", "rtl.icrc=rtl", "--set", "adapter.datapath_bytes=32"], folder)
    expect(done.returncode == 2 and "adapter.datapath_bytes must be 16 or 64" in done.stderr, done.stderr)
    return faults


def main():
    with tempfile.TemporaryDirectory() as folder:
        faults = check(sys.argv[1], sys.argv[2], sys.argv[3], folder)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
