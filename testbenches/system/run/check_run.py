#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rnic run: latencies of an open loop against queueing theory; goodput against the line's bound; verbs, sizes, addresses,
doorbells and completions against captures (tshark) and counters; parameters of single hosts; faults, datagrams and
overload; answered messages against rnic latency; a file and a seed give the same bytes however the simulation is run; short
forms do what their commands do; wrong files are refused in one line.

usage: check_run.py PROGRAM
"""
import collections
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "fabric"), os.path.dirname(HERE)]
from faults import run_checks  # noqa: E402
from network_checks import Checks, total  # noqa: E402
from queueing import mean_wait, wait  # noqa: E402

# Bytes of a WRITE with one packet beside its payload: Ethernet, IPv4, UDP, BTH, RETH, ICRC, FCS, preamble and gap.
AROUND = 14 + 20 + 8 + 12 + 16 + 4 + 4 + 8 + 12


class Runs(Checks):
    def experiment(self, text, *arguments, status=0):
        return self.call("run", self.file(text), *arguments, status=status)[0]

    def refuse_experiment(self, text, *words):
        self.refuse(["wrong.toml"] + list(words), "run", self.file(text, "wrong.toml"))


# ---------------------------------------------------------------- against theory

def queue(arrivals, load, service_us, messages):
    return """
