#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--wave: what GTKWave's own reader (fst2vcd) finds in it. Handshakes of all channels, cycle by cycle; pushes and pops as
many as blocks count; edges of the clocks; passages at the times of --trace; pins and registers of RTL in the cycles of
the model; windows and names; a run with a waveform gives the same results as one without.

usage: check_wave.py FST2VCD PROGRAM_WITH_A_WRONG_MASK PROGRAM
"""
import collections
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "fabric"), os.path.dirname(HERE)]
from faults import run_checks  # noqa: E402
from network_checks import Checks, exact_times, mixed_loop  # noqa: E402
from waves import Wave  # noqa: E402

READER, WRONG = sys.argv.pop(1), os.path.abspath(sys.argv.pop(1))
HANDSHAKE = ("ready", "push", "valid", "pop", "occupancy")

LOOP = mixed_loop(60)


class Channel:
    """A channel in each cycle of its clocks that is shown: that of its producer and that of its consumer."""

    def __init__(self, wave, name, push_clock, pop_clock):
        self.wave, self.name = wave, name
        self.pushed, self.popped = wave.rises(push_clock + ".clk"), wave.rises(pop_clock + ".clk")
        self.ready, self.push = (wave.at("%s.%s" % (name, s), self.pushed) for s in ("ready", "push"))
        self.valid, self.pop = (wave.at("%s.%s" % (name, s), self.popped) for s in ("valid", "pop"))

    def fields(self):
        return sorted(p for p in self.wave.changes
                      if p.startswith(self.name + ".") and p[len(self.name) + 1:] not in HANDSHAKE)


class Waves(Checks):
    def waved(self, text, *arguments, command="run", name=None):
        self.number += 1
        path = self.path(name or "%d.fst" % self.number)
        file = [self.file(text)] if text is not None else []
        result, said = self.call(command, *file, "--wave", path, *arguments)
        wave, told = Wave(READER, path), result["wave"]
        self.expect(wave.timescale == "1ps", "timescale %s" % wave.timescale)
        self.expect(told["signals"] == len(wave.changes) and told["channels"] == len(wave.scopes("occupancy")) and
                    told["clocks"] == len(wave.scopes("cycle")), "%s, read %d signals of %d channels and %d clocks" %
                    (told, len(wave.changes), len(wave.scopes("occupancy")), len(wave.scopes("cycle"))))
        self.expect("wave: %d channels" % told["channels"] in said, "does not say so: %s" % said[-300:])
        self.expect(not [f for f in os.listdir(self.folder) if f.endswith(".part")], "parts are left")
        return result, wave

    def handshake(self, c):
        """What holds for every channel."""
        self.expect(None not in c.push and None not in c.pop, "%s: unknown handshakes" % c.name)
        lost = [t for t, ready, push in zip(c.pushed, c.ready, c.push) if push and not ready]
        self.expect(not lost, "%s: push without ready at %s" % (c.name, lost[:3]))
        void = [t for t, valid, pop in zip(c.popped, c.valid, c.pop) if pop and not valid]
        self.expect(not void, "%s: pop without valid at %s" % (c.name, void[:3]))
        # Pushes and pops of a cycle are in the channel, or gone, from the next edge on.
        steps = sorted([(after, n) for after, n in zip(c.pushed[1:], c.push)] +
                       [(after, -n) for after, n in zip(c.popped[1:], c.pop)])
        inside, wrong = 0, 0
        seen = c.wave.at(c.name + ".occupancy", [t for t, _ in steps])
        for i, (at, n) in enumerate(steps):
            inside += n
            if i + 1 == len(steps) or steps[i + 1][0] != at:
                wrong += seen[i] != inside
        self.expect(wrong == 0, "%s: occupancy is not pushes less pops in %d cycles" % (c.name, wrong))
        busy = c.wave.at(c.name + ".occupancy", c.popped)
        self.expect(all(n for n, valid in zip(busy, c.valid) if valid), "%s: valid, and nothing in it" % c.name)
        # What waits stays as it is.
        waits = [b for (b, valid, pop) in zip(c.popped[1:], c.valid, c.pop) if valid and not pop]
        for path in c.fields():
            moved = {t for t, _ in c.wave.changes[path]} & set(waits)
            self.expect(not moved, "%s changes while the item waits: %s" % (path, sorted(moved)[:3]))


def clock_of(wave, channel):
    return channel.rsplit(".", 1)[0] + ".clock"


# ---------------------------------------------------------------- channels

# What passes: channels, and the counters of the blocks at their ends that count the same.
COUNTED = (
    (("scheduler_to_requester_grants",), "scheduler.grants"),
    (("requester_to_descriptor_fetch_jobs",), "descriptor_fetch.fetches"),
    (("requester_to_gather_packets",), "gather.packets"),
    (("requester_to_gather_pieces",), "gather.pieces"),
    (("gather_to_icrc_insert_frames", "answer_transmit_to_icrc_insert_frames"), "icrc_insert.frames_inserted"),
    (("icrc_insert_to_port1_frames",), "port1.tx_frames"),
    (("port1_to_parser1_frames",), "port1.rx_frames"),
    (("parser1_to_icrc_check_frames",), "icrc_check.frames_passed"),
    (("requester_to_completion_cqes", "responder_to_completion_cqes"), "completion.cqe"),
)


def count_passages(c, wave, counters, hosts, counted=COUNTED, least=60):
    """Channels by name: every handshake is right, and what passes is as much as the blocks of each host count."""
    names = wave.scopes("occupancy")
    c.expect({n.split(".")[0] for n in names} == set(hosts), "hosts of %d channels: %s" %
             (len(names), {n.split(".")[0] for n in names}))
    channels = {}
    for name in names:
        channels[name] = Channel(wave, name, clock_of(wave, name), clock_of(wave, name))
        c.handshake(channels[name])
    passed = collections.Counter()
    for host in hosts:
        for of, counter in counted:
            mine = [channels["%s.adapter.%s" % (host, n)] for n in of]
            number = counters.get("%s.adapter.%s" % (host, counter), 0)
            passed[counter] += number
            for what in "push", "pop":
                found = sum(sum(getattr(m, what)) for m in mine)
                c.expect(found == number, "%s: %d %s in %s, counted %d %s" % (host, found, what, of, number, counter))
    c.expect(all(passed[counter] > least for _, counter in counted), "too little to count: %s" % passed)
    return channels


def check_counts(c):
    result, wave = c.waved(LOOP, "--wave-of", "*")
    begin, counters = result["wave"]["begin_ps"], result["counters"]
    channels = count_passages(c, wave, counters, ("h1", "h2", "h3"))
    check_edges(c, wave, begin)
    one = channels["h1.adapter.scheduler_to_requester_grants"]
    qpns = set(wave.at(one.name + ".qpn", [t for t, pop in zip(one.popped, one.pop) if pop]))
    c.expect(len(qpns) == 1 and 0 not in qpns and None not in qpns, "queue pairs of h1: %s" % qpns)
    frames = channels["h1.adapter.icrc_insert_to_port1_frames"]
    went = [t for t, pop in zip(frames.popped, frames.pop) if pop]
    bytes_of = sum(n + 4 for n in wave.at(frames.name + ".length", went))  # with the FCS
    c.expect(bytes_of == counters["h1.adapter.port1.tx_bytes"], "%d bytes of frames, the port counts %d" %
             (bytes_of, counters["h1.adapter.port1.tx_bytes"]))
    opcodes = set(wave.at(frames.name + ".opcode", went))
    c.expect({0x0a, 0x0c, 0x04, 0x0b, 0x14} <= opcodes, "opcodes on the way to the port: %s" % opcodes)


def check_edges(c, wave, begin, khz=427_000):
    """Everything happens at edges of the clock, and edges are where they are from the beginning of time on."""
    for clock in wave.scopes("cycle"):
        if clock == "fabric_clock":
            continue
        rises = wave.rises(clock + ".clk")
        cycles = wave.at(clock + ".cycle", rises)
        off = [(t, k) for t, k in zip(rises, cycles) if t + begin != k * 10**9 // khz]
        c.expect(len(rises) > 100 and not off, "%s: %d edges, not where they are: %s" % (clock, len(rises), off[:3]))
        edges, host = set(rises) | {0}, clock.split(".")[0]
        for path, changes in wave.changes.items():
            if path.startswith(host + ".") and not path.endswith(".clk"):
                beside = [t for t, _ in changes if t not in edges]
                c.expect(not beside, "%s changes beside the edges: %s" % (path, beside[:3]))


TWO_CLOCKS = LOOP + "[parameters]\nadapter.pcie.core_khz = 250000\n"


def check_two_clocks(c):
    """Asynchronous FIFOs: each end by its own clock."""
    result, wave = c.waved(TWO_CLOCKS, "--wave-of", "h1.adapter.pcie*")
    ends = ["h1.adapter.clock", "h1.adapter.pcie_clock"]
    c.expect(wave.scopes("cycle") == ends, "clocks %s" % wave.scopes("cycle"))
    for name, order in ("pcie_to_pcie_core", ends), ("pcie_core_to_pcie", ends[::-1]):
        channel = Channel(wave, "h1.adapter.%s_packets" % name, *order)
        c.handshake(channel)
        direction = "h1.adapter.pcie.link.packets" if order == ends else "h1.root_complex.link.packets"
        counted = result["counters"][direction]
        c.expect(0 < counted - sum(channel.push) + 2 <= 4 and sum(channel.pop) > 200, "%s: %d in, %d out, %d on the link" %
                 (name, sum(channel.push), sum(channel.pop), counted))


# ---------------------------------------------------------------- the trace

# Stages that end when an item goes into a channel, becomes visible in it, or is taken out of it. `only`: what goes there is
# of no other stage.
PASSAGES = (
    ("h1", "doorbell", "doorbell", "doorbell_to_scheduler_sends", "push", True),
    ("h1", "scheduler", "scheduler", "scheduler_to_requester_grants", "push", True),
    ("h1", "descriptor_fetch", "read", "pcie_to_descriptor_fetch_dma_responses", "pop", False),
    ("h1", "requester", "descriptor", "requester_to_gather_packets", "push", False),
    ("h1", "requester", "packets", "requester_to_gather_packets", "push", False),
    ("h1", "gather", "gather", "gather_to_icrc_insert_frames", "push", False),
    ("h3", "responder", "context", "icrc_check_to_responder_requests", "pop", False),
    ("h3", "answer_transmit", "accept", "answer_transmit_to_icrc_insert_frames", "push", False),
    ("h1", "requester", "response place", "icrc_check_to_requester_responses", "valid", False),
    ("h1", "scatter", "scatter", "translation_to_scatter_responses", "pop", False),
    ("h1", "completion", "completion", "completion_to_pcie_dma_requests", "push", True),
)


def compare_passages(c, wave, trace, passages, number):
    """Stages of messages end when the wave shows that they pass, to the picosecond."""
    with open(trace, encoding="utf-8") as f:
        events = json.load(f)["traceEvents"]
    names = {(e["pid"], e.get("tid") if e["name"] == "thread_name" else None): e["args"]["name"]
             for e in events if e["name"] in ("process_name", "thread_name")}
    ends, followed = collections.defaultdict(list), collections.defaultdict(list)
    for e in events:
        if e.get("ph") != "X":
            continue
        at = sum(exact_times(e))
        row = names[e["pid"], e["tid"]].split(" #")[0]
        ends[names[e["pid"], None], row, e["name"]].append(at)
        followed[e["args"]["m"]].append((names[e["pid"], None], row, e["name"], at))
    times = {}
    for host, block, stage, name, what, only in passages:
        channel = Channel(wave, "%s.adapter.%s" % (host, name), host + ".adapter.clock", host + ".adapter.clock")
        passes = set(wave.rises(channel.name + ".valid")) if what == "valid" else {
            t for t, n in zip(channel.pushed if what == "push" else channel.popped, getattr(channel, what)) if n}
        times[host, "adapter." + block, stage] = passes
        of = ends[host, "adapter." + block, stage]
        missing = [t for t in of if t not in passes]
        c.expect(len(of) > 2 and not missing, "%s of %s ends at %s, where %s has no %s" %
                 (stage, block, missing[:3] if of else "no time", name, what))
        c.expect(not only or len(passes) == len(set(of)), "%s: %d times %s, %d ends of %s" %
                 (name, len(passes), what, len(set(of)), stage))
    one = [x for x in followed[number] if x[:3] in times]
    c.expect(len(one) >= 5 and all(at in times[h, row, stage] for h, row, stage, at in one), "message %d: %s" % (number, one))


def check_trace(c):
    text = LOOP.replace("depth = 8", "depth = 1").replace('["h1", "h2"]', '"h1"').replace("messages = 60", "messages = 20")
    trace = c.path("x.json")
    _, wave = c.waved(text, "--trace", trace, "--wave-of", "h*.adapter")
    compare_passages(c, wave, trace, PASSAGES, 10)


# ---------------------------------------------------------------- what it may not do

def check_changes_nothing(c):
    """The waveform is the only difference."""
    text = LOOP + "[parameters]\nswitch.buffer.flow_control = \"pause\"\n"
    plain = c.call("run", c.file(text, "same.toml"))[0]
    results = []
    for name in "one.fst", "two.fst":
        waved = c.call("run", c.path("same.toml"), "--wave", c.path(name), "--wave-of", "*")[0]
        waved.pop("wave")
        results.append(json.dumps(waved))
    c.expect(json.dumps(plain) == results[0] == results[1], "a waveform changes the results")
    with open(c.path("one.fst"), "rb") as one, open(c.path("two.fst"), "rb") as other:
        c.expect(one.read() == other.read(), "two runs give different files")


# ---------------------------------------------------------------- two hosts that are measured

# Of WRITEs: what goes from a to b.
OF_WRITES = [({"h1": "a", "h3": "b"}[host], *others) for host, *others in PASSAGES
             if others[0] not in ("descriptor_fetch", "scatter", "completion") and others[1] != "response place"]
# Drivers have sent on queues of their own before the programs are ready: what comes later is counted by these alone.
BY_PROGRAMS = [(of, counter) for of, counter in COUNTED if counter not in ("scheduler.grants", "descriptor_fetch.fetches")]
MEASURED = (("latency", "--sizes", "64,4096", "--iterations", "40"),
            ("bandwidth", "--sizes", "1024", "--messages", "150", "--bidirectional"))


def check_measured(c):
    """latency and bandwidth over a cable and through a network: both hosts, from when their programs are ready."""
    star = c.file('[topology]\nkind = "star"\nhosts = 4\n', "star.toml")
    for command, *arguments in MEASURED:
        for hosts, network in (("a", "b"), []), (("h1", "h4"), ["--topology", star]):
            plain = c.call(command, *arguments, *network)[0]
            result, wave = c.waved(None, *arguments, *network, command=command)
            count_passages(c, wave, result["statistics"], hosts, BY_PROGRAMS, 3)
            check_edges(c, wave, result["wave"]["begin_ps"])
            told = result.pop("wave")
            for row in result["rows"] + plain["rows"]:
                row.pop("simulator", None)  # the cost of the simulation
            c.expect(json.dumps(plain) == json.dumps(result), "%s: a waveform changes the results" % command)
            c.expect(told["begin_ps"] > 10**6 and wave.end > 10**6, "%s: begins at %s" % (command, told))


def check_latency(c):
    """Stages of pings and pongs, pins of RTL, a window, one block, and what is refused."""
    arguments = ["--sizes", "300,4096", "--iterations", "10"]
    trace = c.path("latency.json")
    _, wave = c.waved(None, *arguments, "--trace", trace, "--wave-of", "?.adapter", command="latency")
    compare_passages(c, wave, trace, OF_WRITES, 9)
    result, rtl = c.waved(None, *arguments, "--set", "rtl.icrc=shadow", "--wave-of", "b.adapter.icrc_check", command="latency")
    found = beats(rtl, "b.adapter.icrc_check.icrc_engine", "in_valid_i", "in_ready_o")
    c.expect(result["wave"]["rtl_blocks"] == 1 and found == result["statistics"]["b.adapter.icrc_check.beats"] > 1000,
             "latency: %d beats at the pins, counted %s" % (found, result["statistics"].get("b.adapter.icrc_check.beats")))
    name = "b.adapter.parser1_to_icrc_check_frames"
    c.expect(name in rtl.scopes("occupancy"), "of a block: %s" % rtl.scopes("occupancy"))
    pops = [t for t, v in rtl.changes[name + ".pop"] if v == "1"]
    first, last = pops[len(pops) // 4], pops[len(pops) // 2]
    _, part = c.waved(None, *arguments, "--from", "%.6f" % (first / 1e6), "--until", "%.6f" % (last / 1e6), "--wave-of", name,
                      command="latency")
    expected = [(t, v) for t, v in rtl.changes[name + ".pop"] if first < t < last]
    c.expect(part.scopes("occupancy") == [name] and [x for x in part.changes[name + ".pop"] if x[0] > first] == expected,
             "latency: the window has other changes")
    for command in "latency", "bandwidth":
        c.refuse(["--wave-of", "nearest", "a.adapter.gather"], command, "--sizes", "64", "--wave", c.path("z.fst"), "--wave-of",
                 "a.adapter.gahter")
        c.expect(not os.path.exists(c.path("z.fst")), "%s: a file is left of a refused run" % command)
        c.refuse(["--wave-of", "--wave FILE"], command, "--wave-of", "a")
        c.refuse(["no/such", "written"], command, "--sizes", "64", "--wave", c.path("no/such/x.fst"))
        c.write("mine", "yours.fst")
        c.refuse(["yours.fst", "exists"], command, "--sizes", "64", "--wave", c.path("yours.fst"))
        shown = subprocess.run([c.program, command, "--print", "--wave", c.path("q.fst"), "--wave-of", "a"], text=True,
                               capture_output=True, timeout=60)
        c.expect(shown.returncode == 0 and "wave" not in shown.stdout, "%s --print: %s" % (command, shown.stdout))


# ---------------------------------------------------------------- RTL

def beats(wave, block, valid, ready):
    """Rising edges of the RTL's clock behind cycles in which both were high."""
    rises = wave.rises(block + ".clk_i")
    before = [t - 1 for t in rises]
    return sum(v == r == 1 for v, r in zip(wave.at("%s.%s" % (block, valid), before),
                                           wave.at("%s.%s" % (block, ready), before)))


