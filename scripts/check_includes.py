#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the includes of all sources and checks them against the house's table of who may know whom.

abi, wire, sim: nothing of ours. payload, register_bus: those three. A block of model: these five and other blocks' interface
headers (*_if.h, *_cr.h and those listed here). model/adapter: every block. rtl: its block's interface header. tlm: what
the model shows to others (payloads and the two ends of the slot). firmware: abi, wire and the hardware's interface as a
data book would print it (registers, contexts, ICM map). host_driver: abi and wire. Their bus folders: everything of
model and tlm. host_driver/hosts, whole hosts: anything but testbenches and host_driver/workloads, which stands on them. testbenches: anything, but the parts of the program in their order; nobody knows testbenches, and nothing in model knows tlm. <systemc> only in the
ground floor, at sockets, in bus folders and in testbenches.
"""
import pathlib
import re
import sys

import arguments

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOPS = ("model", "tlm", "rtl", "firmware", "host_driver", "testbenches")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')

# Headers that are part of the architecture although their names do not end in _if.h: plain values, or tables that
# firmware alone writes.
INTERFACES = {
    "model/register_bus/cr_space.h": "the register bus, through which firmware reaches every block",
    "model/register_bus/notice.h": "firmware's interrupt lines, moved by several blocks",
    "model/icm/mgid_hash.h": "firmware places multicast groups, hardware looks them up: one hash for both",
    "model/icm/contexts.h": "layout of the contexts in host memory",
    "model/icm/context_cache.h": "how a block holds contexts",
    "model/icm/group_walk.h": "how a block looks multicast groups up",
    "model/flow/flow_table.h": "how a block looks flow steering rules up",
    "model/flow/flow_key.h": "what it compares them with",
    "model/icm/context_change.h": "what of a context is software's and what is hardware's",
    "model/icm/icm_map.h": "where the tables lie: written by firmware, read by the blocks",
    "model/gid/gid_table.h": "written by firmware, read by the blocks",
    "model/gid/source_reader.h": "how a transmit pipeline looks sources up",
}

# What every block stands on, lowest first.
GROUND = ("model/abi", "model/wire", "model/sim")
FIRST_FLOOR = ("model/payload", "model/register_bus")

# The two ends of the slot are one link: the host has the same transmitter and the same socket as the adapter.
LINK = {
    "model/pcie/link.h": "one direction of a link, instantiated at both ends",
    "model/pcie/pcie_rim.h": "between socket and plain calls, the same at both ends",
}

# So are those of a cable: a switch pauses, and is paused, as the adapter's port.
CABLE = {"model/mac/flow_control.h": "what the peer forbids and what it was told, the same at both ends",
         "model/mac/pause_gauges.h": "the same, for those who look on",
         "model/mac/headroom.h": "what still comes after a pause, the same at both ends"}

# What firmware may see of the hardware beside the register files (*_cr.h).
FIRMWARE_SEES = {"model/register_bus/cr_space.h", "model/icm/mgid_hash.h", "model/icm/contexts.h",
                 "model/icm/context_change.h", "model/icm/icm_map.h"}


# The parts of the program `rnic`, lowest first: none knows one that comes after it.
PROGRAM = ("bench", "replay", "serve/links", "serve/host", "serve/pingpong", "serve/cm", "serve/rsocket", "serve/perftest",
           "serve/qperf", "serve/script", "rnic")


def floor_of_program(path):
    """Its place in PROGRAM, or None."""
    return next((i for i, part in enumerate(PROGRAM) if path.startswith(f"testbenches/{part}/")), None)


def room(path):
    """The unit that the table speaks of: "model/icrc", "tlm", "firmware/bus", ..."""
    parts = path.split("/")
    if parts[0] == "model":
        return "/".join(parts[:2])
    if parts[0] in ("firmware", "host_driver") and len(parts) > 2 and parts[1] in ("bus", "hosts", "workloads"):
        return "/".join(parts[:2])
    return parts[0]


def is_interface(path):
    return path.endswith(("_if.h", "_cr.h")) or path in INTERFACES


def allowed(source, target):
    me, other = room(source), room(target)
    mine, theirs = floor_of_program(source), floor_of_program(target)
    if mine is not None and theirs is not None and theirs > mine:
        return False
    if me == other or me == "testbenches":
        return True
    if other == "testbenches":
        return False
    if me == "host_driver/workloads":
        return True
    if other in ("host_driver/hosts", "host_driver/workloads"):
        return False
    if me == "host_driver/hosts":
        return True
    if me in GROUND:
        return False
    if me in FIRST_FLOOR:
        return other in GROUND
    if me == "tlm":
        return other in GROUND + ("model/payload", "model/host")
    if me == "model/adapter":
        return True
    if me.startswith("model/"):
        if other in GROUND + FIRST_FLOOR:
            return True
        if me == "model/host" and target in LINK:
            return True
        if me == "model/fabric" and target in CABLE:
            return True
        return other.startswith("model/") and is_interface(target)
    if me == "rtl":
        return target.endswith("_if.h")
    if me in ("firmware/bus", "host_driver/bus"):
        return other.startswith(("model/", "tlm")) or other == me.split("/")[0]
    if me in ("firmware", "host_driver"):
        if other in ("model/abi", "model/wire"):
            return True
        return me == "firmware" and (target in FIRMWARE_SEES or target.endswith("_cr.h"))
    return False


def may_see_systemc(path):
    me = room(path)
    return (me in ("testbenches", "host_driver/hosts", "host_driver/workloads") or me.endswith("/bus") or path in ("model/sim/timebase.cpp", "model/sim/simulation.cpp")
            or "socket" in path or "_rim." in path or path.startswith(("tlm/platform_bridge", "tlm/payload_sender", "model/host/")))


def check(path, text):
    errors = []
    for number, line in enumerate(text.splitlines(), 1):
        found = INCLUDE.match(line)
        if not found:
            continue
        kind, target = found.groups()
        where = f"{path}:{number}"
        if kind == "<":
            if target in ("systemc", "systemc.h", "tlm", "tlm.h") and not may_see_systemc(path):
                errors.append(f"{where}: <{target}> only belongs to the ground floor, sockets, bus folders and tests")
        elif not target.startswith(tuple(t + "/" for t in TOPS)):
            errors.append(f'{where}: "{target}" is not a full path from the root')
        elif not (ROOT / target).exists():
            errors.append(f'{where}: "{target}" does not exist')
        elif not allowed(path, target):
            errors.append(f"{where}: {room(path)} may not know {target}")
    return errors


def self_test():
    """The table itself: what must be refused is refused."""
    refused = [("model/wire/a.h", "model/sim/types.h"), ("model/mac/a.cpp", "model/icrc/icrc_block.h"),
               ("firmware/a.cpp", "model/payload/frame.h"), ("firmware/a.cpp", "model/sim/types.h"),
               ("host_driver/a.cpp", "model/icm/contexts.h"), ("rtl/icrc/a.cpp", "model/icrc/icrc_model.h"),
               ("model/adapter/a.cpp", "testbenches/rnic/options.h"), ("host_driver/a.cpp", "host_driver/hosts/node.h"),
               ("host_driver/hosts/a.cpp", "testbenches/bench/flow.h"), ("host_driver/hosts/a.cpp", "host_driver/workloads/verb.h"), ("host_driver/workloads/a.cpp", "testbenches/bench/flow.h"), ("host_driver/a.cpp", "host_driver/workloads/verb.h"), ("tlm/a.h", "model/mac/mac.h"),
               ("model/mac/a.cpp", "tlm/capture.h"), ("model/payload/a.h", "model/register_bus/cr_space.h"),
               ("model/sim/a.h", "model/payload/frame.h"),
               ("model/mac/a.cpp", "model/pcie/link.h"), ("firmware/a.cpp", "model/icm/context_cache.h"),
               ("model/host/a.cpp", "model/pcie/pcie_block.h"),
               ("testbenches/serve/links/a.cpp", "testbenches/serve/host/served_host.h"),
               ("testbenches/bench/a.cpp", "testbenches/rnic/results.h")]
    granted = [("firmware/a.cpp", "model/icm/contexts.h"), ("firmware/a.cpp", "model/transport/transport_cr.h"),
               ("model/host/a.h", "model/pcie/link.h"),
               ("firmware/bus/a.cpp", "model/payload/tlp.h"), ("model/mac/a.cpp", "model/transport/transport_if.h"),
               ("model/adapter/a.cpp", "model/icrc/icrc_block.h"), ("rtl/icrc/a.h", "model/icrc/icrc_if.h"),
               ("testbenches/unit/a.cpp", "model/icrc/icrc_model.h"),
               ("testbenches/serve/cm/a.cpp", "testbenches/serve/links/real_time.h"),
               ("testbenches/block/serve/a.cpp", "testbenches/serve/links/real_time.h")]
    return [f"self test: {s} -> {t}" for s, t in refused if allowed(s, t)] + \
           [f"self test: {s} -> {t}" for s, t in granted if not allowed(s, t)]


def main():
    arguments.parser(__doc__).parse_args()
    errors = self_test()
    for top in TOPS:
        for file in sorted((ROOT / top).rglob("*")):
            if file.suffix in (".h", ".cpp"):
                errors += check(file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8"))
    for line in errors:
        print(line, file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
