#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--functions and --function of the program. A virtual function's results are the same however blocks are ordered, put
to sleep or reached: ticking always, another order, without running ahead, through TLM-2.0 sockets. What a virtual
function has not (BlueFlame) shows in its latency, what it has in its throughput. A capture of its frames, read by
tshark, has its own addresses.

usage: check_functions.py PROGRAM
"""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "program"))
from measured_run import check, results

PROGRAM = sys.argv[1]


def run(folder, *arguments):
    return results(PROGRAM, folder, *arguments)


def rows_of(folder, *command):
    """Without what the simulation itself has cost."""
    rows = run(folder, *command)["rows"]
    for row in rows:
        row.pop("simulator", None)
    return rows


def same_however_it_runs(folder):
    runs = [("latency", "--sizes", "2,4096,65536", "--iterations", "20"),
            ("bandwidth", "--sizes", "64,16384", "--qps", "4", "--messages", "400", "--verb", "read")]
    for command in runs:
        command = list(command) + ["--functions", "4", "--function", "3"]
        first = rows_of(folder, *command)
        for other in ("sim.always_tick=true", "sim.shuffle_seed=7", "sim.run_ahead=false", "tlm.sockets=true"):
            check(rows_of(folder, *command, "--set", other) == first, "%s with %s" % (command[0], other))


def figures(folder):
    def typical(*more):
        rows = run(folder, "latency", "--sizes", "2,4096", "--iterations", "50", *more)["rows"]
        return [r["typical_us"] for r in rows]

    physical, beside = typical(), typical("--functions", "8")
    check(beside == physical, "idle virtual functions change the physical one's latency: %s, %s" % (physical, beside))
    virtual = typical("--functions", "8", "--function", "5")
    without = typical("--set", "driver.blue_flame=none")
    check(abs(virtual[0] - without[0]) < 0.01, "without BlueFlame, as a virtual function: %s, %s" % (without, virtual))
    rows = run(folder, "bandwidth", "--sizes", "65536", "--qps", "4", "--messages", "400", "--functions", "8",
               "--function", "8")["rows"]
    check(rows[0]["goodput_gbps"] > 38, "the line's rate: %s" % rows[0]["goodput_gbps"])
    print("2 bytes: physical function %.3f us, virtual %.3f us; 64 KiB: %.1f Gb/s" %
          (physical[0], virtual[0], rows[0]["goodput_gbps"]))


def rates(folder):
    """A function's queue pairs have its rate together; what cannot be is refused by name."""
    limited = ["--functions", "2", "--function", "1", "--set", "driver.functions.max_rate_mbps=2000"]
    tagged = limited + ["--set", "driver.functions.vlan=50"]
    for qps in ("1", "4"):
        row = run(folder, "bandwidth", "--sizes", "4096", "--messages", "400", "--qps", qps, *tagged)["rows"][0]
        check(1.85 < row["goodput_gbps"] < 2.0, "2 Gb/s with %s queue pairs: %s" % (qps, row["goodput_gbps"]))
        check("rate limit" in row["limited_by"], row["limited_by"])
    for wrong, name in ((limited, "driver.functions.max_rate_mbps"),
                        (["--functions", "1", "--set", "driver.use_msix=false"], "driver.use_msix")):
        done = subprocess.run([PROGRAM, "latency", "--sizes", "2"] + wrong, capture_output=True, text=True)
        check(done.returncode == 2 and name in done.stderr and done.stderr.count("\n") == 1, done.stderr)
    wire, message = (run(folder, "latency", "--sizes", "2,4096", "--iterations", "20", *more)["rows"]
                     for more in (["--set", "driver.use_msix=false"], []))
    for one, other in zip(wire, message):  # but for the clocks' phases at which they begin
        check(abs(one["typical_us"] - other["typical_us"]) < 0.01, "who polls does not need interrupts: %s, %s" %
              (one["typical_us"], other["typical_us"]))


def frames(folder):
    if shutil.which("tshark") is None:
        return
    capture = os.path.join(folder, "c.pcap")
    run(folder, "latency", "--sizes", "64", "--iterations", "5", "--functions", "2", "--function", "1", "--pcap", capture)
    text = subprocess.run(["tshark", "-r", capture, "-Y", "infiniband", "-T", "fields", "-e", "eth.src", "-e",
                           "ip.src"], capture_output=True, text=True, check=True).stdout
    sources = {tuple(line.split("\t")) for line in text.splitlines()}
    # Locally administered, function 1, port 1, and what tells the hosts apart.
    check(sources == {("02:01:01:00:01:01", "10.0.0.1"), ("02:01:01:00:02:01", "10.0.0.2")}, sources)


def refusals():
    for arguments, words in ((["--functions", "127"], "--functions: expected 0 to 126"),
                             (["--functions", "2", "--function", "3"], "expected 0 to host.functions, which is 2"),
                             (["--function", "1"], "which is 0")):
        done = subprocess.run([PROGRAM, "latency", "--sizes", "8"] + arguments, capture_output=True, text=True)
        check(done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1, done.stderr)


with tempfile.TemporaryDirectory() as place:
    same_however_it_runs(place)
    figures(place)
    rates(place)
    frames(place)
refusals()
