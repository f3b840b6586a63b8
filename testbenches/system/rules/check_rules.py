#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds RoCE traffic in captures against the standard's rules of sequence numbers, acknowledgements and repetition.

usage: check_rules.py [options] CAPTURE [RECEIVED]
One capture: every packet in it arrived as it was sent. Two: what the two sides sent, and what arrived of it.
Exit status 1: something is against the rules. Nothing of the model is used here.
"""
import argparse
import bisect
import collections
import sys

import packet_rules
import wire
from requester_rules import count_of, requester
from responder_rules import responder

# Rules that an implementation is known to break (--known NAME), with what is known about it.
KNOWN = {
    "soft-roce": {
        "ask": "the management agent's datagrams ask for acknowledgements, which no datagram has",
        "repeat-acknowledged": "its timer is not pushed back by acknowledgements (traces/README.md)",
        "nak-after-rnr": "rxe_resp.c:check_psn has no state for receiver-not-ready",
        "read-restart": "rxe_resp.c:read_reply goes on with MIDDLE or LAST where a re-request begins",
    },
}
NEAR = 10_000  # ns
finding = collections.namedtuple("finding", "rule number text")


class findings:
    def __init__(self, known=()):
        self.known, self.list, self.excused = known, [], collections.Counter()

    def __call__(self, rule, p, text):
        if rule in self.known:
            self.excused[rule] += 1
        else:
            self.list.append(finding(rule, p.number, "%s (%s, to QP %#x)" % (text, p.name(), p.qp)))


def streams_of(packets):
    """Packets by (service, sender, receiver, QP), requests and responses apart."""
    requests, responses = collections.defaultdict(list), collections.defaultdict(list)
    for p in packets:
        if p.service in (wire.RC, wire.XRC, wire.UC):
            key = (wire.RC if p.service == wire.XRC else p.service, p.source, p.target, p.qp)
            (responses if p.is_response() else requests)[key].append(p)
    return requests, responses


def asked_psns(requests, mtu):
    """PSN -> when requests had it."""
    times = collections.defaultdict(list)
    for p in requests:
        for i in range(min(count_of(p, mtu), 1 << 16)):
            times[wire.plus(p.psn, i)].append(p.time)
    return times


def likeness(asked, responses):
    """How well responses answer requests, as a packet names only its receiver's queue pair: soon after the request."""
    near, good, bad = 0.0, 0, 0
    for r in responses[:200] + responses[-200:]:
        sent = asked.get(r.psn, ())
        i = bisect.bisect_right(sent, r.time)
        if i:
            near, good = near + NEAR / (NEAR + r.time - sent[i - 1]), good + 1
        else:
            bad += 1
    return near * (good - 2 * bad)


def pair(requests, responses):
    """Request stream -> response stream of the other direction. The best pairs first."""
    scores = []
    for key, sent in requests.items():
        mtu = packet_rules.mtu_of(sent, lambda *_: None) or 4096
        asked = asked_psns(sent, mtu)
        for back, answers in responses.items():
            if key[0] == wire.RC and key[1:3] == back[1:3][::-1]:
                bound = packet_rules.mtu_of(answers, lambda *_: None)
                times = asked if not bound or bound == mtu else asked_psns(sent, bound)
                scores.append((likeness(times, answers), key, back))
    pairs, taken = {}, set()
    for score, key, back in sorted(scores, key=lambda s: -s[0]):
        if key not in pairs and back not in taken and score > 0:
            pairs[key] = back
            taken.add(back)
    return pairs


def in_turn(sent, received, on_sent, on_received):
    """Both in the order of time; what was received at the time of sending was not known yet."""
    events = [(p.time, 0, i, p) for i, p in enumerate(sent)] + [(p.time, 1, i, p) for i, p in enumerate(received)]
    for _, kind, _, p in sorted(events, key=lambda e: e[:3]):
        (on_received if kind else on_sent)(p)


def check_connection(options, report, sent, received, request_key, response_key):
    none = []
    requests = sent[0][request_key], received[0].get(request_key, none)
    responses = (sent[1].get(response_key, none), received[1].get(response_key, none)) if response_key else (none, none)
    mtu = packet_rules.mtu_of(requests[0] + responses[0], report)
    if mtu is None:
        mtu = options.mtu or 1024
    reliable = request_key[0] == wire.RC
    side = requester(report, mtu, options, reliable)
    in_turn(requests[0], responses[1], side.on_sent, side.on_received)
    if options.complete:
        side.finish(requests[0][-1])
    if reliable:
        other = responder(report, mtu, options, requests[0][0].psn)
        in_turn(responses[0], requests[1], other.on_sent, other.on_received)


def arrived(packets, sent):
    """Packets that the receiver's checks let through: damage shows in the ICRC, or in what the ICRC does not cover."""
    addresses = {p.frame[:6] for p in sent}
    return [p for p in packets if p.good_icrc and p.good_ip and p.frame[:6] in addresses]


def check(capture, received=None, options=None):
    """(packets, connections, findings)"""
    options = options or arguments(["-"])
    report = findings(KNOWN.get(options.known, {}))
    packets = wire.packets(capture)
    for p in packets:
        packet_rules.check_packet(p, report)
    there = arrived(wire.packets(received), packets) if received else [p for p in packets if p.good_icrc]
    sent, reached = streams_of([p for p in packets if p.good_icrc]), streams_of(there)
    pairs = pair(sent[0], sent[1])
    for key in sent[0]:
        check_connection(options, report, sent, reached, key, pairs.get(key))
    for key in set(sent[1]) - set(pairs.values()):
        report("unasked", sent[1][key][0], "%d answers that belong to no requests" % len(sent[1][key]))
    return packets, len(sent[0]), report


def arguments(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("capture")
    parser.add_argument("received", nargs="?")
    parser.add_argument("--slack-us", type=int, default=20, help="what waits for the line may go out so long behind a response")
    parser.add_argument("--reaction-us", type=int, default=5, help="the same for the packet of which the response speaks")
    parser.add_argument("--ack-policy", choices=("message", "any"), default="message",
                        help="whether the last packet of each message must ask for an acknowledgement")
    parser.add_argument("--mtu", type=int, help="of connections that do not show it")
    parser.add_argument("--depth", type=int, help="READs and atomics that a connection may have under way (initiator depth)")
    parser.add_argument("--complete", action="store_true", help="everything must have been acknowledged at the end")
    parser.add_argument("--known", choices=sorted(KNOWN), help="an implementation whose known faults are not told")
    return parser.parse_args(given)


def main():
    options = arguments()
    packets, connections, report = check(options.capture, options.received, options)
    for f in report.list[:50]:
        print("frame %d: %s: %s" % (f.number, f.rule, f.text))
    for rule, count in report.excused.items():
        print("%d times %s: %s" % (count, rule, KNOWN[options.known][rule]))
    print("%d packets, %d streams of requests, %d findings" % (len(packets), connections, len(report.list)))
    return 1 if report.list else 0


if __name__ == "__main__":
    sys.exit(main())
