#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `rnic bandwidth` says limits a run, of runs that nobody chose: drawn at random, and proven by perturbation.

usage: draw.py PROGRAM [--seed N] [--count N] [--only I,...] [--mild | --plain] [--allowed PERCENT] [--json FILE] [--jobs N]
               [--verbose]

A run is drawn from verbs, transports, sizes, queue pairs, depths, profiles, up to three parameters, loss, guests, ports
and networks; the same ones come for a seed. It is flagged when more of what is named does not raise the rate, or more
of something else raises it by more than STILL. Of what no more is to be had, less must lower it. All others are given
more of together first, and one by one only when that raises the rate. The exit status is 1 when more than the allowed
share is flagged.

Of "A and B" more of both is given, and each of them must be a part of what that gives.

Three allowances, without which a right answer would be flagged:
- a resource that is too quick by far may bring others to collapse (retries, pauses). More of the named one is therefore
  tried in a small step as well.
- of what is so many at once for as long as each takes (a window, tags, fetches), what shortens that time gives a share:
  up to half of what more of the named one gives. `--strict` flags that as well.
- of contexts: what posts more at a time, since several messages go with an entry, and the work of the engine that stands
  still for them, which is the rest of its time (BESIDE). `--strict` flags that as well.
"""
import argparse
import concurrent.futures
import json
import os
import random
import sys
import tempfile

from relaxations import NEXT, RELAXED, RISE, STILL, Refused, key_of, parts_of, relaxations, relaxed, run, same

R, P = "adapter.requester.", "adapter.responder."
SMALL_RISE = 0.01
IN_VAIN = 0.002  # what a part of "A and B" must add at least
# What a drawn run may be limited by beside what the standing table has, before the entries there of which a name begins
# with the same words.
FURTHER = {
    # Of the widest one of the last generation only what its data link layer takes is left.
    "PCIe, ": {"adapter.pcie.width": 2, "adapter.pcie.generation": NEXT, "adapter.pcie.dll_efficiency_permille": 2},
    "contexts of completion": {"adapter.completion.cq_cache.entries": 8},
    "packets under way": {R + "max_unacked_packets": 4},
    "translation": {"adapter.translation.translate_cycles": 0.5},
    # Its number of engines, and how long each takes.
    "atomic unit engine": {**RELAXED["atomic unit engine"], **RELAXED["order of a queue pair's atomics"]},
    "iommu": {"host.iommu.entries": 16, "host.iommu.walkers": 4, "host.iommu.lookup_cycles": 0.5},
    "rate limit": {"adapter.congestion.reaction.max_rate_mbps": 2},
    "pauses": {"adapter.port.ingress_bytes": 4},
    "pcie issue": {"adapter.pcie.core_khz": 2},
    "responder slots": {P + "slots": 4},
    "receive fetch": {P + "receive_fetches": 4, P + "receive_prefetch": 4, P + "receive_lines": 4},
}
# An engine's time for a packet is its cycles and the beats of the packet: more of what is named is both.
BEATS = ("requester send engine", "responder check")
# These may give as much as more entries do.
BESIDE = {"contexts": ("window", "processor", "requester send engine", "datapath")}
# Several at once, each for as long as it takes.
AT_ONCE = ("window", "contexts", "histories", "atomic unit", "order of", "READs under way", "PCIe tags", "PCIe credits",
           "receives", "receivers", "message table", "packets under way", "payload reads", "descriptor fetch")
NETWORKS = {
    "star": 'kind = "star"\nrate_mbps = %u\nhosts = 4\n',
    "dumbbell": 'kind = "dumbbell"\nrate_mbps = %u\nleft = 4\nright = 4\n',
}
# Of "contended" the last host is written to by all others as well.
FLOWS = '[parameters]\nswitch.buffer.flow_control = "pause"\n[[flow]]\nfrom = %s\nto = "%s"\n'
PLANS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "faults", "plans")
# Parameters, and values of which one is drawn.
SETTINGS = [
    (R + "processing_units", 1, 2, 3, 4, 16), (R + "gather_cycles", 5, 40, 90, 150), (R + "wqe_cycles", 20, 150, 300, 900),
    (R + "contexts.entries", 16, 64), (R + "miss_stall_cycles", 0, 50, 400), (R + "outstanding_entries", 8, 16, 64),
    (R + "gather_depth", 2, 4), (R + "turn_wqes", 1, 4), (R + "read_request_cycles", 60, 150),
    (R + "max_unacked_packets", 8, 32), (R + "translation_blocks", "false"),
    (P + "contexts.entries", 16, 64), (P + "write_cycles", 60, 200), (P + "receive_cycles", 60, 150),
    (P + "read_cycles", 50, 150), (P + "read_packet_cycles", 40, 120), (P + "atomics.in_flight", 2, 8),
    (P + "atomics.lock_buckets", 1, 4, 64), (P + "receive_prefetch", 1, 2), (P + "read_gathers", 2, 4),
    (P + "ack_cycles", 60, 150), (P + "slots", 8, 16),
    ("host.posted_data", 32, 64, 128), ("host.posted_headers", 2, 4, 8), ("host.non_posted_headers", 1, 2, 4, 8),
    ("host.llc_read_ps", 90000, 400000, 1000000, 3000000), ("host.iommu.enable", "true"), ("host.buffers", "dram", "remote"),
    ("host.uncore_khz", 20000, 100000),
    ("adapter.pcie.tags", 1, 2, 4, 8, 16), ("adapter.pcie.width", 1, 2, 4, 16), ("adapter.pcie.generation", 1, 2, 4),
    ("adapter.pcie.reads_per_client", 1, 2, 4), ("adapter.pcie.core_khz", 125000, 250000),
    ("adapter.pcie.interface_bytes", 4, 8), ("adapter.pcie.dll_efficiency_permille", 500),
    ("adapter.port.rate_mbps", 10000, 25000, 56000, 100000, 200000), ("adapter.port.egress_frames", 2, 4),
    ("adapter.port.ingress_bytes", 20000), ("adapter.datapath_bytes", 4, 8, 32, 64),
    ("adapter.clock_khz", 156250, 250000, 700000), ("adapter.completion.cqe_cycles", 30, 80),
    ("adapter.scheduler.grant_cycles", 50, 150), ("adapter.scheduler.descriptors", 32),
    ("adapter.doorbell.bf_line_cycles", 40, 80), ("adapter.shared_read_engine", "false"), ("adapter.channel_depth", 2, 4),
    ("adapter.translation.translate_cycles", 40, 100), ("adapter.congestion.reaction.max_rate_mbps", 1000),
    ("driver.post_send_ns", 5, 20, 120, 300), ("driver.poll_ns", 5, 100, 400), ("driver.post_recv_ns", 150, 400),
]
SIZES = (2, 3, 8, 17, 32, 64, 64, 100, 128, 200, 256, 300, 333, 512, 777, 1000, 1024, 1500, 2047, 2048, 2049, 4096, 4097,
         5000, 8192, 10000, 16384, 20001, 32768, 65536)


def drawn_traffic(rng):
    verb = rng.choice(["write"] * 5 + ["read"] * 3 + ["send"] * 4 + ["fadd", "cas", "write_imm", "send_imm"])
    one_way = verb in ("write", "send", "write_imm", "send_imm")
    transport = rng.choice(["rc"] * 4 + ["uc", "ud" if verb.startswith("send") else "uc", "xrc"]) if one_way else \
        rng.choice(["rc"] * 9 + ["xrc"])
    mtu = rng.choice((256, 512, 1024, 2048, 2048, 2048, 4096, 4096))
    size = 8 if verb in ("fadd", "cas") else rng.choice(SIZES)
    if transport == "ud":
        size = min(size, mtu)
    qps = rng.choice((1, 1, 2, 3, 4, 7, 8, 12, 16, 16, 24, 32, 64, 100, 200, 256, 300, 512))
    depth = rng.choice((1, 2, 3, 4, 8, 16, 32, 64, 128, 128, 128))
    a = ["--verb", verb, "--transport", transport, "--sizes", str(size), "--qps", str(qps), "--depth", str(depth),
         "--mtu", str(mtu)]
    if verb in ("read", "fadd", "cas") and rng.random() < 0.4:
        a += ["--outs", str(rng.choice((1, 2, 4, 8)))]
    if verb in ("send", "write_imm", "send_imm") and rng.random() < 0.3:
        a += ["--rx-depth", str(rng.choice((1, 2, 4, 8, 16, 64)))]
    if rng.random() < 0.3:
        a += ["--inline", str(rng.choice((32, 64, 128, 220, 400)))]
    if rng.random() < 0.2 and qps * depth <= 4096:
        a += ["--bidirectional"]
    # Enough that the beginning does not count, and not so much that a run takes long. What nobody acknowledges must be
    # several times what lies in the buffers of the port.
    messages = min(max(1500, min(4 * qps * depth, 6000)), max(250, 2 * qps, 24000000 // size))
    unreliable = transport in ("uc", "ud") and qps < 100
    return a + ["--messages", str(messages * (16 if size <= 256 else 4) if unreliable else messages)]


def drawn_place(rng, transport):
    """Where the queue pairs are: mostly one adapter at either end of a cable. Frames that are lost are the same ones in
    all runs (not at random: whether a time-out is among what is lost would count for more than any resource)."""
    x = rng.random()
    if x < 0.04:
        return ["--faults", os.path.join(PLANS, rng.choice(("drop_one.toml", "drop_again.toml")))]
    if x < 0.08:
        return ["--functions", "2", "--function", str(rng.choice((1, 2)))]
    if x < 0.11 and transport != "ud":
        return ["--bond", rng.choice(("active-backup", "balance-xor", "ecmp"))]
    if x < 0.14:
        return ["--port", "1,2"]
    if x < 0.19:
        return ["--topology", "%s@40000" % rng.choice(("star", "dumbbell", "contended"))]
    return []


def plain(seed, index):
    """What one would ask for first: RC, a verb and a size, queue pairs and depth, parameters as they are."""
    rng = random.Random(seed * 7919 + index)
    verb = rng.choice(("write", "write", "read", "read", "send", "send", "write_imm", "send_imm", "fadd", "cas"))
    size = 8 if verb in ("fadd", "cas") else rng.choice((2, 64, 128, 256, 512, 1024, 2048, 4096, 16384, 65536))
    qps, depth = rng.choice((1, 1, 2, 4, 8, 16, 64, 256)), rng.choice((1, 2, 8, 16, 64, 128))
    a = ["--verb", verb, "--transport", "rc", "--sizes", str(size), "--qps", str(qps), "--depth", str(depth), "--mtu",
         str(rng.choice((1024, 2048, 4096)))]
    if rng.random() < 0.3:
        a += ["--profile", "connectx5_100g"]
    if rng.random() < 0.2:
        a += ["--bidirectional"]
    # Four windows, of which the program takes some eight by itself, or 24 MB.
    return a + ["--messages", str(min(max(1500, min(4 * qps * depth, 24000)), max(250, 2 * qps, 24000000 // size)))]


def drawn(seed, index, mild=False):
    rng = random.Random(seed * 100003 + index)
    a = drawn_traffic(rng)
    if rng.random() < 0.45:
        a += ["--profile", "connectx5_100g"]
    if rng.random() < 0.15:
        a += ["--cable", str(rng.choice((30, 100, 500, 2000)))]
    for name, *values in rng.sample(SETTINGS, rng.choice((0, 1) if mild else (0, 1, 1, 1, 2, 2, 3))):
        a += ["--set", "%s=%s" % (name, rng.choice(values))]
    place = [] if mild else drawn_place(rng, a[3])
    return (a if "--topology" not in place else [x for x in a if x != "--bidirectional"]) + place


def given(arguments, folder):
    """With files in the place of "star@40000"."""
    out = list(arguments)
    if "--topology" not in out:
        return out
    at = out.index("--topology") + 1
    shape, rate = out[at].split("@")
    text = "[topology]\n" + NETWORKS["star" if shape == "contended" else shape] % int(rate)
    if shape == "contended":
        text += FLOWS % ('["h2", "h3"]', "h4")
    out[at] = os.path.join(folder, "%s_%s.toml" % (shape, rate))
    with open(out[at], "w") as f:
        f.write("duration_us = 1000\n" + text)
    return out


def a_little(factor):
    return 1.05 if factor > 1 else 0.95


def less(factor):
    return 1 / factor


class scenario:
    def __init__(self, program, arguments, folder):
        self.program, self.arguments, self.folder = program, arguments, folder
        self.rate, self.named, self.values, _ = run(program, given(arguments, folder))
        self.known = list(FURTHER.items()) + [x for x in relaxations(self.named) if x[0] not in FURTHER and x[0] != "PCIe"]
        self.settings = dict(self.known)
        self.keys = [key_of(part.replace("datapath: ", ""), self.known) for part in parts_of(self.named)]
        self.gains = {}
        self.loss = 0  # with less of what is named, where no more is to be had

    def gain(self, names, step=None):
        """Of more of all of these; None when there is none to have. `step`: another factor than the usual one."""
        out = self.arguments
        for name in names:
            settings = self.settings[name]
            if step:
                settings = {k: step(v) for k, v in settings.items() if isinstance(v, (int, float))}
            out = relaxed(out, self.values, settings) or out
        if out is self.arguments:
            return None
        try:
            return run(self.program, given(out, self.folder))[0] / self.rate - 1
        except Refused:
            return None if len(names) > 1 or step else 0

    def others(self, names):
        """Gains of what raises the rate. Those of which more is refused together are tried in parts."""
        gain = self.gain(names) if names else 0
        if len(names) <= 1:
            if names and gain is not None:
                self.gains[names[0]] = gain
        elif gain is None or gain > STILL:
            self.others(names[:len(names) // 2])
            self.others(names[len(names) // 2:])

    def gain_of_named(self):
        """The largest of all steps; None: more of it is not to be had."""
        steps = [self.gain(self.keys)]
        if steps[0] is not None and steps[0] > RISE:
            return steps[0]
        if any(k in BEATS for k in self.keys):
            steps.append(self.gain(self.keys + ["datapath"]))
        return max((g for g in steps if g is not None), default=None)

    def faults_of_named(self):
        named = self.gain_of_named()
        if named is None:
            self.loss = -(self.gain(self.keys, less) or 0)
            if self.loss > RISE:
                self.gains[" and ".join(self.keys)] = 0
                return []
        self.gains[" and ".join(self.keys)] = named or 0
        small = self.gain(self.keys, a_little) if (named or 0) <= RISE else None
        if (named or 0) <= RISE and (small or 0) <= SMALL_RISE:
            return ["more of it gives %+.1f %%" % (100 * (named or 0))]
        # Of "A and B" each must be a part.
        in_vain = []
        for key in set(self.keys) if len(set(self.keys)) > 1 and (named or 0) > RISE else []:
            rest = self.gain([k for k in self.keys if k != key])
            if rest is not None and rest >= named - IN_VAIN:
                in_vain.append("%s is named in vain" % key)
        return in_vain if len(in_vain) < len(set(self.keys)) else []

    def faults(self, strict):
        if None in self.keys:
            return ["nothing is known that gives more of it"]
        found = self.faults_of_named()
        named = self.gains[" and ".join(self.keys)] or self.loss
        settings = {name for k in self.keys for name in self.settings[k]}
        self.others([r for r, _ in self.known if r not in self.keys and not set(self.settings[r]) <= settings and
                     not any(same(r, k) or r.startswith(k) for k in self.keys)])
        at_once = any(k.startswith(AT_ONCE) for k in self.keys) and not strict
        for resource, g in self.gains.items():
            beside = not strict and any(k.startswith(b) and resource in BESIDE[b] for b in BESIDE for k in self.keys)
            most = named if beside else named / 2 if at_once else 0
            if resource != " and ".join(self.keys) and g > max(STILL, most):
                found.append("more of %s gives %+.1f %%" % (resource, 100 * g))
        return found


def check(options, index):
    arguments = plain(options.seed, index) if options.plain else drawn(options.seed, index, options.mild)
    result = {"index": index, "arguments": " ".join(arguments)}
    try:
        with tempfile.TemporaryDirectory() as folder:
            s = scenario(options.program, arguments, folder)
            result["faults"] = s.faults(options.strict)
        result.update(rate_mpps=s.rate, limited_by=s.named,
                      gains={r: round(g, 4) for r, g in sorted(s.gains.items(), key=lambda x: -x[1]) if abs(g) > 0.005})
    except Refused as refusal:
        result["faults"] = ["does not run: %s" % refusal]
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100, help="runs that are drawn, some 2 s each")
    parser.add_argument("--only", default="", help="these of the seed: 3,17")
    parser.add_argument("--mild", action="store_true", help="two adapters on a cable, one parameter changed at most")
    parser.add_argument("--plain", action="store_true", help="the same with no parameter changed, RC")
    parser.add_argument("--allowed", type=float, default=5, help="per cent of the runs that may be flagged")
    parser.add_argument("--strict", action="store_true", help="nothing else may raise the rate by more than 3 %%")
    parser.add_argument("--json", default="", help="file for the results")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--verbose", action="store_true", help="print those that are right as well")
    options = parser.parse_args()
    todo = [int(x) for x in options.only.split(",")] if options.only else range(options.count)
    results = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for r in pool.map(lambda i: check(options, i), todo):
            results.append(r)
            if r["faults"] or options.verbose:
                print("%u: %s\n    %s: %s" % (r["index"], r["arguments"], r.get("limited_by"), "; ".join(r["faults"])))
            if sys.stderr.isatty():
                print("\r%u of %u " % (len(results), len(todo)), end="", file=sys.stderr)
            sys.stdout.flush()
    flagged = sum(1 for r in results if r["faults"])
    share = 100 * flagged / len(results) if results else 100
    print("seed %u: %u of %u flagged, %.1f %%; %g %% may be" % (options.seed, flagged, len(results), share, options.allowed))
    if options.json:
        with open(options.json, "w") as f:
            json.dump({"seed": options.seed, "strict": options.strict, "flagged": flagged, "runs": results}, f, indent=1)
    return 1 if share > options.allowed else 0


if __name__ == "__main__":
    sys.exit(main())
