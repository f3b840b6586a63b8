#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rnic fabric: lossless networks lose nothing and lossy ones do, beside bounds worked out here; pauses spread, block
others and stand still, and are named; marks make shares fair; equal ways are used; PFC frames and CNPs are what another
decoder (tshark) takes them for; how the simulation is run changes nothing; wrong files are refused in one line.

usage: check_fabric.py PROGRAM [--seeds N] [--us T] [--lossless-only]
Exit code 77: tshark is not there (all else has been checked).
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from network_checks import Checks, dropped  # noqa: E402

SKIP = 77
HEADERS = 14 + 4 + 20 + 8 + 12 + 4 + 4  # Ethernet, VLAN tag, IPv4, UDP, BTH, ICRC, FCS
LINE = 8 + 12  # preamble and gap
RETH = 16

INCAST = """
duration_us = %(us)d
vlan = 2
priority = 3
[topology]
kind = "star"
hosts = 9
metres = %(metres)d
[parameters]
switch.buffer.flow_control = "pfc"
driver.lossless_global_pause = false
driver.pfc_mask = 8
[[flow]]
from = ["h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8"]
to = "h9"
%(flow)s
"""


def port_to(result, switch, to):
    return next(p for p in result["ports"] if p["switch"] == switch and p["to"] == to)