[topology]
kind = "pair"
rate_mbps = 1000
[[workload]]
from = "h1"
to = "h2"
size = 1024
inline = 0
depth = 4096
arrivals = "%s"
rate_mpps = %.9f
messages = %d
""" % (arrivals, load / service_us, messages)


def check_queueing(c):
    """A line of 1 Gb/s is the one resource that messages of 1 KiB wait for: M/D/1, behind what a lone message takes."""
    service = (1024 + AROUND) * 8 / 1000
    alone = c.experiment(queue("deterministic", 0.01, service, 500))["all"]["latency"]["min"]
    for load in 0.1, 0.5, 0.9:
        latency = c.experiment(queue("poisson", load, service, 200000))["all"]["latency"]
        c.expect(latency["count"] == 200000, "queue: %d samples" % latency["count"])
        expected = {"mean": alone + mean_wait(load) * service}
        for key, part in ("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999):
            expected[key] = alone + wait(part, load) * service
        for key, value in expected.items():
            c.expect(abs(latency[key] / value - 1) < 0.03, "queue at %.1f: %s is %.3f us, theory says %.3f us" %
                     (load, key, latency[key], value))
        c.expect(sum(b["count"] for b in latency["histogram"]) == latency["count"], "histogram lacks samples")
        below = sum(b["count"] for b in latency["histogram"] if b["to_us"] <= latency["p90"])
        c.expect(below <= 0.9 * latency["count"], "histogram: too many below the 90 % quantile")


STAR = """
duration_us = %d
drain_us = %d
[topology]
kind = "star"
hosts = 2
[[workload]]
from = "h1"
to = "h2"
"""


def check_counted_time(c):
    """Ports and resources are of the time in which workloads send: what is drained, given up or waited for in vain
    behind it is in the counters of the whole run alone."""
    for text in (STAR % (20, 1) + "size = 65536\n", STAR % (100, 1000) + "size = 65536\nqps = 8\n",
                 STAR % (200, 1000) + "size = 1024\ntransport = \"uc\"\nverb = \"send\"\n"):
        run = c.experiment(text)
        duration = int(text.split()[2])
        c.expect(abs(run["experiment"]["counted_us"] - duration) < 1e-3, "counted for %f us" % run["experiment"]["counted_us"])
        port = [p for p in run["ports"] if p["to"] == "h2"][0]
        # A frame of 2048 bytes of payload, and what the line carries around it; the beginning is without frames.
        most = 40 * (1 - 20 / (2048 + AROUND))
        c.expect(0.8 * most < port["tx_gbps"] < most, "%s: %.3f Gb/s at the port to h2" % (text, port["tx_gbps"]))
        c.expect(run["utilisation"]["wire, s1 to h2"] > 0.8, "wire: %.3f" % run["utilisation"]["wire, s1 to h2"])
        c.expect(all(part <= 1 for part in run["stood_still"].values()), "stood still: %s" % run["stood_still"])
        sent = run["counters"]["s1.port%d.tx_bytes" % port["port"]]
        c.expect(sent * 8e-3 > port["tx_gbps"] * duration, "what is drained is not among the counters")


def check_unknown(c):
    """Of UC WRITEs nobody knows what came: goodput says so. Messages that a ring of pauses holds are told, with the ring."""
    fault = "[faults]\nat = \"h1\"\ndrop = 50\n"
    uc = "size = 1024\ntransport = \"uc\"\nverb = \"%s\"\n"
    run, said = c.call("run", c.file(STAR % (1000, 1000) + uc % "write" + fault))
    c.expect(run["workloads"][0]["goodput_is_of"] == "sent" and "lost" not in run["all"] and "as sent" in said, said)
    run, said = c.call("run", c.file(STAR % (1000, 1000) + uc % "write_imm" + fault))
    c.expect("goodput_is_of" not in run["all"] and run["all"]["lost"] > 0 and "as sent" not in said, said)
    ring = subprocess.run([c.program, "fabric", "ring", "--print"], check=True, capture_output=True, text=True).stdout
    ring = ring.replace("[[flow]]", "[[workload]]")
    run, said = c.call("run", c.file(ring, "ring.toml"), status=1)
    c.expect(len(run["standstills"][0]["ways"]) == 4 and "deadlock: " in said, said)
    c.expect("unfinished" in said, "no unfinished messages: " + said)


def check_quantiles(c):
    """Of few messages the 99 % quantile is the longest, in a network's flows as in a run's workloads."""
    text = "[topology]\nkind = \"star\"\nhosts = 3\n[[%s]]\nfrom = \"h1\"\nto = \"h3\"\nsize = 65536\nmessages = 5\n"
    flow = c.call("fabric", c.file(text % "flow"))[0]["flows"][0]["message_us"]
    latency = c.experiment(text % "workload")["all"]["latency"]
    c.expect(flow["p99"] == flow["max"] > flow["typical"], "flow: %s" % flow)
    c.expect(latency["p99"] == latency["max"], "run: %s" % latency)


def check_goodput(c):
    """A closed loop fills the line, less its headers; one message at a time does not."""
    text = "duration_us = 500\nwarm_up_us = 50\n[[workload]]\nfrom = \"h1\"\nto = \"h2\"\nsize = 4096\nmtu = 2048\n"
    bound = 40 * 4096 / (4096 + 2 * (AROUND - 16) + 16)
    full = c.experiment(text + "depth = 64\n")["all"]
    c.expect(0.99 * bound < full["goodput_gbps"] <= bound * 1.001, "closed loop: %.3f of %.3f Gb/s" %
             (full["goodput_gbps"], bound))
    # What completes behind a workload's end is of no rate: the same whether it ends with the run or before.
    for verb in "", 'verb = "send"\ntransport = "uc"\n', "depth = 64\n":
        part = c.experiment(text + verb + "end_us = 250\n")["all"]
        c.expect(0.95 * bound < part["goodput_gbps"] <= bound * 1.001, "up to end_us, %s: %.3f of %.3f Gb/s" %
                 (verb.strip(), part["goodput_gbps"], bound))
    one = c.experiment(text + "depth = 1\n")["all"]
    # Little's law: of one message under way, rate times latency is one, less what posting takes.
    by_little = one["rate_mpps"] * one["latency"]["mean"]
    c.expect(0.95 < by_little <= 1.005, "Little's law with one message: %.4f" % by_little)
    many = c.experiment(text + "depth = 64\n")["all"]
    by_little = many["rate_mpps"] * many["latency"]["mean"]
    c.expect(63 < by_little <= 64.1, "Little's law with 64 messages: %.4f" % by_little)


def check_rates(c):
    """What is offered is what arrives; beyond capacity the rest waits and is told."""
    text = ("duration_us = 2000\ndrain_us = %d\n[topology]\nkind = \"pair\"\nrate_mbps = 10000\n[[workload]]\n"
            "from = \"h1\"\nto = \"h2\"\nsize = 2048\narrivals = \"%s\"\nload_gbps = %g\n%s")
    for kind, more in ("poisson", ""), ("deterministic", ""), ("on-off", "on_us = 5\noff_us = 5\n"):
        r = c.experiment(text % (2000, kind, 4, more))["all"]
        c.expect(abs(r["goodput_gbps"] / 4 - 1) < (0.003 if kind == "deterministic" else 0.15),
                 "%s: %.3f Gb/s of 4" % (kind, r["goodput_gbps"]))
        c.expect(r["unfinished"] == 0 and r["offered"] == r["completed"], "%s: %s" % (kind, r))
    r = c.experiment(text % (0, "deterministic", 20, ""))
    over = r["all"]
    bound = 10 * 2048 / (2048 + AROUND)
    finished = over["completed"] * 2048 * 8e-3 / 2000
    c.expect(0.97 * bound < finished <= bound, "overload: %.3f Gb/s of %.3f" % (finished, bound))
    c.expect(over["offered"] == over["completed"] + over["unfinished"] and over["unfinished"] > 1000,
             "overload: %s offered, %s unfinished" % (over["offered"], over["unfinished"]))
    c.expect(r["workloads"][0]["most_waiting"] >= over["unfinished"] - 16, "overload: most_waiting")
    # What is late completes in a drain that is long enough, and the line was no faster for it.
    late = c.experiment(text % (20000, "deterministic", 20, ""))["all"]
    c.expect(late["unfinished"] == 0 and late["completed"] == late["offered"] == over["offered"], "overload: %s" % late)
    c.expect(0.97 * bound < late["goodput_gbps"] <= bound, "overload and drained: %.3f Gb/s of %.3f" %
             (late["goodput_gbps"], bound))


# ---------------------------------------------------------------- against captures and counters

MIX = """
[[workload]]
from = "h1"
to = "h2"
verbs = { write = 50, read = 25, send = 15, fadd = 10 }
sizes = [[64, 3], [1024, 1]]
messages = 4000
qps = 4
threads = 2
queue_pairs = "random"
regions = 8
region_bytes = 65536
addresses = "random"
"""


def near(count, part, of):
    """Six standard deviations of a binomial count."""
    return abs(count - part * of) <= 6 * (of * part * (1 - part)) ** 0.5


def check_wire(c):
    capture = c.path("mix.pcap")
    c.experiment(MIX, "--pcap", capture)
    fields = ["infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.reth.va", "infiniband.reth.r_key",
              "infiniband.reth.dmalen"]
    lines = subprocess.run(["tshark", "-r", capture, "-Y", "ip.src == 10.0.0.1 && infiniband.bth.opcode", "-T", "fields"]
                           + [x for f in fields for x in ("-e", f)], capture_output=True, text=True, check=True).stdout
    rows = [line.split("\t") for line in lines.splitlines()]
    kinds = collections.Counter(int(r[0]) for r in rows)
    write, read, send, fadd = kinds[10], kinds[12], kinds[4], kinds[20]  # WRITE Only, READ Request, SEND Only, FetchAdd
    c.expect(write + read + send + fadd == 4000, "mix: %s" % kinds)
    for what, count, part in ("WRITE", write, 0.5), ("READ", read, 0.25), ("SEND", send, 0.15), ("FADD", fadd, 0.1):
        c.expect(near(count, part, 4000), "mix: %d of 4000 are %s, wanted %.2f" % (count, what, part))
    placed = [r for r in rows if r[2] and int(r[0]) in (10, 12)]
    small = sum(int(r[4]) == 64 for r in placed)
    c.expect(near(small, 0.75, len(placed)), "sizes: %d of %d are small" % (small, len(placed)))
    c.expect(len({r[3] for r in placed}) == 8, "regions: %d keys" % len({r[3] for r in placed}))
    queue_pairs = collections.Counter(r[1] for r in rows if int(r[0]) in (4, 10, 12, 20))
    c.expect(len(queue_pairs) == 8, "queue pairs: %s" % queue_pairs)
    spans = collections.defaultdict(set)
    for r in placed:
        spans[r[3]].add(int(r[2], 0) if r[2].startswith("0x") else int(r[2]))
    for key, places in spans.items():
        c.expect(max(places) - min(places) < 65536 and len(places) > 50, "region %s: %d places over %d bytes" %
                 (key, len(places), max(places) - min(places)))
        c.expect(all(p % 64 == 0 for p in places), "region %s: a place is not at a cache line" % key)


def check_doorbells(c):
    text = "[[workload]]\nfrom = \"h1\"\nto = \"h2\"\nsize = 64\nmessages = 4000\ndepth = 64\n"
    plain = c.experiment(text)["counters"]
    c.expect(plain["h1.adapter.scheduler.doorbells"] == 4000, "doorbells: %s" % plain)
    c.expect(plain["h1.adapter.completion.cqe"] == 4000, "completions: %s" % plain["h1.adapter.completion.cqe"])
    batched = c.experiment(text + "batch = 4\nsignal_every = 8\n")
    c.expect(batched["counters"]["h1.adapter.doorbell.sends"] == 1000, "batched: %s" % batched["counters"])
    # Every eighth, and the last eight one by one.
    cqes = batched["counters"]["h1.adapter.completion.cqe"]
    c.expect(500 <= cqes <= 508, "signalled: %d" % cqes)
    c.expect(batched["all"]["completed"] == 4000 and batched["all"]["latency"]["count"] == cqes, "signalled: samples")


def check_hosts(c):
    """A parameter of one host is that host's alone."""
    text = "%s\n[[workload]]\nfrom = \"h1\"\nto = \"h2\"\nverb = \"read\"\nsize = 8\nmessages = 50\ndepth = 1\n"
    slower = "host.llc_read_ps = 517000"  # by 300 ns
    base = c.experiment(text % "[parameters]\nhost.llc_read_ps = 217000")["all"]["latency"]["p50"]
    of_target = c.experiment(text % ("[parameters]\nhost.llc_read_ps = 217000\n[hosts.h2]\n" + slower))
    c.expect(abs(of_target["all"]["latency"]["p50"] - base - 0.3) < 0.02, "h2's memory: %.3f us, %.3f with it slower" %
             (base, of_target["all"]["latency"]["p50"]))
    c.expect(of_target["host_parameters"] == {"h2": {"host.llc_read_ps": "517000"}}, "host parameters in JSON")
    of_reader = c.experiment(text % ("[parameters]\nhost.llc_read_ps = 217000\n[hosts.h1]\n" + slower))
    c.expect(abs(of_reader["all"]["latency"]["p50"] - base) < 0.02, "h1's memory delays a READ of h2's")


