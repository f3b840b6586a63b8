#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole runs take the time and count what golden_runs.json beside this file says, to the last picosecond and number.

usage: check_runs.py PROGRAM [--update] [--only TEXT]

golden.json has messages one by one; here blocks compete, queues fill, frames are lost, functions and ports share an
adapter, and switches mark and pause. Each difference is printed with run, block, counter, golden and present number.
Of a network the counters of its hosts are added up. --update writes golden_runs.json anew; README.md says when that is
right.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

from check_golden import block_and_counter

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden_runs.json")
FAST_POST = ["--set", "driver.post_send_ns=5"]


def bandwidth(verb, size, *more, qps=8, messages=160, depth=16):
    return ["bandwidth", "--verb", verb, "--sizes", str(size), "--qps", str(qps), "--messages", str(messages),
            "--depth", str(depth), *more]


def soak(messages, *more):
    return ["soak", "--messages", str(messages), "--qps", "8", "--depth", "8", "--largest", "16384", *more]


LOSSES = ["--drop", "1", "--duplicate", "1", "--reorder", "1", "--corrupt", "1"]

INCAST = """duration_us = 150
vlan = 2
priority = 3
[topology]
kind = "star"
hosts = 5
metres = 100
[parameters]
driver.lossless_global_pause = false
%s
[[flow]]
from = ["h1", "h2", "h3", "h4"]
to = "h5"
size = 16384
%s"""

LEAVES = """duration_us = 120
[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 2
[parameters]
%s
[[flow]]
name = "reads"
from = ["h1", "h2"]
to = "h3"
verb = "read"
size = 8192
qps = 4
depth = 2
[[flow]]
name = "datagrams"
from = "h4"
to = ["h1", "h2"]
verb = "send_imm"
transport = "ud"
qps = 2
[[flow]]
name = "sends"
from = "h3"
to = "h4"
verb = "send"
size = 3000
rate_mbps = 9000
start_us = 15
spread_us = 10
"""

MIXED = """duration_us = 150
warm_up_us = 20
[hosts.h2]
host.iommu.enable = true
host.llc_read_ps = 250000
[[workload]]
name = "requests"
from = "h1"
to = "h2"
verbs = { write = 5, read = 3, send = 4, fadd = 1, write_imm = 1 }
sizes = [[8, 4], [200, 3], [2000, 2], [9000, 1]]
arrivals = "poisson"
rate_mpps = 1.5
qps = 4
regions = 200
region_bytes = 16384
addresses = "random"
queue_pairs = "random"
[[workload]]
name = "bulk"
background = true
from = "h2"
to = "h1"
size = 65536
depth = 2
transport = "uc"
[[workload]]
name = "answers"
from = "h1"
to = "h2"
verb = "send"
size = 32
loop = "ping-pong"
transport = "xrc"
messages = 30
"""

CLASSES = """duration_us = 120
vlan = 2
[topology]
kind = "pair"
ports = 2
[parameters]
adapter.port.egress_arbitration = "%s"
driver.pfc_mask = 8
[[workload]]
name = "a"
from = "h1"
to = "h2"
size = 4096
priority = 3
ports = [1, 2]
qps = 2
[[workload]]
name = "b"
from = "h1"
to = "h2"
size = 700
priority = 5
batch = 4
signal_every = 4
qps = 4
[[workload]]
name = "c"
from = "h2"
to = "h1"
verb = "read"
size = 2000
priority = 1
"""

OUTAGES = """[[outage]]
port = 1
down_us = 30
lasts_us = 120
every_us = 400
times = 2
[[event]]
type = "delay"
delay_ns = 3000
every = 9
[[event]]
type = "corrupt"
part = "header"
every = 23
[[event]]
type = "mark_congestion"
every = 5
"""
TRACES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "traces")


def replays():
    """A run for each capture of the project."""
    for folder in ("", "errors"):
        for name in sorted(os.listdir(os.path.join(TRACES, folder))):
            if name.endswith(".pcap") and not name.endswith(".rx.pcap"):
                yield f"replay of {name[:-5]}", ["replay", os.path.join(TRACES, folder, name), "--expect", "none"], None


