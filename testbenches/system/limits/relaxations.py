# SPDX-License-Identifier: Apache-2.0
"""Which settings give more of each resource that `limited_by` names, and runs with them: what check_perturbation.py and
draw.py share."""
import json
import os
import re
import subprocess
import tempfile

RISE = 0.03
STILL = 0.03

# Beginning of a resource's name -> settings that give more of it, as factors of what is in force. A count of engines
# has an absolute value.
RELAXED = {
    "processor": {"driver.post_send_ns": 0.5, "driver.poll_ns": 0.5, "driver.post_recv_ns": 0.5},
    "wire": {"adapter.port.rate_mbps": 2, "--topology": 2},
    "PCIe tags": {"adapter.pcie.tags": 4},
    "PCIe credits": {"host.non_posted_headers": 4, "host.posted_headers": 4, "host.posted_data": 4},
    "PCIe": {"adapter.pcie.width": 2},
    "pcie interface": {"adapter.pcie.interface_bytes": 2},
    "pcie core": {"adapter.pcie.core_khz": 2},
    "requester send engine": {"adapter.requester.gather_cycles": 0.7, "adapter.requester.continue_cycles": 0.7,
                              "adapter.requester.inline_cycles": 0.7, "adapter.requester.empty_cycles": 0.7,
                              "adapter.requester.descriptor_cycles": 0.7},
    "responder check": {"adapter.responder.write_cycles": 0.7, "adapter.responder.receive_cycles": 0.7,
                        "adapter.responder.receive_header_cycles": 0.7, "adapter.responder.beat_overhead_cycles": 0.7},
    "responder acknowledge": {"adapter.responder.ack_cycles": 0.5},
    "rate limit": {"driver.functions.max_rate_mbps": 2},
    "read engine": {"adapter.requester.read_request_cycles": 0.7, "adapter.responder.read_cycles": 0.7,
                    "adapter.read_engine.piece_cycles": 0.7},
    "atomic unit engine": {"adapter.responder.atomics.in_flight": 16,
                           "adapter.responder.atomics.lock_buckets": "4096"},
    "atomic unit locks": {"adapter.responder.atomics.lock_buckets": "4096"},
    "order of a queue pair's atomics": {"adapter.responder.atomics.align_cycles": 0.5,
                                        "adapter.responder.atomics.execute_cycles": 0.5,
                                        "adapter.responder.atomics.store_cycles": 0.5},
    "read generator ask": {"adapter.responder.read_packet_cycles": 0.7},
    "datapath": {"adapter.datapath_bytes": 2},
    "scheduler arbiter": {"adapter.scheduler.grant_cycles": 0.5},
    "doorbell decoder": {"adapter.doorbell.bf_line_cycles": 0.5, "adapter.doorbell.decode_cycles": 0.5},
    "completion": {"adapter.completion.cqe_cycles": 0.5},
    "processing units": {"adapter.requester.wqe_cycles": 0.7, "adapter.requester.read_wqe_cycles": 0.7,
                         "adapter.requester.processing_units": 2},
    "scheduler grants": {"adapter.scheduler.grants": 2},
    "window": {"--depth": 2},
    "contexts of shared": {"adapter.responder.srqs.entries": 16},
    "contexts": {"adapter.requester.contexts.entries": 16, "adapter.responder.contexts.entries": 16},
    "payload reads": {"adapter.pcie.reads_per_client": 4, "adapter.port.egress_frames": 4,
                      "adapter.requester.gather_depth": 4, "adapter.responder.read_gathers": 4},
    "egress buffer": {"adapter.port.egress_frames": 4},
    "receives": {"--rx-depth": 8},
    "receivers not ready": {"--rx-depth": 8},
    "READs under way": {"--outs": 2},
    "message table": {"adapter.requester.outstanding_entries": 4},
    "time-outs": {"--faults": None},
    "memory writes": {"host.uncore_khz": 2},
    "receive buffer": {"adapter.port.ingress_bytes": 4},
    "histories": {"adapter.responder.histories.entries": 16},
    # Of 512 bytes of a queue a WQE may take all: two of them are what comes with a fetch then.
    "descriptor fetch": {"adapter.requester.prefetch_bytes": 4},
}
NEXT = "next"  # one more
# What these may be at most.
MOST = {"adapter.pcie.width": 16, "adapter.pcie.dll_efficiency_permille": 1000, "adapter.pcie.generation": 4, "adapter.pcie.reads_per_client": 64, "adapter.requester.gather_depth": 64, "adapter.requester.prefetch_bytes": 1024,
        "adapter.port.egress_frames": 512, "adapter.pcie.tags": 256, "adapter.responder.atomics.in_flight": 64,
        "adapter.requester.processing_units": 32, "adapter.scheduler.grants": 32, "adapter.responder.read_gathers": 64, "--outs": 16, "host.non_posted_headers": 127, "host.posted_headers": 127,
        "host.posted_data": 2047}
