#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""LACPDUs of two adapters with --bond 802.3ad as tshark reads them: who says what, and when. Exit status 77: there is no
tshark.

usage: check_lacp.py PROGRAM
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1]
FIELDS = ["frame.time_relative", "frame.len", "eth.dst", "eth.src", "lacp.version", "lacp.actor.sys_priority",
          "lacp.actor.sysid", "lacp.actor.key", "lacp.actor.port_priority", "lacp.actor.port", "lacp.actor.state",
          "lacp.partner.sys_priority", "lacp.partner.sysid", "lacp.partner.key", "lacp.partner.port",
          "lacp.partner.state", "lacp.collector.max_delay"]
SETTINGS = {"driver.lacp.rate": "fast", "driver.lacp.system_priority": "4660", "driver.lacp.key": "5",
            "driver.lacp.port2.priority": "7"}
AGREED = 0x3f  # active, short timeout, aggregation, synchronization, collecting, distributing


def check(is_so, what):
    if not is_so:
        raise SystemExit("wrong: %s" % (what,))


def run(folder, *arguments):
    file, capture = os.path.join(folder, "r.json"), os.path.join(folder, "c.pcap")
    done = subprocess.run([PROGRAM, "latency", "--sizes", "2", "--iterations", "2", "--json", file, "--pcap", capture,
                           "--overwrite", "--quiet"] + list(arguments), capture_output=True, text=True)
    check(done.returncode == 0, done.stderr)
    command = ["tshark", "-r", capture, "-Y", "slow", "-T", "fields", "-E", "separator=;"]
    for f in FIELDS:
        command += ["-e", f]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    with open(file) as f:
        return json.load(f), [dict(zip(FIELDS, line.split(";"))) for line in text.splitlines()]


def number(frame, field):
    return int(frame[field], 0)


def frames(folder):
    result, lacp = run(folder, "--bond", "802.3ad", *sum((["--set", "=".join(s)] for s in SETTINGS.items()), []))
    for side in "ab":
        for p in (0, 1):
            mine = result["bonds"][side]["lacp"][p]
            check(mine["mux"] == "distributing" and mine["lacpdus_in"] >= 3 and mine["illegal_in"] == 0, mine)
    check(len(lacp) >= 12, lacp)
    sources = sorted({f["eth.src"] for f in lacp})
    check(len(sources) == 4, sources)  # each port has its own address below the bond
    for f in lacp:
        check(f["eth.dst"] == "01:80:c2:00:00:02" and f["frame.len"] == "124" and f["lacp.version"] == "0x01", f)
        check(number(f, "lacp.actor.sys_priority") == 4660, f)
        # Key 5, 40 Gb/s (the 11th speed of the bonding driver), full duplex.
        check(number(f, "lacp.actor.key") == 5 << 6 | 11 << 1 | 1, f)
        port = number(f, "lacp.actor.port")
        check(number(f, "lacp.actor.port_priority") == (255 if port == 1 else 7), f)
        check(f["lacp.actor.sysid"] == sources[0 if f["eth.src"] in sources[:2] else 2], f)
        check(f["eth.src"] == sources[sources.index(f["lacp.actor.sysid"]) + port - 1], f)
    first = lacp[0]
    check(first["lacp.partner.sysid"] == "00:00:00:00:00:00", first)
    check(number(first, "lacp.actor.state") == 0xc7, first)  # expired and defaulted: it has heard nobody
    for source in sources:
        mine = [f for f in lacp if f["eth.src"] == source]
        last = mine[-1]
        other = sources[2 if source in sources[:2] else 0]
        check(last["lacp.partner.sysid"] == other and last["lacp.partner.port"] == last["lacp.actor.port"], last)
        check(number(last, "lacp.actor.state") & 0x1f == AGREED & 0x1f, last)
        times = [float(f["frame.time_relative"]) for f in mine]
        for i in range(len(times) - 3):
            check(times[i + 3] - times[i] >= 1, "more than three units a second: %s" % times)
        attached = next(float(f["frame.time_relative"]) for f in mine if number(f, "lacp.actor.state") & 8)
        check(2 <= attached < 2.1, "aggregate wait: %s" % attached)


def none_without(folder):
    for bond in ("balance-xor", "ecmp", "active-backup"):
        result, lacp = run(folder, "--bond", bond)
        check(not lacp and "lacp" not in result["bonds"]["a"], bond)


def main():
    if shutil.which("tshark") is None:
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        frames(folder)
        none_without(folder)


main()
