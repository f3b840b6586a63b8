#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Law 3 with parameters that nobody chose: sleeping blocks, blocks ticked at every edge and another order of
construction give the same results and the same counters, whatever the widths, depths and sizes of the adapter.

usage: check_random_parameters.py PROGRAM [--sets N] [--first K] [--jobs J]

Set n is the same in every run: it has its own seed. Default: sets 0 to 3; `--sets 100` is the whole list. From 100 on
some or most of what is counted is 1, 2 or 3: what seldom waits, waits there.
"""
import argparse
import concurrent.futures
import json
import os
import random
import re
import subprocess
import sys
import tempfile

from nested import difference

# Short runs that between them use every block: loss, repetitions, NAKs and RNR; many queue pairs over few units; READs
# and atomics; datagrams; shared receive queues; pauses of a receiver that is too slow.
RUNS = [
    ["soak", "--messages", "60", "--qps", "6", "--drop", "2", "--duplicate", "1", "--reorder", "2", "--corrupt", "1",
     "--largest", "5000", "--ack-timeout", "3"],
    ["soak", "--messages", "160", "--qps", "64", "--depth", "4", "--largest", "1500", "--ack-timeout", "4"],
    ["soak", "--messages", "60", "--qps", "5", "--verbs", "read,cas,fadd", "--drop", "3", "--largest", "9000",
     "--ack-timeout", "3", "--mtu", "1024"],
    ["bandwidth", "--verb", "send", "--qps", "8", "--messages", "64", "--sizes", "64,3000", "--rx-depth", "2"],
    ["bandwidth", "--transport", "xrc", "--verb", "send_imm", "--qps", "6", "--messages", "48", "--sizes", "64,3000",
     "--rx-depth", "2"],
    ["bandwidth", "--transport", "ud", "--verb", "send", "--qps", "4", "--messages", "80", "--sizes", "64,2000",
     "--bidirectional"],
    ["bandwidth", "--transport", "uc", "--verb", "write_imm", "--qps", "4", "--messages", "64", "--sizes", "64,9000"],
    ["bandwidth", "--verb", "write", "--qps", "4", "--messages", "64", "--sizes", "64,9000", "--bidirectional",
     "--set", "adapter.port.ingress_bytes=20000", "--set", "adapter.port.xoff_bytes=9000", "--set",
     "adapter.port.xon_bytes=5000", "--set", "adapter.responder.beat_overhead_cycles=200"],
]
# For the sets from 100 on: queue pairs that take turns, descriptors that are read and stored, more than one thing at once.
NARROW_RUNS = RUNS + [
    ["soak", "--messages", "600", "--qps", "24", "--largest", "6000", "--port", "1,2"],
    ["bandwidth", "--verb", "write", "--qps", "24", "--depth", "8", "--messages", "160", "--sizes", "300", "--bidirectional"],
    ["bandwidth", "--verb", "read", "--qps", "12", "--depth", "4", "--messages", "96", "--sizes", "64,2500", "--bidirectional"],
    ["bandwidth", "--verb", "send", "--inline", "200", "--qps", "12", "--depth", "8", "--messages", "96", "--sizes", "20,150",
     "--set", "driver.blue_flame=all", "--bidirectional"],
    ["bandwidth", "--verb", "fadd", "--qps", "12", "--depth", "4", "--messages", "96", "--bidirectional"],
]
FIRST_NARROW = 100
VARIANTS = {
    "every block at every edge": ["sim.always_tick=true"],
    "another order of construction": ["sim.shuffle_seed=%d"],
    "both, one activation an instant": ["sim.always_tick=true", "sim.shuffle_seed=%d", "sim.run_ahead=false"],
}
# Not the adapter's, or they make it another device; times that would make a run long, not different.
LEFT_ALONE = re.compile(r"^(sim\.|rtl\.|a\.rtl\.|b\.rtl\.|tlm\.|adapter\.identity\.|adapter\.ports$|cable\.|host\.memory\.|driver\.log_|"
                        r"driver\.large_cqe|driver\.mr_page_shift|driver\.memlock|adapter\.pcie\.(msix_vectors|completion_timeout_ps)|"
                        r"adapter\.port\.(mtu|default_priority|roce_v2|xoff_bytes|xon_bytes|ingress_bytes)|"
                        r"adapter\.requester\.timers\.entries)")
# At most twice as slow: a run with every block at every edge costs what it takes in simulated time.
SLOW = re.compile(r"_(ps|ns|khz|us|mbps|permille|percent)$|cycles$|timers\.granularity|"
                  r"datapath_bytes$|pcie\.(generation|width)$")
# 0 is what the adapter has; some clocks have edges in common with its or with the host's.
OF_THE_PCIE_CORE = {"adapter.pcie.core_khz": ["125000", "213500", "250000", "427000", "500000", "1000000"],
                    "adapter.pcie.interface_bytes": ["8", "15", "23", "32"]}
CROSSING = ("adapter.pcie.core_khz", "adapter.pcie.crossing_packets", "adapter.pcie.synchroniser_stages")
PARAMETER = re.compile(r'^([a-z0-9_.]+) = ("?)([^" ]+)"?  # (.*)$')


def parameters(program):
    """[(path, value, the choices named in the comment)]"""
    done = subprocess.run([program, "parameters"], capture_output=True, text=True, check=True)
    out = []
    for line in done.stdout.splitlines():
        m = PARAMETER.match(line)
        if m and not LEFT_ALONE.match(m.group(1)):
            choices = re.findall(r"[a-z_0-9]+", m.group(4).rsplit(": ", 1)[-1]) if m.group(2) else []
            out.append((m.group(1), m.group(3), [c for c in choices if c != "or"]))
    return out


def draw(rng, path, value, choices):
    """Another value around the profile's."""
    if path == "host.jitter.law":  # a read of the e3's may take milliseconds
        return rng.choice(["none", "exponential", "e5"])
    if choices:
        return rng.choice(choices)
    if path in OF_THE_PCIE_CORE:
        return rng.choice(OF_THE_PCIE_CORE[path])
    if value in ("true", "false"):
        return rng.choice(["true", "false"])
    v = int(value)
    if v == 0:
        return str(rng.choice([0, 1, 7, 60]))
    if SLOW.search(path):
        return str(rng.choice([max(1, (v + 1) // 2), max(1, v - 1), v + 1, v + 7, v * 2]))
    return str(rng.choice([1, 2, 3, max(1, v // 8), max(1, v // 4), max(1, v // 2), max(1, v - 1), v + 1, 2 * v]))


def narrow(rng, known):
    """Some or most of what is counted is few; some other values as well."""
    counted = [p for p in known if p[1].isdigit() and int(p[1]) > 1 and not SLOW.search(p[0]) and p[0] not in OF_THE_PCIE_CORE]
    settings = {p: draw(rng, p, v, c) for p, v, c in rng.sample(known, 12)}
    share = rng.choice([0.05, 0.1, 0.3, 0.7])  # what is narrow everywhere waits at one place only
    settings.update({p: str(rng.choice([1, 2, 3])) for p, _, _ in counted if rng.random() < share})
    return settings


def run(program, arguments, settings, folder):
    """(results without the echo of the parameters, what was printed), or (None, why it was refused)."""
    file = os.path.join(folder, "r.json")
    command = [program] + arguments + ["--json", file, "--overwrite", "--quiet"]
    for s in settings:
        command += ["--set", s]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        return None, "timeout"
    if done.returncode == 2:
        return None, done.stderr.strip()
    if not os.path.exists(file):
        return None, "exit status %d: %s" % (done.returncode, done.stderr.strip())
    with open(file) as f:
        result = json.load(f)
    os.remove(file)
    for name in ("parameters", "set", "file"):  # how it was asked for
        result.pop(name, None)
    for row in result.get("rows", []):
        row.pop("simulator", None)  # what the run cost is what differs
    return result, done.stdout


def legal(program, known, number, folder):
    """The settings of set `number`: those that are refused together with others are left out by name."""
    rng = random.Random("law 3, set %d" % number)
    chosen = rng.sample(known, rng.choice([4, 8, 16, 32, 64]))
    if number % 2 == 1:  # a clock more, and its crossing
        chosen += [p for p in known if p[0] in CROSSING and p not in chosen]
    settings = {path: draw(rng, path, value, choices) for path, value, choices in chosen}
    if number >= FIRST_NARROW:
        settings = narrow(rng, known)
    if number % 3 == 1:  # host memory behind an IOMMU that has too little of everything, and with jitter
        settings.update({p: draw(rng, p, v, c) for p, v, c in known if p.startswith(("host.iommu.", "host.jitter."))})
        settings["host.iommu.enable"] = "true"
        settings.update({"host.iommu.entries": str(8 * rng.choice([1, 2, 4])), "host.iommu.ways": rng.choice("1248")})
        settings["host.jitter.law"] = rng.choice(["exponential", "e5"])
    while True:
        done = subprocess.run([program, "latency", "--sizes", "2", "--iterations", "1", "--quiet"] +
                              [w for p, v in settings.items() for w in ("--set", "%s=%s" % (p, v))],
                              capture_output=True, text=True, timeout=60)
        if done.returncode != 2:
            return settings
        named = [p for p in settings if p in done.stderr]
        if not named:  # the block names itself and the end of the path: the driver's or the adapter's words
            named = [p for p in settings if p.rsplit(".", 1)[-1] in done.stderr] or list(settings)
        for p in named[:1]:  # where so few are refused, the least that is legal
            least = re.search(re.escape(p) + r".*expected (\d+) to", done.stderr)
            if number >= FIRST_NARROW and least and settings[p] != least.group(1):
                settings[p] = least.group(1)
            else:
                del settings[p]


def check_set(program, known, number):
    """Lines that say what differs, the last of them how to run it; none when all is well."""
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        settings = ["%s=%s" % s for s in legal(program, known, number, folder).items()]
        runs = NARROW_RUNS if number >= FIRST_NARROW else RUNS
        arguments = runs[number % len(runs)]
        name = "set %d" % number
        command = "%s: %s %s" % (name, " ".join(arguments), " ".join("--set " + s for s in settings))
        normal = run(program, arguments, settings, folder)
        if normal[0] is None:
            return ["%s: %s" % (name, normal[1]), command]
        for variant, more in VARIANTS.items():
            other = run(program, arguments, settings + [m % (number + 1) if "%" in m else m for m in more], folder)
            if other[0] is None:
                faults.append("%s: %s: %s" % (name, variant, other[1]))
                continue
            lines = difference(normal[0], other[0])
            if not lines and normal[1] != other[1]:
                lines = ["the text"]
            if lines:
                faults.append("%s: %s: %d differences: %s" % (name, variant, len(lines), "; ".join(lines[:8])))
    return faults + [command] if faults else []


def main():
    options = argparse.ArgumentParser()
    options.add_argument("program")
    options.add_argument("--sets", type=int, default=4)
    options.add_argument("--first", type=int, default=0)
    options.add_argument("--jobs", type=int, default=1)
    o = options.parse_args()
    known = parameters(o.program)
    if len(known) < 150:
        raise SystemExit("only %d parameters were found" % len(known))
    faults = 0
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        for lines in pool.map(lambda n: check_set(o.program, known, n), range(o.first, o.first + o.sets)):
            for line in lines:
                print(line, flush=True)
            faults += len(lines) != 0
    print("%d parameter sets, %d with a fault" % (o.sets, faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