# Options that are not given.
DEFAULTS = {"--depth": 128, "--rx-depth": 512, "--outs": 16, "--inline": 0}
# Beginning of a memory's name -> how many accesses it takes in a cycle.
MEMORIES = {
    "requester context memory": "adapter.requester.context_ports",
    "requester message append": "adapter.requester.message_append_ports",
    "requester withdrawals": "adapter.requester.withdrawal_ports",
    "responder context memory": "adapter.responder.context_ports",
    "responder history memory": "adapter.responder.history_ports",
    "responder srq memory": "adapter.responder.srq_ports",
    "translation mpt reads": "adapter.translation.mpt_read_ports",
    "translation mpt memory": "adapter.translation.mpt_write_ports",
    "translation mtt reads": "adapter.translation.mtt_read_ports",
}
OTHER_MEMORIES = "other memories"
# Beginnings of the names of what does nothing but let a frame's bytes pass.
DATAPATH = ("icrc insert", "icrc check", "parser", "port")
# Resources that are one circuit, or of which one cannot get more alone.
TOGETHER = [{"pcie core", "pcie interface"}, {"read engine", "read generator ask"},
            {"datapath", "requester send engine"}, {"datapath", "responder check"},
            {"datapath", "pcie interface"}, {"datapath", "pcie core"},  # as wide, where nothing else is said
            {"contexts", "requester send engine"}, {"contexts", "read engine"},  # which stand still for them
            {"atomic unit engine", "order of a queue pair's atomics"},
            {"atomic unit locks", "order of a queue pair's atomics"}, {"atomic unit locks", "atomic unit engine"},
            {"receives", "receivers not ready"},
            {"egress buffer", "payload reads"},  # more of which need more places in it
            {"scheduler grants", "processing units"}]  # which are granted


def relaxations(named):
    """(resource, settings): the named memory by itself, and in each case all other memories together."""
    known = list(RELAXED.items())
    known += [(m, {ports: 2}) for m, ports in MEMORIES.items() if named.startswith(m)]
    return known + [(OTHER_MEMORIES, {ports: 2 for m, ports in MEMORIES.items() if not named.startswith(m)})]


class Refused(Exception):
    """The program ended with an error."""


def run(program, arguments):
    """Messages a second in millions, what limits ("datapath: ..." of what lets frames pass), the parameters in force,
    and what is said to give more."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "r.json")
        short = [] if "--messages" in arguments else ["--messages", "1000"]  # whatever the window is
        command = [program, "bandwidth", "--quiet", "--json", file] + short + arguments
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise Refused("%s: %s" % (" ".join(command), done.stderr.strip()))
        with open(file) as f:
            result = json.load(f)
    row = result["rows"][0]
    values = dict(line.split("#")[0].strip().split(" = ") for line in result["parameters"].splitlines() if " = " in line)
    limit = row["limited_by"]
    return row["rate_mpps"], "datapath: " + limit if limit.startswith(DATAPATH) else limit, values, row["more_by"]


def unknown_ways(more_by, values):
    """Parts of what is said to give more that are neither a parameter nor an option."""
    ways = [way.split() for way in more_by.split(", ") if not way.endswith((" of the topology", " of its cable"))]
    return [" ".join(w) for w in ways if len(w) != 2 or w[0] not in ("more", "less") or
            not (w[1] in values or w[1] in DEFAULTS)]


def relaxed(arguments, values, settings):
    """The arguments with more of a resource, or None where there is none more to have."""
    out = list(arguments)
    changed = False
    for name, more in settings.items():
        if more is None:
            if name in out:
                del out[out.index(name):out.index(name) + 2]
                changed = True
            continue
        if name == "adapter.port.rate_mbps" and "--topology" in out:  # the lines of a network say it
            continue
        if name == "--topology":  # "incast@40000": its lines' rate in Mb/s
            if name in out:
                shape, rate = out[out.index(name) + 1].split("@")
                out[out.index(name) + 1] = "%s@%u" % (shape, int(rate) * more)
                changed = True
            continue
        if name.startswith("--"):
            now = int(out[out.index(name) + 1]) if name in out else DEFAULTS[name]
            new = int(now * more)
            new = min(new, MOST.get(name, new))
            if new == now:
                continue
            if name == "--depth" and "--cq-mod" not in out:  # a deeper queue would ask for fewer completions as well
                out += ["--cq-mod", str(max(1, min(now // 2, 100)))]
            if name in out:
                out[out.index(name) + 1] = str(new)
            else:
                out += [name, str(new)]
            changed = True
            continue
        if more == NEXT:
            new = min(int(values[name]) + 1, MOST[name])
            if new == int(values[name]):
                continue
        elif isinstance(more, str):
            new = more
            if new == values[name]:
                continue
        else:
            now = int(values[name])
            if name == "adapter.pcie.interface_bytes" and now == 0:
                now = int(values["adapter.datapath_bytes"])
            new = max(0 if now == 0 else 1, int(now * more))
            new = min(new, MOST.get(name, new))
            if new == now:
                continue
        out += ["--set", "%s=%s" % (name, new)]
        changed = True
    return out if changed else None


def same(x, y):
    return x == y or any(x in t and y in t for t in TOGETHER)


def parts_of(named):
    """The resources of a name: of "A and B" more of both is needed."""
    return re.split(r" and (?!latency\))", named)


def key_of(part, known):
    """The first resource in the table whose name the part begins with, or None."""
    if part.startswith(DATAPATH):
        part = "datapath: " + part
    for resource, _ in known:
        if part.startswith(resource) or (resource == "read engine" and resource in part):
            return resource
    return None
