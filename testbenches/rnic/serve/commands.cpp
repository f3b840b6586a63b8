// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/command_line.h"
#include "testbenches/rnic/fabric/fabric_file.h"
#include "testbenches/rnic/option_groups.h"

namespace rnic::program {

namespace {

void add_serve_options(CLI::App& command, serve_options& o) {
  command
      .add_option("--link", o.links,
                  "Where the port's cable goes; once for each adapter, with --bond once for each port of each:\n"
                  "listen:tcp:HOST:PORT, listen:unix:PATH, "
                  "connect:tcp:HOST:PORT,\n"
                  "connect:unix:PATH (streams with QEMU's framing), datagram:udp:HOST:PORT,HOST:PORT,\n"
                  "datagram:unix:PATH,PATH (own address, peer's address), tap:NAME")
      ->required()
      ->type_name("LINK");
  command
      .add_option(
          "--topology", o.topology,
          "Adapters and links are at ports of modelled switches: TOML file (testbenches/rnic/fabric/README.md),\n"
          "or one of " +
              network_names() +
              ", without its flows. --link HOST=LINK says which host is a real peer at the\nend of that link; "
              "each of the others is an adapter, in the order of the network")
      ->type_name("FILE");
  command
      .add_option("--ip", o.addresses,
                  "IPv4 or IPv6 address of the first adapter's host, with @2 behind it the second's")
      ->type_name("ADDRESS");
  command
      .add_option("--mac", o.macs,
                  "MAC address of the port; once for each adapter, in their order (default: one that no other process\n"
                  "has, or with --seed the one that belongs to the seed)")
      ->type_name("MAC");
  add_vlan(command, o.vlan, "VLAN ID of the addresses, 0 for untagged");
  command
      .add_option("--duration", o.duration_s, "Seconds of real time, 0 until SIGINT, SIGTERM or the application's end")
      ->capture_default_str();
  command
      .add_option(
          "--app", o.app,
          "What runs on the host; the tools of the same name, with ibv_ or without, are its peers:\n"
          "rc_pingpong, uc_pingpong, ud_pingpong, srq_pingpong, xsrq_pingpong (one client) of ibverbs-utils;\n"
          "ib_write_bw, ib_write_lat,\n"
          "ib_read_bw, ib_read_lat, ib_send_bw, ib_send_lat, ib_atomic_bw, ib_atomic_lat of perftest (with the\n"
          "same size, iterations, queue pairs, -a, -b, -c, -R on both sides);\n"
          "rping, ucmatose, udaddy, mckey, cmtime, rdma_server (rdma_client is its peer),\n"
          "rdma_xserver (rdma_xclient is its peer), rstream and udpong (-S is --size, -C\n"
          "--iterations; rstream without them: its list of sizes, --all is -S all) of rdmacm-utils;\n"
          "qperf (its tests of RC, with its option -cm 1: it meets its peer over TCP and over the link);\n"
          "script: any verb, as commands of --script say")
      ->type_name("TOOL")
      ->check(CLI::IsMember({"rc_pingpong",  "uc_pingpong",  "ud_pingpong",   "srq_pingpong", "xsrq_pingpong",
                             "ib_write_bw",  "ib_write_lat", "ib_read_bw",    "ib_read_lat",  "ib_send_bw",
                             "ib_send_lat",  "ib_atomic_bw", "ib_atomic_lat", "rping",        "ucmatose",
                             "udaddy",       "mckey",        "rdma_server",   "rdma_client",  "rdma_xserver",
                             "rdma_xclient", "cmtime",       "rstream",       "udpong",       "qperf",
                             "script"}));
  command
      .add_option("--script", o.scripts,
                  "Where the commands of --app script come from, a JSON object a line: unix:PATH, tcp:HOST:PORT\n"
                  "(listens there; port 0: a free one), - (standard input); once for each adapter")
      ->type_name("FROM");
  command.add_flag("--server", o.server, "The application waits for its peer");
  command
      .add_option("--client", o.client,
                  "The application's peer waits at this host (pingpongs and perftest: TCP of this machine's network;\n"
                  "the others: its address on the link; mckey: the group to send to)")
      ->type_name("HOST");
  command
      .add_option(
          "--exchange", o.exchange,
          "IPv4 or IPv6 address of this machine where a server of pingpongs, perftest or qperf listens for the\n"
          "TCP exchange of addresses, 0.0.0.0 or :: for all (default: 127.0.0.1 and ::1). Up to 64 clients wait "
          "there\nfor their turn; one that says nothing for 20 s is closed. qperf --client: where its server "
          "listens for TCP\n(default: the host of --client)")
      ->type_name("ADDRESS");
  command
      .add_option(
          "--test", o.qperf_test,
          "Test of qperf --client: rc_bw, rc_bi_bw, rc_lat, rc_rdma_read_bw, rc_rdma_read_lat, rc_rdma_write_bw,\n"
          "rc_rdma_write_lat, rc_rdma_write_poll_lat, rc_compare_swap_mr, rc_fetch_add_mr, ver_rc_compare_swap,\n"
          "ver_rc_fetch_add (default: rc_bw; its server serves all)")
      ->type_name("TEST");
  command.add_option("--group", o.group, "Multicast address that mckey receives from")->type_name("ADDRESS");
  command
      .add_option("--igmp", o.igmp_version,
                  "Version of IGMP in which groups are reported, 2 or 3 (default: 3, and 2 beside a querier of that)")
      ->check(CLI::IsMember({2u, 3u}));
  command
      .add_option(
          "--port", o.port,
          "TCP port of the exchange of addresses (of adapter 2 the next), or the service's (default: the tool's)")
      ->check(CLI::Range(1u, 65535u));
  command.add_option("--size", o.size, "Message size in bytes (default: what the tool takes)")
      ->check(CLI::Range(1u, 1u << 24));
  command
      .add_option("--qps", o.queue_pairs,
                  "Queue pairs of srq_pingpong (default 16) and of perftest's tests of bandwidth (default 1),\n"
                  "connections of ucmatose and udaddy (default 1) and cmtime (default 100)")
      ->check(CLI::Range(1u, 256u));
  command
      .add_option("--iterations", o.iterations,
                  "Messages each way, perftest: of each queue pair (default: what the tool takes; rping --server\n"
                  "ends with its client)")
      ->check(CLI::Range(1u, 100000000u));
  add_mtu(command, o.mtu, "Path MTU in bytes; perftest: the smaller one of both sides' counts");
  command.add_option("--rx-depth", o.receive_depth, "Receives posted at a time")
      ->check(CLI::Range(1u, 8000u))
      ->capture_default_str();
  command.add_option("--tx-depth", o.send_depth, "Requests under way on a queue pair, perftest's tests of bandwidth")
      ->check(CLI::Range(1u, 8000u))
      ->capture_default_str();
  command
      .add_option("--outs", o.reads,
                  "READs and atomics under way on a queue pair of perftest, as with -o: ours and the peer's (default:\n"
                  "what each adapter takes of the other); of ours, the next power of two below that")
      ->check(CLI::Range(1u, 128u));
  command
      .add_option("--connection", o.connection,
                  "Transport of perftest: UC has no READ and no atomics, UD only SEND; XRC: of rdma_xserver and\n"
                  "rdma_xclient, as with their -c x")
      ->check(CLI::IsMember({"RC", "UC", "UD", "XRC"}))
      ->capture_default_str();
  command.add_option("--atomic", o.atomic, "Operation of ib_atomic_bw and ib_atomic_lat")
      ->check(CLI::IsMember({"FETCH_AND_ADD", "CMP_AND_SWAP"}))
      ->capture_default_str();
  command.add_flag("--bidirectional", o.bidirectional,
                   "perftest: the server sends too, as with -b; udpong: it sends back, as with -T e");
  command.add_flag(
      "--all", o.all_sizes,
      "perftest: sizes 2, 4, ... 2^23 (UD: to the MTU), as with -a; rstream: its long list, as with -S all");
  command.add_option("--seconds", o.test_seconds, "perftest: for so long instead of --iterations, as with -D")
      ->check(CLI::Range(1u, 3600u));
  command.add_flag("--rdma-cm", o.rdma_cm, "perftest: meet over the connection manager, as with -R");
  command.add_flag("--talk-rdma-cm", o.talk_over_cm, "perftest: tell each other over it and no more, as with -z");
  add_priority(command, o.priority, "Service level");
  command
      .add_option("--tos", o.tos,
                  "Type of service of applications over the connection manager, as rdma_set_option() sets it: their\n"
                  "traffic class, and without --priority their service level (default: driver.cma_roce_tos)")
      ->check(CLI::Range(0, 255));
  command
      .add_option("--timeout", o.ack_timeout,
                  "A reliable queue pair of pingpongs and perftest repeats after 4.096 us * 2^N, as with -u")
      ->check(CLI::Range(1u, 31u))
      ->type_name("N")
      ->capture_default_str();
  command.add_option("--gid-index", o.gid_index, "GID of the application (default: of the first --ip)")
      ->check(CLI::Range(0, 127));
  command
      .add_option("--roce", o.roce,
                  "RoCE version of that GID (default: v2); of applications over the connection manager: the only one\n"
                  "that requests are made and answered in (default: made in driver.cma_roce_mode, answered in the\n"
                  "one that they come in)")
      ->check(CLI::IsMember({"v1", "v2"}));
  command
      .add_option(
          "--repeat", o.repeat,
          "Runs of the application, 0 for ever: a run that fails is told, and the next client is served; one of which\n"
          "nothing comes for 30 s is given up. Up to 16 clients of a server over the connection manager are answered\n"
          "at a time and have 30 s to confirm, 256 more wait, others are rejected (no resources). A client's buffers\n"
          "take up to 512 MiB")
      ->capture_default_str();
}

}  // namespace

void add_serve(command_line& line) {
  CLI::App& command = line.add("serve", "An adapter whose port is on a real network, in real time");
  auto& o = line.keep(serve_options{});
  add_serve_options(command, o);
  add_bond(command, o.common);
  add_common(command, o.common);
  line.on(command, [&command, &o] {
    o.bonded = command.count("--bond") != 0;
    o.vlan_given = command.count("--vlan") != 0;
    return run_serve(o);
  });
}

}  // namespace rnic::program