def check_use(c):
    """What was in use: lines by the bytes that were counted there, and by the rate of messages; the busiest one first,
    the one that limits it in use all the time."""
    run, said = c.call("run", c.file('''
[topology]
kind = "star"
hosts = 3
[[workload]]
from = ["h1", "h2"]
to = "h3"
size = 65536
messages = 100
'''))
    use, counters, took_us = run["utilisation"], run["counters"], run["experiment"]["simulated_us"]
    for name, port in (("wire, s1 to h3", "s1.port2"), ("wire, s1 to h1", "s1.port0"), ("wire, h1 to s1", "h1.adapter.port1")):
        sent = counters[port + ".tx_bytes"] + 20 * counters[port + ".tx_frames"]  # FCS is in, preamble and gap are not
        part = sent * 8 / 40e3 / took_us
        c.expect(abs(use[name] - part) < 1e-3, "%s: %.4f of the time, %.4f by its counters" % (name, use[name], part))
    lines = [line.split() for line in said[said.index("in use"):].splitlines()[1:] if not line.startswith("  blocked")]
    c.expect(lines[0][:4] == ["wire,", "s1", "to", "h3"] and float(lines[0][4]) > 92, "the busiest is %s" % lines[0])
    c.expect(use["wire, s1 to h3"] == max(use.values()), "the busiest of all is %s" % max(use, key=use.get))
    small = c.experiment("[[workload]]\nfrom = \"h1\"\nto = \"h2\"\nsize = 64\nqps = 16\nmessages = 20000\n")
    part = small["all"]["rate_mpps"] * (64 + AROUND) * 8 / 40e3
    c.expect(abs(small["utilisation"]["wire, h1 to h2"] / part - 1) < 0.02, "wire: %.4f, %.4f by the rate of messages" %
             (small["utilisation"]["wire, h1 to h2"], part))
    c.expect(small["utilisation"]["processor h1"] > 0.95, "the program posts all the time, its processor is in use for %.4f" %
             small["utilisation"]["processor h1"])
    # A quarter of the line is a standstill of nobody; pauses of the switch are one of both senders.
    paused = c.experiment('''
[topology]
kind = "star"
hosts = 3
[parameters]
switch.buffer.flow_control = "pause"
[[workload]]
from = ["h1", "h2"]
to = "h3"
size = 65536
qps = 4
messages = 400
''')
    pauses = "pauses of switch s1 to h1"
    c.expect(paused["stood_still"].get(pauses, 0) > 0.2 and pauses not in run["stood_still"],
             "standstills: %s with pauses, %s without" % (paused["stood_still"], run["stood_still"]))


