#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs of a host that go on in the same picosecond, in networks that nobody chose: the results are those of one
activation of the kernel an instant, of hosts that are not served apart, of blocks that do not sleep, and of threads.

usage: check_equal_times.py PROGRAM [--experiments] [--networks N] [--first K] [--jobs J]

Network n is the same in every run: it has its own seed. All flows begin at the same time, and hosts have several of
them, of equal messages as a rule: their programs meet in the same instants. With --experiments the networks are those of
`rnic run`: workloads in closed, open and ping-pong loops, pauses of hosts, switches that are fast and slow, long cables.
Default: networks 0 to 11; `--networks 400` takes some minutes.
"""
import argparse
import concurrent.futures
import json
import os
import random
import subprocess
import sys
import tempfile

from nested import difference

VARIANTS = {
    "one activation an instant": ["--set", "sim.run_ahead=false"],
    "not served apart": ["--pcap", "frames.pcap"],
    "every block at every edge, in another order": ["--set", "sim.always_tick=true", "--set", "sim.shuffle_seed=7"],
    "three threads": ["--threads", "3"],
}
TOPOLOGIES = [
    ('kind = "star"\nhosts = 2', 2),
    ('kind = "star"\nhosts = 3', 3),
    ('kind = "star"\nhosts = 5', 5),
    ('kind = "dumbbell"\nleft = 2\nright = 2', 4),
    ('kind = "leaf-spine"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2', 4),
]
VERBS = {
    "rc": ["write", "send", "read", "cas", "fadd", "write_imm", "send_imm"],
    "xrc": ["write", "send", "read", "cas"],
    "uc": ["write", "send", "write_imm"],
    "ud": ["send", "send_imm"],
}
# Of the switches: room for all, few frames (loss, and repetitions), and senders that are stopped.
SWITCHES = [
    "",
    "switch.buffer.bytes = 65536\nswitch.buffer.lossy_alpha = 8\nswitch.buffer.reserved_bytes = 0",
    'switch.buffer.flow_control = "pause"\nswitch.buffer.bytes = 400000',
]


def network(number):
    """The text of its file."""
    rng = random.Random("equal times, network %d" % number)
    shape, hosts = rng.choice(TOPOLOGIES)
    text = ['duration_us = %d' % rng.choice([15, 30, 60]), 'seed = %d' % (number + 1),
            'mtu = %d' % rng.choice([512, 1024, 2048, 4096]), "", "[topology]", shape, "metres = %d" %
            rng.choice([1, 3, 3, 20]), "", "[parameters]", rng.choice(SWITCHES), ""]
    alike = rng.random() < 0.6
    mould = flow(rng)
    for _ in range(rng.choice([2, 4, 6, 9, 12])):
        ends = rng.sample(range(1, hosts + 1), 2)
        if hosts > 2 and rng.random() < 0.5:
            ends[1 if rng.random() < 0.5 else 0] = 1  # as many as possible at one host
            if ends[0] == ends[1]:
                ends[1] = 2
        text += ["[[flow]]", 'from = "h%d"' % ends[0], 'to = "h%d"' % ends[1]] + (mould if alike else flow(rng))
    return "\n".join(text) + "\n"


def flow(rng):
    transport = rng.choice(["rc", "rc", "rc", "ud", "uc", "xrc"])
    verb = rng.choice(VERBS[transport])
    size = 8 if verb in ("cas", "fadd") else rng.choice([1, 8, 64, 64, 200, 512])
    if transport != "ud" and verb not in ("cas", "fadd") and rng.random() < 0.4:
        size = rng.choice([1500, 4096, 9000, 40000])
    lines = ['transport = "%s"' % transport, 'verb = "%s"' % verb, "size = %d" % size,
             "qps = %d" % rng.choice([1, 1, 2, 3]), "depth = %d" % rng.choice([1, 1, 2, 4, 16]), "ack_timeout = 3"]
    if rng.random() < 0.3:
        lines.append("messages = %d" % rng.choice([3, 20, 60]))
    if rng.random() < 0.2:
        lines.append("rate_mbps = %d" % rng.choice([500, 1000, 4000]))
    return lines


def experiment(number):
    """The same of rnic run."""
    rng = random.Random("equal times, experiment %d" % number)
    shape, hosts = rng.choice(TOPOLOGIES)
    timed = rng.random() < 0.5
    text = ["duration_us = %d" % rng.choice([20, 50, 100])] if timed else []
    if timed and rng.random() < 0.5:
        text.append("warm_up_us = 5")
    text += ["", "[topology]", shape, "metres = %d" % rng.choice([1, 3, 3, 20, 300]), "", "[parameters]",
             rng.choice(SWITCHES)]
    if rng.random() < 0.3:
        text.append('switch.forwarding = "store_and_forward"')
    if rng.random() < 0.3:
        text.append("switch.hop_ps = %d" % rng.choice([1000, 1500, 2000, 50000, 1000000]))
    if rng.random() < 0.3:
        text.append("driver.lossless_global_pause = false")
    for _ in range(rng.choice([1, 2, 3, 5])):
        senders = rng.sample(range(1, hosts + 1), rng.choice([1, 1, 2]) if hosts > 2 else 1)
        to = rng.choice([h for h in range(1, hosts + 1) if h not in senders])
        verb = rng.choice(["write", "read", "send", "write_imm", "fadd"])
        text += ["[[workload]]", "from = [%s]" % ", ".join('"h%d"' % h for h in senders), 'to = "h%d"' % to,
                 'verb = "%s"' % verb, "size = %d" % (8 if verb == "fadd" else rng.choice([8, 64, 500, 4096, 20000]))]
        loop = rng.random()
        if loop < 0.2 and verb in ("write", "send"):
            text.append('loop = "ping-pong"')
        else:
            text.append("depth = %d" % rng.choice([1, 4, 16, 32]))
            if loop > 0.7:
                text += ['arrivals = "%s"' % rng.choice(["poisson", "deterministic"]),
                         "rate_mpps = %g" % rng.choice([0.2, 1, 3])]
        if not timed or rng.random() < 0.3:
            text.append("messages = %d" % rng.choice([5, 50, 200]))
        text.append("ack_timeout = 3")
    return "\n".join(text) + "\n"


def run(program, command, arguments, folder):
    """(results without what names the setting, what was printed), or (None, why)."""
    result = os.path.join(folder, "r.json")
    done = subprocess.run([program, command, "network.toml", "--json", result, "--overwrite", "--quiet"] + arguments,
                          capture_output=True, text=True, timeout=300, cwd=folder, check=False)
    if done.returncode not in (0, 1) or not os.path.exists(result):
        return None, "exit status %d: %s" % (done.returncode, done.stderr.strip()[-400:])
    with open(result, encoding="utf-8") as f:
        results = json.load(f)
    os.remove(result)
    for name in ("parameters", "set", "file", "capture"):
        results.pop(name, None)
    return results, "%d %s" % (done.returncode, done.stdout)


def text_of(command, number):
    return network(number) if command == "fabric" else experiment(number)


def check(program, command, number):
    """(lines that say what differs, messages that were sent)"""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "network.toml"), "w", encoding="utf-8") as f:
            f.write(text_of(command, number))
        normal, said = run(program, command, [], folder)
        if normal is None:
            return ["network %d: %s" % (number, said)], 0
        faults = []
        for name, arguments in VARIANTS.items():
            other, text = run(program, command, arguments, folder)
            if other is None:
                faults.append("network %d: %s: %s" % (number, name, text))
                continue
            lines = difference(normal, other) or (["the text"] if text != said else [])
            if lines:
                faults.append("network %d: %s: %d differences: %s" % (number, name, len(lines), "; ".join(lines[:6])))
        return faults, sum(f.get("completed", 0) for f in normal["flows" if command == "fabric" else "workloads"])


def main():
    options = argparse.ArgumentParser()
    options.add_argument("program")
    options.add_argument("--networks", type=int, default=12)
    options.add_argument("--first", type=int, default=0)
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--show", action="store_true", help="the file of network --first, and nothing else")
    options.add_argument("--experiments", action="store_true", help="of rnic run, in place of rnic fabric")
    o = options.parse_args()
    command = "run" if o.experiments else "fabric"
    if o.show:
        print(text_of(command, o.first), end="")
        return 0
    faulty = messages = 0
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        numbers = range(o.first, o.first + o.networks)
        for lines, sent in pool.map(lambda n: check(os.path.abspath(o.program), command, n), numbers):
            for line in lines:
                print(line, flush=True)
            faulty += len(lines) != 0
            messages += sent
    print("%d networks, %d messages, %d with a fault" % (o.networks, messages, faulty))
    if messages < 20 * o.networks:
        print("too few messages for a test")
        return 1
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
