#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--bond of the program: four queue pairs over both ports are faster than one line; a cable that dies amid a run costs
the packets that were on it, which are repeated, and the driver's time to change the map; the results are the same
however blocks are ordered, put to sleep or reached. Frames of a failover as tshark reads them.

usage: check_bond.py PROGRAM
"""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "program"))
from measured_run import check, results

PROGRAM = sys.argv[1]
OUTAGE = "[[outage]]\nport = %d\ndown_us = %d\nlasts_us = %d\n"
LOAD = ("bandwidth", "--sizes", "4096", "--qps", "4", "--messages", "6000")


def run(folder, *arguments):
    return results(PROGRAM, folder, *arguments)


def plan(folder, port, lasts, down=2000):
    file = os.path.join(folder, "outage.toml")
    with open(file, "w") as f:
        f.write(OUTAGE % (port, down, lasts))
    return file


def rates(folder):
    one = run(folder, *LOAD)["rows"][0]["goodput_gbps"]
    both = run(folder, *LOAD, "--port", "1,2")["rows"][0]["goodput_gbps"]
    bonded = run(folder, *LOAD, "--bond", "balance-xor")
    backup = run(folder, *LOAD, "--bond", "active-backup")
    check(bonded["rows"][0]["goodput_gbps"] > 1.2 * one, "more than one line: %s" % bonded["rows"][0]["goodput_gbps"])
    check(abs(bonded["rows"][0]["goodput_gbps"] / both - 1) < 0.01, "as both ports without a bond: %s" % both)
    check(abs(backup["rows"][0]["goodput_gbps"] / one - 1) < 0.01, "one line: %s" % backup["rows"][0]["goodput_gbps"])
    check(bonded["bonds"]["a"]["frames_sent"] == [6000, 6000], bonded["bonds"]["a"])
    check(backup["bonds"]["a"]["frames_sent"] == [12000, 0], backup["bonds"]["a"])
    print("4 queue pairs of 4 KiB: %.1f Gb/s by one port, %.1f bonded" % (one, bonded["rows"][0]["goodput_gbps"]))


def failover(folder):
    for bond, port in (("active-backup", 1), ("balance-xor", 2), ("ecmp", 1), ("802.3ad", 1), ("802.3ad", 2)):
        down = 2000
        if bond == "802.3ad":  # programs begin a second after LACP has settled
            down += int(run(folder, *LOAD, "--bond", bond)["bonds"]["a"]["changes"][-1]["done_us"]) + 1000000
        r = run(folder, *LOAD, "--bond", bond, "--faults", plan(folder, port, 500, down))
        for side in "ab":
            changes = [c for c in r["bonds"][side]["changes"] if bond != "802.3ad" or c["seen_us"] > down - 100]
            if bond == "802.3ad":  # what was before, then without the port, its link again, and LACP's leave
                check([(c["links"], c["active"]) for c in changes] == [(3 - port,) * 2, (3, 3 - port), (3, 3)], changes)
                changes = r["bonds"][side]["changes"][-4:-2] + [changes[-1]]
                check(changes[2]["done_us"] - down - 500 < 100, "it is used again within 100 us: %s" % changes)
            check([c["links"] for c in changes] == [3, 3 - port, 3], changes)
            check(0 < changes[1]["seen_us"] - down < 5 and changes[1]["done_us"] - changes[1]["seen_us"] < 10, changes)
        ended = ("drop_tx_link_down", "drop_link_down", "cable.a_to_b.lost", "cable.b_to_a.lost", "cable2.a_to_b.lost",
                 "cable2.b_to_a.lost")
        lost = sum(v for k, v in r["statistics"].items() if k.endswith(ended))
        again = sum(v for k, v in r["statistics"].items() if k.endswith(".retransmissions"))
        check(lost > 0 and again > 0, "packets of the dead cable are repeated")
        print("%s: map changed %.1f us after the link was lost; %d frames ended at the dead line, %d retransmissions" %
              (bond, changes[1]["done_us"] - down, lost, again))


def miimon(folder):
    """The bonding driver's interval decides when it sees that a link is gone."""
    for interval in (100, 250):
        r = run(folder, *LOAD, "--bond", "active-backup", "--faults", plan(folder, 1, 900), "--set",
                "driver.bond_miimon_us=%d" % interval)
        seen = r["bonds"]["a"]["changes"][1]["seen_us"]
        check(seen > 2000 and abs(seen / interval - round(seen / interval)) < 0.01 and seen <= 2002 + interval, seen)


