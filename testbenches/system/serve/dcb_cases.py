# SPDX-License-Identifier: Apache-2.0
"""The agent of data centre bridging, whose peer is made of scapy's packets."""
import os
import time

from scapy.all import Ether, Raw
from scapy.contrib.lldp import (LLDPDUChassisID, LLDPDUEndOfLLDPDU, LLDPDUGenericOrganisationSpecific, LLDPDUPortID,
                                LLDPDUSystemName, LLDPDUTimeToLive)
from served import MODEL_MAC, PEER_MAC, expect, path, wire

GROUP = "01:80:c2:00:00:0e"
SWITCHED_ON = ["--set", "driver.dcb.enabled=true"]


def organisation(oui, subtype, data):
    return LLDPDUGenericOrganisationSpecific(org_code=oui, subtype=subtype, data=bytes(data), _length=4 + len(data))


def shares(first, priorities=(0, 0, 0, 1, 0, 2, 0, 0)):
    """Table of classes 1 and 2, which share."""
    p = priorities
    return bytes([p[i] << 4 | p[i + 1] for i in (0, 2, 4, 6)] + [0, first, 100 - first, 0, 0, 0, 0, 0] +
                 [0, 2, 2, 0, 0, 0, 0, 0])


def recommendation(first):
    return organisation(0x0080c2, 10, b"\0" + shares(first))


def pfc(mask, willing=False):
    return organisation(0x0080c2, 11, bytes([0x88 if willing else 0x08, mask]))


def unit(*tlvs, ttl=121, mac=PEER_MAC, name="scapy"):
    u = Ether(src=mac, dst=GROUP, type=0x88cc) / LLDPDUChassisID(subtype=4, id=mac) / LLDPDUPortID(subtype=3, id=mac) / \
        LLDPDUTimeToLive(ttl=ttl)
    if ttl != 0:
        u = u / LLDPDUSystemName(system_name=name)
    for t in tlvs:
        u = u / t
    return u / LLDPDUEndOfLLDPDU()


def heard(frame):
    """{"ttl": ..., (OUI, subtype): value} of a frame of the model's."""
    said = {"ttl": frame[LLDPDUTimeToLive].ttl}
    t = frame
    while (t := t.payload) is not None and not isinstance(t, (Raw,)) and t.name != "NoPayload":
        if isinstance(t, LLDPDUGenericOrganisationSpecific):
            said[(t.org_code, t.subtype)] = bytes(t.data)
    return said


