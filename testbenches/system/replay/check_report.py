#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a replay tells its user: differences, fields, exit status, times, captures with comments.

usage: check_report.py CASE PROGRAM TRACES
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

from check_replay import HOSTS, expect, icrc, records, roce


class Replay:
    """One run of the program: exit status, text, and the JSON report if there is one."""

    def __init__(self, program, directory, arguments, **how):
        out = os.path.join(directory, "report.json")
        if os.path.exists(out):
            os.remove(out)
        done = subprocess.run([program, "replay", "--json", out] + arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=120, **how)
        self.status, self.text, self.error = done.returncode, done.stdout.decode(), done.stderr.decode()
        self.report = json.load(open(out)) if os.path.exists(out) else None

    def kinds(self):
        return {d["kind"] for d in self.report["differences"]}


def write_pcap(path, frames):
    """Frames with their nanoseconds, as a classic file."""
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1))
        for at, frame in frames:
            file.write(struct.pack("<IIII", at // 10**9, at % 10**9, len(frame), len(frame)) + frame)


def changed(frame, change):
    """The frame with the bytes from its BTH on changed, and a right ICRC."""
    l3, udp, rest = roce(frame)
    body = bytearray(rest[:-4])
    change(body)
    start = len(frame) - len(rest) - len(udp) - len(l3)
    return frame[:start] + l3 + udp + bytes(body) + icrc(l3, udp, body)


def sender(frame):
    return ":".join("%02x" % b for b in frame[6:12])


def check_fields(program, traces, directory):
    """A difference in a field is found under its name, and is none when the field is ignored."""
    frames = records(os.path.join(traces, "rc_send_mtu1024_4096B.pcap"))
    acks = [i for i, (_, f) in enumerate(frames) if sender(f) == HOSTS[0] and roce(f)[2][0] == 0x11]
    sends = [i for i, (_, f) in enumerate(frames) if sender(f) == HOSTS[0] and roce(f)[2][0] == 0x01]

    def set_msn(body):
        body[15] += 5

    def set_verdict(body):
        body[12] = 0x64

    def set_solicited(body):
        body[1] |= 0x80

    wanted = {"msn": (acks[3], set_msn, "other MSN"), "verdict": (acks[6], set_verdict, "other verdict"),
              "solicited": (sends[8], set_solicited, "other solicited bit")}
    for index, change, _ in wanted.values():
        frames[index] = frames[index][0], changed(frames[index][1], change)
    path = os.path.join(directory, "changed.pcap")
    write_pcap(path, frames)
    hold = [path, "--hold", HOSTS[0]]
    found = Replay(program, directory, hold)
    expect({(d["frame"], d["kind"]) for d in found.report["differences"]} == {(i + 1, kind) for i, _, kind in wanted.values()},
           str(found.report["differences"]))
    for name, (_, _, kind) in wanted.items():
        found = Replay(program, directory, hold + ["--ignore", name])
        expect(found.kinds() == {k for _, _, k in wanted.values()} - {kind}, "%s ignored: %s" % (name, found.kinds()))
        expect(name not in found.report["compared"] and len(found.report["compared"]) == 7, str(found.report["compared"]))
    found = Replay(program, directory, hold + [a for name in wanted for a in ("--ignore", name)])
    expect((found.report["differences"], found.report["matched_answers"]) == ([], 60), "all three ignored")
    wrong = Replay(program, directory, hold + ["--ignore", "colour"])
    names = ("opcode", "verdict", "remote", "length", "payload", "immediate", "solicited", "msn")
    expect(wrong.status == 2 and len(wrong.error.splitlines()) == 1, wrong.error)
    expect(all(n in wrong.error for n in names + ("--ignore", "colour")), wrong.error)
    text = subprocess.run([program, "replay", "--help"], stdout=subprocess.PIPE, timeout=20).stdout.decode()
    expect(all(n + ": " in text for n in names), "--help does not say what is compared")


def altered(traces, directory, name, changes, source="rc_send_mtu1024_4096B"):
    """A capture of which the n-th ACK of host A is changed, for every (n, change)."""
    frames = records(os.path.join(traces, source + ".pcap"))
    acks = [i for i, (_, f) in enumerate(frames) if sender(f) == HOSTS[0] and roce(f)[2][0] == 0x11]
    for n, change in changes:
        frames[acks[n]] = frames[acks[n]][0], changed(frames[acks[n]][1], change)
    path = os.path.join(directory, name)
    write_pcap(path, frames)
    return path, [acks[n] + 1 for n, _ in changes]


def other_msn(body):
    body[15] += 5


def refusal(body):
    body[12] = 0x64


def check_status(program, traces, directory):
    """The exit status says whether the answers agree, as far as --expect asks, and so do the text and the JSON."""
    good = os.path.join(traces, "rc_send_mtu1024_4096B.pcap")
    msn, _ = altered(traces, directory, "msn.pcap", [(3, other_msn)])
    verdict, _ = altered(traces, directory, "verdict.pcap", [(3, other_msn), (6, refusal)])
    for path, wanted in ((good, (0, 0, 0)), (msn, (1, 0, 0)), (verdict, (1, 1, 0))):
        for expected, status in zip(("all", "fatal", "none"), wanted):
            for more in ([], ["--expect", expected]):
                if not more and expected != "fatal":
                    continue  # what counts when nothing is asked for
                got = Replay(program, directory, [path, "--hold", HOSTS[0]] + more)
                expect(got.status == status, "%s, %s: exit status %d: %s" % (path, expected, got.status, got.error))
                expect(got.report["agree"] == (status == 0) and got.report["expect"] == expected, str(got.report["agree"]))
                expect(got.report["fatal_differences"] == (1 if path == verdict else 0), str(got.report["fatal_differences"]))
                said = "the answers do not agree" if status else "the answers agree"
                expect(said in got.text, got.text[-300:])
    first, numbers = altered(traces, directory, "first.pcap", [(0, other_msn)])  # the one that all others differ from
    got = Replay(program, directory, [first, "--hold", HOSTS[0]])
    expect([(d["kind"], d["frame"]) for d in got.report["differences"]] == [("other MSN", numbers[0])], str(got.report["differences"]))
    ignored = Replay(program, directory, [verdict, "--hold", HOSTS[0], "--expect", "all", "--ignore", "msn", "--ignore", "verdict"])
    expect(ignored.status == 0, "what is ignored does not count")
    expect(Replay(program, directory, [good, "--expect", "some"]).status == 2, "--expect some")
    for name in ("rc_send_loss2pct_mtu1024_8000B", "rc_send_loss2pct_mtu1024_8000B.rx", "ud_send_1000B"):
        for hold in HOSTS:
            got = Replay(program, directory, [os.path.join(traces, name + ".pcap"), "--hold", hold])
            report = got.report
            expect(got.status == int(any(d["fatal"] for d in report["differences"])), "%s: exit status %d" % (name, got.status))
            for kind, key in (("answer", "extra_answers"), ("request", "extra_requests")):
                count = sum(d["kind"].startswith(kind + " that the real host did not") for d in report["differences"])
                expect(report[key] == count and "extra %ss %d" % (kind, count) in got.text, "%s: %s" % (name, key))


def check_latency(program, traces, directory):
    """The times of the real host, found in the capture by other means, stand beside the model's."""
    for name, hold, opcode, answer in (("rc_send_mtu1024_4096B", HOSTS[0], 0x11, "RC Acknowledge"), ("rc_write_mtu1024_20000B", HOSTS[0], 0x11, "RC Acknowledge"),
                                       ("rc_atomic_fetchadd", HOSTS[0], 0x12, "RC Atomic Acknowledge"), ("rc_read_mtu1024_6000B", HOSTS[0], 0x0D, "RC RDMA READ Response First")):
        asked, times = {}, []
        for at, f in records(os.path.join(traces, name + ".pcap")):
            parts = roce(f)
            if parts is None:
                continue
            psn = parts[2][9:12]
            if sender(f) != hold:
                asked[psn] = at
            elif parts[2][0] == opcode and psn in asked:
                times.append((at - asked[psn]) * 1000)
        got = Replay(program, directory, [os.path.join(traces, name + ".pcap"), "--hold", hold])
        rows = [row for row in got.report["latency_compared"] if row["answer"] == answer]
        expect(len(rows) == 1 and rows[0]["count"] == len(times), "%s: %s" % (name, got.report["latency_compared"]))
        captured, model = rows[0]["captured"], rows[0]["model"]
        expect((captured["min_ps"], captured["max_ps"]) == (min(times), max(times)), "%s: %s" % (name, captured))
        expect(captured["typical_ps"] in (sorted(times)[(len(times) - 1) // 2], sorted(times)[len(times) // 2]), name + ": median")
        single = [p["answer"]["latency_ps"] for p in got.report["packets"] if p.get("answer", {}).get("opcode") == answer]
        expect(not single or model["typical_ps"] in single, name + ": the model's median is none of its answers'")
        expect(0 < model["typical_ps"] < captured["typical_ps"], name + ": Soft-RoCE under emulation is slower")
        line = [l for l in got.text.splitlines() if l.strip().startswith(answer + " ") and len(l.split()) == len(answer.split()) + 5]
        expect(len(line) == 1 and "%.3f" % (captured["typical_ps"] / 1e6) in line[0].split(), "%s: %s" % (name, line))
        per_packet = [p["captured_latency_ps"] for p in got.report["packets"] if "captured_latency_ps" in p]
        expect(set(times) <= set(per_packet), name + ": times of single packets")


def tshark(path, *fields, more=()):
    """Rows of fields. Its guess at what a SEND carries (RPC) is switched off."""
    command = ["tshark", "-r", path, "--disable-protocol", "rpcordma", "-T", "fields", "-E", "separator=\x01"] + list(more)
    for f in fields:
        command += ["-e", f]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    expect(done.returncode == 0, done.stderr.decode())
    return [line.split("\x01") for line in done.stdout.decode().splitlines()]


def check_merge(program, traces, directory):
    """The resulting capture has the times of the captured one, so that the two can be merged."""
    source = os.path.join(traces, "rc_read_mtu1024_6000B.pcap")
    frames = records(source)
    for ending in ("pcap", "pcapng"):
        out = os.path.join(directory, "merge." + ending)
        got = Replay(program, directory, [source, "--output", out])
        expect(got.status == 0, got.error)
        rows = [(int(r[0].replace(".", "")), r[1], r[2]) for r in tshark(out, "frame.time_epoch", "eth.src", "infiniband.bth.psn")]
        expect(len(rows) == 84, "%s: %d frames" % (ending, len(rows)))
        came = iter([at for at, source_mac, _ in rows if source_mac == HOSTS[1]])
        for at, f in frames:  # the peer's, at the moment of the capture
            if roce(f) and sender(f) == HOSTS[1]:
                expect(0 <= next(came) - at < 1000, ending + ": a question is not at its time")
        merged = os.path.join(directory, "merged.pcapng")
        subprocess.run(["mergecap", "-w", merged, source, out], check=True, timeout=60)
        times = [float(r[0]) for r in tshark(merged, "frame.time_epoch")]
        expect(len(times) == 86 + 84 and times == sorted(times), ending + ": not in order when merged")
        # The other one is in simulated time.
        simulated = os.path.join(directory, "simulated.pcap")
        Replay(program, directory, [source, "--pcap", simulated, "--overwrite"])
        expect(records(simulated)[0][0] < 100 * 10**9, "--pcap is in simulated time")


def comments_of(path):
    return [(r[0], r[1], r[2]) for r in tshark(path, "frame.number", "frame.interface_name", "frame.comment", more=["-Y", "frame.comment"])]


def about(path):
    """The comment of the whole file."""
    text = subprocess.run(["capinfos", "-k", path], stdout=subprocess.PIPE, timeout=60).stdout.decode()
    return [line.split(":", 1)[1].strip() if "comment" in line.split(":")[0] else line.strip() for line in text.splitlines()[1:]]


def check_comments(program, traces, directory):
    """--output X.pcapng: tshark shows what differs, where, and why; interfaces and directions; FCS."""
    out = os.path.join(directory, "out.pcapng")
    good = os.path.join(traces, "rc_send_mtu1024_4096B.pcap")
    expect(Replay(program, directory, [good, "--output", out]).status == 0, "agreeing")
    expect(comments_of(out) == [], "comments where nothing differs")
    rows = tshark(out, "eth.src", "frame.interface_name", "frame.packet_flags_direction", "infiniband.bth.opcode", "_ws.malformed")
    held = Replay(program, directory, [good]).report["held"]
    for source, interface, direction, opcode, malformed in rows:
        mine = source == held
        expect(interface == ("from the adapter" if mine else "to the adapter"), source + " is on " + interface)
        expect(int(direction, 0) == (2 if mine else 1) and opcode and not malformed, "%s %s %s" % (direction, opcode, malformed))
    path, numbers = altered(traces, directory, "altered.pcap", [(3, other_msn), (6, refusal)])
    got = Replay(program, directory, [path, "--hold", HOSTS[0], "--output", out, "--overwrite"])
    found = comments_of(out)
    expect(len(found) == 2 and all(i == "from the adapter" for _, i, _ in found), str(found))
    for (_, _, text), number, d in zip(found, numbers, got.report["differences"]):
        for part in (d["kind"], d["expected"], d["obtained"], d["explanation"], "(frame %d of the capture)" % number):
            expect(part in text, "%s: %s" % (part, text))
    # Whatever the differences are, each one is told once.
    for name in ("rc_send_loss2pct_mtu1024_8000B", "rc_send_loss2pct_mtu1024_8000B.rx"):
        for hold in HOSTS:
            got = Replay(program, directory, [os.path.join(traces, name + ".pcap"), "--hold", hold, "--output", out, "--overwrite"])
            lines = [line for _, _, text in comments_of(out) for line in text.split("\\n" if "\\n" in text else "\n")]
            whole = "\n".join(lines + about(out))
            expect(got.report["differences"], name + " has differences")
            for d in got.report["differences"]:
                expect(whole.count(d["explanation"]) >= 1 and (not d["expected"] or d["expected"] in whole), "%s: %s is not told" % (name, d))
            said = sum(whole.count("; expected ") for _ in (0,))
            wanted = sum(bool(d["expected"]) for d in got.report["differences"])
            expect(said == wanted, "%s: %d of %d are told" % (name, said, wanted))
    fcs = os.path.join(directory, "fcs.pcapng")
    Replay(program, directory, [good, "--output", fcs, "--pcap-fcs"])
    states = {r[0] for r in tshark(fcs, "eth.fcs.status", more=["-o", "eth.check_fcs:TRUE"])}
    expect(states == {"1"}, "FCS: " + str(states))
    kept = open(fcs, "rb").read()
    got = Replay(program, directory, [good, "--output", fcs])
    expect(got.status == 2 and open(fcs, "rb").read() == kept, "a file of the user's was written over")


LOST = [11, 87, 185, 283, 315, 348, 389, 469]  # traces/README.md


def check_ends(program, traces, directory):
    """Two captures of one run: what was lost is found, not injected, and the reason for what was sent again."""
    sent, arrived = (os.path.join(traces, "rc_send_loss2pct_mtu1024_8000B" + end + ".pcap") for end in ("", ".rx"))
    all_frames = records(sent)
    for hold in HOSTS:
        reports = []
        for first, second in ((sent, arrived), (arrived, sent)):
            got = Replay(program, directory, [first, "--also", second, "--hold", hold])
            report = got.report
            where = "%s, %s: " % (hold, first)
            expect(report["replayed_capture"] == sent and sorted(l["frame"] for l in report["lost"]) == LOST, where + str(report["lost"]))
            for l in report["lost"]:
                expect(l["from_held"] == (sender(all_frames[l["frame"] - 1][1]) == hold) and l["connection"] == 0, where + str(l))
            to = sum(not l["from_held"] for l in report["lost"])
            expect(report["rejected"] == {"lost on the way to the adapter": to}, where + str(report["rejected"]))
            expect("lost on the way to the adapter %d (not injected), from it %d" % (to, 8 - to) in got.text, got.text[-900:])
            naks = [p for p in report["packets"] if p["from_held"] and "NAK PSN sequence error" in p["packet"]]
            expect(naks and all(p["result"] == "matched" for p in naks), where + "a sequence error was not answered by NAK")
            alone = Replay(program, directory, [sent, "--hold", hold]).report
            expect(report["matched_answers"] > alone["matched_answers"] or report["extra_answers"] < alone["extra_answers"], where + "nothing gained")
            expect(all("lost between the point of capture" not in d["explanation"] for d in report["differences"]), where + "a guess where the loss is known")
            again = [d for d in report["differences"] if d["kind"] == "request that was not sent"]
            for d in again:
                named = [l["frame"] for l in report["lost"] if "frame %d of" % l["frame"] in d["explanation"]]
                expect(len(named) == 1, where + str(d))
            reports.append({k: report[k] for k in ("matched_answers", "differences", "injected", "lost")})
        expect(reports[0] == reports[1], hold + ": the order of the two matters")
    # At the two ends, with clocks of their own: what each host sent, and what arrived there.
    delivered = {f for _, f in records(arrived)}
    a, b = os.path.join(directory, "a.pcap"), os.path.join(directory, "b.pcap")
    write_pcap(a, [(at + 5 * 10**9, f) for at, f in all_frames if sender(f) == HOSTS[0] or f in delivered])
    write_pcap(b, [(at + 700, f) for at, f in all_frames if sender(f) == HOSTS[1] or f in delivered])
    for hold, own, other in ((HOSTS[0], a, b), (HOSTS[1], b, a)):
        for first, second in ((own, other), (other, own)):
            got = Replay(program, directory, [first, "--also", second, "--hold", hold])
            expect(got.report["replayed_capture"] == own and got.report["other_capture"] == other, hold + ": another end is replayed")
            expect(len(got.report["lost"]) == 8 and got.report["in_one_capture_only"] == 0, str(got.report["lost"]))
            naks = [p for p in got.report["packets"] if p["from_held"] and "NAK PSN sequence error" in p["packet"]]
            expect(naks and all(p["result"] == "matched" for p in naks), hold + ": a sequence error was not answered by NAK")
    # Nothing was lost: the end is found by the way's length.
    frames = records(os.path.join(traces, "rc_send_mtu1024_4096B.pcap"))
    for path, host in ((a, HOSTS[0]), (b, HOSTS[1])):
        write_pcap(path, [(at + (0 if sender(f) == host else 3000) + (9 * 10**9 if path == b else 0), f) for at, f in frames])
    for hold, own, other in ((HOSTS[0], a, b), (HOSTS[1], b, a)):
        got = Replay(program, directory, [other, "--also", own, "--hold", hold])
        expect(got.report["replayed_capture"] == own and got.report["lost"] == [] and got.status == 0, hold + ": " + got.text[-600:])
    stranger = os.path.join(traces, "rc_atomic_fetchadd.pcap")
    got = Replay(program, directory, [sent, "--also", stranger])
    expect(got.status == 2 and "no packet in common" in got.error and len(got.error.splitlines()) == 1, got.error)
    for wrong in (os.path.join(directory, "none"), directory):
        expect(Replay(program, directory, [sent, "--also", wrong]).status == 2, wrong)


def main():
    case, program, traces = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory:
        {"fields": check_fields, "status": check_status, "latency": check_latency, "merge": check_merge, "comments": check_comments,
         "ends": check_ends}[case](program, traces, directory)


if __name__ == "__main__":
    main()
