#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quantised congestion notification in whole networks: queues settle at their set point and shares are fair, for RoCE v1
and v2 and for each service; rates come back when congestion is gone; with PFC there are fewer pauses and nothing is lost;
CNMs in captures are byte by byte what scapy's layers of the standard's layout take them for, and answer to counters; hosts
that do not react are not disturbed; how the simulation is run changes nothing; wrong values are refused in one line.

usage: check_qcn.py PROGRAM
Exit code 77: scapy is not there (all else has been checked).
"""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "fabric")]
from network_checks import Checks, dropped, total  # noqa: E402

SKIP = 77
SET_POINT = 26_000  # bytes, the default
SENDERS = 8

INCAST = """
duration_us = %(us)d
vlan = 2
priority = 3
roce = "%(roce)s"
ip = %(ip)d
[topology]
kind = "star"
hosts = 9
[parameters]
switch.qcn.priorities = 8
driver.qcn.priorities = 8
driver.lossless_global_pause = false
%(parameters)s
[[flow]]
from = ["h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8"]
to = "h9"
transport = "%(transport)s"
%(flow)s
"""


def incast(us=50_000, roce="v2", ip=4, transport="rc", parameters="", flow=""):
    return INCAST % {"us": us, "roce": roce, "ip": ip, "transport": transport, "parameters": parameters, "flow": flow}


def refuse(c, parameter, value, *words):
    c.refuse((parameter,) + words, "fabric", c.file(incast(), "wrong.toml"), "--set", "%s=%s" % (parameter, value))


def port_to(result, to):
    return next(p for p in result["ports"] if p["to"] == to)


def rates(result):
    return [f["goodput_gbps"] for f in result["flows"]]


def jain(values):
    return sum(values) ** 2 / (len(values) * sum(v * v for v in values))


def queue_between(early, late):
    """Mean length of the congested queue at the samples of the later part of the longer run, which begins as the other."""
    def sums(r):
        return total(r, "port8.qcn_sampled_bytes"), total(r, "port8.qcn_sampled")
    (bytes_1, samples_1), (bytes_2, samples_2) = sums(early), sums(late)
    return (bytes_2 - bytes_1) / (samples_2 - samples_1)


def check_incast(c):
    for roce, ip in (("v1", 4), ("v2", 4), ("v2", 6)):
        name = "%s over IPv%d" % (roce, ip)
        early, _ = c.run(incast(40_000, roce, ip))
        late, text = c.run(incast(160_000, roce, ip))
        queue = queue_between(early, late)
        c.expect(0.7 * SET_POINT < queue < 1.3 * SET_POINT, "%s: the queue is at %.0f bytes" % (name, queue))
        c.expect(jain(rates(late)) > 0.95, "%s: fairness %.4f" % (name, jain(rates(late))))
        c.expect(abs(jain(rates(late)) - late["fairness"]) < 1e-6, "%s: fairness" % name)
        c.expect(late["goodput_gbps"] > 37, "%s: the line has %.2f Gb/s" % (name, late["goodput_gbps"]))
        c.expect(dropped(late) == 0, "%s: %d frames lost" % (name, dropped(late)))
        cnms = port_to(late, "h9")["qcn_cnms"]
        c.expect("congestion points of s1 to h9: %d CNMs" % cnms in text, "%s: the text does not tell" % name)
        c.expect(cnms > 500, "%s: %d CNMs" % (name, cnms))
        handled = total(late, "requester.rp_cnm_handled")
        c.expect(cnms - SENDERS <= handled <= cnms, "%s: %d CNMs, %d handled" % (name, cnms, handled))
        for lost in ("unknown_flow", "no_place", "disabled", "drop_flow", "drop_cnm"):
            c.expect(total(late, lost) == 0, "%s: %s" % (name, lost))
    # A set point of another height, and the queue is there.
    early, _ = c.run(incast(40_000, parameters="switch.qcn.setpoint_bytes = 100_000"))
    late, _ = c.run(incast(160_000, parameters="switch.qcn.setpoint_bytes = 100_000"))
    queue = queue_between(early, late)
    c.expect(70_000 < queue < 130_000, "set point 100000: the queue is at %.0f bytes" % queue)
    # Without it the queue has no bound but the buffer.
    without, _ = c.run(incast(40_000, parameters="driver.qcn.priorities = 0").replace("driver.qcn.priorities = 8\n", ""))
    c.expect(total(without, "cnm_receiver.received") == 0, "hosts that do not react take CNMs")
    c.expect(port_to(without, "h9")["most_queued_bytes"] > 4_000_000, "the queue does not grow without reaction points")
    c.expect(port_to(without, "h9")["qcn_cnms"] > 1000, "no CNMs to hosts that do not react")


def check_services(c):
    """Each service, and READs, whose responses react at the hosts that are read from. What has begun unfairly becomes
    fairer only by and by; increases are scaled to the line here, and the later part of a run is looked at."""
    for transport, verb in (("uc", "write"), ("ud", "send"), ("xrc", "send"), ("rc", "read")):
        runs = []
        for us in (40_000, 100_000):
            network = incast(us, transport=transport,
                             parameters="driver.qcn.ai_rate_mbps = 100\ndriver.qcn.hai_rate_mbps = 400",
                             flow='verb = "%s"%s' % (verb, "\nsize = 2048\ndepth = 64" if transport == "ud" else ""))
            if verb == "read":
                network = network.replace('from = ["h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8"]\nto = "h9"',
                                          'from = "h9"\nto = ["h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8"]')
            runs.append(c.run(network)[0])
        early, late = runs
        handled = total(late, ("read_generator" if verb == "read" else "requester") + ".rp_cnm_handled")
        shares = [y["completed"] - x["completed"] for x, y in zip(early["flows"], late["flows"])]
        queue = queue_between(early, late)
        name = "%s %s" % (transport, verb)
        c.expect(handled > 300, "%s: %d CNMs handled" % (name, handled))
        c.expect(jain(shares) > 0.85, "%s: fairness %.4f" % (name, jain(shares)))
        c.expect(0.6 * SET_POINT < queue < 1.6 * SET_POINT, "%s: the queue is at %.0f bytes" % (name, queue))
        c.expect(late["goodput_gbps"] > 35, "%s: %.2f Gb/s" % (name, late["goodput_gbps"]))
        c.expect(dropped(late) == 0, "%s: %d frames lost" % (name, dropped(late)))


def check_recovery(c):
    """Seven of eight flows end; the eighth has the line again, sooner with a shorter timer."""
    network = incast(40_000, parameters="driver.qcn.time_reset_us = 300").replace(
        'from = ["h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8"]\nto = "h9"\ntransport = "rc"\n',
        'from = ["h1", "h2", "h3", "h4", "h5", "h6", "h7"]\nto = "h9"\nmessages = 60\n\n'
        '[[flow]]\nfrom = "h8"\nto = "h9"\n')
    result, _ = c.run(network)
    ends = max(f["completion_us"] for f in result["flows"][:7])
    last = result["flows"][7]
    # What it has sent until the others ended is a share; what is left of the time it has the line.
    alone = last["goodput_gbps"] * 40_000 - ends * 7
    c.expect(ends < 12_000, "seven flows end at %.0f us" % ends)
    c.expect(alone / (40_000 - ends) > 30, "the flow that is left has %.1f Gb/s" % (alone / (40_000 - ends)))
    c.expect(total(result, "h8.adapter.requester.rp_cnm_ended") >= 1, "its reaction point does not end")


def check_pfc(c):
    lossless = 'switch.buffer.flow_control = "pfc"\nswitch.buffer.bytes = 1_000_000\ndriver.pfc_mask = 8'
    quiet, _ = c.run(incast(40_000, parameters=lossless))
    paused, _ = c.run(incast(40_000, parameters=lossless + "\nswitch.qcn.priorities = 0").replace(
        "switch.qcn.priorities = 8\n", ""))
    few, many = (sum(p["tx_pause"] for p in r["ports"]) for r in (quiet, paused))
    c.expect(dropped(quiet) + dropped(paused) == 0, "lossless frames were lost")
    c.expect(many > 1000, "PFC alone: %d pauses" % many)
    c.expect(0 < few < many / 10, "%d pauses with QCN, %d without" % (few, many))
    c.expect(jain(rates(quiet)) > 0.95, "QCN and PFC: fairness %.4f" % jain(rates(quiet)))
    c.expect(quiet["goodput_gbps"] > 35, "QCN and PFC: %.2f Gb/s" % quiet["goodput_gbps"])


def check_capture(c):
    """False: without scapy."""
    try:
        from scapy.layers.l2 import Dot1Q, Ether
        from scapy.utils import RawPcapReader
        from cnm_frames import CNM_TYPE, Cnm
    except ImportError:
        return False
    for roce, ip, type_ in (("v1", 4, 0x8915), ("v2", 4, 0x0800), ("v2", 6, 0x86dd)):
        name = "%s over IPv%d" % (roce, ip)
        file = c.path("%s_%d.pcap" % (roce, ip))
        result, _ = c.run(incast(10_000, roce, ip), "--pcap", file, "--pcap-at", "h1")
        cnms, requests = [], {}
        for data, _meta in RawPcapReader(file):
            tagged = data[12:14] == b"\x81\x00"
            if tagged and data[16:18] == CNM_TYPE.to_bytes(2, "big"):
                cnms.append(data)
            elif tagged and int.from_bytes(data[16:18], "big") == type_ and len(data) > 500:
                requests[data[16:80]] = data  # as a CNM gives it back: 64 bytes behind the tag
        received = total(result, "h1.adapter.cnm_receiver.received")
        c.expect(len(cnms) > 3, "%s: %d CNMs in the capture" % (name, len(cnms)))
        c.expect(len(cnms) - received in (0, 1), "%s: %d in the capture, %d received" % (name, len(cnms), received))
        for data in cnms:
            frame = Ether(data)
            m = frame[Cnm]
            request = requests.get(m.msdu)
            c.expect(frame[Dot1Q].prio == 6 and frame[Dot1Q].vlan == 2, "%s: tag" % name)
            c.expect(m.version == 0 and m.reserved == 0 and m.reserved2 == 0, "%s: reserved" % name)
            c.expect(0 < m.feedback < 64 and m.priority == 3 and m.length == 64, "%s: %s" % (name, m.summary()))
            c.expect(m.q_offset < 0 or m.q_delta > 0, "%s: a CNM without congestion" % name)
            c.expect(m.cpid & 0xffff == 8 << 8 | 3, "%s: CPID %x" % (name, m.cpid))
            # -Fb = -offset + 2 delta, in units of 64 bytes which are cut; 63 is five times the set point.
            fb = (-m.q_offset + 2 * m.q_delta) * 64
            quantised = min(63, fb * 63 // (5 * SET_POINT))
            c.expect(abs(quantised - m.feedback) <= 1, "%s: feedback %d, of offset %d and delta %d" %
                     (name, m.feedback, m.q_offset, m.q_delta))
            c.expect(request is not None, "%s: gives back what was not sent" % name)
            if request is not None:
                sent = Ether(request)
                c.expect(frame.dst == sent.src and m.sampled_dmac == sent.dst, "%s: addresses" % name)
            rebuilt = bytes(Ether(dst=frame.dst, src=frame.src) / Dot1Q(prio=6, vlan=2, type=CNM_TYPE) /
                            Cnm(feedback=m.feedback, cpid=m.cpid, q_offset=m.q_offset, q_delta=m.q_delta, priority=3,
                                sampled_dmac=m.sampled_dmac, msdu=m.msdu))
            c.expect(rebuilt == data, "%s: scapy builds other bytes" % name)
    return True


def check_sameness(c):
    """Flows with an end, which the run ends with, however it is run."""
    network = incast().replace("duration_us = 50000\n", "").replace('to = "h9"\n', 'to = "h9"\nmessages = 30\n')
    first, _ = c.run(network)
    for how in ("sim.always_tick=true", "sim.shuffle_seed=7", "sim.run_ahead=false"):
        other, _ = c.run(network, "--set", how)
        for result in (first, other):
            result.pop("parameters", None), result.pop("set", None)
        c.expect(first == other, how + ": another run")
    other, _ = c.run(network, "--seed", "9")
    c.expect(first["ports"] != other["ports"], "the seed does not reach the samples")


def check_refusals(c):
    refuse(c, "switch.qcn.setpoint_bytes", 99, "100")
    refuse(c, "switch.qcn.sample_bytes", 9_999, "10000")
    refuse(c, "switch.qcn.weight", 0, "1")
    refuse(c, "switch.qcn.cnm_priority", 8, "7")
    refuse(c, "switch.qcn.header_bytes", 65, "64")
    refuse(c, "switch.qcn.priorities", 256, "255")
    refuse(c, "driver.qcn.gd", 32, "31")
    refuse(c, "driver.qcn.min_dec_percent", 0, "1")
    refuse(c, "driver.qcn.min_rate_mbps", 0, "1")
    refuse(c, "driver.qcn.max_rps", 0, "1")
    refuse(c, "adapter.congestion.qcn.log_flows", 3, "4")


def main():
    with tempfile.TemporaryDirectory() as folder:
        c = Checks(sys.argv[1], folder)
        check_incast(c)
        check_services(c)
        check_recovery(c)
        check_pfc(c)
        whole = check_capture(c)
        check_sameness(c)
        check_refusals(c)
        for fault in c.faults:
            print(fault)
        if c.faults:
            return 1
        if not whole:
            print("without scapy: captures were not read")
            return SKIP
    return 0


if __name__ == "__main__":
    sys.exit(main())