def goodput_bound(rate_gbps, mtu=2048, size=65536):
    """Payload of messages of `size` on a line that does nothing else."""
    packets = -(-size // mtu)
    return rate_gbps * size / (size + packets * (HEADERS + LINE) + RETH)


LONG_US = 100_000  # from here on runs say how far they are


def check_lossless(c, seeds, us):
    bound = goodput_bound(40)
    begun = time.monotonic()
    for seed in range(1, seeds + 1):
        # Sizes and beginnings by chance.
        mixed = INCAST % {"us": us, "metres": 100, "flow": "sizes = [64, 1024, 4096, 65536, 262144]\nspread_us = 50"}
        small = ["--set", "switch.buffer.bytes=600000"] if seed % 2 == 0 else []
        result, _ = c.run(mixed, "--seed", str(seed), *small, timeout=None if us >= LONG_US else 600)
        if us >= LONG_US:
            print("seed %d of %d: %d frames dropped, %.0f s" % (seed, seeds, dropped(result), time.monotonic() - begun),
                  flush=True)
        c.expect(dropped(result) == 0, "seed %d: %d frames dropped" % (seed, dropped(result)))
        naks = sum(v for n, v in result["counters"].items() if "retransmissions" in n or "drop_overflow" in n)
        c.expect(naks == 0, "seed %d: %d repeated or lost at a host" % (seed, naks))
        c.expect(port_to(result, "s1", "h9")["tx_gbps"] > 38.5, "seed %d: the line is not full" % seed)
        stopped = sum(port_to(result, "s1", "h%d" % h)["tx_pause"] > 0 for h in range(1, 9))
        c.expect(stopped >= (8 if small else 1), "seed %d: %d hosts were stopped" % (seed, stopped))
    result, _ = c.run(INCAST % {"us": 3000, "metres": 100, "flow": ""})
    c.expect(0.975 * bound < result["goodput_gbps"] <= bound, "goodput %.3f, bound %.3f" % (result["goodput_gbps"], bound))
    c.expect(result["fairness"] > 0.999, "fairness %.4f" % result["fairness"])


def bytes_in_flight(metres, frame, rate_gbps=40, both=True):
    """What comes after a switch has found a frame too much: that frame, one that the peer has begun, and what the line
    brings in the time of the pause frame, of the cable there and back, and of the peer's two paths (60 and 80 ns)."""
    time_ns = (84 + 0) * 8 / rate_gbps + 2 * metres * 5.05 + 60 + 80
    return frame * (2 if both else 1) + time_ns * rate_gbps / 8


def check_headroom(c):
    """The bound from above is safe, half of it is not, and the adapter's formula is above both."""
    frame = 2048 + HEADERS + LINE
    for metres in (100, 1000):
        needed = bytes_in_flight(metres, frame)
        text = INCAST % {"us": 2000, "metres": metres, "flow": ""}
        text = text.replace("[[flow]]", "adapter.port.ingress_bytes = 400000\n[[flow]]", 1)
        safe, _ = c.run(text, "--set", "switch.buffer.headroom_bytes=%d" % (needed * 1.1))
        c.expect(dropped(safe) == 0, "%d m: %d dropped with %d bytes" % (metres, dropped(safe), needed * 1.1))
        tight, _ = c.run(text, "--set", "switch.buffer.headroom_bytes=%d" % (needed - 1.5 * frame))
        c.expect(dropped(tight, "drop_headroom") > 0, "%d m: nothing dropped with too little" % metres)
    done = subprocess.run([c.program, "fabric", "incast", "--set", "switch.buffer.headroom_bytes=9000", "--json",
                           c.path("warned.json")], capture_output=True, text=True, timeout=60)
    c.expect("warning: s1 port 0: 9000 bytes of headroom" in done.stderr and "100 m at 40000" in done.stderr, done.stderr)


SLOW_OUTPUT = """
duration_us = 600
vlan = 2
priority = 3
mtu = 4096
[topology]
kind = "custom"
[[cable]]
ends = ["h1", "s1"]
metres = %(metres)d
rate_mbps = %(rate)d
[[cable]]
ends = ["h2", "s1"]
metres = %(metres)d
rate_mbps = %(rate)d
[[cable]]
ends = ["h3", "s1"]
metres = 1
rate_mbps = 1000
[parameters]
switch.buffer.flow_control = "pfc"
switch.buffer.bytes = %(bytes)d
switch.buffer.headroom_bytes = %(headroom)d
switch.hop_ps = %(hop)d
driver.lossless_global_pause = false
driver.pfc_mask = 8
adapter.port.ingress_bytes = 8000000
[[flow]]
from = "h1"
to = "h3"
depth = 64
sizes = [65536, 4096, 12288, 61440]
spread_us = 7
[[flow]]
from = "h2"
to = "h1"
depth = 64
qps = 4
sizes = [65536, 4096, 12288]
"""


def check_warnings(c):
    """Nothing is lost without a warning, whatever the peer's ways in and out take: h1 fills a slow output, and pauses wait
    for what goes to h1. What the warning asks for is enough, and a byte less is warned of."""
    for rate, metres, profile, hop in ((10000, 1, "connectx3pro_40g", 250000), (40000, 100, "connectx3pro_40g", 250000),
                                       (100000, 1, "connectx5_100g", 250000), (100000, 100, "connectx5_100g", 250000),
                                       (40000, 1, "connectx3pro_40g", 6000000), (100000, 10, "connectx5_100g", 3000000)):
        def run(headroom, seed):
            text = SLOW_OUTPUT % {"rate": rate, "metres": metres, "headroom": headroom,
                                  "bytes": 3 * (headroom + 4200) + 150000, "hop": hop}
            lost = dropped(c.run(text, "--profile", profile, "--seed", str(seed))[0], "drop_headroom") if seed else 0
            lines = [w for w in c.warnings(text.replace("= 600", "= 1", 1), "--profile", profile) if "s1 port 0" in w]
            return lost, lines
        _, lines = run(1000, 0)
        c.expect(len(lines) == 1 and "s1 port 0: 1000 bytes of headroom" in lines[0], "%d: %s" % (rate, lines))
        if not lines:
            continue
        needed = int(lines[0].split("headroom; ")[1].split()[0])
        for headroom in (needed - 1, int(needed * 0.93), int(needed * 0.8), int(needed * 0.5)):
            lost = sum(run(headroom, seed)[0] for seed in (1, 2, 3))
            c.expect(headroom > needed // 2 or lost > 0, "%d Mb/s, %d m: %d bytes lose nothing" % (rate, metres, headroom))
            c.expect(lost == 0 or run(headroom, 0)[1], "%d Mb/s, %d m: %d lost unwarned with %d bytes" %
                     (rate, metres, lost, headroom))
        c.expect(run(needed - 1, 0)[1] and not run(needed, 0)[1], "%d: not warned from %d bytes on" % (rate, needed))
        c.expect(sum(run(needed, seed)[0] for seed in (1, 2, 3)) == 0, "%d: %d bytes are not enough" % (rate, needed))
    # What is computed is never too little, of slow lines and of long frames too.
    for rate, frame in ((1000, 4200), (10000, 10000), (40000, 10000)):
        text = (INCAST % {"us": 1, "metres": 1, "flow": ""}).replace("metres = 1", "metres = 1\nrate_mbps = %d" % rate)
        lines = c.warnings(text, "--set", "switch.buffer.frame_bytes=%d" % frame)
        c.expect(not lines, "%d Mb/s, frames of %d: %s" % (rate, frame, lines[:1]))
    check_short_pauses(c)


def check_short_pauses(c):
    """Pauses that end before they are repeated are warned of, by the switch and by adapters; what loses frames is."""
    rate, frame = 40, 4200
    needed_ns = (frame + 20) * 8 / rate + 250 / 2
    enough = -(-needed_ns * 2 * rate // 512)  # quanta: half of a pause is left when it is repeated
    text = SLOW_OUTPUT % {"rate": 40000, "metres": 1, "headroom": 60000, "bytes": 3 * 64200 + 150000, "hop": 250000}
    lost = {}
    for quanta in (20, int(enough) - 1, int(enough)):
        own = text.replace("switch.hop_ps", "switch.pause_quanta = %d\nswitch.hop_ps" % quanta, 1)
        lines = [w for w in c.warnings(own.replace("= 600", "= 1", 1)) if "s1 port 0" in w and "pauses end too early" in w]
        c.expect(bool(lines) == (quanta < enough), "%d quanta: %s" % (quanta, lines))
        lost[quanta] = dropped(c.run(own)[0], "drop_headroom")
    c.expect(lost[20] > 0 and lost[int(enough)] == 0, "lost: %s" % lost)
    lines = c.warnings(text.replace("= 600", "= 1", 1), "--set", "adapter.port.pause_quanta=100")
    c.expect(any("h1 port 1: what is left of a pause of 100 quanta" in w for w in lines), "%s" % lines[:3])


def check_arrivals(c):
    """Goodput of UC and UD is of what has arrived, beside a buffer that loses half of it: no more than the line carries."""
    for transport, verb, size in (("uc", "send", 65536), ("uc", "write_imm", 2048), ("ud", "send", 2048)):
        flow = 'verb = "%s"\ntransport = "%s"\nsize = %d\n' % (verb, transport, size)
        text = (INCAST % {"us": 1500, "metres": 3, "flow": flow}).replace('"pfc"', '"nothing"')
        small = ["--set", "switch.buffer.bytes=100000"]
        result, said = c.run(text, *small)
        sent, arrived = (sum(f[what] for f in result["flows"]) for what in ("completed", "arrived"))
        what = "%s over %s: %.1f Gb/s, %d of %d arrived" % (verb, transport, result["goodput_gbps"], arrived, sent)
        most = 40 * size / (size + -(-size // 2048) * (HEADERS + LINE))
        c.expect(result["goodput_gbps"] < most and dropped(result) > 0, what)
        c.expect(size > 2048 or (0.1 < arrived / sent < 0.15), what)
        c.expect("%d arrived\n" % result["flows"][0]["arrived"] in said, "not printed: " + what)
    ended, _ = c.run((INCAST % {"us": 1500, "metres": 3, "flow": 'verb = "send"\ntransport = "ud"\nsize = 2048\n'
                                                                 "messages = 300\n"}).replace('"pfc"', '"nothing"'))
    frames = port_to(ended, "s1", "h9")
    c.expect([f["arrived"] for f in ended["flows"]] == [300] * 8 and dropped(ended) == 0 and
             all("completion_us" in f for f in ended["flows"]), "%s %s" % (ended["flows"], frames))
    c.expect(ended["goodput_gbps"] < 40 * 2048 / (2048 + HEADERS + LINE), "%.2f Gb/s" % ended["goodput_gbps"])
    written, said = c.run((INCAST % {"us": 300, "metres": 3, "flow": 'transport = "uc"\n'}))
    c.expect(written["flows"][0]["goodput_is_of"] == "sent" and "as sent\n" in said, "a UC write tells nobody")


def check_lossy(c):
    text = (INCAST % {"us": 2000, "metres": 3, "flow": ""}).replace('"pfc"', '"nothing"')
    result, _ = c.run(text, "--set", "switch.buffer.bytes=1000000")
    c.expect(dropped(result, "drop_queue") > 100, "nothing dropped")
    c.expect(all(p["tx_pause"] == 0 for p in result["ports"]), "pauses without flow control")


BLOCKING = """
duration_us = 2000
vlan = 2
priority = 3
[topology]
kind = "dumbbell"
left = 3
right = 3
[parameters]
switch.buffer.flow_control = "pfc"
switch.buffer.bytes = 600000
driver.lossless_global_pause = false
driver.pfc_mask = 8
[[flow]]
name = "culprit"
from = ["h1", "h3", "h6"]
to = "h4"
[[flow]]
name = "victim"
from = "h2"
to = "h5"
%s
"""


def check_blocking(c):
    """The victim shares the trunk with two culprits, a third of 40 Gb/s, and is stopped with them; in another priority
    it has all that the culprits leave."""
    result, text = c.run(BLOCKING % "")
    victim = next(f for f in result["flows"] if f["name"] == "victim")
    culprits = [f["goodput_gbps"] for f in result["flows"] if f["name"] == "culprit" and f["from"] != "h6"]
    c.expect(victim["goodput_gbps"] < 1.1 * max(culprits), "the victim has %.2f, the culprits %s" %
             (victim["goodput_gbps"], culprits))
    c.expect(port_to(result, "left", "right")["rx_pause"] > 0 and port_to(result, "left", "h2")["tx_pause"] > 0,
             "the pause did not spread to h2")
    c.expect(any(b["flow"] == "victim" and b["behind"] == "right port 0 to h4" and b["part"] > 0.1
                 for b in result["head_of_line_blocking"]), "not named: %s" % result["head_of_line_blocking"])
    c.expect("head-of-line blocking: flow victim from h2 to h5" in text, "not printed")
    free, _ = c.run((BLOCKING % "priority = 4").replace("pfc_mask = 8", "pfc_mask = 24"),
                    "--set", "switch.buffer.lossless_priorities=24")
    freed = next(f for f in free["flows"] if f["name"] == "victim")["goodput_gbps"]
    c.expect(freed > 2 * victim["goodput_gbps"], "in a priority of its own the victim has %.2f" % freed)
    c.expect(not any(b["flow"] == "victim" for b in free["head_of_line_blocking"]), "blocked in its own priority")


def check_deadlock(c):
    result, text = c.run("ring", status=1)
    c.expect([s["ways"] for s in result["standstills"]] == [["s1 to s2", "s2 to s3", "s3 to s4", "s4 to s1"]],
             "standstills: %s" % result["standstills"])
    c.expect("deadlock: s1 to s2, s2 to s3, s3 to s4, s4 to s1 wait for each other in priority 3" in text, "not printed")
    stood = [result["stood_still"].get("pauses of switch s%d to h%d" % ((i + 1) // 2, i), 0) for i in range(1, 9)]
    c.expect(min(stood) > 0.9, "a wait that lasts is none: %s" % result["stood_still"])
    shown = subprocess.run([c.program, "fabric", "ring", "--print"], capture_output=True, text=True, timeout=60).stdout
    short, _ = c.run(shown.replace("clockwise = true", "clockwise = false").replace('to = "h5"', 'to = "h3"')
                     .replace('to = "h7"', 'to = "h5"').replace('to = "h1"', 'to = "h7"').replace(
                         'from = ["h7", "h8"]\nto = "h3"', 'from = ["h7", "h8"]\nto = "h1"'))
    c.expect(not short["standstills"] and short["goodput_gbps"] > 100, "one hop each: %s" % short["standstills"])
    # Traffic of another priority on the same ways goes on, and hides nothing.
    busy = shown + "".join('[[flow]]\nfrom = "h%d"\nto = "h%d"\npriority = 0\nsize = 4096\ndepth = 4\n' % (h, to)
                           for h, to in ((1, 8), (3, 2), (5, 4), (7, 6)))
    result, _ = c.run(busy, status=1)
    c.expect([s["ways"] for s in result["standstills"]] == [["s1 to s2", "s2 to s3", "s3 to s4", "s4 to s1"]] and
             result["standstills"][0]["since_us"] < 100 and all(f["completed"] > 200 for f in result["flows"][8:]),
             "beside other priorities: %s %s" % (result["standstills"], [f["completed"] for f in result["flows"][8:]]))
    # A run that ends with its messages would never end.
    endless = shown.replace("duration_us = 2000\n", "").replace("[[flow]]", "[[flow]]\nmessages = 2000")
    loop = endless.replace("[[flow]]", "[[workload]]\nsize = 65536")
    for command in (["fabric", c.file(endless)], ["run", c.file(loop)], ["latency", "--topology", "ring"],
                    ["bandwidth", "--topology", "ring"], ["soak", "--topology", "ring"]):
        ended = subprocess.run([c.program] + command + ["--quiet"], capture_output=True, text=True, timeout=120)
        c.expect(ended.returncode == 1 and ended.stderr == "rnic: the network stands still: s1 to s2, s2 to s3, s3 to s4, "
                 "s4 to s1 wait for each other in priority 3 (deadlock)\n",
                 "%s: %d %s" % (command[0], ended.returncode, ended.stderr))
    # Two hosts with a priority that goes on end as ever.
    beside = subprocess.run([c.program, "latency", "--topology", "ring", "--sizes", "8", "--priority", "0", "--quiet"],
                            capture_output=True, text=True, timeout=120)
    c.expect(beside.returncode == 0, "in another priority: %s" % beside.stderr)
    lossy, _ = c.run(shown.replace('"pfc"', '"nothing"'))
    c.expect(not lossy["standstills"], "without pauses nothing can stand still")


def check_marks(c):
    """DCQCN over a switch that marks: eight flows have fair shares in 20 ms, with PFC and without."""
    parameters = "switch.ecn.on = true\nadapter.congestion.reaction.priorities = 8\n" \
                 "adapter.congestion.notification.priorities = 8\n[[flow]]"
    text = (INCAST % {"us": 20000, "metres": 3, "flow": ""}).replace("[[flow]]", parameters, 1)
    for control in ("pfc", "nothing"):
        result, _ = c.run(text.replace('"pfc"', '"%s"' % control))
        c.expect(result["fairness"] > 0.98, "%s: fairness %.4f" % (control, result["fairness"]))
        c.expect(port_to(result, "s1", "h9")["marked"] > 100 and dropped(result) == 0, control + ": no marks, or drops")
        handled = sum(v for n, v in result["counters"].items() if n.endswith("requester.rp_cnp_handled"))
        sent = result["counters"].get("h9.adapter.cnp_sender.np_cnp_sent", 0)
        c.expect(sent > 0 and 0 <= sent - handled < 9, "%s: %d CNPs sent, %d handled" % (control, sent, handled))


def check_equal_ways(c):
    """Many queue pairs use both spines; with one, a flow has one way."""
    flow = 'duration_us = 500\n[topology]\nkind = "leaf-spine"\nleaves = 2\nspines = 2\nhosts_per_leaf = 1\n' \
           'rate_mbps = 40000\ntrunk_rate_mbps = 40000\n[parameters]\nswitch.buffer.flow_control = "pause"\n' \
           '[[flow]]\nfrom = "h1"\nto = "h2"\nqps = %d\n'
    many, _ = c.run(flow % 32)
    ways = [port_to(many, "leaf1", spine)["tx_gbps"] for spine in ("spine1", "spine2")]
    c.expect(min(ways) > 8 and abs(sum(ways) - port_to(many, "leaf2", "h2")["tx_gbps"]) < 1, "32 queue pairs: %s" % ways)
    one, _ = c.run(flow % 1)
    ways = [port_to(one, "leaf1", spine)["tx_gbps"] for spine in ("spine1", "spine2")]
    c.expect(min(ways) < 0.1 and max(ways) > 30, "one queue pair: %s" % ways)
    # Queue pairs are in turn with a rate, and with as many messages as there are of them.
    for text, more in (flow, "rate_mbps = 8000\n"), (flow.replace("duration_us = 500\n", ""), "size = 16384\nmessages = 32\n"):
        result, _ = c.run(text % 32 + more)
        ways = [port_to(result, "leaf1", spine)["tx_gbps"] for spine in ("spine1", "spine2")]
        c.expect(min(ways) > 0.2 * sum(ways), "32 queue pairs, %s: %s" % (more, ways))


def check_sums(c):
    """Flows that are not under way together are not faster together; a port has sent what the flows have got."""
    text = '[topology]\nkind = "star"\nhosts = 3\nrate_mbps = 40000\n' \
           '[[flow]]\nfrom = "h1"\nto = "h3"\nsize = 65536\nmessages = %d\n' \
           '[[flow]]\nfrom = "h2"\nto = "h3"\nsize = 65536\nmessages = %d\nstart_us = 800\n'
    apart, _ = c.run(text % (20, 20))
    both = 2 * 20 * 65536 * 8e-3
    last = max(f["start_us"] + f["completion_us"] for f in apart["flows"])
    c.expect(abs(apart["goodput_gbps"] - both / last) < 0.001 * both / last, "all flows: %.3f" % apart["goodput_gbps"])
    few, _ = c.run(text[:text.rindex("[[flow]]")] % 2)
    sent = port_to(few, "s1", "h3")["tx_gbps"]
    c.expect(few["goodput_gbps"] < sent < few["goodput_gbps"] * 1.3, "a short run: %.3f of %.3f" % (few["goodput_gbps"], sent))


def check_verbs_and_transports(c):
    for verb, transport in (("write", "rc"), ("write_imm", "rc"), ("send", "rc"), ("read", "rc"), ("fadd", "rc"),
                            ("send", "xrc"), ("write", "uc"), ("send", "ud")):
        size = 8 if verb == "fadd" else 1000
        result, _ = c.run('[topology]\nkind = "star"\nhosts = 3\n[parameters]\nswitch.buffer.flow_control = "pause"\n'
                          '[[flow]]\nfrom = ["h1", "h2"]\nto = "h3"\nverb = "%s"\ntransport = "%s"\nsize = %d\n'
                          'messages = 300\nqps = 2\n' % (verb, transport, size))
        c.expect([f["completed"] for f in result["flows"]] == [300, 300], "%s over %s: %s" % (verb, transport, result["flows"]))
    paced, _ = c.run('duration_us = 2000\n[topology]\nkind = "star"\nhosts = 2\n[[flow]]\nfrom = "h1"\nto = "h2"\n'
                     'size = 4096\nrate_mbps = 5000\nstart_us = 500\n')
    flow = paced["flows"][0]
    c.expect(abs(flow["goodput_gbps"] - 5) < 0.05 and flow["start_us"] >= 500, "paced: %s" % flow)


def check_vlans(c):
    """Hosts without tags on access ports of two VLANs, a trunk between the switches: within a VLAN frames arrive, and
    have its tag on the trunk; between two they do not."""
    ports = "".join('[[port]]\nat = ["%s", "%s"]\naccess = %d\n' % p for p in
                    (("left", "h1", 5), ("left", "h2", 6), ("right", "h3", 5), ("right", "h4", 6)))
    text = 'duration_us = 300\n[topology]\nkind = "dumbbell"\nleft = 2\nright = 2\n%s%s' \
           '[[flow]]\nfrom = "h1"\nto = "h3"\n[[flow]]\nfrom = "h2"\nto = "%s"\nstart_us = 10\n'
    trunk = '[[port]]\nat = ["left", "right"]\ntrunk = %s\n[[port]]\nat = ["right", "left"]\ntrunk = [5, 6]\n'
    result, _ = c.run(text % (ports, trunk % "[5, 6]", "h4"))
    c.expect(min(f["goodput_gbps"] for f in result["flows"]) > 10 and dropped(result, "drop_vlan") == 0,
             "two VLANs: %s" % result["flows"])
    result, _ = c.run(text % (ports, trunk % "[5, 6]", "h3"))
    c.expect(result["flows"][0]["goodput_gbps"] > 10 and result["flows"][1]["completed"] == 0 and
             dropped(result, "drop_vlan") > 0, "from one VLAN to the other: %s" % result["flows"])
    result, _ = c.run(text % (ports, trunk % "[5]", "h4"))
    c.expect(result["flows"][0]["goodput_gbps"] > 10 and result["flows"][1]["completed"] == 0,
             "a trunk without VLAN 6: %s" % result["flows"])
    # A port without a table changes no tag: what h1 tags is of its VLAN where h2's port is a trunk, and no other's.
    tagged = 'duration_us = 200\nvlan = %d\n[topology]\nkind = "star"\nhosts = 2\n[[port]]\nat = ["s1", "h2"]\ntrunk = [5]\n' \
             '[[flow]]\nfrom = "h1"\nto = "h2"\n'
    result, _ = c.run(tagged % 5)
    c.expect(result["goodput_gbps"] > 30 and dropped(result, "drop_vlan") == 0, "tagged to a trunk: %s" % result["flows"])
    result, _ = c.run(tagged % 6)
    c.expect(result["goodput_gbps"] == 0 and dropped(result, "drop_vlan") > 0, "another VLAN to a trunk: %s" % result["flows"])
    # Beside an access port one without a table is warned of: the other way frames are dropped.
    one_way = 'duration_us = 200\n[topology]\nkind = "star"\nhosts = 3\n[[port]]\nat = ["s1", "h2"]\naccess = 5\n%s' \
              '[[flow]]\nfrom = "h1"\nto = "h2"\n'
    result, _ = c.run(one_way % "")
    c.expect(result["goodput_gbps"] == 0 and dropped(result, "drop_vlan") > 0, "to an access port: %s" % result["flows"])
    for table, warned in (("", True), ('[[port]]\nat = ["s1", "h1"]\naccess = 5\n[[port]]\nat = ["s1", "h3"]\naccess = 6\n', False)):
        lines = [w for w in c.warnings(one_way % table) if "untagged frames go one way only" in w]
        c.expect(len(lines) == warned and all("s1 port 0: has no VLAN rules, and port 1 is an access port" in w for w in lines),
                 "%s" % lines)


def check_classes(c):
    """Two priorities of a traffic class have half of its share each, whatever another class sends; who is kept from the
    port by them is not said to be paused."""
    text = 'duration_us = 2000\nvlan = 2\n[topology]\nkind = "star"\nhosts = 2\n[parameters]\n' \
           'driver.lossless_global_pause = false\ndriver.dcb.enabled = true\ndriver.dcb.ets.priority4 = 3\n' \
           'driver.dcb.ets.tc3.tsa = "ets"\ndriver.dcb.ets.tc3.percent = 50\n' \
           'driver.dcb.ets.tc5.tsa = "ets"\ndriver.dcb.ets.tc5.percent = 50\n' + \
           "".join('[[flow]]\nfrom = "h1"\nto = "h2"\npriority = %d\n' % p for p in (3, 4, 5))
    result, said = c.run(text)
    rates = [f["goodput_gbps"] for f in result["flows"]]
    c.expect(abs(rates[0] - rates[1]) < 0.02 * rates[0] and abs(rates[0] + rates[1] - rates[2]) < 0.02 * rates[2],
             "priorities 3 and 4 of a class, and 5: %s" % rates)
    c.expect("pauses of" not in said, "nobody pauses: %s" % said)
    strict = 'duration_us = 500\nvlan = 2\n[topology]\nkind = "pair"\n[parameters]\n' \
             'driver.lossless_global_pause = false\nadapter.port.egress_arbitration = "strict"\n' + \
             "".join('[[flow]]\nfrom = "h1"\nto = "h2"\npriority = %d\n' % p for p in (3, 5))
    result, said = c.run(strict)
    c.expect(result["flows"][0]["completed"] == 0 and result["stood_still"].get("the port of adapter h1", 0) > 0.9 and
             "pauses of" not in said, "a priority that has no turn: %s" % said)


def check_pauses(c):
    """Hosts are paused for no longer than the run lasts, and pause frames are a part of what a line carries."""
    text = 'duration_us = 500\nvlan = 2\n[topology]\nkind = "star"\nhosts = 4\n[parameters]\n' \
           'driver.lossless_global_pause = false\ndriver.pfc_mask = 8\nswitch.buffer.flow_control = "pfc"\n' \
           'switch.buffer.lossless_priorities = 8\nswitch.buffer.bytes = 400000\nswitch.pause_quanta = %d\n' \
           '[[flow]]\nfrom = ["h1", "h2", "h3"]\nto = "h4"\npriority = 3\n[[flow]]\nfrom = "h4"\nto = "h1"\npriority = 3\n'
    for quanta in 3, 10, 65535:
        result, _ = c.run(text % quanta)
        durations = [v for k, v in result["counters"].items() if k.endswith("rx_duration_ps")]
        c.expect(0 < max(durations) <= 501 * 10**6, "%d quanta: paused for %d ps in 500 us" % (quanta, max(durations)))
        line = result["utilisation"]["wire, s1 to h1"]
        c.expect(line > 0.95, "%d quanta: %s of the line to h1 are in use" % (quanta, line))


def check_parallel_cables(c):
    """What a table says of two neighbours holds for each cable between them."""
    text = 'duration_us = 300\n[topology]\nkind = "custom"\n' + "".join(
        '[[cable]]\nends = ["%s", "%s"]\n' % e for e in (("h1", "s1"), ("h2", "s2"), ("s1", "s2"), ("s1", "s2")))
    text += "".join('[[port]]\nat = ["%s", "%s"]\n%s\n' % p for p in (
        ("s1", "h1", "access = 5"), ("s2", "h2", "access = 5"), ("s1", "s2", "trunk = [5]"), ("s2", "s1", "trunk = [5]")))
    result, _ = c.run(text + '[[flow]]\nfrom = "h1"\nto = "h2"\nqps = 32\n[parameters]\n'
                             'switch.buffer.flow_control = "pause"\n')
    ways = [p["tx_gbps"] for p in result["ports"] if p["switch"] == "s1" and p["to"] == "s2"]
    c.expect(dropped(result) == 0 and min(ways) > 5 and result["goodput_gbps"] > 25, "%s %s" % (ways, result["flows"]))


MIXED = """
%s
[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 4
metres = %d
[parameters]
switch.ecn.on = true
switch.buffer.flow_control = "pfc"
driver.lossless_global_pause = false
driver.pfc_mask = 1
adapter.congestion.reaction.priorities = 1
adapter.congestion.notification.priorities = 1
[[flow]]
from = ["h1", "h2", "h3"]
to = "h8"
spread_us = 20
%s
[[flow]]
from = "h5"
to = "h1"
verb = "send"
size = 3000
%s
[[flow]]
from = "h4"
to = "h6"
verb = "read"
qps = 3
%s
"""


def check_runs(c):
    """Hosts that are simulated apart (sim.run_ahead) or all in the order of time, and at every edge: the same numbers.
    Durations that are multiples of what is looked at, and flows that end by themselves."""
    ends = "messages = 40"
    for network in (BLOCKING % "", MIXED % ("duration_us = 400", 3, "", "", ""), MIXED % ("duration_us = 401", 100, "", ends, ""),
                    MIXED % ("", 1, ends, ends, ends), MIXED % ("", 300, ends, ends, ends)):
        first, _ = c.run(network, "--seed", "4")
        for how in ("sim.always_tick=true", "sim.shuffle_seed=7", "sim.run_ahead=false"):
            other, _ = c.run(network, "--seed", "4", "--set", how)
            for result in (first, other):
                result.pop("parameters", None), result.pop("set", None)
            c.expect(first == other, how + ": another run of " + network)


def check_frames(c):
    """PFC and CNP frames on h1's cable, by tshark."""
    if shutil.which("tshark") is None:
        return False
    capture = c.path("h1.pcap")
    result, _ = c.run(INCAST % {"us": 1000, "metres": 100, "flow": ""}, "--pcap", capture, "--pcap-at", "h1")
    fields = ["macc.opcode", "macc.cbfc.enbv", "macc.cbfc.pause_time.c3", "eth.dst", "macc.dst_address_invalid"]
    rows = subprocess.run(["tshark", "-r", capture, "-Y", "macc", "-T", "fields"] + [a for f in fields for a in ("-e", f)],
                          capture_output=True, text=True, timeout=100).stdout.splitlines()
    stops = [r.split("\t") for r in rows]
    c.expect(len(stops) == port_to(result, "s1", "h1")["tx_pause"], "%d PFC frames" % len(stops))
    for opcode, enabled, time, to, wrong in stops:
        c.expect(int(opcode, 16) == 0x0101 and int(enabled, 16) == 8 and to == "01:80:c2:00:00:01" and not wrong,
                 "PFC frame: %s" % [opcode, enabled, time, to])
    times = [int(s[2]) for s in stops]
    c.expect(set(times) == {0, 0xFFFF} and times[::2] == [0xFFFF] * len(times[::2]), "not stop, go, stop: %s" % times[:6])
    capture = c.path("marks.pcap")
    text = (INCAST % {"us": 2000, "metres": 3, "flow": ""}).replace(
        "[[flow]]", "switch.ecn.on = true\nadapter.congestion.reaction.priorities = 8\n"
        "adapter.congestion.notification.priorities = 8\n[[flow]]", 1)
    result, _ = c.run(text, "--pcap", capture, "--pcap-at", "h9")
    marked = subprocess.run(["tshark", "-r", capture, "-o", "ip.check_checksum:TRUE", "-Y", "ip.dsfield.ecn == 3",
                             "-T", "fields", "-e", "ip.checksum.status"],
                            capture_output=True, text=True, timeout=100).stdout.split()
    c.expect(len(marked) > 0 and abs(len(marked) - port_to(result, "s1", "h9")["marked"]) <= 200 and set(marked) == {"1"},
             "%d marked frames, status %s" % (len(marked), set(marked)))
    cnps = subprocess.run(["tshark", "-r", capture, "-Y", "infiniband.bth.opcode == 0x81"], capture_output=True, text=True,
                          timeout=100).stdout.splitlines()
    c.expect(len(cnps) > 0, "no CNP on h9's cable")
    return True


def check_refusals(c):
    star = '[topology]\nkind = "star"\nhosts = 2\n'
    flow = '[[flow]]\nfrom = "h1"\nto = "h2"\n'
    c.refuse_file("", "topology: is missing")
    c.refuse_file('[topology]\nkind = "tree"\n', ":2:", "kind", "tree", "leaf-spine")
    c.refuse_file('[topology]\nkind = "star"\n', "hosts", "is missing", "2 to 64")
    c.refuse_file('[topology]\nkind = "star"\nhosts = 65\n', ":3:", "65", "2 to 64")
    c.refuse_file(star, "flow: is missing")
    c.refuse_file(star + flow, "messages", "duration_us")
    c.refuse_file("duration_us = 1\n" + star + '[[flow]]\nfrom = "h1"\nto = "h3"\n', ":7:", "no host h3", "h1, h2")
    c.refuse_file("duration_us = 1\n" + star + '[[flow]]\nfrom = "h1"\nto = "h1"\n', ":5:", "to: h1", "another host")
    c.refuse_file("duration_us = 1\n" + star + flow + "priority = 3\n", "priority: 3", "vlan")
    c.refuse_file("duration_us = 1\n" + star + flow + 'verb = "put"\n', ":8:", "put", "write")
    c.refuse_file("duration_us = 1\n" + star + flow + 'transport = "ud"\nverb = "write"\n', "write is not in this transport")
    c.refuse_file("duration_us = 1\n" + star + flow + "mtu = 1000\n", "1000", "1024")
    c.refuse_file("duration_us = 1\n" + star + flow + "sizes = []\n", "sizes")
    c.refuse_file("duration_us = 1\n" + star + flow + 'verb = "cas"\nsize = 100\n', ":9:", "size: 100", "expected 8")
    c.refuse_file("duration_us = 1\n" + star + flow + "ports = []\n", ":8:", "ports", "empty", "1, 2 or both")
    c.refuse_file("duration_us = 1\n" + star + '[[flow]]\nfrom = []\nto = "h2"\n', ":6:", "from", "empty")
    c.refuse_file("duration_us = 1\n" + star + flow + '[[flow]]\nfrom = "h2"\nto = ["h2"]\n', "flow 2", "another host")
    c.refuse_file("duration_us = 1\n" + star + flow + '[[cable]]\nends = ["h1", "s1"]\n', ":8:", "cable", "custom", "star")
    c.refuse_file('duration_us = 1\n[topology]\nkind = "leaf-spine"\nleaves = 1\nspines = 2\nhosts_per_leaf = 64\n' + flow,
                  "topology", "leaf1 has 66 cables", "64 at most")
    c.refuse_file("duration_us = 1\n" + star + flow + "[parameters]\nswitch.hop = 1\n", "no parameter switch.hop", "switch.hop_ps")
    c.refuse_file("duration_us = 1\n" + star + flow + "[parameters]\nswitch.buffer.bytes = 65536\n"
             'switch.buffer.flow_control = "pause"\nswitch.buffer.headroom_bytes = 40000\n', "switch.buffer.bytes", "headroom")
    c.refuse_file("duration_us = 1\n" + star + flow + "[parameters]\nswitch.ecn.kmin_bytes = 300000\n", "kmin_bytes", "kmax_bytes")
    c.refuse_file('[topology]\nkind = "custom"\n', "cable: is missing")
    c.refuse_file('[topology]\nkind = "custom"\n[[cable]]\nends = ["h1", "h2"]\n', "one of them must be a switch")
    c.refuse_file('[topology]\nkind = "custom"\n[[cable]]\nends = ["h1", "s1"]\n[[cable]]\nends = ["h1", "s2"]\n', "port 1 of h1")
    c.refuse_file('[topology]\nkind = "custom"\n[[cable]]\nends = ["h1.3", "s1"]\n', "h1.3", "port 1 or 2")
    for ends, name in (("", ""), ("a b", "a b"), ("h\\n1", "h"), ("s1.2", "s1.2")):
        c.refuse_file('duration_us = 1\n[topology]\nkind = "custom"\n[[cable]]\nends = ["%s", "s1"]\n' % ends, "ends: ", name, "letters")
    c.refuse_file("duration_us = 100\n" + star + flow + "start_us = 300\n", ":8:", "start_us: 300", "0 to 99")
    port = "duration_us = 1\n" + star + flow + "[[port]]\n"
    c.refuse_file(port, "port 1: at")
    c.refuse_file(port + 'at = ["s2", "h1"]\naccess = 1\n', "no switch s2", "s1")
    c.refuse_file(port + 'at = ["s1", "h3"]\naccess = 1\n', "s1 has no cable to h3")
    c.refuse_file(port + 'at = ["s1", "h1"]\n', "access: expected that or trunk")
    c.refuse_file(port + 'at = ["s1", "h1"]\naccess = 1\n[[port]]\nat = ["s1", "h1"]\naccess = 2\n', "port 2", "s1 and h1")
    c.refuse_file(port + 'at = ["s1", "h1"]\naccess = 4095\n', "4095", "1 to 4094")
    c.refuse_file(port + 'at = ["s1", "h1"]\ntrunk = [0]\n', "0", "1 to 4094")
    done = subprocess.run([c.program, "fabric", c.path("none.toml")], capture_output=True, text=True, timeout=60)
    c.expect(done.returncode == 2 and "cannot be read" in done.stderr and "incast" in done.stderr, done.stderr)
    done = subprocess.run([c.program, "fabric", "incast", "--pcap", c.path("h10.pcap"), "--pcap-at", "h10"], capture_output=True, text=True, timeout=60)
    c.expect(done.returncode == 2 and "no host h10" in done.stderr, done.stderr)


def check_custom(c):
    """Two hosts at different rates, the second at its port 2, over two switches."""
    text = 'duration_us = 1000\n[topology]\nkind = "custom"\n' \
           '[[cable]]\nends = ["h1", "s1"]\n[[cable]]\nends = ["s1", "s2"]\nrate_mbps = 100000\n' \
           '[[cable]]\nends = ["s2", "h2.2"]\nrate_mbps = 10000\n[parameters]\nswitch.buffer.flow_control = "pause"\n' \
           '[[flow]]\nfrom = "h1"\nto = "h2"\n'
    result, _ = c.run(text)
    c.expect(9 < result["goodput_gbps"] < goodput_bound(10), "goodput %.3f" % result["goodput_gbps"])
    c.expect(dropped(result) == 0, "dropped")
    unjoined = text.replace('[[cable]]\nends = ["s1", "s2"]\nrate_mbps = 100000\n', "")
    c.refuse_file(unjoined, "flow 1", "no way leads from port 1 of h1 to port 2 of h2")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("program")
    parser.add_argument("--seeds", type=int, default=20, help="lossless runs")
    parser.add_argument("--us", type=int, default=1000, help="simulated time of each")
    parser.add_argument("--lossless-only", action="store_true", help="nothing but these")
    options = parser.parse_args()
    complete = True
    with tempfile.TemporaryDirectory() as folder:
        c = Checks(options.program, folder)
        check_lossless(c, options.seeds, options.us)
        complete = options.lossless_only or check_all_else(c)
    for fault in c.faults:
        print(fault)
    if c.faults:
        return 1
    return 0 if complete else SKIP


def check_all_else(c):
    """False: tshark is not there."""
    check_refusals(c)
    check_headroom(c)
    check_warnings(c)
    check_lossy(c)
    check_arrivals(c)
    check_blocking(c)
    check_deadlock(c)
    check_marks(c)
    check_equal_ways(c)
    check_sums(c)
    check_verbs_and_transports(c)
    check_custom(c)
    check_vlans(c)
    check_classes(c)
    check_pauses(c)
    check_parallel_cables(c)
    check_runs(c)
    return check_frames(c)


if __name__ == "__main__":
    sys.exit(main())
