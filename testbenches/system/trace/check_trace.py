#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--trace: what the viewer of chrome://tracing reads of it (its own importer, read_trace.js). The stages of each message
follow one another and sum to the latencies that the run reports; rows nest nothing; arrows lead from host to host;
counters rise as high as the statistics say, and pauses last as long; windows and flows; a run with a trace gives the
same results as one without. Those of latency and bandwidth the same.

usage: check_trace.py NODE MODULES PROGRAM
"""
import collections
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "fabric"), os.path.dirname(HERE)]
from faults import run_checks  # noqa: E402
from kanata import pipelines  # noqa: E402
from network_checks import Checks, mixed_loop  # noqa: E402

NODE, MODULES = sys.argv.pop(1), sys.argv.pop(1)


class Message:
    def __init__(self, name, begin, lasts, details):
        self.verb, self.begin, self.lasts, self.details = name, begin, lasts, details
        self.way, self.beside, self.rows = [], [], set()


class Trace:
    """What the viewer has read."""

    def __init__(self, path):
        read = subprocess.run([NODE, os.path.join(HERE, "read_trace.js"), MODULES, path], capture_output=True, text=True,
                              timeout=300)
        if read.returncode != 0:
            raise RuntimeError("%s: the viewer cannot read it: %s" % (path, read.stderr[-500:]))
        # The viewer's own notice of a trace without a clock of the system goes there too.
        self.read = json.loads(read.stdout[read.stdout.index('{"warnings"'):])
        self.processes, self.arrows = self.read["processes"], self.read["arrows"]
        self.messages = {}
        rows = [(p, t, slices) for p, of in self.processes.items() for t, slices in of["threads"].items()]
        for process, row, slices in rows:
            if not row.startswith("messages of "):
                continue
            for name, begin, lasts, number, details in slices:
                m = self.messages[number] = Message(name, begin, lasts, details)
                m.host, m.flow = process, row[len("messages of "):].split(" #")[0]
        for process, row, slices in rows:
            if row.startswith("messages of "):
                continue
            for name, begin, lasts, number, details in slices:
                m = self.messages[number]
                (m.beside if details.get("beside") else m.way).append((begin, begin + lasts, name, process, row, details))
        for m in self.messages.values():
            m.way.sort()

    def counter(self, process, name):
        return self.processes[process]["counters"].get(name, [])


class Traces(Checks):
    def traced(self, text, *arguments, command="run", name=None, **how):
        """Results, and the trace as it was read."""
        self.number += 1
        path = self.path(name or "%d.trace.json" % self.number)
        result, said = self.call(command, self.file(text), "--trace", path, *arguments, **how)
        trace = Trace(path)
        what = text.splitlines()
        self.expect(all("low resolution" in w for w in trace.read["warnings"]), "%s: the viewer warns: %s" %
                    (what, trace.read["warnings"][:3]))
        self.expect(trace.read["overlapping"] == 0, "%s: %d slices lie in others" % (what, trace.read["overlapping"]))
        self.expect(trace.read["inexact"] == 0, "%s: %d slices are not what they say" % (what, trace.read["inexact"]))
        told = result["trace"]
        self.expect(told["messages"] == len(trace.messages) and told["not_followed"] == 0,
                    "%s: %s, read %d" % (what, told, len(trace.messages)))
        self.expect("trace: %d messages" % told["messages"] in said, "%s: does not say so: %s" % (what, said[-300:]))
        for number, m in trace.messages.items():
            self.check_way(what, number, m)
        return result, trace

    def check_way(self, what, number, m):
        at = m.begin
        for begin, end, name, _, _, _ in m.way:
            self.expect(begin == at, "%s: message %d: %s begins %d ps off" % (what, number, name, begin - at))
            at = end
        self.expect(at - m.begin == m.details["latency_ps"] == m.lasts, "%s: message %d: stages sum to %d of %d ps" %
                    (what, number, at - m.begin, m.details["latency_ps"]))


def flows_of(result):
    return [f for w in result["workloads"] for f in w["flows"]]


def names_of(m):
    return [stage[2] for stage in m.way]


# ---------------------------------------------------------------- messages

LOOP = mixed_loop(120)


def rank(values, part):
    """Nearest rank, as the program's quantiles."""
    values = sorted(values)
    return values[max(0, -(-int(len(values) * part * 1000) // 1000) - 1)]


def check_latencies(c):
    """Each message of each pair of hosts, to the picosecond; its stages; there and back."""
    result, trace = c.traced(LOOP)
    for w in flows_of(result):
        mine = [m.details["latency_ps"] for m in trace.messages.values() if m.host == w["from"]]
        told = w["latency"]
        c.expect(len(mine) == told["count"] == 120, "loop: %d messages, %d samples" % (len(mine), told["count"]))
        for key, value in (("min", min(mine)), ("max", max(mine)), ("p50", rank(mine, 0.5)), ("p90", rank(mine, 0.9))):
            c.expect(round(told[key] * 1e6) == value, "loop: %s is %.6f us, the trace says %d ps" %
                     (key, told[key], value))
        c.expect(abs(sum(mine) / len(mine) - told["mean"] * 1e6) < 1, "loop: mean")
    count = collections.Counter()
    for number, m in trace.messages.items():
        names = names_of(m)
        for stage, row in ("post", "root_complex"), ("gather", "adapter.gather"), ("poll", "processor"):
            times = sum(s[2] == stage and s[3] == m.host and s[4].split(" #")[0] == row for s in m.way)
            c.expect(times == 1, "loop: message %d has %d stages %s: %s" % (number, times, stage, names))
        hosts = [p for _, _, _, p, _, _ in m.way if p.startswith("h")]
        c.expect(hosts[0] == hosts[-1] == m.host and "h3" in hosts, "loop: message %d is at %s" % (number, hosts))
        c.expect("s1" in [p for _, _, _, p, _, _ in m.way], "loop: message %d misses the switch" % number)
        count[m.verb] += 1
    c.expect(set(count) == {"write", "read", "send", "write_imm", "fadd"}, "loop: verbs %s" % count)
    c.expect(sum(count.values()) == 240, "loop: %s" % count)
    between = {(a.split()[0], b.split()[0]) for a, b, _, _ in trace.arrows if a and b}
    for pair in ("h1", "s1"), ("s1", "h3"), ("h3", "s1"), ("s1", "h1"), ("h2", "s1"), ("s1", "h2"):
        c.expect(pair in between, "loop: no arrow from %s to %s, only %s" % (*pair, sorted(between)))
    c.expect(len(trace.arrows) > 3 * 240, "loop: %d arrows" % len(trace.arrows))
    c.expect(all(a and b for a, b, _, _ in trace.arrows), "loop: an arrow that hangs in the air")


def check_changes_nothing(c):
    """The trace is the only difference."""
    text = LOOP.replace("depth = 8", "depth = 8\nbatch = 4\nsignal_every = 4")
    plain = c.call("run", c.file(text, "same.toml"))[0]
    path = c.path("same.json")
    traced = c.call("run", c.path("same.toml"), "--trace", path)[0]
    traced.pop("trace", None)
    for key in set(plain) | set(traced):
        c.expect(plain.get(key) == traced.get(key), "a trace changes the results: %s" % key)
    again = c.path("again.json")
    c.call("run", c.path("same.toml"), "--trace", again)
    with open(path, "rb") as one, open(again, "rb") as other:
        c.expect(one.read() == other.read(), "two runs give different traces")
    trace = Trace(path)
    unsignalled = sum("unsignalled" in names_of(m) for m in trace.messages.values())
    c.expect(120 < unsignalled < 240, "%d of 240 messages without a completion of their own" % unsignalled)


TRANSPORT = """
[[workload]]
name = "%s"
from = "h1"
to = "h2"
verbs = { %s }
transport = "%s"
size = %d
depth = 4
messages = 40
"""


def check_transports(c):
    for transport, verbs, size in (("uc", "write = 1, send = 1", 5000), ("ud", "send = 1", 1000),
                                   ("xrc", "write = 1, send = 1, read = 1, cas = 1", 5000),
                                   ("rc", "send_imm = 1, cas = 1, read = 1", 100)):
        _, trace = c.traced(TRANSPORT % (transport, verbs, transport, size))
        c.expect(len(trace.messages) == 40, "%s: %d messages" % (transport, len(trace.messages)))
        for number, m in trace.messages.items():
            everywhere = {p for _, _, _, p, _, _ in m.way + m.beside}
            c.expect({"h1", "h2"} <= everywhere, "%s: message %d is only at %s" % (transport, number, everywhere))
            back = any(p == "h2" for _, _, _, p, _, _ in m.way)
            c.expect(back == (transport in ("rc", "xrc")), "%s: message %d waits for the peer: %s" %
                     (transport, number, back))


def check_loss(c):
    """What was sent again says so, and nothing is lost of its time."""
    text = LOOP.replace('kind = "star"\nhosts = 3', 'kind = "pair"').replace('["h1", "h2"]', '"h1"').replace("h3", "h2")
    result, trace = c.traced(text + '[faults]\nat = "h1"\ndrop = 3\n')
    again = [m for m in trace.messages.values() if "retransmission" in names_of(m)]
    c.expect(len(again) > 3, "loss: %d messages were sent again" % len(again))
    told = flows_of(result)[0]["latency"]
    c.expect(max(m.details["latency_ps"] for m in trace.messages.values()) == round(told["max"] * 1e6), "loss: longest")


def check_open_loop(c):
    """Its latency counts from the arrival."""
    text = TRANSPORT % ("open", "write = 1", "rc", 4096) + 'arrivals = "poisson"\nrate_mpps = 3\n'
    result, trace = c.traced(text.replace("messages = 40", "messages = 200").replace("depth = 4", "depth = 2"))
    told = flows_of(result)[0]["latency"]
    mine = [m.details["latency_ps"] for m in trace.messages.values()]
    c.expect(max(mine) == round(told["max"] * 1e6) and min(mine) == round(told["min"] * 1e6), "open loop: latencies")
    c.expect(sum("arrived" in names_of(m) for m in trace.messages.values()) > 100, "open loop: nothing has waited")


# ---------------------------------------------------------------- counters

INCAST = """
duration_us = 300
vlan = 7
[parameters]
switch.buffer.flow_control = "pfc"
switch.buffer.bytes = 400000
driver.lossless_global_pause = false
driver.pfc_mask = 8
[topology]
kind = "star"
hosts = 4
[[workload]]
name = "incast"
from = ["h1", "h2", "h3"]
to = "h4"
size = 16384
depth = 16
priority = 3
"""


def check_counters(c):
    result, trace = c.traced(INCAST)
    for port in result["ports"]:
        of = trace.counter(port["switch"], "port%d priority 3 queue bytes" % port["port"])
        c.expect(max([v for _, v in of] or [0]) == port["most_queued_bytes"], "queue of port %d: %s of %d" %
                 (port["port"], max([v for _, v in of] or [0]), port["most_queued_bytes"]))
    paused_anywhere = 0
    for host in "h1", "h2", "h3", "h4":
        of = trace.counter(host, "adapter.port1 paused priority 3")
        times = [(b[0] - a[0]) for a, b in zip(of, of[1:]) if a[1] == 1]
        counted = result["counters"].get("%s.adapter.port1.pause.prio3.rx_duration_ps" % host, 0)
        paused_anywhere += counted
        if of and of[-1][1] == 0:
            c.expect(sum(times) == counted, "%s is paused for %d ps, its port counts %d" % (host, sum(times), counted))
        under_way = [v for _, v in trace.counter(host, "messages under way")]
        c.expect(max(under_way or [0]) == (16 if host != "h4" else 0), "%s: %s messages under way" %
                 (host, max(under_way or [0])))
        tags = [v for _, v in trace.counter(host, "adapter.pcie read tags in use")]
        c.expect((max(tags or [0]) > 1) == (host != "h4"), "%s: tags %s" % (host, max(tags or [0])))
    c.expect(paused_anywhere > 0, "nobody was paused")
    for process in trace.processes.values():
        for name, samples in process["counters"].items():
            c.expect(samples == sorted(samples, key=lambda s: s[0]), "%s: not in order of time" % name)


# ---------------------------------------------------------------- options

def check_window(c):
    two = LOOP + LOOP[LOOP.index("[[workload]]"):].replace("rpc", "other")
    _, whole = c.traced(two)
    begins = sorted(m.begin for m in whole.messages.values() if m.flow == "other")
    first, last = begins[len(begins) // 4] / 1e6, begins[len(begins) // 2] / 1e6
    _, part = c.traced(two, "--from", "%.6f" % first, "--until", "%.6f" % last, "--flow", "other", name="part.json.gz")
    with open(c.path("part.json.gz"), "rb") as f:
        c.expect(f.read(2) == b"\x1f\x8b", "part.json.gz is not compressed")
    chosen = sorted(m.begin for m in part.messages.values())
    c.expect(chosen == [b for b in begins if first <= b / 1e6 < last], "window: %d messages of %d" %
             (len(chosen), len(begins)))
    times = [t for p in part.processes.values() for s in p["counters"].values() for t, _ in s]
    c.expect(times and min(times) >= first * 1e6 - 1 and max(times) <= last * 1e6, "window: counters")
    file = c.file(LOOP, "options.toml")
    c.refuse(["--until", "--from"], "run", file, "--trace", c.path("x.json"), "--from", "10", "--until", "5")
    c.refuse(["--flow", "rpc"], "run", file, "--trace", c.path("x.json"), "--flow", "rcp")
    c.refuse(["--from"], "run", file, "--trace", c.path("x.json"), "--from", "-1")
    c.refuse(["--trace", "--from"], "run", file, "--from", "10")
    c.refuse(["no/such", "written"], "run", file, "--trace", c.path("no/such/x.json"))
    c.write("mine", "mine.json")
    c.refuse(["mine.json", "exists"], "run", file, "--trace", c.path("mine.json"))
    with open(c.path("mine.json"), encoding="utf-8") as f:
        c.expect(f.read() == "mine", "a file of the user's was overwritten")
    c.traced(LOOP, "--overwrite", name="mine.json")


def check_fabric(c):
    text = '[topology]\nkind = "star"\nhosts = 3\n[[flow]]\nname = "a"\nfrom = "h1"\nto = "h3"\nsize = 4096\nmessages = 50\n'
    result, trace = c.traced(text, command="fabric")
    times = sorted(m.details["latency_ps"] for m in trace.messages.values())
    told = result["flows"][0]
    c.expect(len(times) == told["completed"] == 50 and trace.messages[1].flow == "a", "fabric: %s" % told)


def check_konata(c):
    """The same stages in cycles, and the same messages."""
    text = LOOP + LOOP[LOOP.index("[[workload]]"):].replace("rpc", "other").replace(
        "messages = 120", 'messages = 400\narrivals = "poisson"\nrate_mpps = 2')
    log = c.path("x.kanata")
    _, trace = c.traced(text, "--konata", log)
    all_of = pipelines(c, log)
    c.expect(len(all_of) == len(trace.messages) == 2 * 520, "konata: %d of %d messages" %
             (len(all_of), len(trace.messages)))
    for i in all_of.values():
        m = trace.messages[i["message"]]
        way = [stage for stage in m.way if stage[2] != "arrived"]
        c.expect([s[0] for s in i["stages"]] == [stage[2] for stage in way], "konata: stages of %s: %s" % (i["label"], i))
        cycles = [(begin * 427 // 10**6, end * 427 // 10**6) for begin, end, _, _, _, _ in way]
        c.expect([s[1:] for s in i["stages"]] == cycles, "konata: cycles of %s: %s, not %s" %
                 (i["label"], i["stages"], cycles))
        c.expect(i["label"].split()[:2] == [m.flow, m.verb] and i["thread"] == int(m.host[1:]) - 1, "konata: %s" % i)


# ---------------------------------------------------------------- latency and bandwidth

def read_row(c, what, row, pings, pongs, one_way):
    """A row of `latency` and its messages: each round trip to the picosecond, and where the typical one's time went."""
    c.expect(len(pings) == row["iterations"] and (one_way or len(pongs) == len(pings)), "%s: %d pings, %d pongs" %
             (what, len(pings), len(pongs)))
    if one_way:
        samples = [m.details["latency_ps"] for m in pings]
    else:
        for ping, pong in zip(pings, pongs):
            c.expect(pong.begin == ping.begin + ping.lasts, "%s: the pong begins %d ps off" %
                     (what, pong.begin - ping.begin - ping.lasts))
        samples = [(a.details["latency_ps"] + b.details["latency_ps"]) // 2 for a, b in zip(pings, pongs)]
    order = sorted(range(len(samples)), key=lambda i: samples[i])
    typical = order[(len(order) - 1) // 2]
    for key, value in (("min_us", samples[order[0]]), ("max_us", samples[order[-1]]), ("typical_us", samples[typical]),
                       ("p99_us", samples[order[(len(order) * 99 + 99) // 100 - 1]])):
        c.expect(round(row[key] * 1e6) == value, "%s: %s is %.6f us, the trace says %d ps" % (what, key, row[key], value))
    c.expect(abs(row["avg_us"] * 1e6 - sum(samples) / len(samples)) < 1, "%s: average" % what)
    said, told = collections.Counter(), collections.Counter()
    for stage in row["stages"]:
        said[stage["block"], stage["stage"], stage["wait"]] += stage["ps"]
    for begin, end, name, process, block, details in pings[typical].way:
        block = block.split(" #")[0]
        full = block if process == "cables" else process if block == "forwarding" else "%s.%s" % (process, block)
        told[full, name, details.get("waits", "none")] += end - begin
    c.expect(+said == told, "%s: stages of the typical message: %s" % (what, (+said - told) + (told - +said)))
    c.expect(sum(told.values()) == row["end_to_end_ps"] == pings[typical].details["latency_ps"], "%s: %d ps end to end" %
             (what, row["end_to_end_ps"]))


def as_model(result):
    """Without what the trace is, and without what the simulation cost: writes that a trace tells of are not deferred."""
    result.pop("trace", None)
    for row in result["rows"]:
        row.pop("simulator", None)
    return result


def same_results(c, command, arguments, name):
    """Results without and with a trace, and the trace."""
    plain = c.call(command, *arguments)[0]
    path = c.path(name)
    traced, said = c.call(command, *arguments, "--trace", path)
    trace, told = Trace(path), traced.get("trace", {"messages": 0, "late_marks": 1})
    c.expect(trace.read["overlapping"] == 0, "%s: %d slices lie in others" % (name, trace.read["overlapping"]))
    c.expect(told["messages"] == len(trace.messages) and told["late_marks"] == 0, "%s: %s, read %d" %
             (name, told, len(trace.messages)))
    c.expect("trace: %d messages" % told["messages"] in said, "%s: does not say so" % name)
    for key in set(as_model(plain)) | set(as_model(traced)):
        c.expect(plain.get(key) == traced.get(key), "%s: a trace changes the results: %s" % (name, key))
    for number, m in trace.messages.items():
        c.check_way(name, number, m)
    return plain, trace


# Adapters that are not alike.
SIDES = ("--set", "a.adapter.clock_khz=250000", "--set", "b.adapter.translation.translate_cycles=40")


def check_latency(c):
    for verb, transport, sizes, topology in (("write", "rc", "64,4096", ()), ("send", "rc", "2,3000", ("--topology", "star")),
                                             ("read", "rc", "64,4096", ()), ("fadd", "xrc", "8", ()),
                                             ("write_imm", "uc", "64,5000", ()), ("send", "ud", "64,1024", ()),
                                             ("send", "xrc", "300", ()), ("write", "uc", "64,3000", SIDES)):
        one_way = verb in ("read", "fadd")
        plain, trace = same_results(c, "latency", ["--verb", verb, "--transport", transport, "--sizes", sizes,
                                                   "--iterations", "12", "--warm-up", "3", *topology],
                                    "%s.%s.%u.json" % (verb, transport, len(topology)))
        hosts = plain["network"]["between"] if "--topology" in topology else ["a", "b"]
        messages = sorted(trace.messages.values(), key=lambda m: m.begin)
        c.expect(len(messages) == len(plain["rows"]) * 15 * (1 if one_way else 2), "%s %s: %d messages" %
                 (verb, transport, len(messages)))
        for row in plain["rows"]:
            mine = [[m for m in messages if m.host == h and m.flow == "%d B" % row["size"]] for h in hosts]
            what = "latency %s %s %d" % (verb, transport, row["size"])
            for m in mine[0] + mine[1]:
                c.expect((m.verb, m.details["bytes"]) == (verb, row["size"]), "%s: %s" % (what, m.details))
            read_row(c, what, row, *mine, one_way)
        beside = [stage[2] for m in messages for stage in m.beside]
        c.expect(("response sequence" in beside) == (transport in ("rc", "xrc") and not one_way), "%s %s: beside %s" %
                 (verb, transport, sorted(set(beside))))


def check_bandwidth(c):
    for arguments in (["--sizes", "64,4096", "--messages", "150", "--qps", "3", "--bidirectional"],
                      ["--sizes", "1024", "--messages", "200", "--verb", "read", "--topology", "dumbbell", "--no-flows"],
                      ["--sizes", "1000", "--messages", "100", "--verb", "send", "--transport", "ud"],
                      ["--sizes", "64", "--messages", "100", "--set", "a.adapter.clock_khz=250000", "--set",
                       "b.adapter.clock_khz=600000", "--set", "b.adapter.responder.write_cycles=60"]):
        plain, trace = same_results(c, "bandwidth", arguments, "%s.json" % "_".join(a.strip("-") for a in arguments))
        for row in plain["rows"]:
            mine = [m for m in trace.messages.values() if m.details["bytes"] == row["size"]]
            c.expect(len(mine) == row["messages"], "bandwidth %s: %d of %d messages" % (arguments, len(mine), row["messages"]))
            first, last = min(m.begin for m in mine), max(m.begin + m.lasts for m in mine)
            c.expect(0 <= row["elapsed_ps"] - (last - first) < 500000, "bandwidth %s: %d ps, the trace says %d" %
                     (arguments, row["elapsed_ps"], last - first))


def check_short_forms(c):
    """Their files say nothing of a trace; `rnic run` of such a file takes it; a window; what is refused."""
    shown = subprocess.run([c.program, "latency", "--print", "--sizes", "64", "--trace", "x.json", "--from", "1"],
                           capture_output=True, text=True, timeout=60).stdout
    c.expect("sizes" in shown and "trace" not in shown and "from" not in shown, "latency --print: %s" % shown)
    path, log = c.path("short.json"), c.path("short.kanata")
    c.call("run", c.file("[latency]\nsizes = [64]\niterations = 20\nwarm-up = 0\n"), "--trace", path, "--konata", log)
    whole = Trace(path)
    c.expect(len(whole.messages) == 40 == len(pipelines(c, log)), "a short form: %d messages" % len(whole.messages))
    begins = sorted(m.begin for m in whole.messages.values())
    first, last = begins[10], begins[20]
    c.call("latency", "--sizes", "64", "--iterations", "20", "--warm-up", "0", "--trace", c.path("window.json"), "--from",
           "%.6f" % (first / 1e6), "--until", "%.6f" % (last / 1e6))
    chosen = sorted(m.begin for m in Trace(c.path("window.json")).messages.values())
    c.expect(chosen == begins[10:20], "latency: a window has %d messages" % len(chosen))
    for command in "latency", "bandwidth":
        c.refuse(["--trace", "--from"], command, "--from", "10")
        c.refuse(["--until", "--from"], command, "--trace", c.path("x.json"), "--from", "10", "--until", "5")
        c.refuse(["short.json", "exists"], command, "--trace", path)


def check_many(c):
    """Of 10^5 messages none is lost on the way into the file; what that costs is said, and nothing is asserted of it."""
    for size in 64, 1024:
        text = TRANSPORT % ("many", "write = 1", "rc", size)
        file = c.file(text.replace("depth = 4", "depth = 16").replace("messages = 40", "messages = 100000"), "many.toml")
        used, path = [], c.path("many.json")
        for trace in [], ["--trace", path, "--overwrite"]:
            begin, since = os.times(), time.monotonic()
            result, _ = c.call("run", file, *trace)
            end = os.times()
            used.append((end.children_user + end.children_system - begin.children_user - begin.children_system,
                         time.monotonic() - since))
        told = result["trace"]
        c.expect(told["messages"] == 100000 and told["late_marks"] == told["not_followed"] == 0, "10^5: %s" % told)
        with open(path, encoding="utf-8") as f:
            written = sum('"latency_ps"' in line for line in f)
        c.expect(written == 100000, "10^5: %d messages are in the file" % written)
        print("10^5 messages of %d bytes: %.2f s (%.2f s of processors), with a trace %.2f s (%.2f s), %.0f MB" %
              (size, used[0][1], used[0][0], used[1][1], used[1][0], os.path.getsize(path) / 1e6))
        os.remove(path)


if __name__ == "__main__":
    sys.exit(run_checks(__doc__, Traces, [check_latencies, check_changes_nothing, check_transports, check_loss,
                                          check_open_loop, check_counters, check_window, check_fabric, check_konata,
                                          check_latency, check_bandwidth, check_short_forms, check_many]))