def check_losses(c):
    text = ("duration_us = 3000\n[faults]\nat = \"h1\"\ndrop = 2\n[[workload]]\nfrom = \"h1\"\nto = \"h2\"\nsize = 1024\n"
            "arrivals = \"poisson\"\nrate_mpps = 0.2\n%s")
    for verb in "write", "send":
        r = c.experiment(text % ("ack_timeout = 5\nverb = \"%s\"\n" % verb))
        lost = r["faults"][0]["a_to_b"]["drop"] + r["faults"][0]["b_to_a"]["drop"]
        c.expect(lost > 5 and r["all"]["unfinished"] == 0, "%s: %d frames lost, %s" % (verb, lost, r["all"]["unfinished"]))
    r = c.experiment(text % "transport = \"ud\"\nverb = \"send\"\n")
    lost = r["faults"][0]["a_to_b"]["drop"]
    c.expect(lost > 5 and r["all"]["lost"] == lost, "UD: %s lost, the cable lost %s" % (r["all"]["lost"], lost))
    # No answer ever: the queue pair fails, which is told and gives status 1.
    dead = ("[faults]\nat = \"h1\"\ndrop = 100\n[[workload]]\nname = \"w\"\nfrom = \"h1\"\nto = \"h2\"\nsize = 64\n"
            "messages = 5\nack_timeout = 1\n")
    r = c.experiment(dead, status=1)
    c.expect(r["workloads"][0]["failure"] == "h1 to h2: retry_exceeded", "a dead cable: %s" % r["workloads"][0])


