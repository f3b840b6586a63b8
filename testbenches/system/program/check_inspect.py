#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""show-gids, devinfo, ibstat, ibdev2netdev and sysfs print what the product documents show, line by line: the same
names in the same order, and the values where the documents have an Ethernet port of such an adapter. What differs by
adapter (GUIDs, versions, board) is compared in form, and with the other commands. The rules of the GID table (which
entries, in which order, how many) are those of the documents; Python's ipaddress says what a GID is.

usage: check_inspect.py PROGRAM
"""
import ipaddress
import json
import os
import re
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1]


def run(*arguments, status=0):
    done = subprocess.run([PROGRAM] + list(arguments), capture_output=True, text=True)
    if done.returncode != status:
        raise SystemExit("%s: status %d, expected %d\n%s" % (" ".join(arguments), done.returncode, status, done.stderr))
    return done.stdout if status == 0 else done.stderr


def check(is_so, what):
    if not is_so:
        raise SystemExit("wrong: %s" % what)


# ---------------------------------------------------------------- the documents' listings

# ibv_devinfo -d mlx4_1, port 2 (RHEL 9 guide, chapter 7; the distribution's manual, "Port type configuration").
DEVINFO = [("hca_id", r"mlx4_\d"), ("transport", r"InfiniBand \(0\)"), ("fw_ver", r"\d+\.\d+\.\d+"),
           ("node_guid", r"[0-9a-f]{4}(:[0-9a-f]{4}){3}"), ("sys_image_guid", r"[0-9a-f]{4}(:[0-9a-f]{4}){3}"),
           ("vendor_id", "0x02c9"), ("vendor_part_id", "4099"), ("hw_ver", "0x0"), ("board_id", r"MT_\d{10}"),
           ("phys_port_cnt", "2")]
DEVINFO_PORT = [("state", r"PORT_ACTIVE \(4\)"), ("max_mtu", r"4096 \(5\)"), ("active_mtu", r"4096 \(5\)"),
                ("sm_lid", "0"), ("port_lid", "0"), ("port_lmc", "0x00"), ("link_layer", "Ethernet")]
# ibstat mlx4_1, port 2 of the same guide.
IBSTAT = [("CA type", "MT4099"), ("Number of ports", "2"), ("Firmware version", r"\d+\.\d+\.\d+"),
          ("Hardware version", "0"), ("Node GUID", "0x[0-9a-f]{16}"), ("System image GUID", "0x[0-9a-f]{16}")]
IBSTAT_PORT = [("State", "Active"), ("Physical state", "LinkUp"), ("Rate", "40"), ("Base lid", "0"), ("LMC", "0"),
               ("SM lid", "0"), ("Capability mask", "0x04010000"), ("Port GUID", "0x[0-9a-f]{16}"),
               ("Link layer", "Ethernet")]
CARD = ["--set", "adapter.identity.device_id=0x1003"]  # ConnectX-3, as in the guide


def expect(lines, table):
    got = {}
    for name, form in table:
        line = lines.pop(0)
        match = re.fullmatch(r"\s*%s:\s*(%s)" % (re.escape(name), form), line)
        check(match, "'%s', expected %s: %s" % (line, name, form))
        got[name] = match.group(1)
    return got


def listings():
    with tempfile.TemporaryDirectory() as folder:
        both = os.path.join(folder, "both.toml")
        with open(both, "w") as f:
            f.write("[host]\nuncore_khz = 1000000\n")
        lines = run("devinfo", "-d", "mlx4_0", *CARD).rstrip("\n").split("\n")
    device = expect(lines, DEVINFO)
    check(re.fullmatch(r"\s*port:\s*1", lines.pop(0)), "port 1")
    expect(lines, DEVINFO_PORT)
    check(re.fullmatch(r"\s*port:\s*2", lines.pop(0)), "port 2")
    expect(lines, [("state", r"PORT_DOWN \(1\)")] + DEVINFO_PORT[1:])  # no cable: the guide's is in use
    check(not [l for l in lines if l.strip()], "nothing behind")

    lines = run("ibstat", "mlx4_0", *CARD).rstrip("\n").split("\n")
    check(lines.pop(0) == "CA 'mlx4_0'", "first line of ibstat")
    status = expect(lines, IBSTAT)
    check(lines.pop(0).strip() == "Port 1:", "Port 1")
    port = expect(lines, IBSTAT_PORT)
    check(lines.pop(0).strip() == "Port 2:", "Port 2")
    expect(lines, [("State", "Down"), ("Physical state", "Disabled")] + IBSTAT_PORT[2:])
    check(not lines, "nothing behind")
    check(status["Node GUID"] == "0x" + device["node_guid"].replace(":", ""), "node GUID of both")
    check(status["Firmware version"] == device["fw_ver"], "firmware of both")

    # "mlx4_0 port 2 <===> eth2" (distribution's manual; its port 1 is InfiniBand's ib0, which this adapter has not).
    check(run("ibdev2netdev") == "mlx4_0 port 1 <===> eth1\nmlx4_0 port 2 <===> eth2\n", "ibdev2netdev")
    return port


# ---------------------------------------------------------------- GID tables

def gids(*arguments):
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "g.json")
        text = run("show-gids", "--json", file, *arguments).rstrip("\n").split("\n")
        with open(file) as f:
            rows = json.load(f)["gids"]
    check(text[0].split() == ["DEV", "PORT", "INDEX", "GID", "IPv4", "VER", "DEV"], "head of show-gids")
    check(text[-1] == "n_gids_found=%d" % len(rows), "count of show-gids")
    for line, row in zip(text[2:-1], rows):
        cells = [row["device"], str(row["port"]), str(row["index"]), row["gid"]]
        cells += ([row["ipv4"]] if row["ipv4"] else []) + [row["version"], row["interface"]]
        check(line.split() == cells, line)
    return rows


def of_address(text):
    a = ipaddress.ip_address(text)
    if a.version == 4:
        a = ipaddress.ip_address("::ffff:" + text)
    return a.exploded if a.version == 6 else None


def table(rows, port):
    return [(r["index"], ipaddress.ip_address(r["gid"]).exploded, r["version"], r["interface"]) for r in rows
            if r["port"] == port]


def gid_rules(port):
    # The manual's example: 0/1 the default GIDs, 2/3 eth1, 4/5 eth1.100.
    rows = gids("--ip", "eth1=192.168.1.2", "--ip", "eth1.100=192.168.100.2", "--ip", "eth2=2001:db8::7",
                "--ip", "eth1:1=192.168.1.3")
    one = table(rows, 1)
    default = one[0][1]
    check(default.startswith("fe80:0000:0000:0000:"), "default GID")
    want = [default] * 2 + [of_address("192.168.1.2")] * 2 + [of_address("192.168.100.2")] * 2
    want += [of_address("192.168.1.3")] * 2
    check([r[1] for r in one] == want, "GIDs of port 1: %s" % one)
    check([r[0] for r in one] == list(range(8)), "places of port 1")
    check([r[2] for r in one] == ["v1", "v2"] * 4, "versions of port 1")
    check([r[3] for r in one] == ["eth1"] * 4 + ["eth1.100"] * 2 + ["eth1"] * 2, "interfaces of port 1")
    two = table(rows, 2)
    check([r[1] for r in two[2:]] == [of_address("2001:db8::7")] * 2, "GIDs of port 2")
    check(two[0][1] != default, "ports differ")
    identifier = default.replace(":", "")[16:]
    check(run("ibstat").count("Port GUID: 0x" + identifier) == 1, "the port's GUID is that of its default GID")

    # N addresses and K versions: K (N + 1) entries. One version with roce_mode 0 and 2.
    for mode, versions in (("0", ["v1"]), ("2", ["v2"]), ("4", ["v1", "v2"])):
        rows = table(gids("--roce-mode", mode, "--ip", "eth1=10.1.2.3", "--ip", "eth1=10.1.2.4"), 1)
        check([r[2] for r in rows] == versions * 3, "roce_mode %s: %s" % (mode, rows))

    # 128 entries: 63 addresses beside the default ones with both versions, 127 with one.
    for mode, most in (("4", 63), ("0", 127)):
        addresses = ["--roce-mode", mode]
        for i in range(most):
            addresses += ["--ip", "eth1=10.9.%d.%d" % (i // 200, i % 200 + 1)]
        check(len(table(gids(*addresses), 1)) == 128, "a full table")
        error = run("show-gids", *addresses, "--ip", "eth1=10.8.0.1", status=2)
        check("10.8.0.1" in error and "full" in error and "128" in error, error)
        check(len(table(gids(*addresses, "--ip", "eth2=10.8.0.1"), 1)) == 128, "the other port has room")

    # The physical function has 16 of them beside virtual ones, of which each has 112 / F.
    rows = gids("--functions", "3", "--function", "2", "--ip", "eth1=10.7.0.1")
    check({r["device"] for r in rows} == {"mlx4_2"}, "the function's device")
    check([r[0] for r in table(rows, 1)] == [0, 1, 2, 3], "rows by the function's own numbers")
    for function, entries in (("0", 16), ("1", 38), ("2", 37), ("3", 37)):
        addresses = []
        for i in range(entries // 2):
            addresses += ["--ip", "eth1=10.6.0.%d" % (i + 1)]
        error = run("show-gids", "--functions", "3", "--function", function, *addresses, status=2)
        check("has %d entries" % entries in error, error)


# ---------------------------------------------------------------- sysfs

def sysfs():
    with tempfile.TemporaryDirectory() as folder:
        root = os.path.join(folder, "sys")
        run("sysfs", root, "--ip", "eth1.7=10.0.7.1")
        device = os.path.join(root, "class", "infiniband", "mlx4_0")

        def read(*path):
            with open(os.path.join(device, *path)) as f:
                return f.read().rstrip("\n")

        check(read("ports", "1", "state") == "4: ACTIVE", "state")
        check(read("ports", "2", "state") == "1: DOWN", "state of port 2")
        check(read("ports", "1", "link_layer") == "Ethernet", "link layer")
        check(read("fw_ver") == run("devinfo").split("fw_ver:")[1].split()[0], "fw_ver")
        check(read("hca_type") == "MT4103", "hca_type")
        check(re.fullmatch(r"40 Gb/sec \(4X (QDR|FDR10)\)", read("ports", "1", "rate")), "rate")
        check(len(os.listdir(os.path.join(device, "ports", "1", "gids"))) == 128, "128 GIDs")
        check(read("ports", "1", "gids", "2") == "0000:0000:0000:0000:0000:ffff:0a00:0701", "GID 2")
        check(read("ports", "1", "gid_attrs", "types", "2") == "IB/RoCE v1", "type of GID 2")
        check(read("ports", "1", "gid_attrs", "types", "3") == "RoCE v2", "type of GID 3")
        check(read("ports", "1", "gid_attrs", "ndevs", "3") == "eth1.7", "interface of GID 3")
        check(read("ports", "1", "gids", "9") == "0000:0000:0000:0000:0000:0000:0000:0000", "an empty GID")
        check(read("ports", "1", "counters", "port_xmit_packets") == "0", "nothing was sent")
        # drivers/infiniband/hw/mlx4/main.c: diag_basic and diag_ext for ports, with diag_device_only for the device.
        of_port = set(os.listdir(os.path.join(device, "ports", "1", "hw_counters")))
        of_device = set(os.listdir(os.path.join(device, "hw_counters")))
        check(len(of_port) == 23 and of_device - of_port == {"num_cqovf", "rq_num_udsdprd"}, "diagnostic counters")
        check(read("ports", "2", "hw_counters", "rq_num_rae") == read("hw_counters", "sq_num_to") == "0", "no errors")
        error = run("sysfs", root, status=2)
        check("exists" in error, error)


def of_a_function():
    """A function's device has the number of the function, and no board_id, which it cannot ask for."""
    for verbose in ([], ["-v"]):
        text = run("devinfo", "-d", "mlx4_2", "--functions", "2", "--function", "2", *verbose)
        check(re.match(r"hca_id:\s+mlx4_2\n", text) and "board_id" not in text, text)
    text = run("devinfo", "-v", "--ip", "eth1=192.168.1.2")
    check("192.168.1.2, RoCE v2" in text and "10.0.0.1" not in text, text)


