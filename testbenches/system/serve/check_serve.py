#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rnic serve` from outside: two of them together, and peers made of scapy's packets on the sockets.

Usage: check_serve.py CASE RNIC. Exit status 0: as it should be; 1: with a line why not; 77: cannot be tried here.
"""
import shutil
import sys

from served import FOLDER, wrong  # the first: it says when there is no scapy
import address_cases as addresses
import application_cases as applications
import capture_cases as captures
import connection_cases
import crowd_cases as crowd
import dcb_cases
import fabric_cases as fabric
import flood_cases as floods
import identity_cases
import leaving_cases as leaving
import link_cases as links
import network_cases as network
import qperf_cases
import rstream_cases
import script_cases
import stranger_cases as strangers
import talk_cases
import udpong_cases
import xrc_cases

CASES = {"pingpong": applications.pingpong, "versions": applications.versions, "network": network.network,
         "malformed": network.malformed, "tap": network.tap, "stream": links.stream, "reconnect": links.reconnect,
         "time": links.time_, "ends": links.ends, "refusals": links.refusals, "strangers": strangers.strangers, "perftest_versions": strangers.perftest_versions,
         "fuzz": strangers.fuzz, "connections": connection_cases.connections, "intruders": connection_cases.intruders,
         "perftest": applications.perftest, "talkers": talk_cases.talkers, "every_size": applications.every_size, "rdma_cm": applications.rdma_cm, "sequence": crowd.sequence,
         "backlog": crowd.backlog, "farewell": crowd.farewell, "greedy": crowd.greedy, "silent": crowd.silent, "where": crowd.where,
         "versions_apart": crowd.versions_apart, "unanswered": crowd.unanswered,
         "first_generation": crowd.first_generation, "several": applications.several,
         "flood": floods.flood, "ends_in_a_flood": floods.ends_in_a_flood, "unread": floods.unread,
         "overfull": floods.overfull, "returns": floods.returns, "idle": floods.idle, "growth": floods.growth,
         "second_peer": floods.second_peer, "lines": floods.lines, "identity": identity_cases.identity,
         "dcb": dcb_cases.dcb, "script": script_cases.script, "script_rows": script_cases.conform, "script_clients": script_cases.hostile,
         "script_wander": script_cases.wander, "rstream": rstream_cases.rstream, "rstream_list": rstream_cases.rstream_list, "qperf": qperf_cases.qperf,
         "qperf_strangers": qperf_cases.qperf_strangers, "qperf_unlinked": qperf_cases.qperf_unlinked, "killed": leaving.killed, "reborn": leaving.reborn, "stopped": leaving.stopped, "taken_late": leaving.taken_late,
         "left_there": leaving.left_there,
         "roce_modes": addresses.roce_modes, "types_of_service": addresses.types_of_service,
         "reports": addresses.reports, "listeners": addresses.listeners,
         "fabric_peers": fabric.peers, "fabric_unread": fabric.unread, "fabric_pingpong": fabric.pingpong,
         "fabric_kernel": fabric.kernel, "fabric_refusals": fabric.refusals, "xrc": xrc_cases.xrc, "udpong": udpong_cases.udpong,
         "ports": captures.ports, "fabric_ports": captures.fabric_ports}


def main():
    try:
        return CASES[sys.argv[1]]() or 0
    except wrong as e:
        print("wrong: %s" % e)
        return 1
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