SHARED = """
duration_us = 300
[topology]
kind = "star"
hosts = 4
[parameters]
switch.buffer.flow_control = "pause"
[[workload]]
name = "rpc"
from = ["h1", "h2"]
to = ["h3", "h4"]
size = 512
arrivals = "poisson"
rate_mpps = 0.5
end_us = 200
[[workload]]
name = "copy"
background = true
from = "h2"
to = ["h1", "h3"]
size_cdf = "storage"
queue_pairs = "random"
start_us = 100
verbs = { write = 3, read = 1 }
"""


def check_repeatable(c):
    first = c.experiment(SHARED)
    rpc, copy = first["workloads"]
    c.expect([(f["from"], f["to"]) for f in rpc["flows"]] == [(a, b) for a in ("h1", "h2") for b in ("h3", "h4")],
             "flows: %s" % rpc["flows"])
    c.expect(first["all"]["completed"] == rpc["completed"] > 0 and copy["completed"] > 0, "background is part of the sum")
    # Two hosts, half a message a microsecond each, for 200 us.
    c.expect(near(rpc["offered"], 0.5, 400), "offered: %d" % rpc["offered"])
    c.expect(first["experiment"]["simulated_us"] >= 300, "simulated: %s" % first["experiment"])
    for more in [], ["--set", "sim.run_ahead=false"], ["--set", "sim.always_tick=true"], ["--pcap", c.path("same.pcap")]:
        again = c.experiment(SHARED, *more)
        for key in "workloads", "all", "ports", "experiment", "utilisation", "blocked", "stood_still":
            c.expect(again[key] == first[key], "%s: another result with %s" % (key, more))
    c.expect(c.experiment(SHARED, "--seed", "2")["workloads"] != first["workloads"], "the seed changes nothing")
    two = c.experiment(SHARED, "--seed", "2")
    for text, more in (("seed = 2\n", []), ("seed = 3\n", ["--seed", "2"])):
        same = c.experiment(text + SHARED, *more)
        c.expect(same["workloads"] == two["workloads"], "%s%s: another run than with --seed 2" % (text, more))
        c.expect(same["seed"] == same["experiment"]["seed"] == 2, "%s%s: seed %s" % (text, more, same["seed"]))


# ---------------------------------------------------------------- answered messages

ANSWERED = """
[[workload]]
name = "probe"
loop = "ping-pong"
from = "h1"
to = "h2"
verb = "%s"
transport = "%s"
size = %d
messages = %d
"""


def check_ping_pong(c):
    """Half of a round trip is what `rnic latency` says of the same messages, which is held against published figures."""
    for verb, transport, size in (("write", "rc", 2), ("write", "rc", 4096), ("send", "rc", 64), ("write_imm", "uc", 5000),
                                  ("send_imm", "ud", 1024), ("write", "xrc", 300), ("send", "xrc", 3000)):
        for messages in 60, 200:  # all receives are there before the first message, or some are posted between them
            what = "answered %s %s %d, %d messages" % (verb, transport, size, messages)
            row = c.call("latency", "--verb", verb, "--transport", transport, "--sizes", str(size), "--iterations",
                         str(messages), "--warm-up", "0")[0]["rows"][0]
            result, said = c.call("run", c.file(ANSWERED % (verb, transport, size, messages)))
            of, latency = result["workloads"][0], result["workloads"][0]["latency"]
            c.expect(of["loop"] == "ping-pong" and "probe: each message is answered" in said, "%s: %s" % (what, said))
            c.expect(of["offered"] == of["completed"] == latency["count"] == messages and of["unfinished"] == 0 and
                     of.get("lost", 0) == 0, "%s: %s" % (what, of))
            for key, of_row in ("min", "min_us"), ("p50", "typical_us"), ("mean", "avg_us"):
                # The first message comes at another moment of the adapters' clocks.
                c.expect(abs(latency[key] / row[of_row] - 1) < 0.0005, "%s: %s is %.6f us, rnic latency says %.6f us" %
                         (what, key, latency[key], row[of_row]))
            # One round trip behind the other, and no pause between two but for a receive.
            by_rate = of["rate_mpps"] * 2 * latency["mean"]
            c.expect(0.95 < by_rate < 1.02, "%s: rate times round trip is %.4f" % (what, by_rate))
            for host in "h1", "h2":
                polled = result["counters"]["%s.adapter.completion.cqe" % host]
                c.expect(polled >= messages, "%s: %s has %d completions" % (what, host, polled))


