#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Examples of the product documents about addresses, versions and traffic classes, as the program shows them. README.md
lists which example is where. What the documents print is here as they print it; frames are read by tshark.

usage: check_addresses.py PROGRAM
"""
import ipaddress
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1]
FOLDER = tempfile.mkdtemp(prefix="rnic-addresses-")


def run(*arguments, status=0):
    done = subprocess.run([PROGRAM] + [str(a) for a in arguments], capture_output=True, text=True)
    if done.returncode != status:
        words = " ".join(map(str, arguments))
        raise SystemExit("%s: status %d, expected %d\n%s" % (words, done.returncode, status, done.stderr))
    if status == 2:
        check(done.stderr.startswith("rnic: ") and done.stderr.count("\n") == 1, "one line: " + done.stderr)
    return done.stdout if status == 0 else done.stderr


def check(is_so, what):
    if not is_so:
        raise SystemExit("wrong: %s" % (what,))


def frames(fields, *arguments):
    """Values of these fields in the frames of `rnic latency` of 8 bytes."""
    capture = os.path.join(FOLDER, "frames.pcap")
    run("latency", "--sizes", 8, "--iterations", 3, "--pcap", capture, "--overwrite", *arguments)
    command = ["tshark", "-r", capture, "-T", "fields"]
    for f in fields:
        command += ["-e", f]
    lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    check(len(lines) > 10, "frames")
    return {tuple(line.split("\t")) for line in lines}


# ---------------------------------------------------------------- RoCE v1 compatibility

def by_the_manual(mac, vlan=None):
    """The manual's two tables: ip[0..15] of mac[0..5]."""
    m = [int(b, 16) for b in mac.split(":")]
    middle = [0xff, 0xfe] if vlan is None else [vlan >> 8 & 0xf, vlan & 0xff]
    ip = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, m[0] ^ 2, m[1], m[2]] + middle + m[3:6]
    return ipaddress.IPv6Address(bytes(ip))


def compatibility():
    # The MAC that eth1's default GID says (RFC 4291, appendix A).
    with tempfile.NamedTemporaryFile(dir=FOLDER, suffix=".json") as f:
        run("show-gids", "--json", f.name, "--overwrite")
        rows = json.load(open(f.name))["gids"]
    macs = {}
    for r in rows:
        b = ipaddress.IPv6Address(r["gid"]).packed
        macs[r["interface"]] = ":".join("%02x" % n for n in (b[8] ^ 2, b[9], b[10], b[13], b[14], b[15]))
    for interface in ("eth1", "eth2"):
        for vlan in (None, 1, 7, 0x123, 4094):
            want = by_the_manual(macs[interface], vlan)
            option = [] if vlan is None else ["-v", vlan]
            # -n: only the commands.
            commands = run("compat-gid", "-d", interface, *option, "-n")
            check(commands == "ip -6 addr add %s/64 dev %s\n" % (want, interface), commands)
            lines = run("compat-gid", "-d", interface, *option).splitlines()
            check(lines[0] == "address %s/64 was added to %s" % (want, interface), lines)
            # "The GID will be displayed in the GID table in following format": an entry of each version.
            cells = [line.split() for line in lines[1:]]
            first = 0 if vlan is None else 2
            check([(c[0], c[1], c[2], ipaddress.IPv6Address(c[3]), c[4], c[5]) for c in cells] ==
                  [("mlx4_0", interface[3:], str(first + i), want, "v%d" % (i + 1), interface) for i in (0, 1)], cells)
        want = by_the_manual(macs[interface], 7)
        check(run("compat-gid", "-d", interface, "-V", 7, "-n") ==
              "ip link add link %s name %s.7 type vlan id 7\nip -6 addr add %s/64 dev %s.7\n" %
              (interface, interface, want, interface), "commands of -V")
        check(run("compat-gid", "-d", interface, "-V", 7).splitlines()[0] ==
              "address %s/64 was added to %s.7" % (want, interface), "-V")
    only = run("compat-gid", "-d", "eth1", "-v", 7, "--roce-mode", 0).splitlines()
    check(len(only) == 2 and only[1].split()[4] == "v1", only)
    for wrong in (["-d", "eth3"], ["-d", "ib0"], [], ["-d", "eth1", "-v", 0], ["-d", "eth1", "-v", 4096],
                  ["-d", "eth1", "-v", 1, "-V", 1], ["-d", "eth2", "--set", "adapter.ports=1"]):
        run("compat-gid", *wrong, status=2)


# ---------------------------------------------------------------- connections

