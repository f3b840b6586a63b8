#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--set a.PATH=VALUE and b.PATH=VALUE: what a slower side changes and what it does not, the order of what is set, what is
printed and can be loaded again, two hosts of a network, a host alone, explain, and what is refused in one line.

usage: check_sides.py PROGRAM
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "fabric"), os.path.dirname(HERE)]
from faults import run_checks  # noqa: E402
from network_checks import Checks  # noqa: E402

NETWORK = """
[topology]
kind = "star"
hosts = 3
[hosts.h1]
host.llc_read_ps = 300000
"""
CLOCK_NS = 2.5  # a cycle of the adapters: what a message may wait for an edge more or less


class Sides(Checks):
    def options(self, settings):
        return [word for s in settings for word in ("--set", s)]

    def latency(self, verb, *settings, more=()):
        """Nanoseconds of one message of 64 bytes, and the counters."""
        result, _ = self.call("latency", "--verb", verb, "--sizes", "64", "--iterations", "40", *self.options(settings), *more)
        return 1000 * result["rows"][0]["typical_us"], result["statistics"], result

    def rate(self, *settings):
        """Millions of WRITEs a second from a processor that posts quickly, the counters, and what limits them."""
        result, _ = self.call("bandwidth", "--sizes", "8", "--messages", "4000", "--qps", "16", "--depth", "32", "--inline", "8",
                              *self.options(["driver.post_send_ns=10", "driver.poll_ns=10", *settings]))
        row = result["rows"][0]
        return row["rate_mpps"], result["statistics"], row["limited_by"]

    def parameters(self, *settings, more=()):
        """Path to value, as `rnic parameters` prints them."""
        _, said = self.call("parameters", *self.options(settings), *more)
        return dict(line.split("  #")[0].replace('"', "").split(" = ") for line in said.splitlines()), said


def of_side(counters, side):
    return {name: value for name, value in counters.items() if name.startswith(side + ".")}


# ---------------------------------------------------------------- what must change

def check_processors(c):
    """A host that takes 200 ns more to post makes its half of a round trip 200 ns longer: half of it 100 ns."""
    before, counters, _ = c.latency("write")
    for settings, more in ((["b.driver.post_send_ns=260"], 100), (["a.driver.post_send_ns=260"], 100),
                           (["a.driver.post_send_ns=260", "b.driver.post_send_ns=260"], 200),
                           (["driver.post_send_ns=260"], 200)):
        now, those, _ = c.latency("write", *settings)
        c.expect(abs(now - before - more) <= 2 * CLOCK_NS, "%s: %.1f ns more, expected %d" % (settings, now - before, more))
        if settings == ["b.driver.post_send_ns=260"]:
            of_a = of_side(counters, "a")
            for name in "requester.packets", "requester.completions", "responder.packets", "port1.tx_frames":
                name = "a.adapter." + name
                c.expect(of_a[name] == those[name] > 0, "a slower b: %s was %s and is %s" %
                         (name, of_a[name], those[name]))


def check_memory(c):
    """A READ has one access to memory at the host that answers, and at the one that asks none: its descriptor comes by
    the processor."""
    before, _, _ = c.latency("read")
    for setting, more in ("b.host.llc_read_ps=", 500), ("a.host.llc_read_ps=", 0), ("host.llc_read_ps=", 500):
        usual = int(c.parameters()[0]["host.llc_read_ps"])
        now, _, _ = c.latency("read", setting + str(usual + 500000))
        c.expect(abs(now - before - more) <= 2 * CLOCK_NS, "%s: READ takes %.1f ns more, expected %d" % (setting, now - before, more))


def check_clocks(c):
    """What limits short WRITEs from a quick processor is b's check of requests: it goes with b's clock. A slower clock of a
    makes a's send engine the one that limits."""
    fast, counters, limit = c.rate()
    c.expect(limit == "responder check of adapter b", "short WRITEs are limited by " + limit)
    khz = int(c.parameters()[0]["adapter.clock_khz"]) * 3 // 4
    slow_b, of_slow_b, limit = c.rate("b.adapter.clock_khz=%d" % khz)
    c.expect(abs(slow_b / fast / 0.75 - 1) < 0.015 and limit == "responder check of adapter b",
             "a slower clock of b: %.3f instead of 3/4 of %.3f million a second, limited by %s" % (slow_b, fast, limit))
    slow_a, _, limit = c.rate("a.adapter.clock_khz=%d" % khz)
    c.expect(slow_b * 1.02 < slow_a < fast * 0.98 and limit == "requester send engine of adapter a",
             "a slower clock of a: %.3f million a second, limited by %s" % (slow_a, limit))
    both, _, _ = c.rate("adapter.clock_khz=%d" % khz)
    c.expect(abs(both / slow_b - 1) < 0.005, "a slower clock of both: %.3f, of b alone %.3f" % (both, slow_b))
    for name in "requester.packets", "requester.completions", "port1.tx_frames", "pcie.dma.read_bytes":
        name = "a.adapter." + name
        c.expect(of_slow_b[name] == counters[name], "a slower clock of b: %s was %s and is %s" %
                 (name, counters[name], of_slow_b[name]))
    # What b does to post is nothing that a WRITE to it needs: a is the same to the last counter.
    _, those, _ = c.rate("b.driver.post_send_ns=999")
    c.expect(len(of_side(counters, "a")) > 100 and of_side(counters, "a") == of_side(those, "a"), "a slower processor of b moves a")


