#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Connections of virtual functions by the program: `rnic serve --function`, two processes and a wire between them. What
their connection managers say to each other is on the wire under the functions' own addresses, and tshark reads it.

usage: check_gsi.py PROGRAM. Exit status 77: there is no tshark.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1]
FIRST, SECOND = "02:00:00:00:00:01", "02:00:00:00:00:02"
MESSAGES = {0x10: "REQ", 0x13: "REP", 0x14: "RTU", 0x15: "DREQ", 0x16: "DREP", 0x17: "SIDR_REQ", 0x18: "SIDR_REP"}


def check(is_so, what):
    if not is_so:
        raise SystemExit("wrong: %s" % (what,))


def mac_of_function(mac, function):
    return mac if function == 0 else "02:%02x:01:%s" % (function, mac[9:])


class host:
    def __init__(self, folder, name, link, mac, address, function, *arguments):
        self.json, self.pcap = (os.path.join(folder, name + end) for end in (".json", ".pcap"))
        self.function, self.mac, self.address = function, mac_of_function(mac, function), address
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--link", link, "--mac", mac, "--ip", address, "--functions", "3", "--function",
             str(function), "--json", self.json, "--pcap", self.pcap, "--overwrite", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        first = self.process.stdout.readline()
        check(first.startswith("serving"), first)

    def end(self):
        try:
            self.text, _ = self.process.communicate(timeout=100)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.text, _ = self.process.communicate()
        check(self.process.returncode == 0, "status %s: %s" % (self.process.returncode, self.text))
        with open(self.json) as f:
            self.result = json.load(f)

    def count(self, name):
        return self.result["statistics"]["served_mads." + name]


def told(pcap):
    """Messages of the communication manager as tshark reads them: (source MAC, source address, message)."""
    command = ["tshark", "-r", pcap, "-Y", "infiniband.mad", "-T", "fields", "-E", "separator=;"]
    for f in ("eth.src", "ip.src", "infiniband.mad.mgmtclass", "infiniband.mad.attributeid", "infiniband.deth.q_key",
              "infiniband.bth.destqp", "_ws.malformed"):
        command += ["-e", f]
    done = subprocess.run(command, capture_output=True, text=True)
    check(done.returncode == 0, done.stderr)
    rows = []
    for line in done.stdout.splitlines():
        mac, ip, management, attribute, qkey, qpn, malformed = line.split(";")
        check(int(management, 16) == 7 and not malformed, line)
        check(int(qkey, 16) == 0x80010000 and int(qpn, 16) == 1, line)
        rows.append((mac, ip, MESSAGES[int(attribute, 16)]))
    return rows


def connect(folder, name, application, functions, *arguments):
    link = os.path.join(folder, name)
    server = host(folder, name + "-server", "listen:unix:" + link, SECOND, "10.0.0.2", functions[1], "--app", application,
                  "--server", *arguments)
    client = host(folder, name + "-client", "connect:unix:" + link, FIRST, "10.0.0.1", functions[0], "--app", application,
                  "--client", "10.0.0.2", *arguments)
    client.end()
    server.end()
    for side in (client, server):
        run = side.result["runs"][0]
        check(run["ok"] and run["wrong_bytes"] == 0, run)
        dropped = {k: v for k, v in side.result["statistics"].items() if k.startswith("served_mads.") and "drop" in k and v}
        check(not dropped, dropped)
    rows = told(client.pcap)
    for side, other in ((client, server), (server, client)):
        own = [r for r in rows if r[1] == side.address]
        check(own and {r[0] for r in own} == {side.mac}, "%s instead of %s" % (own, side.mac))
        check(side.count("to_wire") == len(own) and other.count("to_functions") == len(own), side.result["statistics"])
    print("%s: function %d to %d: %s" % (application, *functions, " ".join(r[2] for r in rows)), flush=True)
    return [r[2] for r in rows]


def main():
    if shutil.which("tshark") is None:
        print("skipped: there is no tshark")
        return 77
    folder = tempfile.mkdtemp(prefix="rnic-gsi-")
    try:
        whole = ["REQ", "REP", "RTU", "DREQ", "DREP"]
        for n, functions in enumerate(((1, 2), (3, 0), (0, 3), (0, 0))):
            rows = connect(folder, "rping%d" % n, "rping", functions, "--iterations", "5", "--size", "1000")
            check([r for r in rows if r != "RTU"] == [r for r in whole if r != "RTU"] or set(rows) == set(whole), rows)
        rows = connect(folder, "udaddy", "udaddy", (2, 1), "--iterations", "5")
        check({"SIDR_REQ", "SIDR_REP"} <= set(rows), rows)
        connect(folder, "ucmatose", "ucmatose", (1, 1), "--qps", "4", "--iterations", "5")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


sys.exit(main())
