// SPDX-License-Identifier: Apache-2.0
// The program `rnic`: command line to experiment.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <numeric>
#include <string>
#include <systemc>

#include "host_driver/hosts/connection.h"
#include "host_driver/hosts/node.h"
#include "model/sim/check.h"
#include "testbenches/bench/verb.h"
#include "testbenches/replay/compare.h"
#include "testbenches/rnic/fabric/fabric_file.h"
#include "testbenches/rnic/inspect/address_commands.h"
#include "testbenches/rnic/inspect/inspect.h"
#include "testbenches/rnic/options.h"

namespace {

using namespace rnic::program;

void add_common(CLI::App& command, common_options& o) {
  command.add_option("--profile", o.profile, "Adapter profile: connectx3pro_40g or connectx5_100g")
      ->capture_default_str();
  command.add_option("--config", o.config_file, "TOML file with parameters (see `rnic parameters`)")->type_name("FILE");
  command
      .add_option_function<std::vector<std::string>>(
          "--set",
          // Beside those of the options that stand for a parameter.
          [&o](const std::vector<std::string>& all) {
            o.assignments.insert(o.assignments.end(), all.begin(), all.end());
          },
          "Change one parameter, e.g. --set adapter.clock_khz=500000; repeatable")
      ->type_name("PATH=VALUE")
      ->take_all();
  command
      .add_option_function<std::vector<unsigned>>(
          "--functions",
          [&o](const std::vector<unsigned>& n) {  // num_vfs of mlx4_core
            o.assignments.push_back("host.functions=" + std::to_string(std::accumulate(n.begin(), n.end(), 0u)));
            for (std::size_t port = 0; n.size() > 1 && port < 2; ++port)
              o.assignments.push_back("driver.functions.port" + std::to_string(port + 1) + "=" +
                                      std::to_string(n[port]));
          },
          "Virtual functions of each adapter, 0 to 126, each with a driver in memory of its own. Three numbers: those\n"
          "with port 1 alone, with port 2 alone and with both, numbered in this order, e.g. --functions 2,2,0")
      ->delimiter(',')
      ->expected(1, 3)
      ->type_name("N[,N,N]");
  command.add_option_function<unsigned>(
      "--function", [&o](unsigned n) { o.assignments.push_back("host.function=" + std::to_string(n)); },
      "Whose driver runs the programs: 1 to --functions, or 0 for the physical function");
  command
      .add_option("--traffic-class", o.traffic_classes,
                  "What an administrator writes into tc/PORT/traffic_class of both ports: for all RC queue pairs, as\n"
                  "96 (DSCP 24), or a rule, as tclass=16,src_ip=10.0.0.1,dst_ip=10.0.0.0/24; repeatable")
      ->type_name("TEXT")
      ->take_all();
  command.add_option("--ttl", o.ttl, "The same of tc/PORT/ttl: hop limit of all RC queue pairs, 0 to 255")
      ->type_name("N");
  command.add_option("--json", o.json_file, "Write the results as JSON")->type_name("FILE");
  command
      .add_option("--pcap", o.pcap_file,
                  "Write the frames on the cable as a nanosecond capture, but those with a wrong FCS")
      ->type_name("FILE");
  command.add_flag("--pcap-fcs", o.pcap_fcs,
                   "The capture has the FCS of each frame, and the frames whose FCS is wrong");
  command.add_flag("--overwrite", o.overwrite, "Replace result files that exist");
  command.add_option("--seed", o.seed, "Seed of everything random in the run")->capture_default_str();
  command.add_flag("--quiet", o.quiet, "No progress");
}

// Options that several commands have, each with its own words.

void add_roce(CLI::App& command, std::string& to, const char* what = "RoCE version") {
  command.add_option("--roce", to, what)->check(CLI::IsMember({"v1", "v2"}))->capture_default_str();
}

void add_ip_version(CLI::App& command, unsigned& to) {
  command.add_option("--ip", to, "IP version of the addresses")->check(CLI::IsMember({4u, 6u}))->capture_default_str();
}

void add_mtu(CLI::App& command, unsigned& to, const char* what = "Path MTU in bytes") {
  command.add_option("--mtu", to, what)->check(CLI::IsMember({256u, 512u, 1024u, 2048u, 4096u}))->capture_default_str();
}

void add_vlan(CLI::App& command, unsigned& to, const char* what = "VLAN ID, 0 for untagged") {
  command.add_option("--vlan", to, what)->check(CLI::Range(0u, 4094u))->capture_default_str();
}

void add_priority(CLI::App& command, unsigned& to, const char* what) {
  command.add_option("--priority", to, what)->check(CLI::Range(0u, 7u))->capture_default_str();
}

/// Addresses and packets, for two adapters of ours.
void add_packets(CLI::App& command, traffic_options& o) {
  add_roce(command, o.roce);
  add_ip_version(command, o.ip);
  add_vlan(command, o.vlan);
  add_mtu(command, o.mtu);
}

/// `what` is said of the case of both.
void add_port(CLI::App& command, traffic_options& o, const char* what) {
  command
      .add_option("--port", o.ports,
                  std::string("Ports with a cable to the same port of the peer: 1, 2 or 1,2; ") + what)
      ->delimiter(',')
      ->check(CLI::Range(1u, 2u))
      ->capture_default_str();
}

void add_bond(CLI::App& command, common_options& o) {
  command
      .add_option_function<std::string>(
          "--bond",
          [&o](std::string mode) {
            std::replace(mode.begin(), mode.end(), '-', '_');
            o.assignments.push_back("driver.bond=" + mode);
          },
          "Both ports of each adapter as one device: active-backup, balance-xor, 802.3ad (with LACP, driver.lacp.*), "
          "or\n"
          "ecmp (no bond, an own MAC each); both have a cable")
      ->check(CLI::IsMember({"active-backup", "balance-xor", "802.3ad", "ecmp"}));
}

void add_topology(CLI::App& command, traffic_options& o) {
  command
      .add_option("--topology", o.topology,
                  "The two hosts are of a network of switches instead of at a cable: TOML file\n"
                  "(testbenches/rnic/fabric/README.md), or one of " +
                      network_names() + "; its flows run beside them")
      ->type_name("FILE");
  command.add_option("--between", o.between, "Which hosts of the topology (default: the first and the last one)")
      ->type_name("HOST,HOST");
  command.add_flag("--no-flows", o.no_flows, "Without the flows of the topology's file");
  command.add_option("--settle", o.settle_us, "Microseconds that these flows have before the two hosts begin")
      ->check(CLI::Range(0u, 1'000'000u))
      ->capture_default_str();
}

/// What the user has given.
std::vector<std::string> given(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* o : command.get_options())
    if (o->count() != 0) names.push_back(o->get_name());
  return names;
}