def check_network(c):
    """The two measured hosts of a network are a and b, whatever its file says of them."""
    network = ("--topology", c.file(NETWORK), "--between", "h1,h3")
    usual = int(c.parameters()[0]["host.llc_read_ps"])
    before, _, _ = c.latency("read", more=network)
    for settings, more in ((["b.host.llc_read_ps=%d" % (usual + 500000)], 500), (["a.host.llc_read_ps=%d" % (usual + 500000)], 0)):
        now, _, result = c.latency("read", *settings, more=network)
        c.expect(abs(now - before - more) <= 2 * CLOCK_NS, "%s in a network: %.1f ns more, expected %d" % (settings, now - before, more))
        c.expect(settings[0].replace("=", " = ") in result["parameters"], "%s in a network: is not printed" % settings)
    # h1 answers now: its file's 300 ns, and a's own in their place.
    back = ("--topology", network[1], "--between", "h3,h1")
    of_file, _, _ = c.latency("read", more=back)
    of_b, _, _ = c.latency("read", "b.host.llc_read_ps=800000", more=back)
    c.expect(abs(of_b - of_file - 500) <= 2 * CLOCK_NS, "b behind [hosts.h1]: %.1f ns more" % (of_b - of_file))
    c.refuse(["--set", "a.adapter.clock_khz", "no sides a and b", "[hosts.NAME]"], "fabric",
             c.file(NETWORK + '[[flow]]\nfrom = "h1"\nto = "h2"\nmessages = 1\n'), "--set", "a.adapter.clock_khz=100000")


# ---------------------------------------------------------------- what is set

def check_order(c):
    for settings, expected in ((["driver.poll_ns=1", "a.driver.poll_ns=2"], ["1", "2", None]),
                               (["a.driver.poll_ns=2", "driver.poll_ns=1"], ["1", None, None]),
                               (["a.driver.poll_ns=2", "b.driver.poll_ns=3", "a.driver.poll_ns=4"], ["40", "4", "3"]),
                               (["a.driver.poll_ns = 2"], ["40", "2", None]),
                               (["a.rtl.icrc=shadow", "rtl.icrc=rtl"], ["40", None, None])):
        found, _ = c.parameters(*settings)
        told = [found.get(p + "driver.poll_ns") for p in ("", "a.", "b.")]
        c.expect(told == expected, "%s: %s, expected %s" % (settings, told, expected))
    found, _ = c.parameters("a.rtl.icrc=shadow", "rtl.icrc=rtl")
    c.expect((found["rtl.icrc"], found["a.rtl.icrc"]) == ("rtl", "as_both"), "rtl.icrc behind a.rtl.icrc: %s" % found["a.rtl.icrc"])
    # The last one is what is built.
    usual, _, _ = c.latency("write")
    slow, _, _ = c.latency("write", "b.driver.post_send_ns=60", "driver.post_send_ns=260")
    c.expect(abs(slow - usual - 200) <= 2 * CLOCK_NS, "both behind b: %.1f ns more" % (slow - usual))


def check_again(c):
    """What is printed, and what is in a result, makes the same run."""
    settings = ["b.driver.post_send_ns=260", "adapter.clock_khz=300000", "a.adapter.clock_khz=250000", "b.adapter.requester.wqe_cycles=90"]
    _, said = c.parameters(*settings)
    _, again = c.parameters(more=("--config", c.file(said)))
    c.expect(said == again and "\na.adapter.clock_khz = 250000  # kHz; " in said, "parameters are printed otherwise when they were loaded")
    ns, _, result = c.latency("send", *settings)
    c.expect(result["parameters"] == said, "a result has other parameters than are printed")
    loaded, _, second = c.latency("send", more=("--config", c.file(result["parameters"])))
    c.expect(loaded == ns and second["rows"] == result["rows"], "a result's parameters give %.3f instead of %.3f ns" % (loaded, ns))
    # Tables of a file have no order: what is of one side stands.
    table = c.file("[a.driver]\npost_send_ns = 260\n[driver]\npost_send_ns = 60\n[b.driver]\npost_send_ns = 260\n")
    both, _, _ = c.latency("write", "driver.post_send_ns=260")
    of_file, _, _ = c.latency("write", more=("--config", table))
    c.expect(of_file == both, "a file with both sides: %.1f instead of %.1f ns" % (of_file, both))
    # The short form's file has them too.
    _, text = c.call("latency", "--sizes", "64", "--iterations", "5", "--set", settings[0], "--print")
    c.call("run", c.file(text))


