#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--bond of the program with functions of one port each (--functions A,B,C): a port that dies amid a run costs a function
the packets that were on its line, which are repeated, and the driver's time to change the map, also with soak, which
checks every byte; the results are the same however blocks are ordered, put to sleep or reached. Frames of a function at
the other port as tshark reads them. What is not met is refused by name.

usage: check_high_availability.py PROGRAM
"""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "program"))
from measured_run import check, results

PROGRAM = sys.argv[1]
MANAGED = ["--set", "driver.steering=device_managed"]
LOAD = ["--sizes", "4096", "--qps", "4", "--messages", "4000"]


def run(folder, *arguments):
    return results(PROGRAM, folder, *arguments)


def plan(folder, outages):
    file = os.path.join(folder, "outage.toml")
    with open(file, "w") as f:
        for port, down, lasts in outages:
            f.write("[[outage]]\nport = %d\ndown_us = %d\nlasts_us = %d\n" % (port, down, lasts))
    return file


def on(bond, function, functions="1,1,0"):
    return ["--bond", bond, "--functions", functions, "--function", str(function)] + MANAGED


def amid(folder, own):
    """A time when the messages are under way: programs begin behind the bond, and a second later where LACP settles."""
    bond = run(folder, "bandwidth", *LOAD, *own)["bonds"]["a"]
    return int(bond["changes"][-1]["done_us"]) + (1000000 if "lacp" in bond else 0) + 1500


def one_port(folder):
    """Without a bond: each function has the cable of its port, and no other."""
    for function, port in ((1, 1), (2, 2), (3, 1)):
        r = run(folder, "bandwidth", *LOAD, "--functions", "1,1,1", "--function", str(function), "--port", "1,2")
        sent = [r["statistics"]["a.adapter.port%d.tx_frames" % p] for p in (1, 2)]
        check(sent[port - 1] > 1000 and (sent[2 - port] == 0 or function == 3), (function, sent))
    rows = [run(folder, "latency", "--sizes", "2,4096", "--iterations", "30", *more)["rows"]
            for more in (["--functions", "2", "--function", "1"], ["--functions", "1,1,0", "--function", "1"])]
    check([r["typical_us"] for r in rows[0]] == [r["typical_us"] for r in rows[1]], "one port is as fast: %s" % rows)


def failover(folder):
    for bond, function, port in (("balance-xor", 1, 1), ("balance-xor", 2, 2), ("active-backup", 2, 1),
                                 ("802.3ad", 1, 1), ("balance-xor", 0, 1)):
        own = on(bond, function)
        down = amid(folder, own)
        r = run(folder, "bandwidth", *LOAD, *own, "--faults", plan(folder, [(port, down, 400)]))
        for side in "ab":
            changes = [c for c in r["bonds"][side]["changes"] if c["seen_us"] > down - 100]
            away, back = changes[0], changes[-1]
            check(away["links"] == 3 - port and away["map"] == [3 - port] * 2, changes)
            check(0 < away["seen_us"] - down < 5 and away["done_us"] - away["seen_us"] < 20, changes)
            check(back["links"] == 3 and back["map"] == ([3 - port] * 2 if bond == "active-backup" else [1, 2]), changes)
        check(min(r["bonds"]["a"]["frames_sent"]) > 100, r["bonds"])
        again = sum(v for k, v in r["statistics"].items() if k.endswith(".retransmissions"))
        check(again > 0, "packets of the dead cable are repeated")
        print("%s, function %d: map changed %.1f us after the link of port %d was lost, %d retransmissions" %
              (bond, function, away["done_us"] - down, port, again))


def nothing_is_lost(folder):
    """Every byte of mixed verbs in both directions, while ports come and go, of a function of each port."""
    begin = amid(folder, on("balance-xor", 1))
    outages = [(1, begin, 150), (2, begin + 300, 150), (1, begin + 600, 100), (2, begin + 800, 100)]
    for function in (1, 2):
        r = run(folder, "soak", "--messages", "3000", "--qps", "8", "--ack-timeout", "8", *on("balance-xor", function),
                "--faults", plan(folder, outages))
        check(len(r["bonds"]["a"]["changes"]) == 1 + 2 * len(outages), r["bonds"])
    datagrams = ["bandwidth", "--transport", "ud", "--verb", "send", "--sizes", "1024", "--messages", "20000"]
    r = run(folder, *datagrams, *on("balance-xor", 1), "--faults", plan(folder, [(1, begin, 300)]))
    lost, sent = r["rows"][0]["lost"], r["bonds"]["a"]["frames_sent"]
    check(0 < lost < 200 and min(sent) > 500, "datagrams are lost for some microseconds only: %s of %s" % (lost, sent))
    print("datagrams: %d of 20000 lost" % lost)


def same_however_it_runs(folder):
    begin = amid(folder, on("balance-xor", 2))

    def result(*more):
        r = run(folder, "bandwidth", *LOAD, *on("balance-xor", 2), "--faults", plan(folder, [(2, begin, 300)]), *more)
        for row in r["rows"]:
            row.pop("simulator", None)
        return r["rows"], r["bonds"]

    first = result()
    check(len(first[1]["a"]["changes"]) == 3, first[1])
    for other in ("sim.always_tick=true", "sim.shuffle_seed=7", "sim.run_ahead=false", "tlm.sockets=true"):
        check(result("--set", other) == first, other)


def frames(folder):
    """By whichever port, they have the function's addresses."""
    if shutil.which("tshark") is None:
        return
    capture = os.path.join(folder, "c.pcap")
    run(folder, "latency", "--sizes", "64", "--iterations", "5", *on("active-backup", 2), "--pcap", capture)
    text = subprocess.run(["tshark", "-r", capture, "-Y", "infiniband", "-T", "fields", "-e", "eth.src", "-e",
                           "ip.src"], capture_output=True, text=True, check=True).stdout
    sources = {tuple(line.split("\t")) for line in text.splitlines()}
    check(sources == {("02:02:02:00:01:02", "10.0.0.1"), ("02:02:02:00:02:02", "10.0.0.2")}, sources)


def refusals():
    for arguments, words in (
            (["--bond", "balance-xor", "--functions", "1,1,1"] + MANAGED, "1 of 3 have both ports"),
            (["--bond", "balance-xor", "--functions", "2"] + MANAGED, "dual-ported virtual functions: 2 of 2"),
            (["--bond", "active-backup", "--functions", "1,1,0"], "driver.steering=device_managed"),
            (["--bond", "802.3ad", "--functions", "64,0,0"] + MANAGED, "fewer than 64"),
            (["--bond", "ecmp", "--functions", "1,0,0"] + MANAGED, "ecmp is none"),
            (["--functions", "1,1,0", "--function", "2"], "host.function: 2 has no port with a cable (--port 1"),
            (["--functions", "1", "--set", "driver.functions.port1=2"], "driver.functions.port1"),
            (["--functions", "0,1,0", "--set", "adapter.ports=1"], "driver.functions.port2: 1: expected 0"),
            (["--functions", "100,20,7"], "--functions: expected 0 to 126")):
        done = subprocess.run([PROGRAM, "latency", "--sizes", "2"] + arguments, capture_output=True, text=True)
        check(done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1, (arguments, done.stderr))


with tempfile.TemporaryDirectory() as place:
    one_port(place)
    failover(place)
    nothing_is_lost(place)
    same_however_it_runs(place)
    frames(place)
refusals()
