#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--wave: widths and ports, counted in what GTKWave's own reader (fst2vcd) finds in the waveform of a run. In each cycle a
channel takes and gives no more than its declared width and holds no more than its depth, a memory makes no more accesses
than it has ports, an engine starts when its interval is over, a pipeline holds what has entered; totals are those of the
run's results; what is declared follows the parameters. Faults that are put into what was read are found.

usage: check_resources.py FST2VCD PROGRAM
"""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "fabric"), os.path.dirname(HERE)]
from faults import run_checks  # noqa: E402
from network_checks import Checks, mixed_loop  # noqa: E402
from resources import Cycles, channel, constant, engine, memory, pipeline  # noqa: E402
from waves import Wave  # noqa: E402

READER = sys.argv.pop(1)


class Resources(Checks):
    def waved(self, command, *arguments):
        self.number += 1
        path = self.path("%d.fst" % self.number)
        result, said = self.call(command, *arguments, "--wave", path)
        self.expect("%d memories, %d engines, %d pipelines" % tuple(result["wave"][k] for k in
                    ("memories", "engines", "pipelines")) in said, "does not say what is shown: %s" % said[-300:])
        return result, Wave(READER, path)

    def parameters(self, *arguments):
        said = subprocess.run([self.program, "parameters", *arguments], capture_output=True, text=True, timeout=60)
        return {n: int(v) for n, v in re.findall(r"^(\S+) = (\d+)", said.stdout, re.M)}


def names(wave, ending, beside=None):
    """Scopes that have a signal of this name, and one beside it."""
    return [n for n in wave.scopes(ending) if beside is None or n + "." + beside in wave.changes]


KINDS = {"channels": (channel, "occupancy", "push"), "memories": (memory, "ports", "shared"),
         "engines": (engine, "start", "busy"), "pipelines": (pipeline, "start", "cycles")}


def count(wave):
    """Faults of all that a waveform shows; totals; by kind and name what each check has found."""
    clocks = {clock.rsplit(".", 1)[0]: Cycles(wave, clock) for clock in wave.scopes("cycle")}
    faults, totals, found = [], {}, {kind: {} for kind in KINDS}
    for kind, (check, *of) in KINDS.items():
        for name in names(wave, *of):
            block = max((b for b in clocks if name.startswith(b + ".")), key=len)
            wrong, counted, found[kind][name] = check(clocks[block], name)
            faults += wrong
            totals.update(counted)
    return faults, totals, found


def summed(use):
    """Counters of a run by the names that count() has: what blocked an engine is one number."""
    totals = {}
    for name, value in use.items():
        short = re.sub(r"(\.blocked_cycles)\..*$", r"\1", name)
        short = re.sub(r"(\.accesses\.)(.*)$", lambda m: m[1] + re.sub(r"\W", "_", m[2]), short)
        totals[short] = totals.get(short, 0) + value
    return totals


def check_totals(c, what, totals, use):
    counters = summed(use)
    wrong = ["%s: %d in the waveform, counted %d" % (n, v, counters.get(n, 0))
             for n, v in totals.items() if v != counters.get(n, 0)]
    c.expect(not wrong, "%s: %d totals: %s" % (what, len(wrong), wrong[:4]))
    missing = [n for n, v in counters.items() if n not in totals and not n.endswith((".full_cycles", "_cycles"))]
    c.expect(not missing, "%s: not in the waveform: %s" % (what, missing[:4]))
    c.expect(sum(1 for v in totals.values() if v) > 40, "%s: too little to count: %s" % (what, totals))


# ---------------------------------------------------------------- runs

# Command, arguments; what has to have been at work.
RUNS = (
    ("WRITE 64 B", "bandwidth", ["--sizes", "64", "--qps", "16", "--depth", "16", "--messages", "500"],
     ("a.adapter.requester.send_engine.operations", "a.adapter.requester.context_memory.accesses.transmit",
      "a.adapter.gather.packets.entered", "b.adapter.responder.packets.entered")),
    ("READ 4 KB", "bandwidth", ["--verb", "read", "--sizes", "4096", "--qps", "4", "--depth", "16", "--messages", "100"],
     ("b.adapter.read_generator.ask.operations", "b.adapter.answer_transmit.packets.entered",
      "a.adapter.scatter.write.operations")),
    ("SEND, shared receives", "bandwidth", ["--verb", "send", "--transport", "xrc", "--sizes", "256", "--qps", "4", "--messages",
                                            "200"],
     ("b.adapter.responder.srq_memory.accesses.check", "b.adapter.completion.cqe_engine.operations")),
    ("all verbs", "run", None, ("h3.adapter.atomic_unit.engine0.operations", "h3.adapter.atomic_unit.operands.entered",
                                "h1.adapter.scheduler.descriptors.accesses.doorbells")),
)


def check_runs(c):
    loop = c.file(mixed_loop(40))
    for what, command, arguments, at_work in RUNS:
        result, wave = c.waved(command, *(arguments or [loop, "--wave-of", "*"]))
        faults, totals, found = count(wave)
        c.expect(not faults, "%s: %d faults: %s" % (what, len(faults), faults[:5]))
        check_totals(c, what, totals, result["wave"]["use"])
        for kind, those in found.items():
            c.expect(len(those) == result["wave"][kind] > 10 - 8 * (kind == "pipelines"),
                     "%s: %d %s, %s" % (what, len(those), kind, result["wave"]))
        idle = [n for n in at_work if not totals.get(n)]
        c.expect(not idle, "%s: not at work: %s" % (what, idle))
        c.expect(all(found["channels"].values()), "%s: pops are not pushes less what is left" % what)
        c.expect(any(found["memories"].values()), "%s: no memory has had all of its ports taken in a cycle" % what)
        check_beside(c, what, wave, totals, result)


def check_beside(c, what, wave, totals, result):
    """Counters of blocks, of channels and of the whole run, which nothing here has written."""
    hosts = {n.split(".")[0] for n in wave.scopes("cycle") if n.endswith(".adapter.clock")}
    for host in hosts:
        clock = Cycles(wave, host + ".adapter.clock")
        for pipe, behind in (("gather.packets", "gather_to_icrc_insert_frames"),
                             ("answer_transmit.packets", "answer_transmit_to_icrc_insert_frames")):
            entered = clock.each("%s.adapter.%s.start" % (host, pipe))
            pushed = clock.each("%s.adapter.%s.push" % (host, behind))
            c.expect(entered == pushed, "%s: %s of %s and pushes into the channel behind it differ" % (what, pipe, host))
        checked = clock.each("%s.adapter.responder.check.start" % host)
        entered = clock.each("%s.adapter.responder.packets.start" % host)
        c.expect(set(entered) <= set(checked), "%s: packets enter the responder of %s that were not checked" % (what, host))
    counters = result.get("statistics", result.get("counters", {}))
    refused = {n: Cycles(wave, n.split(".")[0] + ".adapter.clock").total(n + ".wait") for n in wave.scopes("wait")}
    wrong = [n for n, v in refused.items() if n + ".waits" in counters and v > counters[n + ".waits"]]
    c.expect(not wrong, "%s: more refusals than counted at %s" % (what, wrong[:3]))
    c.expect(what != "WRITE 64 B" or any(refused.values()), "%s: no user is refused a port" % what)
    whole = result.get("use", {})
    more = [n for n, v in result["wave"]["use"].items() if n in whole and v > whole[n]]
    c.expect(not more, "%s: more than in the whole run: %s" % (what, more[:3]))
    for host in hosts:
        n = "%s.adapter.gather.packets" % host
        counted = counters.get(n, 0)
        entered = totals.get(n + ".entered", 0)
        c.expect(0 <= counted - entered <= 2, "%s: %s: %d, counted %d" % (what, n, entered, counted))


# ---------------------------------------------------------------- what is declared

DECLARED = (  # parameter, another value, and what shows it
    ("adapter.requester.context_ports", 1, "requester.context_memory.ports"),
    ("adapter.responder.context_ports", 3, "responder.context_memory.read_write_ports"),
    ("adapter.translation.mtt_read_ports", 1, "translation.mtt_reads.read_ports"),
    ("adapter.translation.mpt_write_ports", 2, "translation.mpt_memory.write_ports"),
    ("adapter.requester.message_append_ports", 2, "requester.message_append.write_ports"),
    ("adapter.responder.receive.rights_cycles", 3, "responder.packets.rights.cycles"),
    ("adapter.responder.answer.path_cycles", 9, "answer_transmit.packets.path.cycles"),
    ("adapter.channel_depth", 12, "pcie_to_doorbell_writes.depth"),
    ("adapter.descriptor_depth", 48, "pcie_to_descriptor_fetch_dma_responses.depth"),
)
INTERVALS = (  # parameter, another value, and the engine whose operations all take so many cycles
    ("adapter.scheduler.grant_cycles", 5, "scheduler.arbiter"),
    ("adapter.completion.cqe_cycles", 7, "completion.cqe_engine"),
    ("adapter.completion.doorbell_cycles", 3, "completion.doorbell_engine"),
)


def check_declared(c):
    """Ports, depths, stages and intervals are those of the parameters, by default and changed; and are kept to."""
    change = [a for p, v, _ in DECLARED + INTERVALS for a in ("--set", "%s=%d" % (p, v))]
    for arguments in [], change:
        parameters = c.parameters(*arguments)
        result, wave = c.waved("bandwidth", "--sizes", "1024", "--qps", "4", "--messages", "150", *arguments)
        faults, totals, found = count(wave)
        c.expect(not faults, "declared: %s" % faults[:5])
        check_totals(c, "declared", totals, result["wave"]["use"])
        for parameter, other, shown in DECLARED:
            value = constant(wave, "a.adapter." + shown)
            c.expect(value == parameters[parameter] == (other if arguments else value), "%s = %d, %s is %d" %
                     (parameter, parameters[parameter], shown, value))
        for parameter, _, name in INTERVALS:
            intervals = set().union(*(found["engines"]["%s.adapter.%s" % (host, name)] for host in "ab"))
            c.expect(intervals == {parameters[parameter]}, "%s = %d, intervals of %s: %s" %
                     (parameter, parameters[parameter], name, intervals))


# ---------------------------------------------------------------- the checks themselves

def put(wave, path, value):
    """The signal has another value in all cycles in which it is not 0."""
    wave.changes[path] = [(t, format(value(int(v, 2)), "b") if int(v, 2) else "0") for t, v in wave.changes[path]]


def check_planted(c):
    """Each fault that is put into a waveform is found, and by its name."""
    _, wave = c.waved("bandwidth", "--sizes", "64", "--qps", "16", "--depth", "16", "--messages", "100")
    c.expect(not count(wave)[0], "planted: faults before any was: %s" % count(wave)[0][:3])
    edges = dict((int(v, 2), t) for t, v in wave.changes["a.adapter.clock.cycle"])
    starts = sorted(Cycles(wave, "a.adapter.clock").each("a.adapter.scheduler.arbiter.start"))
    early = edges[next(b for a, b in zip(starts, starts[1:]) if b > a + 1 and b - 1 in edges) - 1]
    plants = {
        "a.adapter.requester_to_gather_packets: more than 1 pushes": ("requester_to_gather_packets.push", lambda v: 2),
        "a.adapter.requester_to_gather_packets: more than 1 pops": ("requester_to_gather_packets.pop", lambda v: 2),
        "a.adapter.requester_to_gather_packets: more than 0 items": ("requester_to_gather_packets.depth", lambda v: 0),
        "a.adapter.requester_to_gather_packets: occupancy": ("requester_to_gather_packets.occupancy", lambda v: v + 1),
        "a.adapter.parser1.gid_table.gid: more accesses": ("parser1.gid_table.gid.access", lambda v: 2),
        "a.adapter.requester.context_memory: more than 1 accesses": ("requester.context_memory.ports", lambda v: 1),
        "a.adapter.scheduler.queue_pairs: users make other": ("scheduler.queue_pairs.updates", lambda v: v + 1),
        "a.adapter.scheduler.arbiter: starts in cycles": ("scheduler.arbiter.interval", lambda v: v + 100),
        "a.adapter.scheduler.arbiter: busy in cycle": ("scheduler.arbiter.start", lambda v: 0),
        "a.adapter.gather.packets.headers: other items": ("gather.packets.headers.items", lambda v: v + 1),
    }
    for said, (path, value) in plants.items():
        path = "a.adapter." + path
        kept = wave.changes[path]
        put(wave, path, value)
        found = count(wave)[0]
        c.expect(any(f.startswith(said) for f in found), "planted in %s, found %s" % (path, found[:3]))
        wave.changes[path] = kept
    path = "a.adapter.scheduler.arbiter.start"
    kept = wave.changes[path]
    wave.changes[path] = sorted(kept + [(early, "1")])
    found = count(wave)[0]
    c.expect(any(f.startswith("a.adapter.scheduler.arbiter: starts in cycles") for f in found),
             "a start too early, found %s" % found[:3])
    wave.changes[path] = kept
    c.expect(not count(wave)[0], "planted: faults are left")


if __name__ == "__main__":
    sys.exit(run_checks(__doc__, Resources, [check_runs, check_declared, check_planted]))
