#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `rnic bandwidth` says limits a run is proven by perturbation: with more of it the rate rises, with more of
anything else it does not.

usage: check_perturbation.py PROGRAM [--only TEXT] [--every N] [--verbose]

A scenario is a run. Each resource has settings that give more of it; the one that is named must raise the rate by more
than RISE, every other one must not raise it by more than STILL.
"""
import argparse
import concurrent.futures
import os
import sys

from relaxations import (MEMORIES, OTHER_MEMORIES, RISE, STILL, key_of, parts_of, relaxations, relaxed, run, same,
                         unknown_ways)

# Frames that are lost. Twice the same one: only the timer helps.
FAULTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "faults", "plans")
LOST_TWICE = "--faults " + os.path.join(FAULTS, "drop_again.toml")
LOST_ONCE = "--faults " + os.path.join(FAULTS, "drop_one.toml")


# An adapter whose engines are so quick that the one port of its contexts is not; the rates are high, so a run has more
# messages.
QUICK = ["driver.post_send_ns=1", "driver.poll_ns=1", "adapter.requester.wqe_cycles=1",
         "adapter.requester.gather_cycles=1", "adapter.requester.inline_cycles=1", "adapter.requester.empty_cycles=1",
         "adapter.requester.context_ports=1", "adapter.responder.write_cycles=1",
         "adapter.responder.beat_overhead_cycles=1", "adapter.pcie.width=16", "adapter.port.rate_mbps=200000",
         "adapter.doorbell.bf_line_cycles=1", "adapter.datapath_bytes=128", "adapter.completion.cqe_cycles=1",
         "adapter.scheduler.grant_cycles=1"]


def scenarios():
    """(arguments, name expected at the beginning of `limited_by`, what else may raise the rate)"""
    s = []

    def add(text, expected, also=()):
        s.append((text.split(), expected, also))

    add("--sizes 65536 --qps 16", "wire, a to b")
    add("--sizes 65536 --qps 1", "wire, a to b")
    add("--sizes 4096 --qps 4", "wire, a to b")
    add("--sizes 4096 --qps 4 --verb send", "wire, a to b")
    add("--sizes 4096 --qps 4 --transport uc", "wire, a to b")
    # Complete is a datagram when it has left gather: what queues at the port is a part of a short run.
    add("--sizes 2048 --qps 8 --transport ud --verb send --messages 6000", "wire, a to b")
    add("--sizes 65536 --qps 4 --verb read", "wire, b to a")
    add("--sizes 4096 --qps 4 --bidirectional", "wire, ")
    add("--sizes 65536 --qps 4 --set adapter.port.rate_mbps=10000", "wire, a to b")
    add("--sizes 64 --qps 16 --set adapter.port.rate_mbps=10000", "wire, a to b")
    add("--sizes 64 --qps 1", "processing units of adapter a")
    add("--sizes 8 --qps 1 --verb send", "processing units of adapter a")
    add("--sizes 64 --qps 2", "processing units of adapter a")
    add("--sizes 64 --qps 1 --transport uc", "processing units of adapter a")
    add("--sizes 8 --qps 1 --verb read", "processing units of adapter a")
    add("--sizes 64 --qps 4 --set adapter.requester.wqe_cycles=900", "processing units of adapter a")
    add("--sizes 64 --qps 16", "processor a")
    add("--sizes 64 --qps 16 --inline 64", "processor a")
    add("--sizes 64 --qps 16 --set driver.post_send_ns=200", "processor a")
    add("--sizes 8 --qps 16 --verb write_imm", "processor a")
    add("--sizes 64 --qps 16 --transport uc --set driver.post_send_ns=120", "processor a")
    add("--sizes 64 --qps 16 --set driver.post_send_ns=20", "requester send engine of adapter a")
    add("--sizes 256 --qps 16 --set driver.post_send_ns=20", "requester send engine of adapter a")
    add("--sizes 32 --qps 16 --transport uc --set driver.post_send_ns=20", "requester send engine of adapter a")
    add("--sizes 64 --qps 16 --set adapter.requester.gather_cycles=90", "requester send engine of adapter a")
    add("--sizes 1024 --qps 16 --set adapter.port.rate_mbps=100000", "requester send engine of adapter a")
    add("--sizes 8 --qps 8 --verb cas", "atomic unit engine")
    add("--sizes 8 --qps 8 --verb fadd", "atomic unit engine")
    add("--sizes 8 --qps 2 --verb fadd", "atomic unit engine")
    add("--sizes 8 --qps 8 --verb masked_cas", "atomic unit engine")
    add("--sizes 8 --qps 8 --verb cas --roce v1", "atomic unit engine")
    # Those that find no place wait in host memory, from which the operands come as well.
    add("--sizes 8 --qps 64 --verb fadd --bidirectional", "atomic unit engine", ("PCIe",))
    # Of several engines those have nothing to do whose queue pairs or locks wait.
    add("--sizes 8 --qps 1 --verb cas --profile connectx5_100g", "order of a queue pair's atomics of adapter b")
    add("--sizes 8 --qps 4 --verb fadd --profile connectx5_100g", "order of a queue pair's atomics of adapter b")
    add("--sizes 8 --qps 8 --verb fadd --set adapter.responder.atomics.in_flight=8", "atomic unit locks of adapter b")
    add("--sizes 8 --qps 6 --verb cas --profile connectx5_100g --set adapter.requester.processing_units=1",
        "processing units of adapter a")
    add("--sizes 1024 --qps 4 --set adapter.responder.write_cycles=900", "responder check of adapter b")
    add("--sizes 64 --qps 16 --set adapter.responder.write_cycles=60", "responder check of adapter b")
    add("--sizes 64 --qps 16 --verb send --set adapter.responder.receive_cycles=80", "responder check of adapter b")
    add("--sizes 1024 --qps 4 --set adapter.responder.beat_overhead_cycles=200", "responder check of adapter b")
    add("--sizes 1024 --qps 4 --set adapter.pcie.width=1", "PCIe, ")
    add("--sizes 65536 --qps 4 --set adapter.pcie.width=1", "PCIe, ")
    add("--sizes 65536 --qps 4 --verb read --set adapter.pcie.width=1", "PCIe, ")
    add("--sizes 4096 --qps 4 --set adapter.pcie.interface_bytes=4", "pcie interface of adapter b")
    add("--sizes 64 --qps 16 --set adapter.pcie.interface_bytes=1", "pcie interface of adapter b")
    add("--sizes 4096 --qps 4 --set adapter.pcie.core_khz=100000 --set adapter.pcie.interface_bytes=16",
        "pcie core receive of adapter a")
    add("--sizes 4096 --qps 4 --verb read --set adapter.pcie.core_khz=100000 --set adapter.pcie.interface_bytes=16",
        "pcie core interface of adapter a")
    add("--sizes 8 --qps 16 --verb read --set driver.post_send_ns=20", "read engine")
    add("--sizes 64 --qps 16 --verb read --set adapter.requester.read_request_cycles=60", "read engine")
    add("--sizes 256 --qps 16 --set adapter.datapath_bytes=1", "datapath: ")
    add("--sizes 4096 --qps 4 --set adapter.datapath_bytes=4", "datapath: ")
    # Of a deeper queue one grant sends several messages.
    add("--sizes 64 --qps 64 --depth 1 --set adapter.scheduler.grant_cycles=200", "scheduler arbiter of adapter a",
        ("window",))
    add("--sizes 64 --qps 16 --inline 64 --set adapter.doorbell.bf_line_cycles=60", "doorbell decoder of adapter a")
    add("--sizes 8 --qps 16 --verb send --set adapter.completion.cqe_cycles=60", "completion cqe engine")
    # Of all memories only the requester's contexts can be what limits: the others take fewer accesses for a message than
    # the engines in front of them take cycles at the least.
    quick = "".join(" --set " + x for x in QUICK)
    add("--sizes 8 --qps 16 --inline 8" + quick, "requester context memory of adapter a")
    add("--sizes 0 --qps 16" + quick, "requester context memory of adapter a")
    add("--sizes 8 --qps 32 --inline 8 --transport uc" + quick, "requester context memory of adapter a")
    add("--sizes 8 --qps 8 --inline 8 --transport xrc" + quick, "requester context memory of adapter a")
    add("--sizes 8 --qps 4 --inline 8 --bidirectional" + quick, "requester context memory of adapter ")
    # Over a long way: on a short one all that a message passes is a good part of the window's time.
    add("--sizes 64 --qps 1 --depth 1 --cable 1000", "window")
    add("--sizes 65536 --qps 4 --cable 100000 --depth 2", "window")
    add("--sizes 8 --qps 1 --depth 1 --verb read --cable 1000", "window")
    # Loss: what is sent again takes of the wire, what only the timer finds takes all of the time.
    add("--sizes 4096 --qps 4 " + LOST_ONCE, "wire, a to b")
    add("--sizes 4096 --qps 4 " + LOST_TWICE, "time-outs of adapter a")
    add("--sizes 64 --qps 16 " + LOST_TWICE, "time-outs of adapter a")
    add("--sizes 256 --qps 2 --verb send " + LOST_TWICE, "time-outs of adapter a")
    # Too few receives, over a long way, as with the window.
    add("--sizes 4096 --qps 4 --verb send --rx-depth 1 --cable 4000", "receives of host b")
    add("--sizes 64 --qps 2 --verb send --rx-depth 2 --cable 2000", "receives of host b")
    add("--sizes 64 --qps 2 --verb write_imm --rx-depth 1 --cable 2000", "receives of host b")
    # Queue pairs beyond what the caches hold.
    # Of more that is posted at once several messages go with a context that has come.
    add("--sizes 64 --qps 1024 --depth 1 --messages 16000", "contexts of adapter a", ("window", "processor"))
    add("--sizes 8 --qps 1500 --depth 2 --messages 16000", "contexts of adapter a", ("window", "processor"))
    add("--sizes 200 --qps 300 --verb read --depth 4 --messages 6000", "contexts of adapter a", ("window",))
    # READs that a queue pair may have under way, and messages that the adapter may.
    add("--sizes 8 --qps 1 --verb read --outs 2 --cable 1000", "READs under way of adapter a")
    add("--sizes 4096 --qps 2 --verb read --outs 1 --cable 2000", "READs under way of adapter a")
    add("--sizes 8 --qps 2 --verb fadd --outs 1 --cable 1000", "READs under way of adapter a")
    add("--sizes 64 --qps 16 --cable 1000 --set adapter.requester.outstanding_entries=32",
        "message table of adapter a")
    # Of a shared receive queue nobody tells the sender how much there is.
    add("--sizes 64 --qps 4 --verb send --transport xrc --rx-depth 2", "receivers not ready of host b")
    # Payload of which too little is asked for at once, in a host that takes long to answer.
    slow = " --set host.llc_read_ps=8000000 --set adapter.pcie.completion_timeout_ps=100000000000"
    add("--sizes 65536 --qps 4 --set adapter.pcie.reads_per_client=2" + slow, "payload reads of adapter a")
    add("--sizes 4096 --qps 8 --set adapter.pcie.reads_per_client=1" + slow, "payload reads of adapter a")
    # READs that the responder's host answers late, and datagrams of which some find no receive.
    add("--sizes 65536 --qps 2 --verb read" + slow, "PCIe tags of adapter b")
    add("--sizes 65536 --qps 2 --verb read --set adapter.pcie.core_khz=250000" + slow, "PCIe tags of adapter b")
    # A host that lets the adapter send less at once than it could.
    add("--sizes 100000 --qps 16 --depth 2 --verb read --bidirectional --profile connectx5_100g"
        " --set host.llc_read_ps=3000000", "PCIe credits of host ")
    add("--sizes 4096 --qps 4 --set host.posted_data=32 --set host.posted_visible_ps=2000000"
        " --set host.llc_read_ps=2000000", "PCIe credits of host b")
    add("--sizes 4096 --qps 4 --verb read --set host.non_posted_headers=2", "PCIe credits of host b")
    add("--sizes 64 --qps 4 --transport ud --verb send --rx-depth 8 --messages 8000", "processor a")
    # The other profile.
    add("--sizes 65536 --qps 16 --profile connectx5_100g", "wire, a to b")
    add("--sizes 4096 --qps 16 --verb read --profile connectx5_100g", "wire, b to a")
    add("--sizes 64 --qps 16 --profile connectx5_100g", "processor a")
    add("--sizes 64 --qps 1 --profile connectx5_100g --messages 16000", "processing units of adapter a")
    add("--sizes 64 --qps 16 --profile connectx5_100g --set driver.post_send_ns=5 --set driver.poll_ns=5",
        "payload reads of adapter a")
    # The receiver's host takes no more: its adapter pauses the sender, whose gather waits as well.
    cx5 = " --profile connectx5_100g"
    late = " --set host.posted_visible_ps=2000000 --set host.llc_read_ps=2000000"
    add("--sizes 20001 --qps 16 --verb send --transport uc --mtu 256 --set host.posted_headers=8 --messages 3000" + cx5,
        "PCIe credits of host b")
    add("--sizes 5000 --qps 7 --mtu 4096 --messages 3000" + late + cx5, "PCIe credits of host b")
    add("--sizes 65536 --qps 16 --depth 2 --verb send --transport xrc --messages 400 --set host.uncore_khz=20000" + cx5,
        "memory writes of host b")
    add("--sizes 128 --qps 4 --depth 16 --verb write_imm --messages 6000 --set host.uncore_khz=20000", "memory writes of host b")
    # Small packets, of which more payload would have to be asked for at once.
    add("--sizes 8192 --qps 7 --depth 16 --mtu 256 --set driver.poll_ns=400" + cx5, "payload reads of adapter a")
    # Sixteen engines that wait for the host.
    add("--sizes 8 --qps 64 --depth 4 --outs 4 --verb cas --set host.llc_read_ps=3000000" + cx5, "atomic unit engine")
    # A cable that is too long for the headroom: what comes behind a pause has no room. Quicker writes need less.
    add("--sizes 1000 --qps 512 --depth 4 --verb write_imm --transport xrc --cable 2000 --messages 6000"
        " --set adapter.pcie.interface_bytes=4" + cx5, "receive buffer of adapter b", ("pcie interface", "time-outs"))
    # A guest has a processor of its own.
    add("--sizes 32 --qps 64 --verb read --functions 2 --function 2 --messages 4000" + cx5, "processor of function 2, a")
    # READs: the responder has places for too few packets, and its host answers one of them at a time.
    add("--sizes 4097 --qps 24 --verb read --mtu 1024 --set adapter.responder.read_gathers=2" + cx5,
        "payload reads of adapter b")
    add("--sizes 512 --qps 24 --verb read --outs 8 --set adapter.pcie.reads_per_client=1" + cx5, "payload reads of adapter b")
    # Histories that are not on chip: so many are fetched at once.
    add("--sizes 8 --qps 512 --verb cas --outs 1 --messages 6000" + cx5, "histories of adapter b", ("datapath",))
    # One queue pair of which no more is read ahead.
    add("--sizes 512 --qps 1 --depth 64 --verb send --transport ud --inline 128 --rx-depth 16 --messages 6000"
        " --set adapter.pcie.generation=2 --set host.uncore_khz=100000", "descriptor fetch of adapter a", ("PCIe", "datapath"))
    add("--sizes 8 --qps 1 --depth 16 --verb fadd --inline 128 --set host.uncore_khz=20000 --set host.buffers=remote",
        "descriptor fetch of adapter a")
    # Units that wait for room behind the send engine, or for that.
    add("--sizes 200 --qps 512 --depth 2 --transport xrc --mtu 4096 --messages 4096 --set adapter.port.egress_frames=4" + cx5,
        "payload reads of adapter a")
    add("--sizes 128 --qps 64 --depth 8 --verb send --bidirectional --messages 2048 --set adapter.requester.gather_depth=4" + cx5,
        "payload reads of adapter ")
    add("--sizes 333 --qps 3 --verb send_imm --mtu 256 --set adapter.requester.gather_cycles=90",
        "requester send engine of adapter a", ("descriptor fetch",))
    # A queue pair's turns have gaps.
    add("--sizes 512 --qps 1 --mtu 512" + cx5, "processing units of adapter a")
    # As much work as there are units for.
    add("--sizes 2 --qps 3 --transport uc --mtu 256 --inline 64 --messages 6000", "processor a and processing units of adapter a")
    # Of own receive queues too few are posted, and their senders wait for timers.
    add("--sizes 64 --qps 200 --depth 32 --verb send --rx-depth 8 --bidirectional --messages 6000",
        "receivers not ready of host ", ("processor", "contexts"))
    # Contexts of which one is read after the other, in a host that takes long.
    add("--sizes 100 --qps 300 --depth 3 --verb send --transport ud --mtu 4096 --messages 6000 --set host.llc_read_ps=3000000",
        "contexts of adapter a", ("window",))
    # Atomic engines come before what has more time left than they.
    add("--sizes 8 --qps 64 --depth 32 --verb fadd --outs 4 --mtu 512 --messages 6000"
        " --set adapter.responder.write_cycles=60 --set adapter.responder.read_cycles=150", "atomic unit engine")
    # Two frames of room in front of the port, or two reads of gather: the send engine waits, and its units with it.
    add("--sizes 4097 --qps 1 --depth 4 --mtu 256 --transport uc --set adapter.port.egress_frames=2" + cx5,
        "payload reads of adapter a")
    add("--sizes 64 --qps 64 --depth 8 --mtu 4096 --messages 3000 --set adapter.port.egress_frames=2" + cx5,
        "payload reads of adapter a")
    add("--sizes 1024 --qps 8 --depth 4 --verb write_imm --set adapter.requester.gather_depth=2"
        " --set adapter.clock_khz=156250" + cx5, "payload reads of adapter a", ("datapath", "PCIe"))
    # A processor that has time left, and polls more often in it.
    add("--sizes 17 --qps 256 --depth 1 --transport xrc --mtu 4096" + cx5, "contexts of shared receive queues of adapter b",
        ("responder check",))
    # Units that wait for contexts in bursts.
    add("--sizes 2049 --qps 200 --depth 8 --verb send --mtu 2048 --messages 6000"
        " --set adapter.requester.contexts.entries=64" + cx5, "contexts of adapter a", ("PCIe", "wire", "datapath", "descriptor fetch"))
    # A queue pair that is served and stands still in turn: either is a share of its time.
    add("--sizes 32 --qps 1 --depth 64 --verb send --rx-depth 64 --cable 100", "receives of host b and processing units of adapter a",
        ("receives", "processing units"))
    # The same of a unit that waits for descriptors in between: less service would be more of that.
    add("--sizes 512 --qps 1 --verb send_imm --messages 20000 --set adapter.pcie.generation=2" + cx5, "receives of host b")
    # What histories that are not on chip fetch fills the link.
    add("--sizes 8 --qps 200 --depth 1 --verb cas --mtu 4096 --messages 3000 --set adapter.pcie.width=1",
        "PCIe, host b to adapter and histories of adapter b", ("PCIe", "histories", "contexts", "window", "atomic unit engine", "descriptor fetch"))
    # An engine that waits for credits now and then, and is in use in the rest of the time.
    add("--sizes 2049 --qps 300 --mtu 512 --messages 6000 --set adapter.pcie.interface_bytes=8 --set host.posted_data=64",
        "pcie interface of adapter b", ("PCIe", "PCIe credits", "processing units"))
    # A window that one fetch of descriptors brings; units and the processor are a part of its latency.
    add("--sizes 17 --qps 1 --depth 4 --mtu 4096 --set adapter.requester.translation_blocks=false", "window",
        ("processing units", "processor"))
    # A fetch that brings one descriptor, of queue pairs that have a unit each.
    add("--sizes 256 --qps 1 --inline 220", "descriptor fetch of adapter a", ("PCIe", "datapath"))
    add("--sizes 512 --qps 2 --inline 220 --verb read --bidirectional --depth 20" + cx5, "descriptor fetch of adapter ",
        ("wire",))  # in another rhythm doorbells bring what else is fetched
    # A buffer that holds less than the cable: the peer has nothing to do at the end of each pause.
    add("--sizes 16384 --qps 2 --depth 8 --mtu 4096 --rate 100000 --cable 1000", "receive buffer of adapter b", ("datapath",))
    # Both halves' READs, and more queue pairs than there are contexts for.
    add("--sizes 4096 --qps 64 --depth 16 --verb read --bidirectional --rate 56000 --messages 6144",
        "read engine turns of adapter a and contexts of adapter a", ("responder check", "datapath"))
    # An engine for answers that each request waits for.
    for cycles in (60, 120):
        add("--sizes 64 --qps 8 --messages 6000 --set b.adapter.responder.ack_coalesce=1 --set b.adapter.responder.ack_cycles=%d"
            % cycles, "responder acknowledge of adapter b")
    # One that answers two requests at once does all the same: each of its answers is for two.
    add("--sizes 64 --qps 8 --messages 3000 --set b.adapter.responder.ack_coalesce=2 --set b.adapter.responder.ack_cycles=150",
        "responder acknowledge of adapter b")
    # Grants that take what has gathered hold up nobody.
    add("--sizes 64 --qps 16 --messages 3000 --set adapter.scheduler.grant_cycles=60", "processor a")
    # Units that are not granted.
    for grants in (1, 2):
        add("--sizes 64 --qps 16 --messages 3000 --set adapter.scheduler.grants=%d" % grants, "scheduler grants of adapter a")
    # Turns of one message, for each of which descriptors are fetched.
    add("--sizes 64 --qps 16 --messages 3000 --set adapter.requester.turn_wqes=1",
        "PCIe, host a to adapter and processing units of adapter a", ("PCIe", "processing units", "datapath"))
    # A cable on which each frame comes twice.
    add("--sizes 4096 --qps 4 --faults " + os.path.join(FAULTS, "duplicate_all.toml"), "wire, a to b",
        ("time-outs",))  # without the plan nothing comes twice
    # Units that wait for their queue pairs' time.
    for qps, rate in ((1, 6000), (8, 9000)):
        add("--sizes 1024 --qps %d --messages 3000 --functions 2 --function 1 --set driver.functions.vlan=5 --set driver.functions.max_rate_mbps=%d"
            % (qps, rate), "rate limit")
    # Pauses: the peer cannot put away what comes.
    add("--sizes 4096 --qps 8 --verb send --set adapter.pcie.width=2", "PCIe, ")
    # Places for two frames of a source, each of which is in the port for 63 ns.
    small = " --verb write --transport uc --qps 24 --inline 128 --bidirectional --messages 24000 --set adapter.port.egress_frames=2"
    add("--sizes 64 --depth 2 --set driver.post_send_ns=5" + small + cx5, "egress buffer of adapter a")
    add("--sizes 100 --depth 16 --set driver.post_send_ns=5" + small + cx5, "egress buffer of adapter a")
    return s


def with_more_messages(arguments, times):
    at = arguments.index("--messages") + 1
    return arguments[:at] + [str(times * int(arguments[at]))] + arguments[at + 1:]


def each_of(program, arguments, values, resource, settings):
    """(resource, gain) of what gives too much: memories, which are several resources, one by one. Any change makes
    messages fall otherwise, which in some runs is worth 3 %: a gain is there with three times as many of them too."""
    arguments = with_more_messages(arguments, 3)
    rate = run(program, arguments)[0]
    each = [(resource, settings)]
    if resource == OTHER_MEMORIES:
        each = [(memory, {ports: 2}) for memory, ports in MEMORIES.items() if ports in settings]
    gains = [(one, run(program, relaxed(arguments, values, more))[0] / rate - 1) for one, more in each]
    return [(one, gain) for one, gain in gains if gain > STILL]


def check(program, scenario):
    arguments, expected, also = scenario
    if "--messages" not in arguments:
        arguments = arguments + ["--messages", "8000" if QUICK[0] in arguments else "1500"]
    text = " ".join(arguments)
    faults = []
    rate, named, values, more_by = run(program, arguments)
    if not more_by or (unknown_ways(more_by, values) and not named.startswith("time-outs")):
        faults.append("%s: more of %s is said to come from %r" % (text, named, more_by))
    if not named.startswith(expected) and expected not in named:
        faults.append("%s: %s is named, expected %s" % (text, named, expected))
    known = relaxations(named)
    keys = [key_of(part.replace("datapath: ", ""), known) for part in parts_of(named)]
    if None in keys:
        return faults + ["%s: nothing is known that gives more of %s" % (text, named)], []
    table = []
    both = arguments
    for key in keys:
        both = relaxed(both, values, dict(known)[key]) or both
    gain = run(program, both)[0] / rate - 1
    table.append((" and ".join(keys), gain))
    if gain <= RISE:
        faults.append("%s: %s is named, and more of it gives %+.1f %%" % (text, named, 100 * gain))
    for resource, settings in known:
        more = None if [resource] == keys else relaxed(arguments, values, settings)
        if more is None:
            continue
        gain = run(program, more)[0] / rate - 1
        table.append((resource, gain))
        if gain <= STILL or any(same(resource, k) for k in keys if k != resource) or resource in also:
            continue
        for one, gain in each_of(program, arguments, values, resource, settings):
            faults.append("%s: %s is named, and more of %s gives %+.1f %%" % (text, named, one, 100 * gain))
    return faults, [(text, named, rate, table)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--only", default="", help="scenarios whose arguments hold this text")
    parser.add_argument("--every", type=int, default=1, help="every so many of them")
    parser.add_argument("--verbose", action="store_true", help="print every gain")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    todo = [s for s in scenarios() if options.only in " ".join(s[0])][::options.every]
    faults = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for found, tables in pool.map(lambda s: check(options.program, s), todo):
            faults += found
            for text, named, rate, table in tables:
                if options.verbose:
                    print("%s: %.3f M/s, %s" % (text, rate, named))
                    print("    " + ", ".join("%s %+.1f %%" % (r, 100 * g) for r, g in table), flush=True)
    for fault in faults:
        print(fault)
    print("%d scenarios, %d faults" % (len(todo), len(faults)))
    return 1 if faults or not todo else 0


if __name__ == "__main__":
    sys.exit(main())