def check_rtl(c):
    plain = c.call("run", c.file(LOOP, "rtl.toml"))[0]
    for how in "shadow", "rtl":
        result, wave = c.waved(LOOP, "--set", "rtl.icrc=" + how, "--set", "rtl.gid=" + how, "--set",
                                "adapter.gid.match=parallel", "--wave-of", "h1.adapter.icrc_*", "--wave-of", "h1.*gid*")
        c.expect(result["wave"]["rtl_blocks"] >= 3, "%s: %s" % (how, result["wave"]))
        counters = result["counters"]
        for name in "insert", "check":
            block = "h1.adapter.icrc_%s.icrc_engine" % name
            found, counted = beats(wave, block, "in_valid_i", "in_ready_o"), counters["h1.adapter.icrc_%s.beats" % name]
            c.expect(found == counted == plain["counters"]["h1.adapter.icrc_%s.beats" % name] > 1000,
                     "%s: %d beats at the pins of %s, counted %d" % (how, found, block, counted))
            frames = counters["h1.adapter.icrc_%s.%s" % (name, "frames_inserted" if name == "insert" else "frames_passed")]
            found = beats(wave, block, "result_valid_o", "result_ready_i")
            c.expect(found == frames, "%s: %d results of %s, %d frames" % (how, found, block, frames))
            inside = [p for p in wave.changes if p.startswith(block + ".") and p.endswith("_q")]
            c.expect(len(inside) > 3, "%s: registers of %s: %s" % (how, block, inside))
            # The first beat of a frame is offered in a cycle of the model's clock.
            edges = set(wave.rises("h1.adapter.clock.clk"))
            off = [t for t in wave.rises(block + ".in_first_i") if t not in edges]
            c.expect(not off, "%s: %s beside the clock's edges: %s" % (how, block, off[:3]))