def connections():
    # cma_roce_mode -d <dev> -p <port> [-m <1|2>]; the words are configfs', "RoCE v2" and "IB/RoCE v1" in the RHEL guides
    check(run("cma-roce-mode", "-d", "mlx4_0", "-p", 1) == "RoCE v2\n", "default_roce_mode")
    check(run("cma-roce-mode", "-d", "mlx4_0", "-p", 1, "-m", 1) == "IB/RoCE v1\n", "-m 1")
    check(run("cma-roce-mode", "-p", 2, "-m", 2, "--set", "driver.cma_roce_mode=v1") == "RoCE v2\n", "-m 2")
    check(run("cma-roce-mode", "--set", "driver.cma_roce_mode=v1") == "IB/RoCE v1\n", "parameter")
    check(run("cma-roce-mode", "--set", "adapter.port.roce_v2=false") == "IB/RoCE v1\n", "an older adapter")
    for wrong in (["-m", 3], ["-m", 0], ["-p", 0], ["-p", 3], ["-d", "mlx5_0"],
                  ["-m", 2, "--set", "adapter.port.roce_v2=false"]):
        run("cma-roce-mode", *wrong, status=2)
    check(run("cma-roce-tos") == "0\n" and run("cma-roce-tos", "-t", 96) == "96\n", "default_roce_tos")
    run("cma-roce-tos", "-t", 256, status=2)

    # The files themselves: # cat /sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_mode
    root = os.path.join(FOLDER, "sys")
    run("sysfs", root, "--set", "driver.cma_roce_tos=104", "--traffic-class", "96", "--traffic-class",
        "tclass=16,src_ip=1.1.1.2,dst_ip=1.1.1.0/24", "--ttl", 7)

    def read(*path):
        with open(os.path.join(root, *path)) as f:
            return f.read()

    for port in "12":
        of_port = ["kernel", "config", "rdma_cm", "mlx4_0", "ports", port]
        check(read(*of_port, "default_roce_mode") == "RoCE v2\n", "default_roce_mode")
        check(read(*of_port, "default_roce_tos") == "104\n", "default_roce_tos")
        check(read("class", "infiniband", "mlx4_0", "tc", port, "traffic_class") ==
              "Global tclass=96\ntclass=16,src_ip=1.1.1.2,dst_ip=1.1.1.0/24\n", "traffic_class")
        check(read("class", "infiniband", "mlx4_0", "tc", port, "ttl") == "7\n", "ttl")


# ---------------------------------------------------------------- what the tools list

def listings():
    # # ibv_devices (RHEL 9 guide 7.1, and the guide of RoCE with the tool's tabs)
    lines = run("devices").split("\n")
    check(lines[:2] == ["    device          \t   node GUID", "    ------          \t----------------"], lines)
    guid = re.search(r"node_guid:\s*(\S+)", run("devinfo"))[1].replace(":", "")
    check(lines[2:] == ["    mlx4_0          \t" + guid, ""], lines)

    # # ibdev2netdev: "mlx4_0 port 2 <===> eth2", and the entry of dat.conf that follows from a line of it.
    netdevs = run("ibdev2netdev").splitlines()
    check("mlx4_0 port 2 <===> eth2" in netdevs, netdevs)
    entries = []
    for line in netdevs:
        _, port, interface = re.fullmatch(r"(\S+) port (\d) <===> (\S+)", line).groups()
        entries.append('ofa-v2-%s u2.0 nonthreadsafe default dapl.2.0 "%s %s" ""' % (interface, interface, port))
    check('ofa-v2-eth2 u2.0 nonthreadsafe default dapl.2.0 "eth2 2" ""' in entries, entries)

    # "since the mlx4_en interface's MTU is typically 1560, port 2 will run with MTU of 1K"; 2K is the most.
    def mtu(bytes_, rule):
        return set(re.findall(r"active_mtu:\s*(.*)", run("devinfo", "--set", "driver.mtu=%d" % bytes_, "--set",
                                                         "driver.mtu_rule=" + rule)))

    check(mtu(1560, "below_mtu") == {"1024 (3)"} == mtu(1560, "headers"), "MTU 1560")
    check(mtu(9000, "below_mtu") == {"2048 (4)"} and mtu(9000, "headers") == {"4096 (5)"}, "MTU 9000")
    check(mtu(2144, "headers") == {"2048 (4)"} and mtu(2143, "headers") == {"1024 (3)"}, "headers of 96 bytes")
    check(mtu(300, "headers") == {"invalid MTU (0)"} and mtu(300, "below_mtu") == {"256 (1)"}, "MTU 300")
    for wrong in ("driver.mtu=67", "driver.mtu=9601", "driver.mtu_rule=1", "driver.memlock=-1", "driver.ud_gid_type=2",
                  "driver.cma_roce_mode=0", "driver.cma_roce_tos=256"):
        run("devinfo", "--set", wrong, status=2)

    # The manual's GID table: eth1, eth1.100, and an IPv6 address; vconfig's name of an interface.
    rows = [line.split("\t") for line in run("show-gids", "--ip", "eth1=1.1.1.1", "--ip", "eth1.100=2.2.2.2", "--ip",
                                             "eth1=2001:db8::1", "--ip", "eth2.7=3.3.3.3").splitlines()[2:-1]]
    check([(r[1], r[2], r[5], r[6]) for r in rows] ==
          [("1", str(i), "v1" if i % 2 == 0 else "v2", "eth1.100" if i in (4, 5) else "eth1") for i in range(8)] +
          [("2", str(i), "v1" if i % 2 == 0 else "v2", "eth2.7" if i in (2, 3) else "eth2") for i in range(4)], rows)


