#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the agents of two hosts send, as tshark reads it; what is refused; and that nothing is sent without the switch.

usage: check_frames.py RNIC. Exit status 77: there is no tshark.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

RNIC = sys.argv[1]


def expect(condition, what):
    if not condition:
        print("wrong: %s" % what)
        sys.exit(1)


def run(folder, *settings, config=None):
    """(exit status, error text, frames of LLDP as tshark sees them, and how many others)."""
    capture = os.path.join(folder, "run.pcap")
    command = [RNIC, "latency", "--sizes", "2", "--iterations", "2", "--pcap", capture, "--overwrite", "--quiet"]
    for s in settings:
        command += ["--set", s]
    if config:
        command += ["--config", config]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    if done.returncode != 0:
        return done.returncode, done.stderr, [], 0
    text = subprocess.run(["tshark", "-r", capture, "-T", "json", "--no-duplicate-keys"], capture_output=True, text=True,
                          timeout=30).stdout
    frames = [f["_source"]["layers"] for f in json.loads(text)]
    lldp = [f for f in frames if "lldp" in f]
    return 0, "", lldp, len(frames) - len(lldp)


def values(tree, key):
    """All values of a field, at any depth, in their order."""
    found = []
    if isinstance(tree, list):
        for t in tree:
            found += values(t, key)
    elif isinstance(tree, dict):
        for k, v in tree.items():
            if k == key:
                found += v if isinstance(v, list) else [v]
            else:
                found += values(v, key)
    return found


def named(frame, begin):
    """The TLV whose text begins so."""
    return next(v for k, v in frame["lldp"].items() if k.startswith(begin))


def numbers(tree, key):
    return [int(v, 0) for v in values(tree, key)]


SETTINGS = ["driver.dcb.enabled=true", "driver.pfc_mask=8", "driver.dcb.ets.willing=false",
            "driver.dcb.ets.tc1.tsa=ets", "driver.dcb.ets.tc1.percent=70", "driver.dcb.ets.tc2.tsa=ets",
            "driver.dcb.ets.tc2.percent=30", "driver.dcb.ets.priority3=1", "driver.dcb.ets.priority5=2",
            "driver.dcb.app.roce_v1=3", "driver.dcb.app.roce_v2=5"]
TOML = """[driver]
pfc_mask = 8
[driver.dcb]
enabled = true
[driver.dcb.ets]
willing = false
priority3 = 1
priority5 = 2
tc1 = { tsa = "ets", percent = 70 }
tc2 = { tsa = "ets", percent = 30 }
[driver.dcb.app]
roce_v1 = 3
roce_v2 = 5
"""


def check(frames):
    expect(len(frames) >= 2, "%d frames of LLDP, one of each host expected" % len(frames))
    expect({f["eth"]["eth.src"] for f in frames} == {"00:02:c9:00:01:01", "00:02:c9:00:02:01"},
           "senders: %s" % [f["eth"]["eth.src"] for f in frames])
    for f in frames:
        expect(f["eth"]["eth.dst"] == "01:80:c2:00:00:0e", "destination %s" % f["eth"]["eth.dst"])
        expect("_ws.malformed" not in f and not values(f, "_ws.expert"), "tshark complains: %s" % json.dumps(f))
        expect(values(f, "lldp.port.id.mac") == [f["eth"]["eth.src"]], "Port ID")
        expect(values(f, "lldp.time_to_live") == ["121"], "time to live %s" % values(f, "lldp.time_to_live"))
        expect(values(f, "lldp.port.desc") == ["eth1"], "port description")
        expect(values(f, "lldp.tlv.system.name")[0] in ("a", "b"), "system name %s" % values(f, "lldp.tlv.system.name"))
        expect(values(f, "lldp.ieee.802_3.max_frame_size") == ["4222"], "maximum frame size")
        for name, willing in (("IEEE - ETS Configuration", "0"), ("IEEE - ETS Recommendation", None)):
            t = named(f, name)
            if willing is not None:
                expect(values(t, "lldp.dcbx.ieee.willing") == [willing] and numbers(t, "lldp.dcbx.ieee.ets.maxtcs") == [0],
                       "%s: willing or classes" % name)
            expect([numbers(t, "lldp.dcbx.feature.pg.pgid_prio%d" % i) for i in range(8)] ==
                   [[0], [1], [2], [1], [4], [2], [6], [7]], "%s: classes of priorities" % name)
            expect([numbers(t, "lldp.dcbx.feature.pg.per%d" % i) for i in range(8)] ==
                   [[0], [70], [30], [0], [0], [0], [0], [0]], "%s: shares" % name)
            expect([numbers(t, "lldp.dcbx.ieee.ets.tsa%d" % i) for i in range(8)] ==
                   [[0], [2], [2], [0], [0], [0], [0], [0]], "%s: algorithms" % name)
        pfc = named(f, "IEEE - Priority Flow Control")
        expect(values(pfc, "lldp.dcbx.ieee.willing") == ["1"] and numbers(pfc, "lldp.dcbx.ieee.pfc.numtcs") == [8] and
               [values(pfc, "lldp.dcbx.feature.pfc.prio%d" % i) for i in range(8)] == [[str(int(i == 3))] for i in range(8)],
               "PFC: %s" % pfc)
        app = named(f, "IEEE - Application")
        expect(numbers(app, "lldp.dcbx.feature.app.proto") == [0x8915, 4791] and
               numbers(app, "lldp.dcbx.ieee.app.prio") == [3, 5] and numbers(app, "lldp.dcbx.iee.app.sf") == [1, 3],
               "applications: %s" % app)


def main():
    if not shutil.which("tshark"):
        print("skipped: there is no tshark")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        status, error, frames, _ = run(folder, *SETTINGS)
        expect(status == 0, error)
        check(frames)
        config = os.path.join(folder, "dcb.toml")
        with open(config, "w") as f:
            f.write(TOML)
        status, error, from_file, _ = run(folder, config=config)
        expect(status == 0, error)
        check(from_file)
        status, error, frames, others = run(folder, *SETTINGS[1:])
        expect(status == 0 and frames == [] and others >= 4, "without driver.dcb.enabled: %d frames, %s" % (len(frames), error))
        for settings, words in (
                (SETTINGS + ["driver.dcb.ets.tc2.percent=31"],
                 "driver.dcb.ets.tc1.percent, driver.dcb.ets.tc2.percent: 101 together, expected 100 %"),
                (["driver.dcb.ets.tc3.percent=101"], "driver.dcb.ets.tc3.percent"),
                (["driver.dcb.ets.tc3.tsa=cbs"], "strict or ets"), (["driver.dcb.ets.priority8=1"], "driver.dcb.ets.priority"),
                (["driver.dcb.app.roce_v2=9"], "0 to 8"), (["driver.dcb.lldp.tx_hold=0"], "1 to 100")):
            status, error, _, _ = run(folder, *settings)
            expect(status == 2 and len(error.strip().splitlines()) == 1 and words in error, "%s: %d, %s" % (settings[-1], status, error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