void add_traffic(CLI::App& command, traffic_options& o) {
  std::vector<std::string> verbs;
  for (const rnic::bench::verb& v : rnic::bench::verbs()) verbs.emplace_back(v.name);
  command
      .add_option("--verb", o.verb,
                  "write, write_imm: RDMA WRITE, without and with immediate; send, send_imm: SEND; read: RDMA READ;\n"
                  "cas, fadd: compare and swap, fetch and add, of 8 bytes; masked_cas, masked_fadd: those of kernel\n"
                  "users, here with all bits in their masks")
      ->check(CLI::IsMember(verbs))
      ->type_name("VERB")
      ->capture_default_str();
  command
      .add_option(
          "--transport", o.transport,
          "rc: every verb; xrc: all but the masked ones, with receives from a shared receive queue; uc: write and\n"
          "send, without and with immediate; ud: send and send_imm of at most --mtu bytes. What is lost over uc\n"
          "and ud stays lost: latency ends, bandwidth counts it")
      ->check(CLI::IsMember({"rc", "uc", "ud", "xrc"}))
      ->type_name("SERVICE")
      ->capture_default_str();
  add_packets(command, o);
  add_priority(command, o.priority, "Service level: PCP and egress queue");
  command
      .add_option("--inline", o.inline_bytes,
                  "Write payloads up to this many bytes into the descriptor; ud: 884 at most")
      ->check(CLI::Range(0u, 912u))
      ->capture_default_str();
  command
      .add_option("--inline-receive", o.inline_receive,
                  "Messages that take a receive stay in it up to this size, a datagram with 40 bytes more")
      ->check(CLI::Range(0u, 512u))
      ->capture_default_str();
  command
      .add_option("--sizes", o.sizes,
                  "Message sizes in bytes, e.g. 2,64,4096 (default 2 to 65536 in powers of two; ud: to --mtu)")
      ->delimiter(',')
      ->check(CLI::Range(0u, 1u << 31));
  command.add_option("--cable", o.cable_metres, "Cable length in metres")
      ->check(CLI::Range(0u, 100000u))
      ->capture_default_str();
  command
      .add_option(
          "--rate", o.rate_mbps,
          "Line rate in Mb/s, of all ports or one for each of --port, e.g. 40000,10000 (default: the profile's)")
      ->delimiter(',')
      ->check(CLI::Range(1000u, 400000u));
}

