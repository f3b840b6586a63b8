#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a message costs the simulator, in instructions and ticks: check_cost.py RNIC cost.json [--update]

Runs `rnic bandwidth` of two lengths under callgrind, so that start and end of a run cancel: (instructions of the longer
run - instructions of the shorter one) / messages between them. The same for ticks of blocks and for activations of the
kernel, which are exact. Each must be within TOLERANCE of what cost.json has, above as well as below: what became
cheaper is written down with --update, in the commit that made it so, and what became dearer has its reason there.
Instructions depend on the compiler and its options, so they are compared in builds like that of cost.json's only
(compiler and build type are in it); ticks and activations everywhere.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TOLERANCE = 0.03
# Name, arguments, messages of the two runs.
LOADS = {
    "write_64B_16qp": (["--sizes", "64", "--qps", "16", "--depth", "16"], 1024, 3072),
    "write_1KiB": (["--sizes", "1024", "--depth", "16"], 1024, 2048),
    "write_64KiB": (["--sizes", "65536", "--depth", "16"], 48, 96),
    "read_4KiB_4qp": (["--verb", "read", "--sizes", "4096", "--qps", "4", "--depth", "16"], 256, 512),
    "send_256B_4qp": (["--verb", "send", "--sizes", "256", "--qps", "4", "--depth", "16"], 512, 1024),
}


def run(rnic, arguments, messages, instructions):
    with tempfile.TemporaryDirectory() as folder:
        result = os.path.join(folder, "result.json")
        command = [rnic, "bandwidth", *arguments, "--messages", str(messages), "--quiet", "--json", result]
        if instructions:
            command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"] + command
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: {done.stderr[-500:]}")
        collected = re.search(r"Collected : (\d+)", done.stderr)
        row = json.loads(pathlib.Path(result).read_text(encoding="utf-8"))["rows"][0]
        return {"instructions": int(collected[1]) if collected else 0, **row["simulator"]}


def measure(rnic, name, instructions):
    arguments, fewer, more = LOADS[name]
    short, long = (run(rnic, arguments, n, instructions) for n in (fewer, more))
    return {what: round((long[what] - short[what]) / (more - fewer), 2) for what in short if instructions or
            what != "instructions"}


def build_of(rnic):
    """Compiler, build type and whether the program was optimised as a whole: what instructions depend on."""
    cache = (pathlib.Path(rnic).resolve().parent / "CMakeCache.txt").read_text(encoding="utf-8")

    def value(name):
        found = re.search(rf"^{name}:[A-Z]+=(.*)$", cache, re.M)
        return found[1] if found else ""

    compiler = subprocess.run([value("CMAKE_CXX_COMPILER"), "-dumpfullversion"], capture_output=True, text=True,
                              check=False).stdout.strip()
    return f"{pathlib.Path(value('CMAKE_CXX_COMPILER')).name} {compiler}, {value('CMAKE_BUILD_TYPE')}, LTO {value('RNIC_LTO')}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rnic")
    parser.add_argument("recorded", type=pathlib.Path)
    parser.add_argument("--update", action="store_true", help="write what was measured into the file")
    options = parser.parse_args()
    recorded = json.loads(options.recorded.read_text(encoding="utf-8")) if options.recorded.exists() else {}
    build = build_of(options.rnic)
    instructions = options.update or build == recorded.get("build")
    if not instructions:
        print(f"instructions are not compared: this build is {build}, cost.json's {recorded.get('build')}")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        measured = dict(zip(LOADS, pool.map(lambda name: measure(options.rnic, name, instructions), LOADS)))
    if options.update:
        options.recorded.write_text(json.dumps({"build": build, "per_message": measured}, indent=2) + "\n",
                                    encoding="utf-8")
    faults = 0
    for name, costs in measured.items():
        for what, now in costs.items():
            before = recorded.get("per_message", {}).get(name, {}).get(what)
            change = None if before is None else (now - before) / before if before else float(now != 0)
            bad = not options.update and (change is None or abs(change) > TOLERANCE)
            faults += bad
            print(f"{name:16} {what:13} {now:12.2f} a message" +
                  (f"  {100 * change:+.2f} % of {before:.2f}" if change is not None else "  not recorded") +
                  ("  <- more than 3 %" if bad else ""))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