# ---------------------------------------------------------------- packets

def packets():
    # "Packets from a QP that is associated with these GID indexes will have a VLAN header (VID=100)", "an IPv6 header";
    # "Layer 3 header for packets associated with IPv4 GIDs will be IPv4 (for RoCEv2) and IPv6/GRH [...] for RoCEv1".
    check(frames(["vlan.id", "ip.version"], "--vlan", 100) == {("100", "4")}, "eth1.100")
    check(frames(["ipv6.version", "udp.dstport"], "--ip", 6) == {("6", "4791")}, "IPv6 GID")
    check(frames(["eth.type", "infiniband.grh.ipver"], "--roce", "v1") == {("0x8915", "6")}, "IPv4 GID in version 1")

    # ibv_rc_pingpong -l 4 in VLAN 7: "SL affects the PCP only when the traffic goes over tagged VLAN frames".
    check(frames(["vlan.id", "vlan.priority"], "--vlan", 7, "--priority", 4) == {("7", "4")}, "SL 4 in VLAN 7")
    check(frames(["vlan.priority", "eth.type"], "--priority", 4) == {("", "0x0800")}, "SL 4 untagged")

    # "to set DSCP value of 24, set the ToS bit to 96 (24x4=96)"; a rule of source and destination; -1.
    header = ["ip.src", "ip.dsfield.dscp", "ip.ttl"]
    check(frames(header, "--traffic-class", 96) == {("10.0.0.1", "24", "64"), ("10.0.0.2", "24", "64")}, "96")
    rule = "tclass=16,src_ip=10.0.0.1,dst_ip=10.0.0.2"
    check(frames(header, "--traffic-class", rule) == {("10.0.0.1", "4", "64"), ("10.0.0.2", "0", "64")}, rule)
    bare = rule.replace("tclass=", "")
    check(frames(header, "--traffic-class", bare) == {("10.0.0.1", "4", "64"), ("10.0.0.2", "0", "64")}, bare)
    check(frames(header, "--traffic-class", rule, "--traffic-class", 96) ==
          {("10.0.0.1", "24", "64"), ("10.0.0.2", "24", "64")}, "what is for all goes first")
    check(frames(header, "--traffic-class", "96", "--traffic-class=-1") ==
          {("10.0.0.1", "0", "64"), ("10.0.0.2", "0", "64")}, "negative")
    check(frames(header, "--traffic-class", rule, "--traffic-class", rule.replace("16", "-1")) ==
          {("10.0.0.1", "0", "64"), ("10.0.0.2", "0", "64")}, "tclass=-1")
    check(frames(header, "--ttl", 255) == {("10.0.0.1", "0", "255"), ("10.0.0.2", "0", "255")}, "TTL")
    check(frames(header, "--traffic-class", 96, "--ttl", 9, "--transport", "uc", "--verb", "send") ==
          {("10.0.0.1", "0", "64"), ("10.0.0.2", "0", "64")}, "not of UC")
    for wrong in (["--traffic-class", "256"], ["--traffic-class", "tclass=1,src_ip=10.0.0.0/8"],
                  ["--traffic-class", "tclass=-1,dst_ip=10.0.0.1"], ["--ttl", "256"], ["--ttl", "x"]):
        run("latency", "--sizes", 8, *wrong, status=2)

    # ud_gid_type: all datagrams of one version.
    ud = ["--transport", "ud", "--verb", "send"]
    check(frames(["udp.dstport"], *ud, "--set", "driver.ud_gid_type=v2") == {("4791",)}, "v2")
    check(frames(["eth.type"], *ud, "--roce", "v1", "--set", "driver.ud_gid_type=v1") == {("0x8915",)}, "v1")