# What happens, the arguments, and the file for those that take one.
RUNS = [
    # Services, verbs and where payloads lie.
    ("UC WRITEs with immediate", bandwidth("write_imm", 500, "--transport", "uc"), None),
    ("UD SENDs", bandwidth("send", 1000, "--transport", "ud"), None),
    ("UD SENDs that find too few receives", bandwidth("send", 64, "--transport", "ud", "--rx-depth", "2", *FAST_POST),
     None),
    ("XRC SENDs with immediate", bandwidth("send_imm", 300, "--transport", "xrc"), None),
    ("SENDs that find no receive", bandwidth("send", 128, "--rx-depth", "1", qps=2, messages=60), None),
    ("READs both ways", bandwidth("read", 4096, "--bidirectional", "--mtu", "1024"), None),
    ("few READs at a time", bandwidth("read", 700, "--outs", "2", qps=2), None),
    ("compare and swap both ways", bandwidth("cas", 8, "--bidirectional"), None),
    ("masked fetch and add", bandwidth("masked_fadd", 8, messages=60), None),
    ("inline WRITEs, a completion each", bandwidth("write", 128, "--inline", "200", "--cq-mod", "1", *FAST_POST), None),
    ("receives that stay in their WQE", bandwidth("send", 60, "--inline-receive", "64"), None),
    ("WRITEs of many packets", bandwidth("write", 30000, "--mtu", "256", qps=3, messages=12), None),
    ("RoCE v1", bandwidth("write", 300, "--roce", "v1", "--ip", "6", "--vlan", "9", "--priority", "4"), None),
    # What is on chip, and what is not.
    ("more queue pairs than contexts", bandwidth("write", 64, qps=400, messages=1200, depth=4), None),
    ("random replacement, few ways", bandwidth("read", 64, "--set", "adapter.requester.contexts.entries=16", "--set",
                                               "adapter.responder.contexts.entries=16", "--set",
                                               "adapter.requester.contexts.replacement=random", qps=40, messages=300,
                                               depth=4), None),
    ("channels of one place", bandwidth("write", 300, "--set", "adapter.channel_depth=1"), None),
    ("one processing unit", bandwidth("send", 64, "--set", "adapter.requester.processing_units=1"), None),
    ("few credits of PCI Express", bandwidth("read", 2048, "--set", "adapter.pcie.width=1", qps=4, messages=60), None),
    ("memory of the other socket, jitter, an IOMMU", bandwidth(
        "write", 2000, "--set", "host.buffers=remote", "--set", "host.jitter.law=e5", "--set", "host.iommu.enable=true"),
     None),
    ("memory that is not cached", bandwidth("send", 1500, "--set", "host.buffers=dram"), None),
    ("connectx5_100g, both ways", bandwidth("write", 1500, "--profile", "connectx5_100g", "--bidirectional"), None),
    ("connectx5_100g, READs", bandwidth("read", 200, "--profile", "connectx5_100g"), None),
    # Ports and functions.
    ("both ports", bandwidth("write", 2048, "--port", "1,2"), None),
    ("a bond by LACP", bandwidth("send", 2048, "--bond", "802.3ad"), None),
    ("ECMP over both ports", bandwidth("write", 1000, "--bond", "ecmp"), None),
    ("a virtual function of four", bandwidth("send", 500, "--functions", "4", "--function", "3"), None),
    ("a virtual function's VLAN and rate", bandwidth(
        "write", 2000, "--functions", "2", "--function", "1", "--set", "driver.functions.vlan=7", "--set",
        "driver.functions.max_rate_mbps=5000"), None),
    # Loss, and everything at once.
    ("losses", soak(400, *LOSSES), None),
    ("losses over RoCE v1 with small windows", soak(200, *LOSSES, "--roce", "v1", "--mtu", "256", "--set",
                                                    "adapter.requester.max_unacked_packets=8"), None),
    ("losses of virtual functions at both ports", soak(200, *LOSSES, "--functions", "3", "--function", "2", "--port",
                                                       "1,2"), None),
    ("losses with a bond", soak(200, *LOSSES, "--bond", "balance-xor"), None),
    ("outages and frames that come late", soak(200, "--ack-timeout", "8", "--faults"), OUTAGES),
    ("outages of a port of a bond", soak(200, "--bond", "active-backup", "--faults"), OUTAGES),
    ("mixed workloads, open and closed", ["run"], MIXED),
    ("classes, round robin", ["run"], CLASSES % "round_robin"),
    ("classes, strict", ["run"], CLASSES % "strict"),
    # Networks.
    ("incast with PFC", ["fabric"], INCAST % ('switch.buffer.flow_control = "pfc"\ndriver.pfc_mask = 8', "")),
    ("incast with pauses", ["fabric"], INCAST.replace("global_pause = false", "global_pause = true") % (
        'switch.buffer.flow_control = "pause"\nswitch.buffer.bytes = 600000', "")),
    ("incast with losses", ["fabric"], INCAST % ("switch.buffer.bytes = 120000", "ack_timeout = 3\n")),
    ("incast with ECN and DCQCN", ["fabric"], INCAST % (
        "switch.ecn.on = true\nswitch.ecn.kmin_bytes = 20000\nswitch.ecn.pmax_percent = 50\n"
        "adapter.congestion.notification.priorities = 8\nadapter.congestion.reaction.priorities = 8\n"
        "adapter.congestion.notification.interval_us = 10", "")),
    ("incast with QCN", ["fabric"], INCAST % ("switch.qcn.priorities = 8\ndriver.qcn.priorities = 8", "")),
    ("leaves and spines", ["fabric"], LEAVES % ""),
    ("leaves and spines, stored frames, strict", ["fabric"], LEAVES % (
        'switch.forwarding = "store_and_forward"\nswitch.scheduling = "strict"\nswitch.priority = "dscp"')),
    ("a dumbbell", ["fabric", "dumbbell"], None),
    # PCI Express by itself, and captures.
    ("DMA of the adapter", ["dma", "--card", "adapter", "--count", "300", "--sizes", "64,300,1500", "--offset", "40",
                            "--test", "lat_rd,lat_wrrd,bw_rd,bw_wr,bw_rdwr"], None),
    ("DMA of pcie-bench's card through an IOMMU", ["dma", "--count", "300", "--sizes", "8,129,700", "--iommu",
                                                   "--window", "4M", "--jitter", "e3"], None),
    *replays(),
]
RESULTS = ("rows", "workloads", "flows", "ports", "packets", "injected", "posted", "matched_answers", "extra_answers")
OF_SOAK = ("acknowledged_early", "bytes", "completed", "corrupted", "duplicated", "flushed", "lost", "posted", "reordered",
           "simulated_ps")