def check_ping_pong_receives(c):
    """A receive before the answer is in half of the round trips, where ib_send_lat posts one; with an end by time in all."""
    def half_ns(text, *keys):
        result = c.experiment(text, "--set", "driver.post_recv_ns=200")
        latency = result["workloads"][0]["latency"]
        return [1000 * latency[key] for key in keys]
    answered = ANSWERED % ("send", "rc", 64, 64)
    without, = half_ns(answered, "p50")
    by_count = half_ns(answered.replace("messages = 64", "messages = 200"), "min", "p50", "p90")
    by_time, = half_ns("duration_us = 300\nwarm_up_us = 20\n" + answered.replace("messages = 64", ""), "p50")
    for what, more, expected in (("the last of 200", by_count[0] - without, 0), ("most of 200", by_count[1] - without, 100),
                                 ("by time", by_time - without, 100)):
        c.expect(abs(more - expected) <= 3, "receives, %s: %.1f ns more than without, expected %d" % (what, more, expected))
    # Neither WRITE nor the verb's other half has a receive.
    write = half_ns((ANSWERED % ("write", "rc", 64, 200)), "min", "p90")
    c.expect(write[1] - write[0] <= 3, "receives: a WRITE has 10 %% that take %.1f ns more" % (write[1] - write[0]))


def check_ping_pong_runs(c):
    """Threads, queue pairs and hosts; the end by time; beside a load; over a link that loses.

    A thread takes its queue pairs in turn, and each message to h4 waits behind 8 messages of the load (105 us of the line), so
    that the run is long enough for more than 20 messages of each pair of hosts."""
    text = """
duration_us = 1000
warm_up_us = 20
[topology]
kind = "star"
hosts = 4
[[workload]]
name = "probe"
loop = "ping-pong"
from = ["h1", "h2"]
to = ["h3", "h4"]
verb = "%s"
size = 64
threads = 3
qps = 2
%s"""
    load = '[[workload]]\nname = "load"\nfrom = ["h1", "h2"]\nto = "h4"\nsize = 65536\ndepth = 4\n'
    for verb in "write", "send":
        alone, loaded = (c.experiment(text % (verb, more)) for more in ("", load))
        for r in alone, loaded:
            probe = r["workloads"][0]
            c.expect(len(probe["flows"]) == 4 and all(f["completed"] > 20 and f["unfinished"] == 0 for f in probe["flows"]),
                     "%s: %s" % (verb, [(f["completed"], f["unfinished"]) for f in probe["flows"]]))
            c.expect(probe["latency"]["count"] == probe["completed"], "%s: samples" % verb)
            # Little's law: each thread has one message under way, for two latencies.
            by_little = probe["rate_mpps"] * 2 * probe["latency"]["mean"]
            c.expect(5.6 < by_little < 6.1, "%s: Little's law with 6 threads: %.3f" % (verb, by_little))
        quiet, busy = (next(f for f in r["workloads"][0]["flows"] if (f["from"], f["to"]) == ("h1", "h4"))["latency"]["p90"]
                       for r in (alone, loaded))
        c.expect(busy > 2 * quiet, "%s: a load changes %.3f us to %.3f us" % (verb, quiet, busy))
        again = c.experiment(text % (verb, load))
        c.expect(again["workloads"] == loaded["workloads"], "%s: another result of the same file" % verb)
    faults = '[faults]\nat = "h1"\ndrop = 5\n'
    r = c.experiment(ANSWERED % ("send", "rc", 64, 60) + faults)
    slow = r["workloads"][0]["latency"]
    c.expect(slow["count"] == 60 and slow["max"] > 10 * slow["p50"], "loss over rc: %s" % slow)
    r = c.experiment(ANSWERED % ("send", "uc", 64, 200) + faults, status=1)
    of = r["workloads"][0]
    c.expect(of["lost"] == 1 and of["offered"] == of["completed"] + 1 < 200 and "lost" in of["failure"], "loss over uc: %s" %
             {k: of.get(k) for k in ("lost", "offered", "completed", "failure")})


