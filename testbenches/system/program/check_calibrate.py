#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rnic calibrate` repeats the published figures inside their bands, says so in text and JSON, and notices when a model
is another one.

usage: check_calibrate.py PROGRAM
"""
import json
import os
import subprocess
import sys
import tempfile

# Number of points of each published experiment.
POINTS = {"C01": 4, "C02": 3, "C03": 1, "C04": 1, "C05": 5, "C06a": 4, "C06b": 1, "C06c": 1, "C06d": 4, "C07": 4,
          "C08": 1, "C09a": 1, "C09b": 1, "C10": 3, "C11": 1}


def run(program, *arguments):
    return subprocess.run([program, "calibrate", "--quiet", *arguments], capture_output=True, text=True)


def check_all(program, folder):
    path = os.path.join(folder, "all.json")
    done = run(program, "--json", path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "35 of 35 points inside their bands" in done.stdout, done.stdout
    with open(path) as f:
        points = json.load(f)["points"]
    counted = {}
    for p in points:
        counted[p["id"]] = counted.get(p["id"], 0) + 1
        error = (p["obtained"] / p["expected"] - 1) * 100
        assert abs(error - p["error_pct"]) < 1e-6, p
        assert p["in_band"] == (abs(error) <= p["band_pct"]) and p["in_band"], p
    assert counted == POINTS, counted


def check_held_out(program, folder):
    """Points by which no parameter was chosen. Not all are inside, and the status says so; the mechanisms are right
    where most are, and where none of them is far away."""
    path = os.path.join(folder, "held_out.json")
    done = run(program, "--held-out", "--json", path)
    with open(path) as f:
        result = json.load(f)
    points = result["points"]
    assert result["points_are"] == "held out" and len(points) == 66, len(points)
    inside = [p for p in points if p["in_band"]]
    assert done.returncode == (0 if len(inside) == len(points) else 1), done
    assert len(inside) >= 63, done.stdout
    assert all(abs(p["error_pct"]) < 35 for p in points), done.stdout


def check_other_profile(program, folder):
    """The points are those of the profile; one without points of a kind says so. The contended atomic is known to be
    faster than published: its host answers sooner."""
    path = os.path.join(folder, "fifth.json")
    done = run(program, "--profile", "connectx5_100g", "--json", path)
    with open(path) as f:
        points = json.load(f)["points"]
    assert {p["id"] for p in points} == {"K01", "K02", "K03a", "K03b", "K04a", "K04b", "K05"}, points
    outside = [p for p in points if not p["in_band"]]
    assert done.returncode == (1 if outside else 0), done
    assert [p["id"] for p in outside] == ["K04a"] and abs(outside[0]["error_pct"]) < 35, done.stdout
    assert "connectx3pro_40g has points of its own" in done.stdout, done.stdout
    done = run(program, "--profile", "connectx5_100g", "--held-out")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "no held-out points" in done.stderr, done


def check_another_model(program, folder):
    """One atomic at a time takes as long as the host's memory: a slower host is out of the band, and the status says it."""
    path = os.path.join(folder, "slow.json")
    done = run(program, "--only", "C08", "--set", "host.llc_read_ps=600000", "--json", path)
    assert done.returncode == 1 and "0 of 1 points" in done.stdout, done.stdout
    with open(path) as f:
        point = json.load(f)["points"][0]
    assert not point["in_band"] and point["obtained"] < 2, point


def check_mistakes(program, folder):
    for arguments, text in ((("--only", "C99"), "no such point"), (("--pcap", os.path.join(folder, "x")), "--pcap"),
                            (("--only", "C04", "--set", "adapter.no=1"), "adapter.no")):
        done = run(program, *arguments)
        assert done.returncode != 0 and text in done.stdout + done.stderr, (arguments, done)


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        check_all(program, folder)
        check_held_out(program, folder)
        check_other_profile(program, folder)
        check_another_model(program, folder)
        check_mistakes(program, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