void add_serve(CLI::App& command, serve_options& o) {
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

void add_faults(CLI::App& command, fault_options& o, bool rates) {
  command.add_option("--faults", o.file, "TOML file that says what happens to which frames on the cable")
      ->type_name("FILE");
  command.add_flag("--pcap-before", o.pcap_before, "Capture what is sent, not what arrives after the faults");
  if (!rates) return;
  const auto percent = [&command](const char* name, double& target, const char* what) {
    command.add_option(name, target, what)->check(CLI::Range(0.0, 100.0))->capture_default_str()->type_name("PERCENT");
  };
  percent("--drop", o.drop, "Frames that are lost, in percent of each direction's");
  percent("--duplicate", o.duplicate, "Frames that come twice");
  percent("--reorder", o.reorder, "Frames that come behind one or two later ones of their queue pair");
  percent("--corrupt", o.corrupt, "Frames of which a bit is wrong, half of them under a right FCS");
}

void add_soak(CLI::App& command, soak_options& o) {
  command.add_option("--messages", o.messages, "Messages in all, both directions")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000}))
      ->capture_default_str();
  command.add_option("--qps", o.qps, "Connections; both ends send on each")
      ->check(CLI::Range(1u, 1024u))
      ->capture_default_str();
  command.add_option("--depth", o.depth, "Messages under way per connection and direction")
      ->check(CLI::Range(1u, 1024u))
      ->capture_default_str();
  command.add_option("--largest", o.largest, "Largest message in bytes; sizes are spread evenly over their logarithms")
      ->check(CLI::Range(0u, 1u << 20))
      ->capture_default_str();
  command
      .add_option("--verbs", o.verbs, "Verbs to mix (default all): send, send_imm, write, write_imm, read, cas, fadd")
      ->delimiter(',')
      ->check(CLI::IsMember({"send", "send_imm", "write", "write_imm", "read", "cas", "fadd"}));
  command.add_option("--ack-timeout", o.ack_timeout, "Transport timer: 4.096 us * 2^n")
      ->check(CLI::Range(1u, 31u))
      ->capture_default_str();
  command.add_option("--retries", o.retries, "Retransmissions without progress before a queue pair fails, 7: 64")
      ->check(CLI::Range(0u, 7u))
      ->capture_default_str();
  command.add_option("--rnr-retries", o.rnr_retries, "The same for a receiver that is not ready, 7: for ever")
      ->check(CLI::Range(0u, 7u))
      ->capture_default_str();
  add_packets(command, o.traffic);
  add_topology(command, o.traffic);
  add_port(command, o.traffic, "connections are on them in turn");
  add_bond(command, o.common);
}