def check_difference(c):
    """A shadow's difference ends the run, and the waveform has it."""
    path = c.path("wrong.fst")
    done = subprocess.run([WRONG, "run", c.file(LOOP), "--quiet", "--set", "rtl.icrc=shadow", "--wave", path], text=True,
                          capture_output=True, timeout=120, cwd=c.folder)
    said = re.search(r"rnic: (\S+): model and RTL differ in cycle (\d+) at result_crc: model 0x([0-9a-f]+), RTL 0x([0-9a-f]+)",
                     done.stderr)
    c.expect(done.returncode == 1 and said is not None, "wrong mask: %d, %s" % (done.returncode, done.stderr[-300:]))
    wave = Wave(READER, path)
    clock = said[1].split(".")[0] + ".adapter.clock"
    at = wave.rises(clock + ".clk")[0]
    begin = wave.at(clock + ".cycle", [at])[0] * 10**9 // 427_000 - at
    when = int(said[2]) * 10**9 // 427_000 - begin
    found = [wave.at("%s.icrc_engine.%s" % (said[1], pin), [when])[0] for pin in ("result_valid_o", "result_crc_o")]
    c.expect(found == [1, int(said[4], 16)], "wrong mask: %s at the pins in cycle %s, %s" % (found, said[2], said[0]))
    c.expect(not [f for f in os.listdir(c.folder) if f.endswith(".part")], "wrong mask: parts are left")


