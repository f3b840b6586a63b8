# SPDX-License-Identifier: Apache-2.0
"""`rnic serve --pcap FILE.pcapng`, as tshark and capinfos read it: an interface for each port of adapters and switches, with
as many frames as links and ports count, what one process sends being what the other one receives; and comments."""
import os
import shutil
import sys

from served import RNIC, FOLDER, PEER_MAC, PEER4, MODEL4, expect, free_port, path, serve
from fabric_cases import H2, H3, H3_MAC, port_to, star

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "capture"))
from check_ports import INBOUND, OUTBOUND, Captures, frames_of  # noqa: E402

ITERATIONS, SIZE, PACKETS = 30, 3000, 3  # of 1024 bytes


def read(what, file, names):
    """Frames of a capture, of which is checked what is true of any."""
    frames, checks = frames_of(file), Captures(RNIC, FOLDER)
    checks.check_tool(what, file, frames)
    checks.check_comments(what, frames)
    expect(not checks.faults, "\n".join(checks.faults[:5]))
    expect({f.port for f in frames} == set(names), "%s: ports %s" % (what, {f.port for f in frames}))
    expect([f.ns for f in frames] == sorted(f.ns for f in frames), "%s: not in order of time" % what)
    return frames


def at(frames, port, direction):
    return [f for f in frames if (f.port, f.direction) == (port, direction)]


def hashes(frames, port, direction):
    return [f.hash for f in at(frames, port, direction)]


def is_carried(sent, came):
    """What came is what was sent, but for reports of IPv6 groups (MLD) before the other side was there, and after that."""
    return len(sent) - len(came) <= 6 and any(sent[at:at + len(came)] == came for at in range(len(sent) - len(came) + 1))


def check_messages(what, frames, port, app):
    """Of what the adapter sends each packet says its message, the last one of each where its time has gone."""
    sent = [f for f in at(frames, port, OUTBOUND) if f.opcode in ("0", "1", "2")]  # SEND first, middle, last
    # A slow machine is late with acknowledgements: some packets are there twice.
    expect(len(sent) >= ITERATIONS * PACKETS, "%s: %d packets of data" % (what, len(sent)))
    expect(all(f.comment and f.comment.flow == app and f.comment.verb == "send" and f.comment.bytes == SIZE for f in sent),
           "%s: packets without a comment" % what)
    for opcode in "0", "1", "2":
        of = [f.comment for f in sent if f.opcode == opcode]
        numbers = sorted({m.number for m in of})  # what the host sends before has some too
        # The host's own words have numbers too, if they fall in between.
        expect(len(numbers) == ITERATIONS and numbers[-1] - numbers[0] < ITERATIONS + 4, "%s: messages %s" % (what, numbers))
        expect(all(bool(m.stages) == (opcode == "2") for m in of), "%s: stages of packets %s" % (what, opcode))
    from_peer = at(frames, port, INBOUND)
    expect(from_peer and not any(f.comment for f in from_peer), "%s: what the peer sends has comments" % what)


def tools():
    return shutil.which("tshark") is not None and shutil.which("capinfos") is not None


def ports():
    """Two processes at a link, each with a capture of its port."""
    if not tools():
        print("skipped: tshark or capinfos is not there")
        return 77
    port, link = free_port(), "unix:" + path("p")
    own = ["--app", "rc_pingpong", "--iterations", ITERATIONS, "--size", SIZE, "--port", port]
    a = serve("a", "listen:" + link, *own, "--server", addresses=(MODEL4,), capture=".pcapng")
    b = serve("b", "connect:" + link, *own, "--client", "127.0.0.1", mac=PEER_MAC, addresses=(PEER4,), capture=".pcapng")
    status = [b.wait(), a.wait()]
    expect(status == [0, 0], "status %s\n%s%s" % (status, a.text, b.text))
    of_a, of_b = (read(side, end.pcap, ["served.port1"]) for side, end in (("a", a), ("b", b)))
    for what, end, frames in ("a", a, of_a), ("b", b, of_b):
        counted = end.result["link"]
        got = [len(at(frames, "served.port1", d)) for d in (INBOUND, OUTBOUND)]
        expect(got == [counted["frames_in"], counted["frames_out"] + counted["drop"]["no_peer"]] and got[0] > 100, "%s: %s frames, link %s" %
               (what, got, counted))
        check_messages(what, frames, "served.port1", "rc_pingpong")
    for one, other in (of_a, of_b), (of_b, of_a):
        expect(is_carried(hashes(one, "served.port1", OUTBOUND), hashes(other, "served.port1", INBOUND)),
               "frames differ at both ends")
    return 0


def fabric_ports():
    """Two adapters and a link at a switch: one file of all ports; the link's frames are those of the process behind it."""
    if not tools():
        print("skipped: tshark or capinfos is not there")
        return 77
    port = 20000 + os.getpid() % 20000
    own = ["--app", "rc_pingpong", "--iterations", ITERATIONS, "--size", SIZE]
    m = star(*own, "--server", "--port", port, links=("h3",), hosts=3, addresses=(MODEL4, H2 + "@2"), capture=".pcapng")
    b = serve("peer", "connect:unix:" + path("h3"), *own, "--client", "127.0.0.1", "--port", port + 1, mac=H3_MAC,
              addresses=(H3,), capture=".pcapng")
    expect(b.wait() == 0, "the peer: " + b.text)
    m.until("adapter 2: rc_pingpong: %d messages sent" % ITERATIONS, 20)
    m.process.terminate()
    m.wait(20)
    expect(not os.path.exists(m.pcap + ".2"), "another file")
    names = {"h1.port1", "h2.port1", "s1.port0", "s1.port1", "s1.port2"}
    frames = read("star", m.pcap, names)
    for host, number in ("h1", 0), ("h2", 1), ("h3", 2):
        counted, name = port_to(m.result, host), "s1.port%d" % number
        got = [len(at(frames, name, d)) for d in (INBOUND, OUTBOUND)]
        expect(got == [counted["rx_frames"], counted["tx_frames"]], "%s: %s frames, %s" % (name, got, counted))
        if host == "h3":
            continue
        for one, other in (host + ".port1", name), (name, host + ".port1"):  # 3 m: 15.15 ns
            sent, came = at(frames, one, OUTBOUND), at(frames, other, INBOUND)
            expect([f.hash for f in sent] == [f.hash for f in came], "%s to %s: other frames" % (one, other))
            expect(all(y.ns - x.ns in (15, 16) for x, y in zip(sent, came)), "%s to %s: times" % (one, other))
    check_messages("h2", frames, "h2.port1", "rc_pingpong")
    of_peer = read("peer", b.pcap, ["served.port1"])
    expect(is_carried(hashes(frames, "s1.port2", OUTBOUND), hashes(of_peer, "served.port1", INBOUND)), "to h3: other frames")
    expect(is_carried(hashes(of_peer, "served.port1", OUTBOUND), hashes(frames, "s1.port2", INBOUND)), "from h3: other frames")
    there = [f.comment for f in at(frames, "s1.port2", OUTBOUND) if f.comment and f.comment.stages]
    expect(len(there) >= ITERATIONS and all("s1" in [s[0] for s in c.stages] for c in there), "stages of the switch: %s" %
           [c.stages for c in there[:1]])
    return 0