def check_other_commands(c):
    result, _ = c.call("soak", "--messages", "300", "--qps", "4", "--largest", "5000", "--drop", "1", *c.options(
        ["b.adapter.clock_khz=200000", "a.adapter.responder.slots=32", "b.driver.poll_ns=400"]))
    c.expect("b.adapter.clock_khz = 200000" in result["parameters"], "soak prints no side")


def check_one_adapter(c):
    """Where one adapter works it is a: what is said of a is of it, and b has nothing that could differ."""
    for side in "a.", "":
        device = c.call("info", "--set", side + "adapter.ports=1")[0]["device"]
        c.expect(device["phys_port_cnt"] == 1, "info: %sadapter.ports=1 gives %d ports" % (side, device["phys_port_cnt"]))
    both = c.call("dma", "--sizes", "64", "--count", "200", "--set", "host.llc_read_ps=500000")[0]["rows"]
    c.expect(c.call("dma", "--sizes", "64", "--count", "200", "--set", "a.host.llc_read_ps=500000")[0]["rows"] == both,
             "dma: a.host.llc_read_ps is not host.llc_read_ps")
    capture = c.path("one.pcap")
    c.call("latency", "--sizes", "64", "--iterations", "3", "--pcap", capture)
    own = c.file("[b.driver]\npoll_ns = 50\n", "own.toml")
    for command in (["info"], ["show-gids"], ["devices"], ["devinfo"], ["devinfo", "-v"], ["ibstat"], ["ibdev2netdev"],
                    ["sysfs", c.path("class")], ["compat-gid", "-d", "eth1"], ["cma-roce-mode"], ["cma-roce-tos"], ["dma", "--sizes", "64"],
                    ["replay", capture], ["serve", "--link", "listen:unix:" + c.path("socket"), "--duration", "1"]):
        c.refuse(["--set: b.adapter.clock_khz: there is one adapter here, which is a"], *command, "--set",
                 "b.adapter.clock_khz=250000")
        c.refuse(["--set: b.rtl.icrc: there is one adapter"], *command, "--set", "b.rtl.icrc=rtl")
        c.refuse(["own.toml: b.driver.poll_ns: there is one adapter"], *command, "--config", own)
    _, said = c.call("parameters")  # has b.rtl.*, as both have it
    c.call("info", "--config", c.file(said))


def check_hosts(c):
    """A host's table takes every parameter that --set takes, but for those of what is between hosts."""
    text = 'duration_us = 20\n[[workload]]\nfrom = "h1"\nto = "h2"\n'
    _, said = c.call("parameters")
    lines = [line.split("  #")[0] for line in said.splitlines()]
    between = "a.", "b.", "cable.", "sim.", "adapter.port.rate_mbps", "adapter.port2.rate_mbps"
    own = [line for line in lines if line and not line.startswith(between)]
    c.expect(len(own) > 300, "only %d parameters of a host" % len(own))
    before, _ = c.call("run", c.file(text))
    after, _ = c.call("run", c.file(text + "[hosts.h2]\n" + "\n".join(own) + "\n"))
    c.expect(before["workloads"] == after["workloads"], "a host with every parameter as it is runs otherwise")
    slow, _ = c.call("run", c.file(text + "[hosts.h2]\nhost.llc_read_ps = 999000\n"))
    c.expect(before["workloads"] != slow["workloads"], "a host's table changes nothing")
    for setting, words in (("a.adapter.clock_khz = 250000", ["of one host, expected adapter.clock_khz"]),
                           ('b.rtl.icrc = "rtl"', ["of one host, expected rtl.icrc"]),
                           ("switch.hop_ps = 1", ["expected it in [parameters]"]),
                           ("sim.shuffle_seed = 1", ["expected it in [parameters]"]),
                           ("cable.hop_ps = 1", ["[topology] or [[cable]]"]),
                           ("adapter.port.rate_mbps = 10000", ["the rate of its cable", "rate_mbps in [topology]"]),
                           ("adapter.port2.rate_mbps = 10000", ["the rate of its cable", "rate_mbps in [topology]"])):
        path = setting.split(" ")[0]
        c.refuse(["hosts.toml: hosts.h2: " + path + ": "] + words, "run",
                 c.file(text + "[hosts.h2]\n" + setting + "\n", "hosts.toml"))
    # Of all hosts: without effect as well.
    c.refuse(["adapter.port.rate_mbps", "the rate of its cable"], "run", c.file(text), "--set", "adapter.port.rate_mbps=10000")
    # What is of a side names the table.
    for setting in "a.adapter.clock_khz=250000", "b.rtl.icrc=rtl", "a.rtl.gid=shadow":
        for command in "run", "fabric":
            name = c.file(text if command == "run" else NETWORK + '[[flow]]\nfrom = "h1"\nto = "h2"\nmessages = 1\n')
            c.refuse(["--set: " + setting.split("=")[0], "no sides a and b", "[hosts.NAME]"], command, name, "--set", setting)
        c.refuse(["no sides a and b"], "run",
                 c.file(text + "[parameters]\n" + setting.replace("=", ' = "') + '"\n'))
    c.refuse(["calibrate has points of more hosts"], "calibrate", "--set", "a.rtl.icrc=rtl")
    c.call("run", c.file(text), "--config", c.file(before["parameters"]))  # a file of all parameters says nothing of sides