def next_unit(w, seconds=5):
    """The next frame of LLDP of the model's; nothing when none comes."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        f = w.receive(left)
        if f is not None and f.type == 0x88cc:
            return f
    return None


def until(w, condition, what, seconds=8):
    end = time.monotonic() + seconds
    last = None
    while time.monotonic() < end:
        f = next_unit(w, end - time.monotonic())
        if f is None:
            break
        last = heard(f)
        if condition(last):
            return last
    expect(False, "%s was not said: %s" % (what, last))


def agreement():
    """A switch that recommends shares and pauses; other advice; two of them; a farewell."""
    w = wire(*SWITCHED_ON)
    first = next_unit(w)
    expect(first is not None and first.src == MODEL_MAC and first.dst == GROUP, "the first data unit: %s" % first)
    said = heard(first)
    expect(said["ttl"] == 121 and said[(0x0080c2, 11)] == b"\x88\x00", "the first data unit: %s" % said)
    w.send(unit(recommendation(70), pfc(1 << 3)))
    said = until(w, lambda s: s[(0x0080c2, 11)] == b"\x88\x08", "PFC of priority 3")
    expect(said[(0x0080c2, 9)] == b"\x80" + shares(70), "ETS in force: %s" % said[(0x0080c2, 9)].hex())
    expect(said[(0x0080c2, 10)] != b"\0" + shares(70), "a recommendation is not sent back")
    line = w.model.until("dcb:", 5)
    expect("ETS peer: tc0 strict of 0,1,2,4,6,7; tc1 70 %% of 3; tc2 30 %% of 5; PFC peer: 3; with %s scapy" % PEER_MAC in line, line)
    w.send(unit(recommendation(20), pfc(1 << 4)))
    until(w, lambda s: s[(0x0080c2, 11)] == b"\x88\x10" and s[(0x0080c2, 9)] == b"\x80" + shares(20), "the second advice")
    second = "02:00:00:00:00:09"
    w.send(unit(pfc(1 << 5), mac=second, name="another"))
    until(w, lambda s: s[(0x0080c2, 11)] == b"\x88\x00", "the own configuration, for there are two peers")
    w.send(unit(ttl=0, mac=second))
    until(w, lambda s: s[(0x0080c2, 11)] == b"\x88\x10", "the first peer's, who is alone again")
    result = w.model.stop()
    d = result["dcb"]
    expect(d["ets"]["from"] == "peer" and d["ets"]["tc_bw"] == [0, 20, 80, 0, 0, 0, 0, 0] and d["pfc"]["enabled"] == 16, d)
    expect(d["peer"]["system_name"] == "scapy" and d["peer"]["mac"] == PEER_MAC and d["changes"] == 4, d)
    expect(d["lldp"]["deletes"] == 1 and d["lldp"]["inserts"] == 2 and d["command_errors"] == 0, d)
    for line in ("willing on ets-cap 8 cbs off", "tc-bw 0:0 1:20 2:80 3:0 4:0 5:0 6:0 7:0",
                 "tc-tsa 0:strict 1:ets 2:ets 3:strict 4:strict 5:strict 6:strict 7:strict",
                 "prio-tc 0:0 1:0 2:0 3:1 4:0 5:2 6:0 7:0", "pfc-cap 8 macsec-bypass off delay 0",
                 "prio-pfc 0:off 1:off 2:off 3:off 4:on 5:off 6:off 7:off"):
        expect(line in w.model.text.splitlines(), "%r in %s" % (line, w.model.text))
    last = None
    while (f := next_unit(w, 1)) is not None:
        last = f
    expect(last is not None and heard(last)["ttl"] == 0, "the last data unit is no farewell: %s" % last)


def hostile():
    """Bad units change nothing, are counted, and stop nothing."""
    w = wire(*SWITCHED_ON)
    expect(next_unit(w) is not None, "nothing was said")
    w.send(unit(recommendation(70), pfc(1 << 3)))
    until(w, lambda s: s[(0x0080c2, 11)] == b"\x88\x08", "PFC of priority 3")
    head = bytes(Ether(src=PEER_MAC, dst=GROUP, type=0x88cc))
    good = bytes(unit(recommendation(70), pfc(1 << 3)))[14:]
    chassis, port = good[:9], good[9:18]
    units = [b"", good[:8], port + chassis + good[18:], chassis + chassis + good[18:], good[:-2] + b"\xfe\xff\x00\x80",
             chassis + port + b"\x04\x01\x03" + good[18:]]
    for u in units:
        w.send(head + u)
    w.send(bytes(Ether(src=PEER_MAC, dst=GROUP, type=0x88cd)) + good)
    bad = bytearray(shares(70))
    bad[5] = 71  # 101 % together
    tlvs = [recommendation(70), pfc(1 << 3), organisation(0x0080c2, 10, b"\0" + bytes(bad)), organisation(0x0080c2, 11, b"\x08"),
            organisation(0x0080c2, 9, b"\x80" + shares(70) + b"\0"), organisation(0x00120f, 1, b"\x03\xc0\x36\0\x1e"), pfc(1 << 6)]
    w.send(unit(*tlvs))
    w.ask(w.arp())
    result = w.model.stop()
    d = result["dcb"]
    expect(d["pfc"] == {"from": "peer", "enabled": 8, "willing": True} and d["ets"]["tc_bw"][1] == 70, d)
    expect(d["lldp"]["frames_discarded"] == len(units) + 1, d["lldp"])
    expect(d["lldp"]["tlvs_discarded"] == 4 and d["lldp"]["tlvs_unrecognized"] == 1, d["lldp"])
    expect(d["lldp"]["frames_in_errors"] == len(units) + 2, d["lldp"])


def silent():
    """Who has not switched it on says nothing, and nobody listens."""
    w = wire()
    w.send(unit(recommendation(70), pfc(1 << 3)))
    w.ask(w.arp())
    expect(next_unit(w, 2) is None, "something was said")
    result = w.model.stop()
    expect("dcb" not in result and "prio-pfc" not in w.model.text, "it is told of")
    # Besides it the host's own reports of its IPv6 groups (MLD), which come back to it from the port.
    expect(result["statistics"]["served.adapter.steering.drop.no_match"] - 1 in (1, 2, 3, 4), "who took the frame?")


def dcb():
    for case in (agreement, hostile, silent):
        case()
        os.unlink(path("peer"))
        print(case.__name__, "ok", flush=True)