def check_ping_pong_in_vain(c):
    """A datagram's answer that was lost in a run that ends sooner than the patience for it."""
    text = ('duration_us = 2000\n%s[[workload]]\nname = "p"\nloop = "ping-pong"\nfrom = "h1"\nto = "h2"\ntransport = "uc"\n'
            'verb = "write"\nsize = 64\n')
    for lost in (False, True):
        result = c.experiment(text % ('[faults]\nat = "h1"\ndrop = 1\n' if lost else ""), status=int(lost))
        failure = result["workloads"][0].get("failure", "")
        c.expect(("was lost" in failure) == lost, "in vain: %s: %r" % (lost, failure))


def check_short_forms(c):
    for command, options in (("latency", ["--sizes", "2,64", "--verb", "read", "--set", "adapter.clock_khz=400000"]),
                             ("latency", ["--functions", "2", "--function", "1", "--sizes", "8", "--ttl", "9"]),
                             ("bandwidth", ["--sizes", "64,4096", "--qps", "4", "--messages", "300", "--bidirectional"]),
                             ("bandwidth", ["--topology", "dumbbell", "--no-flows", "--sizes", "256", "--port", "1"])):
        text = subprocess.run([c.program, command] + options + ["--print"], capture_output=True, text=True,
                              check=True).stdout
        direct, said = c.call(command, *options)
        by_file, said_too = c.call("run", c.file(text))
        c.expect(direct == by_file and said == said_too, "%s %s: its file gives other results" % (command, options))
    version = subprocess.run([c.program, "--version"], capture_output=True, text=True).stdout.strip()
    c.expect(version != "" and direct["version"] == version, "--version: %r, results have %r" %
             (version, direct.get("version")))
    printed = subprocess.run([c.program, "run", c.file(SHARED), "--print"], capture_output=True, text=True).stdout
    c.expect(printed == SHARED, "--print does not show the file")


def check_examples(c):
    folder = os.path.join(HERE, "..", "..", "rnic", "run", "examples")
    r = c.call("run", os.path.join(folder, "rpc.toml"))[0]
    c.expect(r["workloads"][0]["name"] == "rpc" and near(r["workloads"][0]["offered"], 0.5, 40000), "rpc: %s" %
             r["workloads"][0]["offered"])
    done = subprocess.run([c.program, "sweep", os.path.join(folder, "rates.toml"), "--out", c.path("rates"), "--quiet"],
                          capture_output=True, text=True)
    c.expect(done.returncode == 0 and "6 points: 6 ok" in done.stdout, "rates: %s" % done)


