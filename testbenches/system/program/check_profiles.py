#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every profile reaches its line rate less headers, says who it is, and has sources of its own.

usage: check_profiles.py PROGRAM
"""
import json
import os
import re
import subprocess
import sys
import tempfile

# What each reports of itself: part, firmware, board, and width times speed code of a port (verbs: 2 is 4X; 4 is 10 Gb/s,
# 32 is 25 Gb/s a lane).
PROFILES = {
    "connectx3pro_40g": {"gbps": 40, "vendor_part_id": 4103, "fw_ver": "2.42.5000", "board_id": "MT_1090111019",
                         "active_width": 2, "active_speed": 4, "hca_core_clock": 427000},
    "connectx5_100g": {"gbps": 100, "vendor_part_id": 4119, "fw_ver": "16.35.2000", "board_id": "MT_0000000012",
                       "active_width": 2, "active_speed": 32, "hca_core_clock": 500000},
}
SIZE = 65536
PACKET, RETH, REQUEST, ACK = 82, 16, 98, 86  # bytes on the line of RoCE v2 over IPv4, preamble and gap with them
FEC_PS = 51200 + 49000                       # 5120 bits at 100 Gb/s gathered, then decoded
SLACK = 0.993                                # beginning and end of a run of a thousand messages


def rnic(program, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done.stdout


def results(program, folder, *arguments):
    path = os.path.join(folder, "result.json")
    rnic(program, *arguments, "--quiet", "--overwrite", "--json", path)
    with open(path) as f:
        return json.load(f)


def attainable(verb, mtu, gbps, both):
    """Gb/s of payload in all directions when the line never rests."""
    packets = SIZE // mtu
    there = SIZE + packets * PACKET + (RETH if verb == "write" else 0)
    if verb == "read":  # responses: an AETH in the first and in the last
        there += 4 * min(2, packets)
    back = REQUEST if verb == "read" else ACK
    share = SIZE / (there + (back if both else 0))
    return gbps * share * (2 if both else 1)


def check_line_rate(program, folder):
    for profile, facts in PROFILES.items():
        for verb in ("write", "read", "send"):
            for mtu in (1024, 4096):
                for both in (False, True):
                    arguments = ["bandwidth", "--profile", profile, "--verb", verb, "--mtu", str(mtu), "--sizes", str(SIZE),
                                 "--qps", "2", "--messages", "1000", *(["--bidirectional"] if both else [])]
                    got = results(program, folder, *arguments)["rows"][0]
                    best = attainable(verb, mtu, facts["gbps"], both)
                    assert SLACK * best <= got["goodput_gbps"] <= best * 1.001, (arguments, got, best)


def check_identity(program, folder):
    for profile, facts in PROFILES.items():
        device = results(program, folder, "info", "--profile", profile)["device"]
        for name, value in facts.items():
            if name.startswith("active"):
                assert [p[name] for p in device["ports"]] == [value, value], (profile, name, device["ports"])
            elif name != "gbps":
                assert device[name] == value, (profile, name, device[name])
    # 1X, 2X and 4X of 25 Gb/s, 4X of 10, 4X of 14: verbs have no code for the rate itself.
    for mbps, width, speed in ((25000, 1, 32), (50000, 16, 32), (100000, 2, 32), (200000, 2, 64), (40000, 2, 4),
                               (56000, 2, 16), (10000, 1, 4)):
        port = results(program, folder, "info", "--profile", "connectx5_100g", "--set",
                       "adapter.port.rate_mbps=%d" % mbps)["device"]["ports"][0]
        assert (port["active_width"], port["active_speed"]) == (width, speed), (mbps, port)


def check_sources(program):
    """No number of connectx5_100g hides that it is the other profile's."""
    line = re.compile(r"^(\S+) = (\S+)  # (.*)$", re.MULTILINE)
    first, fifth = ({path: (value, source) for path, value, source in line.findall(rnic(program, "parameters", "--profile", p))}
                    for p in PROFILES)
    assert set(first) == set(fifth), set(first) ^ set(fifth)
    for path, (value, source) in fifth.items():
        if not path.startswith("adapter."):
            continue
        if value != first[path][0]:
            assert source != first[path][1], (path, source)
        elif source == first[path][1]:
            assert "calibration" not in source, (path, source)


def message(program, folder, *arguments):
    return results(program, folder, "latency", "--profile", "connectx5_100g", "--iterations", "20", *arguments)["rows"][0]


def check_fec(program, folder):
    """A frame takes as much longer as a code word takes to gather and to decode, and the stage says so."""
    coded = message(program, folder, "--sizes", "2")
    plain = message(program, folder, "--sizes", "2", "--set", "adapter.port.fec=none")
    stages = {s["stage"]: s["ps"] for s in coded["stages"]}
    parts = {s: ps for s, ps in stages.items() if s.startswith("rs-fec")}
    assert set(parts) == {"rs-fec word", "rs-fec locate", "rs-fec correct"} and sum(parts.values()) == FEC_PS, stages
    assert not [s for s in plain["stages"] if s["stage"].startswith("rs-fec")], plain
    longer = coded["end_to_end_ps"] - plain["end_to_end_ps"]
    assert abs(longer - FEC_PS) <= 4000, longer  # two edges of the clock


def check_blue_flame(program, folder):
    """A single request without inline data goes into the BlueFlame buffer too, which saves reading the descriptor."""
    size = ("--sizes", "256")
    fetch = {}
    for rule in ("by_device", "all", "with_inline_data", "none"):
        row = message(program, folder, *size, "--set", "driver.blue_flame=" + rule)
        fetch[rule] = sum(s["ps"] for s in row["stages"] if s["block"] == "a.adapter.descriptor_fetch")
    assert fetch["by_device"] == fetch["all"] < 10_000, fetch
    assert fetch["with_inline_data"] == fetch["none"] > 300_000, fetch
    older = results(program, folder, "latency", *size, "--iterations", "20")["rows"][0]
    assert sum(s["ps"] for s in older["stages"] if s["block"] == "a.adapter.descriptor_fetch") > 300_000, older


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        check_identity(program, folder)
        check_sources(program)
        check_fec(program, folder)
        check_blue_flame(program, folder)
        check_line_rate(program, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
