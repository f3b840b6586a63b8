# SPDX-License-Identifier: Apache-2.0
"""What the tests of networks have in common: runs of the program with their results, refusals, and a list of faults."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from faults import Faults  # noqa: E402

NOTHING = {"flows": [], "ports": [], "standstills": [], "goodput_gbps": 0, "fairness": 0, "head_of_line_blocking": [],
           "counters": {}}


def mixed_loop(messages):
    """A file of `rnic run`: two hosts send all kinds of messages to a third one, so many each."""
    return """
[topology]
kind = "star"
hosts = 3
[[workload]]
name = "rpc"
from = ["h1", "h2"]
to = "h3"
verbs = { write = 2, read = 1, send = 1, write_imm = 1, fadd = 1 }
sizes = [64, 1024, 9000]
depth = 8
messages = %d
""" % messages


class Checks(Faults):
    def file(self, text, name=None):
        return self.write(text, name)

    def call(self, command, *arguments, status=0, timeout=600):
        """Results of a command, and what is printed. Without `timeout` it shows its progress."""
        self.number += 1
        result = self.path("%d.json" % self.number)
        quiet = ["--quiet"] if timeout is not None else []
        done = subprocess.run([self.program, command, "--json", result] + quiet + list(arguments), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE if quiet else None, timeout=timeout)
        said = (done.stderr or "") + done.stdout
        self.expect(done.returncode == status, "%s %s: exit status %d: %s" %
                    (command, arguments, done.returncode, said[-400:]))
        if not os.path.exists(result):
            return dict(NOTHING), done.stdout
        with open(result, encoding="utf-8") as f:
            return json.load(f), done.stdout

    def run(self, network, *arguments, status=0, timeout=600):
        """The same of `fabric`; `network`: a name, or the text of a file."""
        if "\n" in network:
            network = self.file(network)
        result, said = self.call("fabric", network, *arguments, status=status, timeout=timeout)
        for fault in unaccounted(result):
            self.faults.append("fabric %s: %s" % (arguments, fault))
        return result, said

    def refuse(self, words, command, *arguments):
        """It ends with status 2 and one line that has these words."""
        done = subprocess.run([self.program, command, "--quiet"] + list(arguments), capture_output=True, text=True,
                              timeout=60)
        what = "%s %s" % (command, arguments)
        self.expect(done.returncode == 2, "%s: exit status %d" % (what, done.returncode))
        self.expect(len(done.stderr.splitlines()) == 1, "%s: not one line: %r" % (what, done.stderr))
        for word in words:
            self.expect(word in done.stderr, "%s: does not say %r: %s" % (what, word, done.stderr))

    def refuse_file(self, text, *words):
        self.refuse(words, "fabric", self.file(text, "wrong.toml"))

    def warnings(self, network, *arguments):
        """Lines that warn, of `fabric` with a file's text."""
        done = subprocess.run([self.program, "fabric", self.file(network)] + list(arguments), capture_output=True,
                              text=True, timeout=60)
        self.expect(done.returncode == 0, "%s: exit status %d: %s" % (arguments, done.returncode, done.stderr[-300:]))
        return [line for line in done.stderr.splitlines() if "warning" in line]


def unaccounted(result):
    """What is wrong with the frames of each switch: those that came in, and what it made of them, have left, were dropped
    for a reason, ended there, or wait, where they have bytes of the buffer."""
    for switch in {port["switch"] for port in result["ports"]}:
        ports = [port for port in result["ports"] if port["switch"] == switch]

        def counted(name):
            return sum(result["counters"].get("%s.port%d.%s" % (switch, port["port"], name), 0) for port in ports)

        came = counted("rx_frames") + counted("qcn_cnms") + result["counters"].get(switch + ".copies", 0)
        gone = counted("tx_frames") + counted("ended") + dropped({"ports": ports})
        most = sum(port["queued_bytes"] for port in ports) // 64
        if not 0 <= came - gone <= most:
            yield "%s: %d frames came, %d are accounted for, %d may wait" % (switch, came, gone, most)


def dropped(result, kind="drop_"):
    return sum(value for port in result["ports"] for name, value in port.items() if name.startswith(kind))


def total(result, ending):
    return sum(v for n, v in result["counters"].items() if n.endswith(ending))


def exact_times(event):
    """Begin and length of a slice of a trace, in picoseconds: what is shown are whole nanoseconds."""
    return round(event["ts"] * 1e6) + event["args"].get("off", 0), event["args"]["ps"]
