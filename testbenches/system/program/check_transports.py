#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rnic latency` and `rnic bandwidth` over every transport with every verb: what the wire shows is what was asked for,
and what is lost over UC and UD is lost.

usage: check_transports.py PROGRAM
Exit code 77: tshark is not there (all else has been checked).
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

SKIP = 77
# Operations of the first packet of a message, and the transports' bits of the opcode (IBA volume 1, 9.2; annex A14).
# Masked atomics have opcodes of the manufacturer's.
WRITE, WRITE_IMM, SEND, SEND_IMM, READ, CAS, FADD = 0x0a, 0x0b, 0x04, 0x05, 0x0c, 0x13, 0x14
OPERATION = {"write": WRITE, "write_imm": WRITE_IMM, "send": SEND, "send_imm": SEND_IMM, "read": READ, "cas": CAS,
             "fadd": FADD}
TRANSPORT = {"rc": 0x00, "uc": 0x20, "ud": 0x60, "xrc": 0xa0}
LEGAL = {"rc": list(OPERATION) + ["masked_cas", "masked_fadd"], "uc": ["write", "write_imm", "send", "send_imm"],
         "ud": ["send", "send_imm"], "xrc": list(OPERATION)}
MANUFACTURER = 0xc0


class Checks:
    def __init__(self, program, folder):
        self.program, self.folder, self.faults, self.count = program, folder, [], 0

    def run(self, arguments, status=0):
        """JSON, path of the capture, and standard error."""
        files = [os.path.join(self.folder, "run" + end) for end in (".json", ".pcap")]
        done = subprocess.run([self.program] + arguments + ["--quiet", "--json", files[0], "--pcap", files[1], "--overwrite"],
                              capture_output=True, text=True, timeout=100)
        self.count += 1
        if done.returncode != status:
            self.faults.append("%s: exit status %d: %s" % (" ".join(arguments), done.returncode, done.stderr))
            return None, files[1], done.stderr
        with open(files[0]) as f:
            return json.load(f) if status == 0 else None, files[1], done.stderr

    def expect(self, what, arguments, text):
        if not what:
            self.faults.append("%s: %s" % (" ".join(arguments), text))


def opcodes(capture):
    rows = subprocess.run(["tshark", "-r", capture, "-T", "fields", "-e", "infiniband.bth.opcode"], check=True,
                          capture_output=True, text=True).stdout.split()
    return [int(r, 0) for r in rows]


def faulty(c):
    """What a cable loses is no goodput, and what it damages ends a run with a sentence: no internal error."""
    plan = os.path.join(c.folder, "plan.toml")

    def with_plan(text, *arguments, status=0):
        with open(plan, "w") as f:
            f.write(text)
        return c.run(list(arguments) + ["--faults", plan], status)
    half = '[[event]]\ndirection = "a_to_b"\nevery = 2\ntype = "drop"\n'
    for transport in ("uc", "ud"):
        arguments = ["bandwidth", "--transport", transport, "--verb", "send", "--sizes", "2048", "--messages", "4000"]
        result, _, _ = with_plan(half, *arguments)
        if result is None:
            continue
        row = result["rows"][0]
        c.expect(row["lost"] == 2000, arguments, "%d lost" % row["lost"])
        # 2048 bytes of payload in frames of 2138 with all that the line carries between them (UD 2146), each second one.
        c.expect(17 < row["goodput_gbps"] < 40 / 2 * 2048 / 2138 * 1.03, arguments, "%.3f Gb/s" % row["goodput_gbps"])
    damage = '[[event]]\ndirection = "a_to_b"\nnth = 3\ntimes = 1\ntype = "corrupt"\nmade_right = "icrc"\nfield = "pad"\nvalue = 1\n'
    # A wrong sender's payload passes every check of the adapter.
    forged = '[[event]]\ndirection = "%s"\nnth = 24\ntimes = 1\ntype = "corrupt"\nmade_right = "icrc"\npart = "payload"\n'
    for direction, arguments in (("a_to_b", ["latency", "--verb", "send"]), ("b_to_a", ["latency", "--verb", "read"]),
                                 ("a_to_b", ["bandwidth", "--verb", "write", "--messages", "12"])):
        _, _, said = with_plan(forged % direction, *arguments, "--sizes", "3000", status=1)
        c.expect("--faults damages frames and makes their ICRC right" in said, arguments, said)
    for verb in ("send", "write_imm"):
        arguments = ["latency", "--verb", verb, "--sizes", "3000"]
        _, _, said = with_plan(damage, *arguments, status=1)
        c.expect("remote_invalid_request" in said, arguments, said)
    for more in ([], ["--bidirectional"], ["--rx-depth", "12"]):
        for verb in ("send", "write_imm", "write"):
            arguments = ["bandwidth", "--verb", verb, "--sizes", "3000", "--messages", "12", "--depth", "4"] + more
            _, _, said = with_plan(damage, *arguments, status=1)
            c.expect("remote_invalid_request" in said, arguments, said)


