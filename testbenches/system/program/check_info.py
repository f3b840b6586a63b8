#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rnic info` has the lines of ibv_devinfo -v in its order, with the values of such an adapter, and the values are
those that the driver queried: parameters of the driver and of the port show.

usage: check_info.py PROGRAM
"""
import json
import os
import re
import subprocess
import sys
import tempfile

# Name and form of the value, as ibv_devinfo -v (rdma-core 44) prints them for a ConnectX-3 Pro with Ethernet ports.
GUID = r"[0-9a-f]{4}(:[0-9a-f]{4}){3}"
DEVICE = [
    ("transport", r"InfiniBand \(0\)"), ("fw_ver", r"\d+\.\d+\.\d+"), ("node_guid", GUID), ("sys_image_guid", GUID),
    ("vendor_id", "0x02c9"), ("vendor_part_id", "4103"), ("hw_ver", "0x[0-9A-F]+"), ("board_id", r"MT_\d+"),
    ("phys_port_cnt", "2"), ("max_mr_size", "0xffffffffffffffff"), ("page_size_cap", "0xfffff000"),
    ("max_qp", r"\d+"), ("max_qp_wr", "16351"), ("device_cap_flags", "0x[0-9a-f]{8}"), ("max_sge", "32"),
    ("max_sge_rd", "30"), ("max_cq", r"\d+"), ("max_cqe", "4194303"), ("max_mr", r"\d+"), ("max_pd", r"\d+"),
    ("max_qp_rd_atom", "16"), ("max_ee_rd_atom", "0"), ("max_res_rd_atom", r"\d+"), ("max_qp_init_rd_atom", "128"),
    ("max_ee_init_rd_atom", "0"), ("atomic_cap", r"ATOMIC_HCA \(1\)"), ("max_ee", "0"), ("max_rdd", "0"),
    ("max_mw", "0"), ("max_raw_ipv6_qp", "0"), ("max_raw_ethy_qp", "0"), ("max_mcast_grp", r"\d+"),
    ("max_mcast_qp_attach", "248"), ("max_total_mcast_qp_attach", r"\d+"), ("max_ah", "2147483647"),
    ("max_fmr", "0"), ("max_srq", r"\d+"), ("max_srq_wr", "16383"), ("max_srq_sge", "31"), ("max_pkeys", "128"),
    ("local_ca_ack_delay", "15"), ("hca_core_clock", "427000kHZ"), ("num_comp_vectors", r"\d+"),
]
PORT = [
    ("state", r"PORT_(ACTIVE \(4\)|DOWN \(1\))"), ("max_mtu", r"4096 \(5\)"), ("active_mtu", r"\d+ \(\d\)"),
    ("sm_lid", "0"), ("port_lid", "0"), ("port_lmc", "0x00"), ("link_layer", "Ethernet"),
    ("max_msg_sz", "0x[48]0000000"), ("port_cap_flags", "0x04010000"), ("port_cap_flags2", "0x0000"),
    ("max_vl_num", r"2 \(2\)"), ("bad_pkey_cntr", "0x0"), ("qkey_viol_cntr", "0x0"), ("sm_sl", "0"),
    ("pkey_tbl_len", "1"), ("gid_tbl_len", "128"), ("subnet_timeout", "0"), ("init_type_reply", "0"),
    ("active_width", r"(4X \(2\)|1X \(1\))"), ("active_speed", r"\d+\.0 Gbps \(\d+\)"),
    ("phys_state", r"(LINK_UP \(5\)|DISABLED \(3\))"),
]
# Bits of verbs.h and their names as printed.
FLAGS = {1: "BAD_PKEY_CNTR", 2: "BAD_QKEY_CNTR", 4: "AUTO_PATH_MIG", 5: "CHANGE_PHY_PORT", 6: "UD_AV_PORT_ENFORCE",
         10: "PORT_ACTIVE_EVENT", 11: "SYS_IMAGE_GUID", 12: "RC_RNR_NAK_GEN", 17: "MEM_WINDOW", 18: "UD_IP_CSUM",
         20: "XRC", 21: "MEM_MGT_EXTENSIONS", 23: "MEM_WINDOW_TYPE_2A", 24: "MEM_WINDOW_TYPE_2B"}


def info(program, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "i.json")
        done = subprocess.run([program, "info", "--json", file] + list(arguments), capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit("info %s: %s" % (" ".join(arguments), done.stderr))
        with open(file) as f:
            return done.stdout, json.load(f)["device"]


def expect(lines, table):
    """The lines of the table, in order; returns what was read by name."""
    values = {}
    for name, form in table:
        line = lines.pop(0)
        match = re.fullmatch(r"\s+%s:\s+(.*)" % name, line)
        if not match or not re.fullmatch(form, match.group(1)):
            raise SystemExit("expected %s: %s, got %r" % (name, form, line))
        values[name] = match.group(1)
        if name == "device_cap_flags":
            bits = int(values[name], 16)
            for bit in range(32):
                if bits >> bit & 1:
                    printed = lines.pop(0).strip()
                    if printed != FLAGS.get(bit):
                        raise SystemExit("flag %d is %s, printed %r" % (bit, FLAGS.get(bit), printed))
    return values


def check_text(text):
    lines = text.splitlines()
    if lines.pop(0) != "hca_id: mlx4_0":
        raise SystemExit("no hca_id")
    device = expect(lines, DEVICE)
    ports = []
    for number in (1, 2):
        if lines.pop(0).split() != ["port:", str(number)]:
            raise SystemExit("no port %d" % number)
        port = expect(lines, PORT)
        port["gids"] = []
        while lines and lines[0].lstrip().startswith("GID["):
            match = re.fullmatch(r"\s+GID\[ *(\d+)\]:\s+(\S+), (RoCE v[12])", lines.pop(0))
            if not match:
                raise SystemExit("a GID line of another form")
            port["gids"].append((int(match.group(1)), match.group(2), match.group(3)))
        ports.append(port)
    if lines:
        raise SystemExit("more lines: %s" % lines)
    return device, ports


def main():
    program = sys.argv[1]
    text, values = info(program)
    device, ports = check_text(text)
    # The MAC of host a's first port is 00:02:c9:00:01:01; its address is 10.0.0.1.
    expected = [(0, "fe80:0000:0000:0000:0202:c9ff:fe00:0101", "RoCE v1"), (1, "fe80::202:c9ff:fe00:101", "RoCE v2"),
                (2, "0000:0000:0000:0000:0000:ffff:0a00:0001", "RoCE v1"), (3, "::ffff:10.0.0.1", "RoCE v2")]
    if ports[0]["gids"] != expected:
        raise SystemExit("GIDs: %s" % ports[0]["gids"])
    if not ports[0]["state"].startswith("PORT_ACTIVE") or not ports[1]["state"].startswith("PORT_DOWN"):
        raise SystemExit("a cable is in port 1 alone")
    if str(values["max_qp"]) != device["max_qp"] or values["ports"][0]["active_mtu"] != 4096:
        raise SystemExit("JSON says something else")

    larger, _ = check_text(info(program, "--set", "driver.log_num_qp=14")[0])
    if int(larger["max_qp"]) - int(device["max_qp"]) != (1 << 14) - (1 << 12):
        raise SystemExit("max_qp does not follow the driver's profile: %s, %s" % (device["max_qp"], larger["max_qp"]))
    _, slower = check_text(info(program, "--set", "adapter.port.rate_mbps=10000")[0])
    if slower[0]["active_width"] != "1X (1)":
        raise SystemExit("10 Gb/s is one lane: %s" % slower[0]["active_width"])
    print("as ibv_devinfo -v")


if __name__ == "__main__":
    main()
