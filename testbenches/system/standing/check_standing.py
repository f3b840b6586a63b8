#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same experiment gives the same results and the same counters of both adapters, whatever the kernel's order, the
ICRC engine and the connectors.

usage: check_standing.py PROGRAM
"""
import json
import os
import subprocess
import sys
import tempfile

from nested import difference, flat

EXPERIMENTS = [
    ["latency", "--verb", "write", "--sizes", "1,64,4096,65536", "--iterations", "8"],
    ["latency", "--verb", "send", "--sizes", "0,200,5000", "--iterations", "8", "--ip", "6"],
    ["latency", "--verb", "read", "--sizes", "8,2048,65536", "--iterations", "8", "--roce", "v1", "--ip", "6"],
    ["bandwidth", "--verb", "write", "--sizes", "8,1024,65536", "--messages", "120", "--qps", "4", "--bidirectional"],
    ["bandwidth", "--verb", "send", "--sizes", "64,9000", "--messages", "150", "--qps", "3", "--vlan", "7",
     "--priority", "3", "--mtu", "1024"],
    ["bandwidth", "--verb", "read", "--sizes", "64,9000", "--messages", "120", "--qps", "2", "--bidirectional"],
    ["latency", "--verb", "cas", "--iterations", "80", "--roce", "v1"],
    ["bandwidth", "--transport", "uc", "--verb", "send_imm", "--sizes", "8,9000", "--messages", "120", "--qps", "3"],
    ["bandwidth", "--transport", "ud", "--verb", "send", "--sizes", "8,1000", "--messages", "150", "--bidirectional"],
    ["bandwidth", "--transport", "xrc", "--verb", "write_imm", "--sizes", "8,9000", "--messages", "120", "--qps", "2"],
    ["bandwidth", "--verb", "fadd", "--messages", "120", "--qps", "3", "--bidirectional"],
    # stores that reach the link beside completions
    ["bandwidth", "--transport", "ud", "--verb", "send", "--qps", "4", "--messages", "80", "--sizes", "64,2000",
     "--bidirectional", "--set", "host.store_to_link_ps=24000", "--set", "adapter.gid.source_ports=1", "--set",
     "adapter.translation.waiting=2"],
    # descriptors that are cut while their addresses wait for the DMA engine
    ["soak", "--messages", "600", "--qps", "24", "--port", "1,2", "--seed", "5", "--set", "adapter.descriptor_depth=1",
     "--set", "adapter.requester.turn_wqes=1"],
    # frames of two ports in front of an engine whose results find no room
    ["bandwidth", "--transport", "ud", "--verb", "send_imm", "--sizes", "63,255", "--qps", "2", "--depth", "16",
     "--rx-depth", "2", "--messages", "80", "--port", "1,2"],
]
# Everything is narrow: channels of one item, caches of a set or two, one fill at a time. What has to wait, waits here.
NARROW = ["adapter.channel_depth=1", "adapter.descriptor_depth=1", "adapter.requester.contexts.entries=4",
          "adapter.requester.contexts.ways=2", "adapter.requester.contexts.fills=1",
          "adapter.responder.contexts.entries=4", "adapter.responder.contexts.ways=2",
          "adapter.responder.contexts.fills=1", "adapter.responder.srqs.entries=1", "adapter.responder.srqs.ways=1",
          "adapter.responder.histories.entries=2", "adapter.responder.histories.ways=2",
          "adapter.responder.context_wait_frames=3", "adapter.responder.slots=3", "adapter.responder.cqe_queue=1",
          "adapter.responder.answer.waiting=1", "adapter.responder.read_queue=2", "adapter.responder.receive_lines=2",
          "adapter.responder.receive_fetches=1",
          "adapter.requester.processing_units=2", "adapter.requester.turn_bytes=3000",
          "adapter.requester.gather_depth=2", "adapter.requester.scatter_jobs=1", "adapter.translation.mpt_entries=4",
          "adapter.translation.mpt_ways=2", "adapter.translation.mtt_entries=32", "adapter.translation.mtt_ways=2",
          "adapter.translation.waiting=2", "adapter.translation.fills=1",
          "adapter.completion.cq_cache.entries=1", "adapter.completion.cq_cache.ways=1",
          "adapter.completion.write_depth=4", "adapter.port.egress_frames=1", "adapter.pcie.posted_headers=1",
          "adapter.pcie.tags=4", "host.posted_headers=2", "host.non_posted_headers=1"]
NARROW_EXPERIMENTS = [
    # loss, repetitions, NAKs, retries
    ["soak", "--messages", "60", "--qps", "6", "--drop", "3", "--duplicate", "2", "--reorder", "2", "--corrupt", "1",
     "--largest", "5000", "--ack-timeout", "3"],
    # 64 queue pairs over two units and a cache of four contexts
    ["soak", "--messages", "128", "--qps", "64", "--depth", "2", "--largest", "1500", "--ack-timeout", "6"],
    # receivers that are not ready
    ["bandwidth", "--verb", "send", "--qps", "4", "--messages", "24", "--sizes", "64,3000", "--rx-depth", "1"],
    # shared receive queues
    ["bandwidth", "--transport", "xrc", "--verb", "send_imm", "--qps", "6", "--messages", "36", "--sizes", "64,3000"],
    ["bandwidth", "--verb", "read", "--qps", "3", "--messages", "36", "--sizes", "64,2500"],
    ["bandwidth", "--verb", "cas", "--qps", "6", "--messages", "48", "--bidirectional"],
    ["bandwidth", "--transport", "ud", "--verb", "send", "--qps", "4", "--messages", "60", "--sizes", "64,2000"],
    # BlueFlame writes of several lines into a doorbell block that is slow
    ["bandwidth", "--verb", "write", "--inline", "200", "--qps", "6", "--messages", "60", "--sizes", "200", "--set",
     "adapter.doorbell.bf_line_cycles=60", "--set", "driver.blue_flame=all"],
    # a PCIe core with a clock of its own behind a crossing of one packet
    ["soak", "--messages", "40", "--qps", "4", "--drop", "2", "--largest", "3000", "--ack-timeout", "6", "--set",
     "adapter.pcie.core_khz=250000", "--set", "adapter.pcie.crossing_packets=1"],
    # a receiver that pauses
    ["bandwidth", "--verb", "write", "--qps", "4", "--messages", "48", "--sizes", "9000", "--bidirectional", "--set",
     "adapter.port.ingress_bytes=20000", "--set", "adapter.port.xoff_bytes=9000", "--set",
     "adapter.port.xon_bytes=5000", "--set", "adapter.responder.beat_overhead_cycles=200"],
]
NARROW_VARIANTS = ("every block at every edge", "another order within an edge", "one kernel activation an instant")
# What must not be visible, and how it shows in the echo of the parameters.
VARIANTS = {
    "again": [],
    "every block at every edge": ["sim.always_tick=true"],
    "another order within an edge": ["sim.shuffle_seed=7"],
    "yet another order": ["sim.shuffle_seed=123456789"],
    "one kernel activation an instant": ["sim.run_ahead=false"],
    "verilated ICRC": ["rtl.icrc=rtl"],
    "verilated ICRC beside the model": ["a.rtl.icrc=shadow"],
    "TLM sockets": ["tlm.sockets=true"],
    "all of these": ["sim.always_tick=true", "sim.run_ahead=false", "sim.shuffle_seed=99", "rtl.icrc=rtl", "tlm.sockets=true"],
}
ECHO = ("sim.always_tick", "sim.run_ahead", "sim.shuffle_seed", "rtl.icrc", "a.rtl.icrc", "tlm.sockets")


def run(program, arguments, settings, folder, name):
    """JSON without the echo of what was set, bytes of the capture, and what was printed."""
    files = [os.path.join(folder, name + end) for end in (".json", ".pcap")]
    command = [program] + arguments + ["--json", files[0], "--pcap", files[1], "--overwrite", "--quiet"]
    for s in settings:
        command += ["--set", s]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in ((0, 1) if arguments[0] == "soak" else (0,)):
        raise SystemExit("%s: exit status %d: %s" % (" ".join(command), done.returncode, done.stderr))
    with open(files[0]) as f:
        text = f.read()
    result = json.loads(text)
    lines = result["parameters"].splitlines()
    for s in settings:
        if not any(line.replace('"', "").startswith(s.replace("=", " = ")) for line in lines):
            raise SystemExit("%s: not in the echo of the parameters" % s)
    result["parameters"] = [line for line in lines if not line.startswith(ECHO)]
    for name in ("set", "file"):  # how it was asked for
        result.pop(name, None)
    for row in result.get("rows", []):
        row.pop("simulator", None)  # what the run cost is what differs
    with open(files[1], "rb") as f:
        capture = f.read()
    return result, capture, done.stdout


def compare(normal, other, what, faults):
    """Adds a line for each part of a run that is not the same: for results, what in them."""
    different = difference(normal[0], other[0])
    if different:
        faults.append("%s: %d results differ: %s" % (what, len(different), "; ".join(different[:6])))
    for part, x, y in zip(("capture", "text"), normal[1:], other[1:]):
        if x != y:
            faults.append("%s: the %s differs" % (what, part))


def check_stages(result, complain):
    """Where the time went adds up to the time."""
    for row in result.get("rows", []):
        if "stages" not in row:
            continue
        if len(row["stages"]) < 5 or any(stage["ps"] < 0 for stage in row["stages"]):
            complain("stages of %s bytes: %s" % (row["size"], row["stages"]))
        if sum(stage["ps"] for stage in row["stages"]) != row["end_to_end_ps"]:
            complain("the stages of %s bytes do not add up to %s ps" % (row["size"], row["end_to_end_ps"]))


def main():
    faults = []
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        for i, arguments in enumerate(EXPERIMENTS):
            what = " ".join(arguments[:3])
            normal = run(program, arguments, [], folder, "normal%d" % i)
            if len(normal[1]) < 10000:
                faults.append(what + ": the capture is empty")
            check_stages(normal[0], lambda text, what=what: faults.append(what + ": " + text))
            for name, settings in VARIANTS.items():
                other = run(program, arguments, settings, folder, "other")
                compare(normal, other, "%s: %s" % (what, name), faults)
        for arguments in NARROW_EXPERIMENTS:
            what = "narrow " + " ".join(arguments[:5])
            narrow = arguments + [word for s in NARROW for word in ("--set", s)]
            normal = run(program, narrow, [], folder, "normal")
            if not any(value for name, value in flat(normal[0]).items() if name.endswith(".requester.wqes")):
                faults.append(what + ": no counters")
            for name in NARROW_VARIANTS:
                other = run(program, narrow, VARIANTS[name], folder, "other")
                compare(normal, other, "%s: %s" % (what, name), faults)
    for fault in faults:
        print(fault)
    print("%d experiments, %d variants, %d faults" % (len(EXPERIMENTS) + len(NARROW_EXPERIMENTS), len(VARIANTS),
                                                      len(faults)))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
