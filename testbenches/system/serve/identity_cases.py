# SPDX-License-Identifier: Apache-2.0
"""Who an adapter is when nobody says: somebody else in each process, and the same one again for a seed."""
import json
import subprocess

from served import RNIC, PEER_MAC, expect, path, free_port, rest_of


class anonymous:
    """The model without an address of ours."""

    def __init__(self, name, *arguments):
        self.json = path(name + ".json")
        command = [RNIC, "serve", "--json", self.json, "--overwrite", *(str(a) for a in arguments)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.first = self.process.stdout.readline()
        expect(self.first.startswith("serving "), self.first)

    def end(self):
        self.text, killed = rest_of(self.process, 60)
        expect(not killed, "did not end within 60 s: " + self.text)
        with open(self.json) as f:
            self.result = json.load(f)
        return self.process.returncode


def who(name, *arguments, links=1):
    """MACs and GUIDs of the adapters."""
    made = []
    for i in range(links):
        made += ["--link", "listen:unix:" + path("%s%d" % (name, i))]
    m = anonymous(name, *made, *arguments)
    m.process.terminate()
    expect(m.end() == 0, m.text)
    found = [(a["mac"], a["node_guid"]) for a in m.result.get("adapters", [m.result])]
    expect(m.first.split()[1] == found[0][0], "printed is %s, not %s" % (m.first, found))
    return found


def identity():
    several = [who("default%d" % i)[0] for i in range(8)] + who("both", links=3)
    for of in zip(*several):
        expect(len(set(of)) == len(several), "not all different: %s" % (of,))
    expect(all(int(mac[:2], 16) & 3 == 2 for mac, _ in several), "an address of somebody else's: %s" % several)
    seeds = [who("seed", "--seed", i, links=2) for i in (1, 2, 1)]
    expect(seeds[0] == seeds[2] and len({x for s in seeds for x in s}) == 4, "seeds: %s" % seeds)
    macs = [who("mac", "--mac", PEER_MAC) for _ in range(2)]
    expect(macs[0] == macs[1] and macs[0][0][0] == PEER_MAC, "--mac: %s" % macs)
    expect(who("other", "--mac", "02:00:00:00:00:02")[0][1] != macs[0][0][1], "one GUID for two MAC addresses")
    # Two that nobody told who they are understand each other, by the addresses that they have by themselves.
    tcp, port = free_port(), free_port()
    app = ("--app", "rc_pingpong", "--port", port, "--iterations", 100)
    server = anonymous("server", "--link", "listen:tcp:127.0.0.1:%d" % tcp, *app, "--server")
    client = anonymous("client", "--link", "connect:tcp:127.0.0.1:%d" % tcp, *app, "--client", "127.0.0.1")
    status = [client.end(), server.end()]
    expect(status == [0, 0], "%s\n%s%s" % (status, server.text, client.text))
    runs = [m.result["runs"][0] for m in (server, client)]
    expect(runs[0]["local"] == runs[1]["remote"] != runs[0]["remote"], runs)