def every_verb(c):
    has_tshark = shutil.which("tshark") is not None
    for command in ("latency", "bandwidth"):
        for transport, verbs in LEGAL.items():
            for verb in verbs:
                arguments = [command, "--transport", transport, "--verb", verb]
                arguments += ["--iterations", "6"] if command == "latency" else ["--messages", "10", "--qps", "2"]
                if "cas" not in verb and "fadd" not in verb:
                    arguments += ["--sizes", "100"]
                result, capture, _ = c.run(arguments)
                if result is None:
                    continue
                c.expect(result["verb"] == verb and result["transport"] == transport, arguments, "echo of the options")
                if not has_tshark:
                    continue
                seen = opcodes(capture)
                # Four messages before the measured ones, and the ping's pong.
                messages = 10 * (2 if command == "latency" and verb in ("write", "write_imm", "send", "send_imm") else 1)
                if verb.startswith("masked"):
                    found = sum(1 for o in seen if o & 0xe0 == MANUFACTURER)
                    c.expect(found >= messages, arguments, "%d opcodes of the manufacturer's" % found)
                    continue
                found = seen.count(TRANSPORT[transport] | OPERATION[verb])
                c.expect(found == messages, arguments, "%d packets of this verb instead of %d" % (found, messages))
                c.expect(transport not in ("uc", "ud") or len(seen) == messages, arguments, "more packets than messages")
    return has_tshark


def larger_messages(c):
    for arguments in (["--transport", "uc", "--verb", "write", "--sizes", "1,2049,100000"],
                      ["--transport", "uc", "--verb", "send_imm", "--sizes", "0,2048,9001", "--roce", "v1"],
                      ["--transport", "ud", "--verb", "send", "--sizes", "0,1,4096", "--mtu", "4096", "--ip", "6"],
                      ["--transport", "ud", "--verb", "send_imm", "--mtu", "512", "--vlan", "5", "--priority", "2"],
                      ["--transport", "xrc", "--verb", "send", "--sizes", "0,7,70000"],
                      ["--transport", "rc", "--verb", "send", "--sizes", "0,64,65,3000", "--inline-receive", "64"],
                      ["--transport", "uc", "--verb", "send_imm", "--sizes", "0,64,65", "--inline-receive", "64"],
                      ["--transport", "ud", "--verb", "send", "--sizes", "0,64,65", "--inline-receive", "64"],
                      ["--transport", "xrc", "--verb", "write_imm", "--sizes", "5,5000", "--bidirectional"],
                      ["--transport", "rc", "--verb", "write_imm", "--sizes", "5,5000", "--bidirectional"]):
        both = arguments[-1] == "--bidirectional"
        if not both:
            c.run(["latency", "--iterations", "5"] + arguments)
        result, _, _ = c.run(["bandwidth", "--messages", "90", "--qps", "3"] + arguments)
        if result is None:
            continue
        c.expect(all(r.get("lost", 0) == 0 for r in result["rows"]), arguments, "something is lost on a good cable")
        if "--sizes" not in arguments:
            c.expect([r["size"] for r in result["rows"]][-1] == 512, arguments, "sizes of datagrams end at the MTU")


def what_is_lost(c):
    plan = os.path.join(c.folder, "plan.toml")
    with open(plan, "w") as f:
        f.write("[rates]\ndrop = 10\n")
    for transport in ("uc", "ud"):
        arguments = ["bandwidth", "--transport", transport, "--verb", "send", "--sizes", "64,1000", "--messages", "500",
                     "--qps", "2", "--faults", plan]
        result, _, _ = c.run(arguments)
        if result is None:
            continue
        lost, dropped = sum(r["lost"] for r in result["rows"]), result["faults"]["a_to_b"]["drop"]
        c.expect(dropped > 50 and lost == dropped, arguments, "%d messages are lost, %d frames" % (lost, dropped))
    # WRITEs have no receives that could be counted.
    arguments = ["bandwidth", "--transport", "uc", "--verb", "write", "--sizes", "64", "--messages", "500", "--faults", plan]
    result, _, _ = c.run(arguments)
    c.expect(result and "lost" not in result["rows"][0], arguments, "what nobody knows is told")
    for transport, verb in (("uc", "write"), ("uc", "send"), ("ud", "send")):
        arguments = ["latency", "--transport", transport, "--verb", verb, "--sizes", "64", "--faults", plan]
        _, _, text = c.run(arguments, 1)
        c.expect("did not arrive" in text and transport in text and text.count("\n") == 1, arguments, text)
    # Few receives and many messages: RC waits, UD loses.
    small = ["--verb", "send", "--sizes", "8", "--messages", "400", "--depth", "64", "--rx-depth", "1"]
    result, _, _ = c.run(["bandwidth", "--transport", "rc"] + small)
    c.expect(result and result["rows"][0]["lost"] == 0, small, "RC loses")
    result, _, _ = c.run(["bandwidth", "--transport", "ud"] + small)
    c.expect(result and result["rows"][0]["lost"] > 0, small, "UD waits for receives")


def main():
    with tempfile.TemporaryDirectory() as folder:
        c = Checks(sys.argv[1], folder)
        has_tshark = every_verb(c)
        larger_messages(c)
        what_is_lost(c)
        faulty(c)
    for fault in c.faults[:40]:
        print(fault)
    print("%d runs, %d faults" % (c.count, len(c.faults)))
    if c.faults:
        return 1
    return 0 if has_tshark else SKIP


if __name__ == "__main__":
    sys.exit(main())