def same_however_it_runs(folder):
    def result(bond, down, *more):
        r = run(folder, *LOAD, "--bond", bond, "--faults", plan(folder, 2, 300, down), *more)
        for row in r["rows"]:
            row.pop("simulator", None)
        return r["rows"], r["bonds"]

    # LACP takes seconds, of which every edge is too much.
    for bond, down, others in (("balance-xor", 2000, ["sim.always_tick=true"]), ("802.3ad", 3003000, [])):
        first = result(bond, down)
        check(len(first[1]["a"]["changes"]) >= 3, first[1])
        for other in others + ["sim.shuffle_seed=7", "sim.run_ahead=false", "tlm.sockets=true"]:
            check(result(bond, down, "--set", other) == first, (bond, other))


def frames(folder):
    if shutil.which("tshark") is None:
        return
    capture = os.path.join(folder, "c.pcap")
    run(folder, "latency", "--sizes", "64", "--iterations", "3", "--bond", "ecmp", "--pcap", capture)
    text = subprocess.run(["tshark", "-r", capture, "-Y", "infiniband", "-T", "fields", "-e", "eth.src", "-e",
                           "ip.src"], capture_output=True, text=True, check=True).stdout
    sources = {tuple(line.split("\t")) for line in text.splitlines()}
    # The first queue pair is on virtual port 2: the address of port 2, and the IP address of the one device.
    check(len(sources) == 2 and {ip for _, ip in sources} == {"10.0.0.1", "10.0.0.2"}, sources)
    check(all(mac.endswith("02") or mac.endswith("03") for mac, _ in sources), sources)


def beside_dcb(folder):
    """The agent of data centre bridging on both ports below the bond: it says what it has to, and the bond is as without."""
    for bond in ("active-backup", "balance-xor", "802.3ad"):
        capture = os.path.join(folder, "dcb-%s.pcap" % bond)
        r = run(folder, "latency", "--sizes", "64", "--iterations", "20", "--bond", bond, "--set",
                "driver.dcb.enabled=true", "--pcap", capture)
        alone = run(folder, "latency", "--sizes", "64", "--iterations", "20", "--bond", bond)
        for side in "ab":
            check(r["bonds"][side]["changes"][-1]["active"] == alone["bonds"][side]["changes"][-1]["active"], r["bonds"])
        check(r["rows"][0]["iterations"] == 20 and abs(r["rows"][0]["typical_us"] / alone["rows"][0]["typical_us"] - 1) < 0.01,
              (bond, r["rows"][0], alone["rows"][0]))
        if shutil.which("tshark") is None:
            continue
        one = os.path.join(folder, "dcb.pcap")
        run(folder, "latency", "--sizes", "64", "--iterations", "20", "--set", "driver.dcb.enabled=true", "--pcap", one)

        def spoken(file):
            said = subprocess.run(["tshark", "-r", file, "-Y", "lldp", "-T", "fields", "-e", "eth.src"],
                                  capture_output=True, text=True, check=True).stdout.split()
            return sorted((m, said.count(m)) for m in set(said))

        # Ports of a bond have its address; the capture is of both cables.
        by_one, bonded = spoken(one), spoken(capture)
        check(len(by_one) == 2 and bonded == [(m, 2 * n) for m, n in by_one], (bond, by_one, bonded))


def refusals():
    for arguments, words in ((("--bond", "lacp"), "--bond"),
                             (("--bond", "802.3ad", "--set", "driver.lacp.rate=often"), "driver.lacp.rate"),
                             (("--bond", "802.3ad", "--set", "driver.lacp.key=1024"), "driver.lacp.key"),
                             (("--bond", "802.3ad", "--set", "driver.lacp.system_priority=0"), "driver.lacp.system_"),
                             (("--bond", "ecmp", "--set", "adapter.ports=1"), "adapter.ports: 1: there is no port 2"),
                             (("--bond", "ecmp", "--functions", "1"), "driver.bond: high availability")):
        done = subprocess.run([PROGRAM, "bandwidth", "--quiet"] + list(arguments), capture_output=True, text=True)
        check(done.returncode == 2 and words in done.stderr and len(done.stderr.splitlines()) == 1,
              (arguments, done.returncode, done.stderr))


def main():
    with tempfile.TemporaryDirectory() as folder:
        rates(folder)
        failover(folder)
        miimon(folder)
        same_however_it_runs(folder)
        frames(folder)
        beside_dcb(folder)
    refusals()


main()
