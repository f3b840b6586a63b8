# SPDX-License-Identifier: Apache-2.0
"""udpong in the guest and the model's, in both roles. Alone it cannot run on Soft-RoCE (own_path.c says why)."""
import json

from bench import GID4, GID6, GUEST4, GUEST6, MODEL4, MODEL6, SECONDS

PORT = 7174
IPV6_ROW = 5  # of the model's GIDs


def preloaded(b, gid):
    return "OWN_GID_INDEX=%d LD_PRELOAD=/usr/lib/own_path.so timeout %d /usr/bin/udpong" % (b.guest.gid_index(gid), SECONDS)


def finish(b, name, side, guest, enough):
    """`guest`: status and text of the tool's client, nothing for its server. Datagrams may be lost, and repeated ones
    counted twice: `enough` says what is true of a run all the same."""
    status, text = b.end(side)
    ok = status == 0 and (guest is None or guest[0] == 0 and "custom" in guest[1])
    if ok:
        with open(b.json) as f:
            run = json.load(f)["runs"][0]
        ok = run["ok"] and run["wrong_bytes"] == 0 and enough(run)
    b.note("udpong, " + name, ok)
    if not ok:
        b.show(status, text, guest or (0, ""))


def both_roles(b, name, size, count, echo, gid=GID4, to=MODEL4, own=GUEST4, more=()):
    """Nearly all of a test without echo has to arrive: the guest takes 256 at a time."""
    tool = preloaded(b, gid)
    options = ("--app", "udpong", *more)
    side = b.serve(*options, "--server")
    guest = b.guest.run("%s -s %s -S %d -C %d%s" % (tool, to, size, count, " -T e" if echo else ""), SECONDS * 2)
    finish(b, name + ", the guest is client", side, guest,
           lambda run: run["received"] >= (count if echo else count * 0.9) and run["sent"] == (run["received"] if echo else 0))
    b.guest.start("%s -b %s" % (tool, own), "cat /proc/net/udp /proc/net/udp6 | grep -q ':%04X '" % PORT)
    side = b.serve(*options, "--client", own, "--size", str(size), "--iterations", str(count),
                   *(["--bidirectional"] if echo else []))
    finish(b, name + ", the guest is server", side, None,
           lambda run: run["sent"] == count and (run["received"] == count if echo else count / 4 < run["received"] <= count))
    b.guest.must("kill $(pidof udpong)")
    b.guest.finish_server()


def udpong(b):
    status, text = b.guest.run("timeout 10 /usr/bin/udpong -s " + MODEL4, 30)
    b.note("udpong alone: Soft-RoCE has no address handle by LID", status == 255 and "rconnect: " in text, text)
    for size, count, echo in ((16, 200, True), (1000, 100, True), (2040, 50, True), (100, 200, False), (1000, 1000, False)):
        both_roles(b, "%d times %d bytes%s" % (count, size, ", sent back" if echo else ""), size, count, echo)
    both_roles(b, "over IPv6", 2024, 50, True, GID6, MODEL6, GUEST6, ("--gid-index", str(IPV6_ROW)))
