#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rate of a flow on the wire is the one that DCQCN's pseudo code says, computed here from the CNPs of the capture
with exact numbers; CNPs are byte by byte those of another implementation (scapy, zlib); and nothing depends on how the
simulation is run.

usage: check_congestion.py PROGRAM
Exit code 77: scapy is not there (all else has been checked).
"""
import json
import os
import random
import subprocess
import sys
import tempfile
from fractions import Fraction

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "program"))
from check_capture import SKIP, icrc_fault, records  # noqa: E402

VENDOR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "model", "transport", "congestion",
                      "presets", "vendor.toml")
LINE = 40_000_000  # kb/s
OVERHEAD = 24      # bytes: preamble, FCS, gap
CNP_DELAY = Fraction(35, 100)  # us from a CNP's first bit to the reaction point: cable, MAC, parser, ICRC check
BACKLOG = 40_000  # bytes that may have been started before a CNP: 16 packets being gathered, 16 in the egress queue
PAPER = {"gain_per_1024": 4, "initial_alpha": 1024, "alpha_timer_us": 55, "increase_timer_us": 55,
         "byte_counter": 10_000_000, "threshold": 5, "additive_mbps": 40, "hyper_mbps": 200, "min_rate_mbps": 100,
         "reduce_period_us": 4, "min_decrease_percent": 50, "decrease_shift": 11, "first_cnp_percent": 0,
         "clamp_target": True, "clamp_target_after_timer": True}
VENDOR_VALUES = {"gain_per_1024": 5, "initial_alpha": 1023, "alpha_timer_us": 1, "increase_timer_us": 300,
                 "byte_counter": 32767, "threshold": 1, "additive_mbps": 5, "hyper_mbps": 50, "min_rate_mbps": 1,
                 "clamp_target": False}


class Flow:
    """Reaction point after Zhu et al., SIGCOMM'15, section 3 and figure 7, with the published knobs; times in us, rates
    in kb/s, all exact. It sends packets of one size back to back at its rate."""

    def __init__(self, p, size, start):
        self.p, self.size = p, size
        self.rate = self.target = Fraction(LINE)
        self.alpha = Fraction(p["initial_alpha"], 1024)
        self.limited = False
        self.next_packet = Fraction(start)
        self.alpha_at = self.timer_at = self.cut_at = None
        self.last_cut = None
        self.time_stage = self.byte_stage = 0
        self.bytes = 0
        self.raised_by_time = self.raised_by_bytes = False
        self.history = [(Fraction(start), self.rate)]  # rate from then on

    def note(self, now):
        self.history.append((now, self.rate))

    def restart(self, now):
        self.last_cut, self.cut_at = now, None
        self.alpha_at, self.timer_at = now + self.p["alpha_timer_us"], now + self.p["increase_timer_us"]
        self.time_stage = self.byte_stage = self.bytes = 0
        self.raised_by_time = self.raised_by_bytes = False

    def cut(self, now):
        p = self.p
        if p["clamp_target"] or self.raised_by_bytes or (self.raised_by_time and p["clamp_target_after_timer"]):
            self.target = self.rate
        g = Fraction(p["gain_per_1024"], 1024)
        reduced = self.rate * (1 - self.alpha * 1024 / 2**p["decrease_shift"])
        least = max(self.rate * p["min_decrease_percent"] / 100, min(self.rate, p["min_rate_mbps"] * 1000))
        self.rate = max(reduced, least)
        self.alpha = (1 - g) * self.alpha + g
        self.restart(now)
        self.note(now)

    def raise_rate(self, now):
        p, both = self.p, (self.time_stage, self.byte_stage)
        if min(both) > p["threshold"]:
            self.target += p["hyper_mbps"] * 1000
        elif max(both) > p["threshold"]:
            self.target += p["additive_mbps"] * 1000
        self.target = min(self.target, Fraction(LINE))
        self.rate = (self.rate + self.target) / 2
        # Exact halves grow without end; a millionth of a kb/s is kept.
        self.rate = Fraction(round(self.rate * 10**6), 10**6)
        self.note(now)

    def notified(self, now):
        if not self.limited:
            self.limited = True
            if self.p["first_cnp_percent"]:
                self.rate = Fraction(LINE * self.p["first_cnp_percent"], 100)
                self.restart(now)
                return self.note(now)
            return self.cut(now)
        if self.cut_at is None:
            allowed = self.last_cut + self.p["reduce_period_us"]
            if now < allowed:
                self.cut_at = allowed
            else:
                self.cut(now)

    def run(self, cnps, end):
        """Events in the order of their times up to `end`."""
        cnps = list(cnps)
        while True:
            events = [(self.next_packet, 3)]
            if cnps:
                events.append((cnps[0], 4))
            if self.limited:
                events += [(self.timer_at, 0), (self.alpha_at, 1)]
            if self.cut_at is not None:
                events.append((self.cut_at, 2))
            now, what = min(events)
            if now > end:
                return
            if what == 0:
                self.timer_at += self.p["increase_timer_us"]
                self.time_stage += 1
                self.raised_by_time = True
                self.raise_rate(now)
            elif what == 1:
                self.alpha_at += self.p["alpha_timer_us"]
                self.alpha *= 1 - Fraction(self.p["gain_per_1024"], 1024)
                self.alpha = Fraction(round(self.alpha * 2**60), 2**60)
            elif what == 2:
                self.cut(now)
            elif what == 3:
                if self.limited:
                    self.bytes += self.size
                    while self.bytes >= self.p["byte_counter"]:
                        self.bytes -= self.p["byte_counter"]
                        self.byte_stage += 1
                        self.raised_by_bytes = True
                        self.raise_rate(now)
                self.next_packet = now + Fraction(self.size * 8 * 1000) / self.rate
                self.next_packet = Fraction(round(self.next_packet * 10**6), 10**6)
            else:
                self.notified(cnps.pop(0))

    def bounds(self, begin, end):
        """Least and highest rate in a time."""
        inside = [r for t, r in self.history if begin < t < end]
        before = [r for t, r in self.history if t <= begin]
        return min(inside + before[-1:]), max(inside + before[-1:])


    def drained_at(self):
        """Times at which the rate has been below that of the line for so long that what had been started before has
        left: until then the line is still full. As a list of (from, drained)."""
        out, left = [], Fraction(0)
        ends = [t for t, _ in self.history[1:]] + [Fraction(10**9)]
        for (t, rate), end in zip(self.history, ends):
            if rate == LINE:
                left = Fraction(BACKLOG * 8000)
            elif left > 0:
                gone = left / (LINE - rate)
                out.append((t, min(end, t + gone)))
                left = max(Fraction(0), left - (LINE - rate) * (end - t))
        return out


def run(program, folder, plan, options, settings, name="run", verb="write"):
    files = {end: os.path.join(folder, name + end) for end in (".toml", ".pcap", ".json")}
    with open(files[".toml"], "w") as f:
        f.write(plan)
    command = [program, "bandwidth", "--verb", verb, "--sizes", "65536", "--faults", files[".toml"],
               "--pcap", files[".pcap"], "--json", files[".json"], "--overwrite", "--quiet"] + options
    for key, value in settings.items():
        command += ["--set", "%s=%s" % (key, str(value).lower())]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit("%s: exit status %d: %s" % (" ".join(command), done.returncode, done.stderr))
    return files


def enabled(values=None):
    settings = {"adapter.congestion.%s.priorities" % point: 1 for point in ("reaction", "notification")}
    for key, value in (values or {}).items():
        settings["adapter.congestion.reaction." + key] = value
    return settings


def split(capture):
    """Data packets as (time in us, bytes on the line) and times of CNPs, from a capture without VLAN over IPv4."""
    data, cnps = [], []
    for time, frame in records(capture):
        opcode = frame[42]
        if opcode in (0x06, 0x07, 0x08, 0x0a):
            data.append((Fraction(time, 1000), len(frame) + OVERHEAD))
        elif opcode == 0x81:
            cnps.append(Fraction(time, 1000))
    return data, cnps


def measured(data, begin, end):
    """Rate on the line and number of packets of [begin, end)."""
    inside = [(t, n) for t, n in data if begin <= t < end]
    if len(inside) < 4:
        return None, len(inside)
    return sum(n for _, n in inside[:-1]) * 8 * 1000 / (inside[-1][0] - inside[0][0]), len(inside)


def mark(first, last):
    return ('[[event]]\ndirection = "a_to_b"\nopcode = "rdma_write"\nflow = 1\nfirst = %d\nlast = %d\n'
            'type = "mark_congestion"\n' % (first, last))


def check_example(program, folder, complain):
    """Calibration 7.6: 40 -> 20 -> 30, 35, 37.5, 38.75, 39.375 Gb/s; 98.4 % after 275 us."""
    files = run(program, folder, mark(300, 300), ["--messages", "60", "--mtu", "1024"], enabled())
    data, cnps = split(files[".pcap"])
    if len(cnps) != 1:
        return complain("one mark, %d CNPs" % len(cnps))
    start = cnps[0] + CNP_DELAY
    steps = [40.0, 20.0, 30.0, 35.0, 37.5, 38.75, 39.375]
    for i, expected in enumerate(steps):
        begin, end = (start - 50, start) if i == 0 else (start + 55 * (i - 1), start + 55 * i)
        # Packets that had been started before are still on their way: 16 in the gather queue, 16 in the egress queue.
        got, packets = measured(data, begin + (12 if i == 1 else 2), end - 1)
        if got is None or abs(got / 1e6 - expected) > expected * 0.005:
            complain("worked example, step %d: %s Gb/s instead of %s" % (i, got and float(got) / 1e6, expected))


def compare(what, data, cnps, p, complain):
    """Mean rate of every 20 us against the highest and least rate of the pseudo code about that time."""
    size = max(n for _, n in data)
    flow = Flow(p, size, data[0][0])
    flow.run([t + CNP_DELAY for t in cnps], data[-1][0])
    compared, draining = 0, flow.drained_at()
    t = data[0][0] + 30
    while t + 40 < data[-1][0]:
        width = Fraction(20)
        got, packets = measured(data, t, t + width)
        if got is None:  # slow: four packets need more time
            width = Fraction(400)
            got, packets = measured(data, t, t + width)
        recent = [c for c in cnps if t - 14 < c < t + width]
        if got is not None and not recent and t + width < data[-1][0]:
            low, high = flow.bounds(t - 8, t + width + 2)
            # The wait for payload differs by up to 0.7 us from packet to packet: a translation may be missing.
            blur = 1 + Fraction(7, 10) / (width * Fraction(packets - 1, packets)) + Fraction(2, 1000)
            if any(begin < t + width and t < end + 8 for begin, end in draining):
                high = LINE
            if not low / blur <= got <= min(high, LINE) * blur:
                complain("%s: %.1f us: %.3f Gb/s, the pseudo code has %.3f to %.3f" %
                         (what, float(t), float(got) / 1e6, float(low) / 1e6, float(high) / 1e6))
            compared += 1
        t += width
    return compared, min(r for _, r in flow.history)


def check_pseudo_code(program, folder, complain):
    compared, lowest = 0, LINE
    for seed in range(8):
        chance = random.Random(seed)
        p = dict(PAPER)
        if seed > 0:
            p.update(gain_per_1024=chance.choice([4, 16, 128]), initial_alpha=chance.choice([1024, 600, 100]),
                     alpha_timer_us=chance.choice([10, 55]), increase_timer_us=chance.choice([30, 55, 90]),
                     byte_counter=chance.choice([150_000, 400_000, 10_000_000]), threshold=chance.choice([1, 3, 5]),
                     additive_mbps=chance.choice([40, 300]), hyper_mbps=chance.choice([200, 1000]),
                     min_rate_mbps=chance.choice([1000, 3000]), reduce_period_us=chance.choice([0, 4, 70]),
                     min_decrease_percent=chance.choice([50, 70]), decrease_shift=chance.choice([11, 12]),
                     first_cnp_percent=chance.choice([0, 25]), clamp_target=chance.random() < 0.5,
                     clamp_target_after_timer=chance.random() < 0.5)
        plan = "".join(mark(first, first + chance.randint(0, 400)) for first in (400, 1500, 2600))
        files = run(program, folder, plan, ["--messages", "90", "--mtu", "1024"], enabled(p))
        data, cnps = split(files[".pcap"])
        n, least = compare("seed %d" % seed, data, cnps, p, complain)
        compared, lowest = compared + n, min(lowest, least)
    files = run(program, folder, mark(400, 400) + mark(1500, 2200),
                ["--messages", "70", "--mtu", "1024", "--config", VENDOR], enabled())
    data, cnps = split(files[".pcap"])
    compared += compare("vendor", data, cnps, dict(PAPER, **VENDOR_VALUES), complain)[0]
    if compared < 300 or lowest > 4_000_000:
        complain("only %d times compared, down to %.1f Gb/s" % (compared, float(lowest) / 1e6))
    return compared


def check_cnp(program, folder, complain):
    """Every packet has a good ICRC, and the CNP is the one that scapy builds. False: no scapy."""
    files = run(program, folder, mark(20, 20), ["--messages", "4"], enabled())
    found = []
    for _, frame in records(files[".pcap"]):
        fault = icrc_fault(frame)
        if fault:
            complain("CNP run: " + fault)
        if frame[42] == 0x81:
            found.append(frame)
    if len(found) != 1:
        complain("one mark, %d CNPs" % len(found))
        return True
    try:
        from scapy.contrib.roce import BTH, cnp
        from scapy.layers.inet import IP, UDP
        from scapy.layers.l2 import Ether
    except ImportError:
        return False
    seen = Ether(found[0])
    if BTH not in seen or seen[BTH].opcode != 0x81:
        complain("scapy does not see a CNP")
        return True
    expected = (Ether(src=seen.src, dst=seen.dst) /
                IP(src=seen[IP].src, dst=seen[IP].dst, tos=0xc2, ttl=64, id=0, flags="DF") /
                UDP(sport=seen[UDP].sport, dport=4791, chksum=0) / cnp(dqpn=seen[BTH].dqpn))
    if bytes(expected) != found[0]:
        complain("scapy builds %s, on the wire is %s" % (bytes(expected).hex(), found[0].hex()))
    return True


def check_standing(program, folder, complain):
    """The same frames at the same times, however the simulation is run; with losses and marks in both directions."""
    plan = "seed = 3\n[rates]\nmark_congestion = 3.0\ndrop = 0.2\n"
    settings = enabled({"min_rate_mbps": 1000, "byte_counter": 300_000})
    for verb in ("write", "read"):
        options = ["--messages", "90", "--qps", "3", "--bidirectional"]
        captures = []
        for variant in [{}, {"sim.always_tick": True}, {"sim.shuffle_seed": 7}, {"sim.run_ahead": False},
                        {"sim.always_tick": True, "sim.shuffle_seed": 99, "sim.run_ahead": False}]:
            files = run(program, folder, plan, options, dict(settings, **variant), verb=verb)
            with open(files[".pcap"], "rb") as f:
                captures.append(f.read())
            if captures[-1] != captures[0]:
                complain("%s: the capture differs with %s" % (verb, variant))
        cnps = captures[0].count(bytes.fromhex("8100ffff40"))
        if cnps < 20:
            complain("%s: only %d CNPs in the run that is compared" % (verb, cnps))


def check_soak(program, folder, complain):
    """All verbs over many queue pairs while flows are slowed down, some of them to the least rate."""
    plan = os.path.join(folder, "soak.toml")
    with open(plan, "w") as f:
        f.write("[rates]\nmark_congestion = 2.0\ndrop = 0.5\nreorder = 0.5\n")
    for seed in (1, 2):
        command = [program, "soak", "--messages", "3000", "--qps", "16", "--seed", str(seed), "--faults", plan,
                   "--quiet", "--json", os.path.join(folder, "soak.json"), "--overwrite"]
        for key, value in enabled({"min_rate_mbps": 500}).items():
            command += ["--set", "%s=%s" % (key, value)]
        done = subprocess.run(command, capture_output=True, text=True)
        with open(os.path.join(folder, "soak.json")) as f:
            result = json.load(f)
        bad = {k: result[k] for k in ("errors", "lost", "duplicated", "corrupted", "reordered", "hung") if result[k]}
        if done.returncode != 0 or bad or result["completed"] != 3000:
            complain("soak, seed %d: exit status %d, %s" % (seed, done.returncode, bad))


def main():
    faults = []
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        has_scapy = check_cnp(program, folder, faults.append)
        check_example(program, folder, faults.append)
        compared = check_pseudo_code(program, folder, faults.append)
        check_standing(program, folder, faults.append)
        check_soak(program, folder, faults.append)
    for fault in faults[:40]:
        print(fault)
    print("%d rates compared, %d faults" % (compared, len(faults)))
    if faults:
        return 1
    return 0 if has_scapy else SKIP


if __name__ == "__main__":
    sys.exit(main())