# ---------------------------------------------------------------- bonding masters

def bonds():
    """A bond's addresses are those of the device's one port (manual: "bonding masters")."""
    given = ["--ip", "bond0=10.0.0.1", "--ip", "bond0.100=10.0.100.1", "--ip", "bond0.100:1=2001:db8::5"]
    for mode in ("active-backup", "balance-xor", "802.3ad"):
        rows = [line.split() for line in run("show-gids", "--bond", mode, *given).splitlines()[2:-1]]
        check([(r[1], r[-2], r[-1]) for r in rows] ==
              [("1", v, d) for d in ("bond0", "bond0", "bond0.100", "bond0.100") for v in ("v1", "v2")], (mode, rows))
        check(rows[0][3] == "fe80:0000:0000:0000:0202:c9ff:fe00:0101", rows[0])  # of the first port's address
        check([r[4] for r in rows[2:6]] == ["10.0.0.1"] * 2 + ["10.0.100.1"] * 2, rows)
        check(run("ibdev2netdev", "--bond", mode) == "mlx4_0 port 1 <===> bond0\n", mode)
    check("n_gids_found=8" in run("show-gids", "--bond", "balance-xor", *given), "N addresses, K versions")
    folder = os.path.join(FOLDER, "bonded")
    run("sysfs", folder, "--bond", "active-backup", *given)
    ports = os.path.join(folder, "class", "infiniband", "mlx4_0", "ports")
    check(os.listdir(ports) == ["1"], os.listdir(ports))
    with open(os.path.join(ports, "1", "gid_attrs", "ndevs", "5")) as f:
        check(f.read() == "bond0.100\n", "ndevs")
    check("added to bond0\n" in run("compat-gid", "-d", "bond0", "-v", 7, "--bond", "balance-xor"), "compat-gid")
    # Without a bond (ECMP) the addresses are those of the interface that was named, and half of the table is left.
    half = sum((["--ip", "eth1=10.0.1.%d" % n] for n in range(1, 32)), [])
    check("n_gids_found=64\n" in run("show-gids", "--bond", "ecmp", *half), "half of the table")
    full = run("show-gids", "--bond", "ecmp", *half, "--ip", "eth1=10.0.1.32", status=2)
    check("the GID table of port 1 is full: the function has 64 entries" in full, full)
    for arguments, words in ((["--ip", "bond0=10.0.0.1"], "there is no bond0 without --bond"),
                             (["--bond", "ecmp", "--ip", "bond0=10.0.0.1"], "there is no bond0"),
                             (["--bond", "ecmp", "--ip", "eth2=10.0.0.1"], "the device has 1 port"),
                             (["--bond", "802.3ad", "--ip", "eth1=10.0.0.1"], "eth1 is below bond0"),
                             (["--bond", "802.3ad", "--ip", "bond1=10.0.0.1"], "expected an interface"),
                             (["--bond", "802.3ad", "--ip", "bond0.4095=10.0.0.1"], "VLAN 4095")):
        check(words in run("show-gids", *arguments, status=2), arguments)


def pinned():
    # RHEL 9 guide 4.2: without a limit, and with one that is not enough.
    check("driver.memlock = 9223372036854775807" in run("parameters"), "unlimited by default")
    error = run("latency", "--sizes", 65536, "--set", "driver.memlock=65536", status=2)
    check(error.startswith("rnic: driver.memlock: 65536 bytes are too few: "), error)
    run("bandwidth", "--sizes", 64, "--messages", 10, "--set", "driver.memlock=4096", status=2)
    run("latency", "--sizes", 64, "--iterations", 1, "--set", "driver.memlock=1000000")
    # What the kernel's LLDP agent and bonding driver have for themselves is not the programs'.
    limits = ["--sizes", 64, "--iterations", 1, "--set", "driver.dcb.enabled=true", "--bond", "802.3ad", "--set"]
    run("latency", *limits, "driver.memlock=1000000")
    error = run("latency", *limits, "driver.memlock=4096", status=2)
    check(error.startswith("rnic: driver.memlock: 4096 bytes are too few: "), error)


if shutil.which("tshark") is None:
    print("skipped: no tshark")
    sys.exit(77)
try:
    compatibility()
    connections()
    listings()
    packets()
    bonds()
    pinned()
finally:
    shutil.rmtree(FOLDER, ignore_errors=True)
print("addresses agree with the documents")