void add_replay(CLI::App& command, replay_options& o) {
  command
      .add_option("capture", o.capture,
                  "Capture: pcap or pcapng, packed by gzip or not, of Ethernet, Linux cooked\n"
                  "or raw IP; - is standard input")
      ->required()
      ->type_name("CAPTURE");
  command
      .add_option("--hold", o.hold,
                  "Address of the host whose place the adapter takes (default: the one that mostly answers)")
      ->type_name("ADDRESS");
  command
      .add_option("--timing", o.timing,
                  "captured: at the times of the capture; fast: as fast as the frames depend on each other")
      ->check(CLI::IsMember({"captured", "fast"}))
      ->capture_default_str();
  command.add_option("--port", o.port, "Port of the adapter that takes the place of the host's")
      ->check(CLI::IsMember({1u, 2u}))
      ->capture_default_str();
  std::string compared = "Does not compare this field; repeatable. Compared are";
  std::vector<std::string> names;
  for (const rnic::replay::compared_field& field : rnic::replay::compared_fields()) {
    names.emplace_back(field.name);
    compared += std::string("\n  ") + field.name + ": " + field.what;
  }
  command.add_option("--ignore", o.ignore, compared)->type_name("FIELD")->take_all()->check(CLI::IsMember(names));
  command
      .add_option(
          "--also", o.also,
          "Second capture of the same run, taken at the other end: what one has and the other lacks was lost in\n"
          "between, and what did not reach the host whose place the adapter takes is not replayed")
      ->type_name("CAPTURE");
  command.add_flag("--ignore-icrc", o.ignore_icrc,
                   "Take frames whose ICRC or IPv4 header checksum is wrong, and make it right");
  command
      .add_option(
          "--expect", o.expect,
          "Exit status 1 if the answers do not agree: all: any difference counts; fatal: those because of which\n"
          "a peer goes on otherwise (kind, verdict, address, length and content of an answer, one that is\n"
          "missing, a NAK too many, failed completions), not how acknowledgements are coalesced, answers to\n"
          "repetitions, repeated requests, MSN and the solicited bit; none: status 0 whatever they are")
      ->check(CLI::IsMember({"all", "fatal", "none"}))
      ->capture_default_str();
  command
      .add_option("--output", o.output,
                  "Where to write the resulting capture, in the time of the first one so that they can be merged;\n"
                  "named .pcapng with a comment on each frame that differs")
      ->type_name("FILE");
}

/// A command about host a's device.
CLI::App* add_inspection(CLI::App& app, const char* name, const char* what, inspect_options& o) {
  CLI::App* command = app.add_subcommand(name, what);
  command
      ->add_option("--ip", o.addresses,
                   "An address of an interface, in the order in which they are given; repeatable. Interfaces are\n"
                   "eth1 and eth2 above the ports, bond0 of --bond, eth1.VLAN, and eth1:ALIAS;\n"
                   "e.g. --ip eth1.100=192.168.100.1")
      ->type_name("INTERFACE=ADDRESS")
      ->take_all();
  command
      ->add_option_function<unsigned>(
          "--roce-mode",
          [&o](unsigned mode) {
            o.common.assignments.push_back(std::string("driver.roce_mode=") + (mode == 0   ? "v1"
                                                                               : mode == 2 ? "v2"
                                                                                           : "both"));
          },
          "Module parameter roce_mode: 0: RoCE v1, 2: RoCE v2, 4: an entry of each (default)")
      ->check(CLI::IsMember({0u, 2u, 4u}));
  add_bond(*command, o.common);
  add_common(*command, o.common);
  return command;
}

}  // namespace