def check_explained(c):
    """More of a resource is more of each side's own."""
    name = c.file('[latency]\nsizes = 64\niterations = 5\nset = ["b.driver.post_send_ns=600"]\n')
    result, _ = c.call("explain", name, "--jobs", "1")
    row = next(r for r in result["with_more"] if r["resource"] == "processor")
    c.expect("driver.post_send_ns 60 to 55" in row["changed"] and "b.driver.post_send_ns 600 to 545" in row["changed"],
             "explain: %s" % row)
    # Half of 5 and 55 ns of posting, and what the two polls are less.
    gained = 1000 * (result["value"] - row["value"])
    c.expect(30 <= gained < 45, "explain: 10 %% more processor gives %.1f ns" % gained)


def check_refusals(c):
    for setting, words in (("a.adapter.clok_khz=1", ["--set: side a", "adapter.clok_khz", "adapter.clock_khz"]),
                           ("b.adapter.clock_khz=1", ["--set: side b", "adapter.clock_khz: '1'", "1000 to 10000000 kHz"]),
                           ("b.adapter.clock_khz=fast", ["--set: side b", "adapter.clock_khz: 'fast'", "1000 to 10000000 kHz"]),
                           ("a.adapter.clock_khz", ["--set: side a", "adapter.clock_khz", "path=value"]),
                           ("c.adapter.clock_khz=1", ["c.adapter.clock_khz", "nearest"]),
                           ("a.cable.metres=5", ["a.cable.metres", "sides cannot differ in it", "expected cable.metres"]),
                           ("b.cable.hop_ps=5", ["b.cable.hop_ps", "sides cannot differ in it"]),
                           ("a.sim.shuffle_seed=5", ["a.sim.shuffle_seed", "sides cannot differ in it"]),
                           ("b.adapter.port.rate_mbps=10000", ["b.adapter.port.rate_mbps", "sides cannot differ in it"]),
                           ("b.adapter.port2.rate_mbps=10000", ["b.adapter.port2.rate_mbps", "sides cannot differ in it"]),
                           ("a.adapter.port.fec=rs", ["a.adapter.port.fec", "sides cannot differ in it"]),
                           ("a.a.rtl.icrc=rtl", ["a.a.rtl.icrc", "sides cannot differ in it"]),
                           ("a.rtl.icrc=verilog", ["--set: a.rtl.icrc: 'verilog'", "as_both, model, rtl or shadow"])):
        for command in "latency", "bandwidth", "soak", "parameters":
            c.refuse(words, command, "--set", setting)
    c.refuse(["side b", "driver.poll_ns"], "latency", "--config", c.file("[b.driver]\npoll_ns = -1\n", "wrong.toml"))
    c.refuse(["wrong.toml", "a.cable.metres"], "latency", "--config", c.file("a.cable.metres = 1\n", "wrong.toml"))
    c.refuse(["calibrate", "expected parameters of all"], "calibrate", "--set", "a.driver.poll_ns=1")
    text = 'duration_us = 10\n[[workload]]\nfrom = "h1"\nto = "h2"\n'
    c.refuse(["--set: b.driver.poll_ns", "no sides a and b"], "run", c.file(text), "--set", "b.driver.poll_ns=1")
    c.refuse(["sides.toml", "b.driver.poll_ns", "no sides a and b"], "run",
             c.file(text + "[parameters]\nb.driver.poll_ns = 1\n", "sides.toml"))


if __name__ == "__main__":
    sys.exit(run_checks(__doc__, Sides, (check_processors, check_memory, check_clocks, check_network, check_order, check_again,
                                         check_other_commands, check_one_adapter, check_hosts, check_explained, check_refusals)))