# ---------------------------------------------------------------- options

def check_options(c):
    _, whole = c.waved(LOOP)
    c.expect({n.split(".")[0] for n in whole.scopes("occupancy")} == {"h1", "h2"}, "default: %s" % whole.scopes("cycle"))
    name = "h1.adapter.gather_to_icrc_insert_frames"
    pops = [t for t, v in whole.changes[name + ".pop"] if v == "1"]
    first, last = pops[len(pops) // 4], pops[len(pops) // 2]
    _, part = c.waved(LOOP, "--from", "%.6f" % (first / 1e6), "--until", "%.6f" % (last / 1e6), "--wave-of", name)
    c.expect(part.scopes("occupancy") == [name], "chosen: %s" % part.scopes("occupancy"))
    for path, changes in part.changes.items():
        if not path.startswith(name):
            continue  # the clock runs for other channels too
        expected = [(t, v) for t, v in whole.changes[path] if first < t < last]
        c.expect([x for x in changes if x[0] > first] == expected, "%s: the window has other changes" % path)
        c.expect(part.at(path, [first]) == whole.at(path, [first]), "%s: begins as %s" % (path, part.at(path, [first])))
    _, block = c.waved(LOOP, "--wave-of", "h1.adapter.scatter")
    c.expect(len(block.scopes("occupancy")) > 5 and all("scatter" in n for n in block.scopes("occupancy")),
             "of a block: %s" % block.scopes("occupancy"))
    file = c.file(LOOP, "options.toml")
    out = c.path("y.fst")
    c.refuse(["--wave-of", "h1.adapter.gahter", "nearest", "h1.adapter.gather"], "run", file, "--wave", out, "--wave-of",
             "h1.adapter.gahter")
    c.expect(not os.path.exists(out), "a file is left of a refused run")
    c.refuse(["--wave-of", "--wave FILE"], "run", file, "--wave-of", "h1")
    c.refuse(["--until", "--from"], "run", file, "--wave", out, "--from", "10", "--until", "5")
    c.refuse(["--from", "--wave"], "run", file, "--from", "5")
    c.refuse(["--flow", "--trace"], "run", file, "--wave", out, "--flow", "rpc")
    c.refuse(["no/such", "written"], "run", file, "--wave", c.path("no/such/x.fst"))
    c.write("mine", "mine.fst")
    c.refuse(["mine.fst", "exists"], "run", file, "--wave", c.path("mine.fst"))
    with open(c.path("mine.fst"), encoding="utf-8") as f:
        c.expect(f.read() == "mine", "a file of the user's was overwritten")
    c.waved(LOOP, "--overwrite", name="mine.fst")
    flow = '[topology]\nkind = "star"\nhosts = 3\n[[flow]]\nname = "a"\nfrom = "h1"\nto = "h3"\nsize = 4096\nmessages = 50\n'
    result, wave = c.waved(flow, command="fabric")
    one = Channel(wave, "h1.adapter.requester_to_gather_packets", "h1.adapter.clock", "h1.adapter.clock")
    c.expect(sum(one.push) == result["counters"]["h1.adapter.gather.packets"] == 100, "fabric: %d packets" % sum(one.push))


if __name__ == "__main__":
    sys.exit(run_checks(__doc__, Waves, [check_counts, check_two_clocks, check_trace, check_changes_nothing, check_measured,
                                         check_latency, check_rtl, check_difference, check_options]))