def refusals():
    for wrong in ("eth3=10.0.0.1", "eth1", "eth1=10.0.0", "eth1.4095=10.0.0.1", "eth1.0=10.0.0.1", "eth1=ff02::1",
                  "eth1=::", "eth1=::1", "eth1=0.0.0.0", "eth1=224.0.0.1", "eth1=255.255.255.255", "ib0=10.0.0.1"):
        error = run("show-gids", "--ip", wrong, status=2)
        check(error.startswith("rnic: --ip: ") and error.count("\n") == 1, error)
    run("show-gids", "--set", "adapter.ports=1", "--ip", "eth2=10.0.0.1", status=2)
    run("show-gids", "--roce-mode", "3", status=2)
    error = run("show-gids", "--roce-mode", "2", "--set", "adapter.port.roce_v2=false", status=2)
    check(error.startswith("rnic: driver.roce_mode: ") and error.count("\n") == 1, error)
    for command in (("devinfo", "-d", "mlx4_1"), ("devinfo", "-v", "-d", "mlx4_1"), ("ibstat", "mlx4_1")):
        error = run(*command, status=2)
        check(error == "rnic: device 'mlx4_1': the host has mlx4_0\n", error)
    run("latency", "--set", "driver.roce_mode=v1", "--roce", "v2", "--sizes", "8", status=2)


gid_rules(listings())
sysfs()
of_a_function()
refusals()
print("inspection agrees with the documents")
