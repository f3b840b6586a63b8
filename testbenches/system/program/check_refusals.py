#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bad options are refused in one line that names them and says what is legal; files of the user's are safe.

usage: check_refusals.py PROGRAM
"""
import json
import os
import subprocess
import sys
import tempfile

# Arguments, and words that the one line must have.
REFUSED = [
    (["soak", "--drop", "nan"], ["--drop", "nan", "number"]),
    (["latency", "--from", "nan", "--trace", "t.json"], ["--from", "nan", "number"]),
    (["latency", "--seed", "-1"], ["--seed", "-1", "0 to 9223372036854775807"]),
    (["latency", "--seed", "9223372036854775808"], ["--seed", "9223372036854775808", "0 to 9223372036854775807"]),
    (["latency", "--json", ""], ["--json", "empty"]),
    (["latency", "--pcap="], ["--pcap", "missing"]),
    (["latency", "--trace", ""], ["--trace", "empty"]),
    (["sweep", "x.toml", "--out", ""], ["--out", "empty"]),
    (["compare", "a", "b", "--junit", ""], ["--junit", "empty"]),
    (["report", ""], ["empty"]),
    (["latency", "--pcap-fcs"], ["--pcap-fcs", "no --pcap"]),
    (["soak", "--pcap-before"], ["--pcap-before", "no --pcap"]),
    (["latency", "--functions", "2,2"], ["--functions", "one number or three"]),
    (["latency", "--functions", "127"], ["--functions", "0 to 126"]),
    (["latency", "--functions", "60,60,7"], ["--functions", "0 to 126"]),
    (["latency", "--seed", "18446744073709551616"], ["--seed", "18446744073709551616", "0 to"]),
    (["latency", "--seed", "7x"], ["--seed", "7x"]),
    (["latency", "--mtu", "7"], ["--mtu", "7", "256", "4096"]),
    (["latency", "--verb", "fadd", "--sizes", "8,16"], ["--sizes", "16", "8 bytes", "fadd"]),
    (["bandwidth", "--verb", "cas", "--sizes", "4"], ["--sizes", "4", "8 bytes", "cas"]),
    (["latency", "--verb", "atomic"], ["--verb", "atomic", "write", "send", "read", "cas", "fadd"]),
    (["latency", "--roce", "v3"], ["--roce", "v1", "v2"]),
    (["latency", "--ip", "5"], ["--ip", "4", "6"]),
    (["latency", "--vlan", "4095"], ["--vlan", "4095", "4094"]),
    (["latency", "--priority", "8"], ["--priority", "8", "0", "7"]),
    (["latency", "--priority", "-1"], ["--priority", "-1"]),
    (["latency", "--inline", "913"], ["--inline", "913", "912"]),
    (["latency", "--sizes", "2,x"], ["--sizes", "x"]),
    (["bandwidth", "--sizes", "2,,4"], ["--sizes", "2,,4", "missing"]),
    (["latency", "--sizes=2,"], ["--sizes", "2,", "missing"]),
    (["bandwidth", "--functions", "1,,2"], ["--functions", "1,,2", "missing"]),
    (["calibrate", "--only", "C01", ",C02"], ["--only", ",C02", "missing"]),
    (["latency", "--sizes", "0"], ["--sizes", "0", "1"]),
    (["latency", "--sizes", "4294967295"], ["--sizes", "2147483648"]),
    (["latency", "--iterations", "0"], ["--iterations", "0", "1", "10000000"]),
    (["latency", "--profile", "connectx9"], ["connectx9", "connectx3pro_40g", "connectx5_100g"]),
    (["latency", "--transport", "xx"], ["--transport", "xx", "rc", "uc", "ud", "xrc"]),
    (["latency", "--transport", "uc", "--verb", "read"], ["--verb", "read", "--transport uc", "write", "send_imm"]),
    (["bandwidth", "--transport", "uc", "--verb", "cas"], ["--verb", "cas", "--transport uc", "write_imm", "send"]),
    (["latency", "--transport", "uc", "--verb", "masked_fadd"], ["--verb", "masked_fadd", "--transport uc", "write"]),
    (["bandwidth", "--transport", "ud", "--verb", "write"], ["--verb", "write", "--transport ud", "send, send_imm"]),
    (["latency", "--set", "adapter.port.roce_v2=false"], ["adapter.port.roce_v2", "RoCE v2"]),
    (["bandwidth", "--set", "adapter.identity.device_id=0x1111"], ["adapter.identity.device_id", "0x1003"]),
    (["bandwidth", "--functions", "2", "--set", "adapter.identity.vf_device_id=0x1003"],
     ["adapter.identity.vf_device_id", "0x1004"]),
    (["latency", "--transport", "ud", "--verb", "send", "--inline", "885"], ["--inline", "885", "ud", "0 to 884"]),
    (["latency", "--set", "host.max_read_request_bytes=384"], ["host.max_read_request_bytes", "power of two"]),
    (["bandwidth", "--set", "adapter.pcie.core_khz=999"], ["core_khz", "1000"]),
    (["latency", "--transport", "ud"], ["--verb", "write", "--transport ud", "send, send_imm"]),
    (["bandwidth", "--transport", "ud", "--verb", "send", "--set", "driver.ud_gid_type=v1"],
     ["driver.ud_gid_type", "v1", "by_address"]),
    (["latency", "--transport", "ud", "--verb", "send", "--roce", "v1", "--set", "driver.ud_gid_type=v2"],
     ["driver.ud_gid_type", "v2", "by_address"]),
    (["latency", "--transport", "ud", "--verb", "fadd"], ["--verb", "fadd", "--transport ud", "send, send_imm"]),
    (["latency", "--transport", "xrc", "--verb", "masked_cas"], ["--verb", "masked_cas", "--transport xrc", "cas"]),
    (["latency", "--transport", "ud", "--verb", "send", "--sizes", "64,2049"], ["--sizes", "2049", "ud", "2048", "--mtu"]),
    (["bandwidth", "--transport", "ud", "--verb", "send", "--mtu", "256", "--sizes", "512"], ["--sizes", "512", "256"]),
    (["latency", "--verb", "masked_cas", "--sizes", "16"], ["--sizes", "16", "8 bytes", "masked_cas"]),
    (["bandwidth", "--rx-depth", "0"], ["--rx-depth", "0", "1", "8192"]),
    (["bandwidth", "--depth", "4", "--cq-mod", "5"], ["--cq-mod", "5", "0 to 4", "--depth"]),
    (["bandwidth", "--outs", "3"], ["--outs", "3", "2", "4", "16"]),
    (["latency", "--transport", "xrc", "--inline-receive", "64"], ["--inline-receive", "64", "xrc", "shared receive queue", "0"]),
    (["bandwidth", "--transport", "xrc", "--inline-receive", "64"], ["--inline-receive", "64", "xrc", "0"]),
    (["latency", "--unheard", "1"], ["--unheard"]),
    (["latency", "--seed", "x"], ["--seed", "x"]),
    (["bandwidth", "--depth", "0"], ["--depth", "0", "1", "8192"]),
    (["bandwidth", "--qps", "0"], ["--qps", "0", "1", "65536"]),
    (["bandwidth", "--messages", "100000001"], ["--messages", "100000001", "0"]),
    (["latency", "--set", "adapter.clock_khz"], ["--set", "adapter.clock_khz", "="]),
    (["latency", "--set", "adapter.clock_khz=0"], ["--set", "adapter.clock_khz", "'0'", "1000 to 10000000 kHz"]),
    (["latency", "--set", "adapter.clock_khz=1e6"], ["adapter.clock_khz", "'1e6'", "1000 to 10000000 kHz"]),
    (["latency", "--set", "adapter.clok_khz=1"], ["adapter.clok_khz", "nearest", "adapter.clock_khz"]),
    (["bandwidth", "--set", "driver.larg_cqe=true"], ["driver.larg_cqe", "nearest", "driver.large_cqe"]),
    (["latency", "--set", "sim.always_tick=maybe"], ["sim.always_tick", "'maybe'", "true or false"]),
    (["latency", "--set", "host.buffers=tape"], ["host.buffers", "'tape'", "llc, dram or remote"]),
    (["latency", "--config", "/nowhere/x.toml"], ["/nowhere/x.toml"]),
    (["latency", "--json", "/nowhere/x.json"], ["/nowhere/x.json"]),
    (["latency", "--pcap", "/nowhere/x.pcap"], ["/nowhere/x.pcap"]),
    (["bandwidth", "--json", "/nowhere/x.json"], ["/nowhere/x.json"]),
    (["bandwidth", "--pcap", "/"], ["/"]),
    (["bandwidth", "--functions", "2", "--function", "1", "--vlan", "5", "--set", "driver.functions.vlan=5"],
     ["driver.functions.vlan", "--vlan", "5"]),
    (["nonsense"], ["nonsense"]),
    ([], ["subcommand"]),
]


def check(program, arguments, words, complain):
    done = subprocess.run([program] + arguments, capture_output=True, text=True, timeout=60)
    lines = done.stderr.splitlines()
    if done.returncode != 2:
        complain("exit status %d" % done.returncode)
    if len(lines) != 1 or not lines[0].startswith("rnic: "):
        complain("not one line: %r" % done.stderr)
    for word in words:
        if word not in done.stderr:
            complain("does not say %r: %s" % (word, done.stderr.strip()))
    if done.stdout:
        complain("prints to standard output: %r" % done.stdout[:200])


def check_files(program, complain):
    short = ["latency", "--sizes", "64", "--iterations", "1", "--quiet"]
    with tempfile.TemporaryDirectory() as folder:
        for option in ("--json", "--pcap"):
            mine = os.path.join(folder, "mine" + option)
            with open(mine, "w") as f:
                f.write("mine")
            check(program, short + [option, mine], [mine, "exists", "--overwrite"], complain)
            with open(mine) as f:
                if f.read() != "mine":
                    complain(option + ": the user's file was written over")
            if subprocess.run([program] + short + [option, mine, "--overwrite"], capture_output=True).returncode != 0:
                complain(option + " --overwrite: fails")
            with open(mine, "rb") as f:
                if f.read() == b"mine":
                    complain(option + " --overwrite: the file was not written")
        # Two names of one file that is not there yet.
        two = subprocess.run([os.path.abspath(program)] + short + ["--json", "both", "--pcap", "./both"], cwd=folder,
                             capture_output=True, text=True)
        if two.returncode != 2 or "is named for two results" not in two.stderr:
            complain("two names of one file: status %d: %s" % (two.returncode, two.stderr))
        # A run that is refused leaves nothing behind.
        left = os.path.join(folder, "left.json")
        check(program, short + ["--json", left, "--set", "no.such=1"], ["no.such"], complain)
        if os.path.exists(left):
            complain("a refused run left " + left)
        broken = os.path.join(folder, "broken.toml")
        with open(broken, "w") as f:
            f.write("[adapter]\nclock_khz = \n")
        check(program, short + ["--config", broken], [broken], complain)
        with open(broken, "w") as f:
            f.write("[adapter]\nclok_khz = 400000\n")
        check(program, short + ["--config", broken], [broken, "adapter.clok_khz", "adapter.clock_khz"], complain)


def write(folder, text):
    name = os.path.join(folder, "written.toml")
    with open(name, "w") as f:
        f.write(text)
    return name


def check_reports(program, folder, complain):
    """A page does not take the place of the result that it is of."""
    mine = os.path.join(folder, "results", "mine.json")
    os.mkdir(os.path.dirname(mine))
    subprocess.run([program, "latency", "--sizes", "64", "--iterations", "1", "--quiet", "--json", mine], capture_output=True)
    with open(mine) as f:
        before = f.read()
    for place in mine, os.path.dirname(mine):
        check(program, ["report", place, "-o", mine, "--overwrite"], ["mine.json", "and read"], complain)
        with open(mine) as f:
            if f.read() != before:
                complain("report %s: the result was written over" % place)


def check_names(program, complain):
    """No file has two meanings, no folder is an empty file, and what cannot be written is said."""
    short = ["latency", "--sizes", "64", "--iterations", "1", "--quiet"]
    with tempfile.TemporaryDirectory() as folder:
        one, link = os.path.join(folder, "one"), os.path.join(folder, "link")
        os.symlink(one, link)
        for first, second in ("--json", "--pcap"), ("--pcap", "--trace"), ("--json", "--konata"), ("--trace", "--wave"):
            for other in one, os.path.join(folder, ".", "one"), link:
                check(program, short + [first, one, second, other], ["named for two results"], complain)
                if os.path.exists(one):
                    complain("%s %s: something was written" % (first, second))
        mine = os.path.join(folder, "mine.toml")
        for option, text in ("--config", "[adapter]\nclock_khz = 400000\n"), ("--faults", ""):
            with open(mine, "w") as f:
                f.write(text)
            check(program, short + [option, mine, "--json", mine, "--overwrite"], ["mine.toml", "and read"], complain)
            with open(mine) as f:
                if f.read() != text:
                    complain(option + ": it was written over")
            check(program, short + [option, folder], [folder, "is a directory"], complain)
        for command in ["run"], ["fabric"], ["sweep", "--out", os.path.join(folder, "out")]:
            check(program, command + [folder], [folder, "is a directory"], complain)
        for text in 'rate_mpps = 1e-300', 'load_gbps = 1e-12':
            check(program, ["run", write(folder, '[topology]\nkind = "pair"\n[[workload]]\nfrom = "h1"\nto = "h2"\n'
                                         'messages = 10\nsize = 64\narrivals = "poisson"\n%s\n' % text)],
                  [text.split()[0], "a message in 1000 s"], complain)
        check_reports(program, folder, complain)
        pipe = os.path.join(folder, "pipe")
        os.mkfifo(pipe)
        with subprocess.Popen([program] + short + ["--json", pipe, "--overwrite"], stdout=subprocess.DEVNULL) as running:
            with open(pipe) as f:
                if json.load(f)["command"] != "latency":
                    complain("--json into a pipe is something else")
            if running.wait(60) != 0:
                complain("--json into a pipe: exit status %d" % running.returncode)
        # A reference stays until the new one is whole; what is written has its rights, and nothing lies beside it.
        kept = os.path.join(folder, "kept.json")
        with open(kept, "w", encoding="utf-8") as f:
            f.write("{}")
        os.chmod(kept, 0o600)
        limited = ["sh", "-c", "ulimit -f 1; trap '' XFSZ; exec \"$@\"", "sh", program] + short + ["--json", kept, "--overwrite"]
        done = subprocess.run(limited, capture_output=True, text=True, timeout=60)
        with open(kept, encoding="utf-8") as f:
            if done.returncode != 2 or f.read() != "{}":
                complain("a full disk: exit status %d, and the reference is gone" % done.returncode)
        subprocess.run([program] + short + ["--json", kept, "--overwrite"], check=True, capture_output=True, timeout=60)
        with open(kept, encoding="utf-8") as f:
            if json.load(f)["command"] != "latency" or os.stat(kept).st_mode & 0o777 != 0o600:
                complain("--overwrite: %o" % os.stat(kept).st_mode)
        if any(".part" in name for name in os.listdir(folder)):
            complain("parts are left: %s" % os.listdir(folder))
    for command in short, ["parameters"], ["show-gids"], ["devices"], ["--help"], ["latency", "--help"], ["--version"]:
        with open("/dev/full", "w") as full:
            done = subprocess.run([program] + command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        if done.returncode != 2 or done.stderr != "rnic: standard output: writing failed\n":
            complain("%s > /dev/full: exit status %d, %r" % (" ".join(command), done.returncode, done.stderr))


def main():
    faults = []
    program = sys.argv[1]
    for arguments, words in REFUSED:
        check(program, arguments, words, lambda text, a=arguments: faults.append(" ".join(a) + ": " + text))
    check_files(program, faults.append)
    check_names(program, faults.append)
    for fault in faults:
        print(fault)
    print("%d refusals, %d faults" % (len(REFUSED), len(faults)))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