DERIVED = {"utilisation", "use", "stages", "limited_by", "next_limit", "histogram", "answer", "connection", "frame",
           "captured_latency_ps", "simulator"}


def numbers(value, path=()):
    """Every number in `value` by its path, but what is worked out of others."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in DERIVED:
                yield from numbers(inner, path + (key,))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from numbers(inner, path + (str(index),))
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and value != 0:
        yield ".".join(path), round(value, 9) if isinstance(value, float) else value


def by_place(results):
    """Each number below the row, flow, port or list of packets that it is of."""
    places = {}
    for name, value in results:
        place = re.match(r"packets|\w+\.\d+|", name)[0]
        places.setdefault(place or "run", {})[name[len(place):].lstrip(".")] = value
    return places


def measure(program, run):
    """{results: {place: {name: number}}, counters: {block: {counter: number}}} of a run; zeros are left out."""
    _, arguments, text = run
    with tempfile.TemporaryDirectory() as folder:
        result = os.path.join(folder, "result.json")
        command = [program, *arguments]
        if text:
            file = os.path.join(folder, "experiment.toml")
            with open(file, "w", encoding="utf-8") as f:
                f.write(text)
            command.append(file)
        done = subprocess.run(command + ["--quiet", "--json", result], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: exit status {done.returncode}: {done.stderr}")
        with open(result, encoding="utf-8") as f:
            whole = json.load(f)
    counted = whole.get("statistics", whole.get("counters", {}))
    hosts = {name.split(".")[0] for name in counted if re.match(r"h\d+\.", name)}
    counters = collections.defaultdict(collections.Counter)
    for name, value in counted.items():
        block, counter = block_and_counter(re.sub(r"^h\d+\.", "h*.", name) if len(hosts) > 2 else name)
        if value != 0:
            counters[block][counter] += value
    results = by_place(numbers({key: whole[key] for key in RESULTS + OF_SOAK if key in whole}))
    return {"results": results, "counters": {block: dict(sorted(c.items())) for block, c in sorted(counters.items())}}


def to_text(golden):
    """JSON with a line for what is of one place or block."""
    runs = []
    for name, run in golden.items():
        parts = []
        for part, places in run.items():
            lines = [f"      {json.dumps(place)}: {json.dumps(values)}" for place, values in places.items()]
            parts.append(f"    {json.dumps(part)}: {{\n" + ",\n".join(lines) + "\n    }")
        runs.append(f"  {json.dumps(name)}: {{\n" + ",\n".join(parts) + "\n  }")
    return "{\n" + ",\n\n".join(runs) + "\n}\n"


def differences(name, golden, present):
    before, now = ({(part, place, key): value for part, places in run.items() for place, values in places.items()
                    for key, value in values.items()} for run in (golden, present))
    for at in sorted(before.keys() | now.keys()):
        if before.get(at, 0) != now.get(at, 0):
            yield f"{name}: {at[1]}.{at[2]}: golden {before.get(at, 0)}, now {now.get(at, 0)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program")
    parser.add_argument("--update", action="store_true", help="write golden_runs.json anew")
    parser.add_argument("--only", default="", help="runs whose names have this text")
    options = parser.parse_args()
    runs = [run for run in RUNS if options.only in run[0]]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        present = dict(zip((run[0] for run in runs), pool.map(lambda run: measure(options.program, run), runs)))
    golden = {}
    if os.path.exists(GOLDEN):
        with open(GOLDEN, encoding="utf-8") as f:
            golden = json.load(f)
    lines = [] if options.only else [f"{name}: only in golden_runs.json" for name in golden if name not in present]
    for name, run in present.items():
        lines += differences(name, golden[name], run) if name in golden else [f"{name}: only in this run"]
    print("\n".join(lines + [f"{len(present)} runs, {len(lines)} differences"]))
    if options.update:
        with open(GOLDEN, "w", encoding="utf-8") as f:
            f.write(to_text({**golden, **present} if options.only else present))
        print("golden_runs.json is written anew: say in the commit why, and why that is nearer to hardware")
        return 0
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