int sc_main(int argc, char* argv[]) {
  CLI::App app{
      "rnic: a cycle-accurate model of a RoCE network adapter.\n"
      "Two adapters in two hosts, joined by a cable, driven through their PCI Express interface."};
  app.require_subcommand(0, 1);  // that there is one is checked below: an unknown one is to be named

  latency_options latency;
  CLI::App* latency_cmd =
      app.add_subcommand("latency", "Half round trip (READ: round trip) per message size, and where the time went");
  add_traffic(*latency_cmd, latency.traffic);
  add_topology(*latency_cmd, latency.traffic);
  add_port(*latency_cmd, latency.traffic, "messages take the first one");
  add_bond(*latency_cmd, latency.common);
  latency_cmd->add_option("--iterations", latency.iterations, "Measured messages per size")
      ->check(CLI::Range(1u, 10000000u))
      ->capture_default_str();
  latency_cmd
      ->add_option("--warm-up", latency.warm_up,
                   "Messages per size before the measured ones; 0: the first one finds the caches on chip empty")
      ->check(CLI::Range(0u, 10000000u))
      ->capture_default_str();
  add_faults(*latency_cmd, latency.faults, false);
  add_common(*latency_cmd, latency.common);

  bandwidth_options bandwidth;
  bandwidth.traffic.inline_bytes = 0;  // as perftest's bandwidth tests
  CLI::App* bandwidth_cmd =
      app.add_subcommand("bandwidth", "Message rate and goodput per message size, and what limits them");
  add_traffic(*bandwidth_cmd, bandwidth.traffic);
  add_topology(*bandwidth_cmd, bandwidth.traffic);
  add_port(*bandwidth_cmd, bandwidth.traffic, "queue pairs are on them in turn");
  add_bond(*bandwidth_cmd, bandwidth.common);
  bandwidth_cmd->add_option("--depth", bandwidth.depth, "Messages under way per queue pair")
      ->check(CLI::Range(1u, 8192u))
      ->capture_default_str();
  bandwidth_cmd
      ->add_option("--rx-depth", bandwidth.receive_depth,
                   "Receives posted per queue pair, of verbs that take one; when there is none, rc and xrc try again\n"
                   "after 0.64 ms, uc and ud lose the message")
      ->check(CLI::Range(1u, 8192u))
      ->capture_default_str();
  bandwidth_cmd->add_option("--outs", bandwidth.reads, "READs and atomics under way per queue pair, a power of two")
      ->check(CLI::IsMember({1u, 2u, 4u, 8u, 16u}))
      ->capture_default_str();
  bandwidth_cmd->add_option("--qps", bandwidth.qps, "Queue pairs")
      ->check(CLI::Range(1u, 65536u))
      ->capture_default_str();
  bandwidth_cmd->add_option("--messages", bandwidth.messages, "Messages per size, over all queue pairs of a direction")
      ->check(CLI::Range(1u, 100000000u))
      ->capture_default_str();
  bandwidth_cmd->add_flag("--bidirectional", bandwidth.bidirectional, "Both hosts send");
  add_faults(*bandwidth_cmd, bandwidth.faults, false);
  add_common(*bandwidth_cmd, bandwidth.common);

  soak_options soak;
  CLI::App* soak_cmd = app.add_subcommand(
      "soak", "Mixed verbs and sizes over many queue pairs on a bad cable; every byte, order and count is checked");
  add_soak(*soak_cmd, soak);
  add_faults(*soak_cmd, soak.faults, true);
  add_common(*soak_cmd, soak.common);

  calibrate_options calibrate;
  CLI::App* calibrate_cmd =
      app.add_subcommand("calibrate", "Published figures of this adapter family beside those of the model");
  calibrate_cmd->add_option("--only", calibrate.only, "Points whose id begins so, for example C04,C07")->delimiter(',');
  calibrate_cmd->add_flag("--held-out", calibrate.held_out,
                          "Instead the published points that were looked at afterwards, V01 to V16");
  calibrate_cmd->add_option("--jobs", calibrate.jobs, "Experiments at a time, 0: one for each processor")
      ->check(CLI::Range(0u, 256u))
      ->capture_default_str();
  add_common(*calibrate_cmd, calibrate.common);

  replay_options replay;
  CLI::App* replay_cmd =
      app.add_subcommand("replay", "Re-enact a capture with the adapter in the place of one of its hosts");
  add_replay(*replay_cmd, replay);
  add_common(*replay_cmd, replay.common);

  fabric_options fabric;
  CLI::App* fabric_cmd =
      app.add_subcommand("fabric", "Flows between hosts of a network of switches: completion times, queues, pauses");
  fabric_cmd
      ->add_option("network", fabric.file,
                   "TOML file with topology, parameters and flows (testbenches/rnic/fabric/README.md), or one of\n" +
                       network_names())
      ->required()
      ->type_name("FILE");
  fabric_cmd->add_flag("--print", fabric.print, "Show the file, and do nothing else");
  fabric_cmd->add_option("--pcap-at", fabric.capture_at, "Host on whose cable --pcap looks (default: the first)")
      ->type_name("HOST");
  add_common(*fabric_cmd, fabric.common);

  serve_options serve;
  CLI::App* serve_cmd = app.add_subcommand("serve", "An adapter whose port is on a real network, in real time");
  add_serve(*serve_cmd, serve);
  add_bond(*serve_cmd, serve.common);
  add_common(*serve_cmd, serve.common);

  info_options info;
  CLI::App* info_cmd = app.add_subcommand("info", "What the adapter says of itself, as ibv_devinfo -v shows it");
  add_common(*info_cmd, info.common);

  inspect_options gids, devices, devinfo, ibstat, netdevs, sysfs;
  CLI::App* gids_cmd = add_inspection(app, "show-gids", "GID tables of both ports, as show_gids prints them", gids);
  CLI::App* devices_cmd = add_inspection(app, "devices", "The device as ibv_devices lists it", devices);
  CLI::App* devinfo_cmd = add_inspection(app, "devinfo", "The device as ibv_devinfo shows it (-v: info)", devinfo);
  bool verbose = false;
  devinfo_cmd->add_flag("-v", verbose, "All that the device says: as `rnic info`, with the addresses of --ip");
  devinfo_cmd->add_option("-d", devinfo.device, "This device and no other, as mlx4_0")->type_name("DEV");
  CLI::App* ibstat_cmd = add_inspection(app, "ibstat", "The device as ibstat shows it", ibstat);
  ibstat_cmd->add_option("device", ibstat.device, "This device and no other, as mlx4_0")->type_name("DEV");
  CLI::App* netdevs_cmd = add_inspection(app, "ibdev2netdev", "Which network interface is at which port", netdevs);
  CLI::App* sysfs_cmd =
      add_inspection(app, "sysfs", "Writes what /sys has of the device, class/infiniband, into a directory", sysfs);
  sysfs_cmd->add_option("directory", sysfs.directory, "Where to; must not exist")->required()->type_name("DIR");

  address_commands addresses(
      [&app](const char* name, const char* what, inspect_options& o) { return add_inspection(app, name, what, o); });

  common_options parameters;
  CLI::App* parameters_cmd = app.add_subcommand("parameters", "Every parameter with its value, unit, range and source");
  add_common(*parameters_cmd, parameters);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    std::fprintf(stderr, "rnic: %s\n", e.what());
    return 2;
  }
  if (app.get_subcommands().empty()) {
    std::fprintf(stderr,
                 "rnic: a subcommand is required: latency, bandwidth, soak, fabric, calibrate, replay, serve, info, "
                 "show-gids, devices, devinfo, ibstat, ibdev2netdev, sysfs, compat-gid, cma-roce-mode, cma-roce-tos or "
                 "parameters\n");
    return 2;
  }
  serve.seed_given = serve_cmd->count("--seed") != 0;
  serve.bonded = serve_cmd->count("--bond") != 0;
  serve.vlan_given = serve_cmd->count("--vlan") != 0;
  latency.traffic.given = given(*latency_cmd);
  bandwidth.traffic.given = given(*bandwidth_cmd);
  soak.traffic.given = given(*soak_cmd);
  try {
    if (latency_cmd->parsed()) return run_latency(latency);
    if (bandwidth_cmd->parsed()) return run_bandwidth(bandwidth);
    if (soak_cmd->parsed()) return run_soak(soak);
    if (calibrate_cmd->parsed()) return run_calibrate(calibrate);
    if (replay_cmd->parsed()) return run_replay(replay);
    if (fabric_cmd->parsed()) return run_fabric(fabric);
    if (serve_cmd->parsed()) return run_serve(serve);
    if (info_cmd->parsed()) return run_info(info);
    if (gids_cmd->parsed()) return run_show_gids(gids);
    if (devices_cmd->parsed()) return run_devices(devices);
    if (devinfo_cmd->parsed() && verbose) return run_verbose_devinfo(devinfo);
    if (devinfo_cmd->parsed()) return run_devinfo(devinfo);
    if (ibstat_cmd->parsed()) return run_ibstat(ibstat);
    if (netdevs_cmd->parsed()) return run_ibdev2netdev(netdevs);
    if (sysfs_cmd->parsed()) return run_sysfs(sysfs);
    if (const auto status = addresses.run()) return *status;
    return run_parameters(parameters);
  } catch (const rnic::usage_error& e) {
    std::fprintf(stderr, "rnic: %s\n", e.what());
    return 2;
  } catch (const rnic::sim::config_error& e) {
    std::fprintf(stderr, "rnic: %s\n", e.what());
    return 2;
  } catch (const sc_core::sc_report& e) {
    if (std::strcmp(e.get_msg_type(), rnic::hosts::rtl_difference) != 0) {
      std::fprintf(stderr, "rnic: internal error: %s\n", e.what());
      return 3;
    }
    std::fprintf(stderr, "rnic: %s\n", e.get_msg());
    return 1;
  } catch (const rnic::hosts::message_failed& e) {
    std::fprintf(stderr, "rnic: %s\n", e.what());
    return 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "rnic: internal error: %s\n", e.what());
    return 3;
  }
}