def check_refusals(c):
    head = "duration_us = 10\n[[workload]]\nfrom = \"h1\"\nto = \"h2\"\n"
    for text, words in (
            ("duration_us = 10\n", ["workload: is missing"]),
            (head + "sze = 4\n", [":5:", "workload 1", "no field sze", "size"]),
            # 64 TiB of send queues.
            ("duration_us = 10\n[topology]\nkind = \"star\"\nhosts = 64\n[[workload]]\nfrom = %s\nto = %s\nthreads = 64\nqps = 4096\n"
             "depth = 4096\nsize = 64\n" % (["h%d" % h for h in range(1, 33)], ["h%d" % h for h in range(33, 65)]),
             ["threads, qps and depth", "GiB", "memory of this machine"]),
            (head + "size = -1\n", ["size: -1", "0 to"]),
            (head + "size = 64\nsizes = [1]\n", ["size, sizes and size_cdf"]),
            (head + "sizes = []\n", ["sizes"]),
            (head + "sizes = [[64, 0]]\n", ["weight above 0"]),
            (head + "size_cdf = \"none\"\n", ["none", "websearch, hadoop, storage"]),
            (head + "size_cdf = \"%s\"\n" % c.file("0 0\n64 50\n", "half.cdf"), ["half.cdf", "last part"]),
            (head + "size_cdf = \"%s\"\n" % c.file("0 0\n64 x\n", "text.cdf"), ["text.cdf", "two numbers"]),
            (head + "verb = \"wrte\"\n", ["wrte", "write"]),
            (head + "verbs = {}\n", ["verbs"]),
            (head + "verbs = { write = 0 }\n", ["write: 0", "1 to 1000000"]),
            (head + "transport = \"uc\"\nverb = \"read\"\n", ["read", "send"]),
            (head + "transport = \"ud\"\nverb = \"send\"\nsize = 4096\n", ["4096", "0 to 2048"]),
            (head + "arrivals = \"poison\"\nrate_mpps = 1\n", ["poison", "poisson"]),
            (head + "arrivals = \"poisson\"\n", ["rate_mpps", "load_gbps"]),
            (head + "rate_mpps = 1\n", ["rate_mpps", "arrivals"]),
            (head + "arrivals = \"poisson\"\nrate_mpps = 0\n", ["rate_mpps: 0"]),
            (head + "arrivals = \"poisson\"\nload_gbps = 1\nsize = 0\n", ["load_gbps"]),
            (head + "arrivals = \"on-off\"\nrate_mpps = 1\non_us = 1\n", ["off_us"]),
            (head + "arrivals = \"poisson\"\nrate_mpps = 1\nbatch = 2\n", ["batch", "closed"]),
            (head + "depth = 4\nbatch = 4\nsignal_every = 2\n", ["depth: 4", "5 or more"]),
            (head + "region_bytes = 64\n", ["region_bytes: 64", "65536"]),
            (head + "loop = \"pingpong\"\n", ["loop", "closed, ping-pong"]),
            (head + "loop = \"ping-pong\"\ndepth = 2\n", ["depth", "ping-pong", "one message"]),
            (head + "loop = \"ping-pong\"\narrivals = \"poisson\"\nrate_mpps = 1\n", ["arrivals", "ping-pong"]),
            (head + "loop = \"closed\"\narrivals = \"poisson\"\nrate_mpps = 1\n", ["loop: closed", "open"]),
            (head + "loop = 3\n", ["loop", "closed, ping-pong"]),
            (head + "loop = \"ping-pong\"\nbatch = 2\n", [":6:", "batch", "ping-pong", "one message"]),
            (head + "loop = \"ping-pong\"\nverbs = { send = 1, write = 1 }\n", ["verbs", "ping-pong", "one message"]),
            (head + "loop = \"ping-pong\"\nsizes = [64, 128]\n", ["sizes", "ping-pong", "one message"]),
            (head + "loop = \"ping-pong\"\nthreads = 65\n", ["threads: 65", "1 to 64"]),
            (head + "loop = \"ping-pong\"\nverb = \"fadd\"\n", [":6:", "fadd", "has its answer", "without loop"]),
            (head + "loop = \"ping-pong\"\nverb = \"read\"\n", ["read", "has its answer"]),
            (head + "loop = \"ping-pong\"\nsize = 0\n", ["size: 0", "write"]),
            (head + "inline_receive = 600\n", ["inline_receive", "512"]),
            (head + "priority = 3\n", ["priority", "vlan"]),
            (head + "ports = 2\n", ["port 2 of h1", "no cable"]),
            (head.replace("h2", "h1"), ["h1", "another host"]),
            (head.replace("h2", "h9"), ["h9", "h1, h2"]),
            (head.replace("duration_us = 10\n", ""), ["messages: is missing", "end_us"]),
            (head + "start_us = 5\nend_us = 5\n", ["end_us: 5"]),
            (head + "name = \"x\"\n[[workload]]\nname = \"x\"\nfrom = \"h1\"\nto = \"h2\"\n", ["x", "another workload"]),
            ("warm_up_us = 10\n" + head, ["warm_up_us", "0 to 9"]),
            (head + "[hosts.h7]\nhost.llc_read_ps = 1\n", ["h7", "h1, h2"]),
            (head + "[hosts.h2]\nhost.llc_raed_ps = 1\n", ["hosts.h2", "host.llc_read_ps"]),
            (head + "[faults]\nat = \"h5\"\ndrop = 1\n", ["faults", "h5"]),
            (head + "[faults]\nat = \"h1\"\ndrop = 101\n", ["drop: 101"]),
            ("[topology]\nkind = \"pair\"\nports = 3\n" + head.replace("duration_us = 10\n", ""), ["ports: 3"]),
            ("[latency]\nsizez = 2\n", ["latency", "sizez"]),
            ("[latency]\nmtu = 17\n", ["latency", "--mtu"]),
            ("[latency]\njson = \"x\"\n", ["json"]),
            ("[latency]\nno-flows = 3\n", ["no-flows", "true or false"]),
            ("[latency]\n" + head.replace("duration_us = 10\n", ""), ["workload", "latency"])):
        c.refuse_experiment(text, *words)
    c.refuse(["none.toml"], "run", c.path("none.toml"))


if __name__ == "__main__":
    if shutil.which("tshark") is None:
        print("tshark is not installed")
        sys.exit(77)
    sys.exit(run_checks(__doc__, Runs, (check_queueing, check_counted_time, check_unknown, check_quantiles, check_goodput, check_rates, check_wire, check_doorbells, check_hosts, check_use,
                                        check_losses, check_ping_pong,
                                        check_ping_pong_receives, check_ping_pong_runs, check_ping_pong_in_vain, check_repeatable, check_short_forms, check_examples, check_refusals)))
