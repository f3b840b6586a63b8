#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Both ports of the adapter against the bonding driver of a Linux guest, live: mode 802.3ad at both ends aggregates, RoCE
goes over it, a port of the guest that falls silent is left, and a guest without LACP has one port.

Usage: check_bonding.py RNIC GUEST_FOLDER
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../soft_roce"))
import guest as linux  # noqa: E402

RNIC, IMAGE = sys.argv[1], sys.argv[2]
GUEST, MODEL, MODEL_MAC = "10.0.0.1", "10.0.0.2", "02:00:00:00:00:02"
ALL_WELL = 63  # active, short timeout, aggregation, synchronization, collecting, distributing
PATIENCE = 60  # an emulated guest on a busy machine


def check(is_so, what):
    if not is_so:
        raise linux.failed("wrong: %s" % (what,))
    print("ok: %s" % (what if isinstance(what, str) else what[0]))


def until(what, condition, seconds=PATIENCE):
    """Asks again and again: the two ends agree in real time."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value[0]:
            print("ok: " + what)
            return value[1]
        if time.monotonic() > end:
            raise linux.failed("not within %d s: %s: %s" % (seconds, what, value[1]))
        time.sleep(0.2)  # between two questions to the guest


class model:
    """`rnic serve` at both links."""

    def __init__(self, folder, *arguments):
        self.json = os.path.join(folder, "serve.json")
        links = sum((["--link", "datagram:unix:%s,%s" % (os.path.join(folder, "model%d" % p),
                                                        os.path.join(folder, "guest%d" % p))] for p in (1, 2)), [])
        self.process = subprocess.Popen(
            [RNIC, "serve", "--bond", "802.3ad", "--set", "driver.lacp.rate=fast", *links, "--ip", MODEL, "--mac",
             MODEL_MAC, "--json", self.json, "--overwrite", *arguments], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        first = self.process.stdout.readline()
        if not first.startswith("serving"):
            self.process.kill()
            raise linux.failed("rnic serve: " + first)

    def end(self):
        """(printed text, results)."""
        self.process.send_signal(signal.SIGTERM)
        text, _ = self.process.communicate(timeout=PATIENCE)
        with open(self.json) as f:
            result = json.load(f)
        if self.process.returncode != 0:
            raise linux.failed("rnic serve: status %d: %s%s" % (self.process.returncode, text, result["runs"]))
        return text, result


def bond_of(guest):
    return guest.must("cat /proc/net/bonding/bond0")


def states(text):
    """(what the guest says of its ports, what it has heard of ours)."""
    own = re.findall(r"details actor lacp pdu:.*?port state: (\d+)", text, re.S)
    heard = re.findall(r"details partner lacp pdu:.*?port state: (\d+)", text, re.S)
    return [int(s) for s in own], [int(s) for s in heard]


def aggregated(guest):
    text = bond_of(guest)
    return states(text) == ([ALL_WELL] * 2, [ALL_WELL] * 2) and "Number of ports: 2" in text, text


def set_up(guest, mode):
    guest.must("/sbin/ip link del bond0 2>/dev/null; /sbin/ip link set eth0 down; /sbin/ip link set eth2 down")
    lacp = " lacp_rate fast" if mode == "802.3ad" else ""
    guest.must("/sbin/ip link add bond0 type bond mode %s miimon 100 xmit_hash_policy layer2%s" % (mode, lacp))
    guest.must("/sbin/ip link set eth0 master bond0; /sbin/ip link set eth2 master bond0")
    guest.must("/sbin/ip addr add %s/24 dev bond0; /sbin/ip link set bond0 up" % GUEST)


def rping(guest, what):
    status, text = guest.run("timeout 30 /usr/bin/rping -c -V -a %s -C 20 -S 5000" % MODEL, 60)
    check(status == 0 or "rdma_get_cm_event: Bad file descriptor" in text, (what, status, text))


def both_with_lacp(guest, folder):
    serve = model(folder, "--app", "rping", "--server", "--repeat", "0", "--size", "5000")
    set_up(guest, "802.3ad")
    text = until("the bonding driver and the model aggregate", lambda: aggregated(guest))
    check("Partner Mac Address: " + MODEL_MAC in text, ("the partner is the model's system", text))
    guest.must("/usr/bin/rdma link add rxe0 type rxe netdev bond0")
    rping(guest, "RDMA over the bond")
    # Nothing tells the model's link of it: the partner's silence alone does.
    guest.must("/sbin/ip link set eth2 down")
    until("the other end is left by a port that is silent", lambda: alone(guest))
    time.sleep(5)  # three seconds of silence, and what the emulated guest needs to begin with it
    rping(guest, "RDMA over the port that is left")
    guest.must("/sbin/ip link set eth2 up")
    until("the port comes back", lambda: aggregated(guest))
    rping(guest, "RDMA over both again")
    printed, result = serve.end()
    guest.must("/usr/bin/rdma link del rxe0")
    bond = result["bond"]
    check("bond: 802.3ad, ports 1 and 2 are active" in printed, ("both ports are active in the end", printed))
    active = [c["active"] for c in bond["changes"]]
    check(1 in active[active.index(3):] and active[-1] == 3, ("port 2 was out, and came back", bond["changes"]))
    check(all(c["links"] == 3 for c in bond["changes"]), ("with its link up all the time", bond["changes"]))
    check(all(p["illegal_in"] == 0 and p["lacpdus_in"] > 5 for p in bond["lacp"]), ("no unit was bad", bond["lacp"]))


def alone(guest):
    text = bond_of(guest)
    return "Number of ports: 1" in text or states(text)[0].count(ALL_WELL) == 1, text


def guest_without_lacp(guest, folder):
    set_up(guest, "balance-xor")
    serve = model(folder, "--app", "rping", "--server", "--repeat", "0", "--size", "5000")
    guest.must("/usr/bin/rdma link add rxe0 type rxe netdev bond0")
    rping(guest, "RDMA with a guest that has no LACP")
    rping(guest, "once more: the model knows the first one's end")
    printed, result = serve.end()
    check("port 1 is active" in printed, ("one port is used", printed))
    check([p["receive"] for p in result["bond"]["lacp"]] == ["defaulted"] * 2, ("nobody was heard", result["bond"]))


def main():
    linux.need_guest(IMAGE)
    with tempfile.TemporaryDirectory() as folder:
        ends = ["dgram,local.type=unix,local.path=%s,remote.type=unix,remote.path=%s" %
                (os.path.join(folder, "guest%d" % p), os.path.join(folder, "model%d" % p)) for p in (1, 2)]
        guest = linux.guest(IMAGE, ends[0], third=ends[1], rate_mbps=40000)
        try:
            both_with_lacp(guest, folder)
            guest_without_lacp(guest, folder)
        except linux.failed as e:
            print(e)
            return 1
        finally:
            guest.stop()
    return 0


sys.exit(main())
