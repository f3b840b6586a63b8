// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/option_groups.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <string>
#include <system_error>

#include "host_driver/workloads/verb.h"
#include "model/sim/thread_team.h"
#include "testbenches/rnic/fabric/fabric_file.h"

namespace rnic::program {

namespace {

/// Of numbers with a fraction: "nan" is within every range.
const CLI::Validator is_number{[](std::string& text) {
                                 const bool is = std::isfinite(std::strtod(text.c_str(), nullptr));
                                 return is ? std::string{} : "Value " + text + " is not a number";
                               },
                               ""};

/// What does not fit into the number's bits would be another one.
const CLI::Validator is_seed{[](std::string& text) {
                               std::uint64_t value = 0;
                               const char* const end = text.data() + text.size();
                               const auto [rest, error] = std::from_chars(text.data(), end, value);
                               // As a file can have it: TOML's numbers are signed.
                               const bool is = error == std::errc{} && rest == end && value >> 63 == 0;
                               return is ? std::string{}
                                         : "Value " + text + " is not legal, expected 0 to 9223372036854775807";
                             },
                             ""};

}  // namespace

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
          "Change one parameter, e.g. --set adapter.clock_khz=500000; repeatable, later ones win. Of the two hosts a "
          "and\n"
          "b (of --between; of an adapter alone a) also of one, --set b.adapter.clock_khz=250000, but not what both "
          "ends\n"
          "of a cable have alike. run and fabric have [hosts.NAME] in their files instead")
      ->type_name("PATH=VALUE")
      ->take_all();
  command
      .add_option_function<std::vector<unsigned>>(
          "--functions",
          [&o](const std::vector<unsigned>& n) {  // num_vfs of mlx4_core
            if (std::accumulate(n.begin(), n.end(), std::uint64_t{0}) > 126)
              throw CLI::ValidationError("--functions", "expected 0 to 126 in all");
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
  command
      .add_option("--ttl", o.ttl,
                  "The same of tc/PORT/ttl: hop limit of all RC queue pairs, 0 to 255; -1: none is forced")
      ->type_name("N");
  command
      .add_option("--json", o.json_file,
                  "Write the results as JSON; -: to standard output, and the tables to standard error")
      ->type_name("FILE");
  command
      .add_option(
          "--pcap", o.pcap_file,
          "Write the frames on the cable as a nanosecond capture, but those with a wrong FCS; a name that ends\n"
          "in .pcapng: those of all ports, with where each message's time has gone (tlm/README.md)")
      ->type_name("FILE");
  command.add_flag("--pcap-fcs", o.pcap_fcs,
                   "The capture has the FCS of each frame, and the frames whose FCS is wrong");
  command.add_flag("--overwrite", o.overwrite, "Replace result files that exist");
  command.add_option("--seed", o.seed, "Seed of everything random in the run; goes before one in the file of the run")
      ->check(is_seed)
      ->each([&o](const std::string&) { o.seed_given = true; })
      ->capture_default_str();
  command.add_flag("--quiet", o.quiet, "No progress, and no warnings");
}

void add_roce(CLI::App& command, std::string& to, const char* what) {
  command.add_option("--roce", to, what)->check(CLI::IsMember({"v1", "v2"}))->capture_default_str();
}

void add_ip_version(CLI::App& command, unsigned& to) {
  command.add_option("--ip", to, "IP version of the addresses")->check(CLI::IsMember({4u, 6u}))->capture_default_str();
}

void add_mtu(CLI::App& command, unsigned& to, const char* what) {
  command.add_option("--mtu", to, what)->check(CLI::IsMember({256u, 512u, 1024u, 2048u, 4096u}))->capture_default_str();
}

void add_vlan(CLI::App& command, unsigned& to, const char* what) {
  command.add_option("--vlan", to, what)->check(CLI::Range(0u, 4094u))->capture_default_str();
}

void add_priority(CLI::App& command, unsigned& to, const char* what) {
  command.add_option("--priority", to, what)->check(CLI::Range(0u, 7u))->capture_default_str();
}

void add_packets(CLI::App& command, traffic_options& o) {
  add_roce(command, o.roce);
  add_ip_version(command, o.ip);
  add_vlan(command, o.vlan);
  add_mtu(command, o.mtu);
}

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

void add_capture_at(CLI::App& command, std::string& host) {
  command.add_option("--pcap-at", host, "Host on whose cable --pcap looks (default: the first; of a .pcapng: all)")
      ->type_name("HOST");
}

void add_threads(CLI::App& command, unsigned& threads) {
  command
      .add_option("--threads", threads,
                  "Processors that simulate hosts at once, with the same results; 0: those that there are, where each\n"
                  "has hosts enough. One for RTL, --trace, --konata and --wave")
      ->check(CLI::Range(0u, sim::thread_team::most))
      ->capture_default_str()
      ->type_name("N");
}

void add_trace(CLI::App& command, trace_options& o, bool flows) {
  command
      .add_option("--trace", o.file,
                  "Write the stages of all messages, queues, credits and pauses, for Perfetto and chrome://tracing\n"
                  "(testbenches/bench/trace/README.md); compressed when the name ends in .gz")
      ->type_name("FILE");
  command
      .add_option("--konata", o.konata,
                  "Write the stages of all messages, in cycles, for Konata, a viewer of pipelines")
      ->type_name("FILE");
  constexpr double day_us = 86'400e6;
  command
      .add_option("--from", o.from_us,
                  "Of --trace, --konata and --wave: from this time on, in microseconds since all hosts are ready")
      ->check(CLI::Range(0.0, day_us))
      ->check(is_number)
      ->type_name("US");
  command.add_option("--until", o.until_us, "And before this one (default: the end)")
      ->check(CLI::Range(0.0, day_us))
      ->check(is_number)
      ->type_name("US");
  command
      .add_option(
          "--wave", o.wave,
          "Write channels (ready, valid, payload, occupancy; depth and width), accesses to the ports of memories, "
          "starts of\nengines and pipelines, clocks, and all signals of RTL, for GTKWave (FST; "
          "testbenches/bench/wave/README.md)")
      ->type_name("FILE");
  command
      .add_option(
          "--wave-of", o.wave_of,
          "Of --wave: what has this name, or is of a block of it, as 'h1.adapter.gather' or 'h*.pcie*'; repeatable\n"
          "(default: all of the two hosts that are measured, or of the first two)")
      ->type_name("PATTERN")
      ->take_all();
  if (!flows) return;
  command.add_option("--flow", o.flows, "Of --trace and --konata: messages of this flow or workload; repeatable")
      ->type_name("NAME")
      ->take_all();
}

std::vector<std::string> given(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* o : command.get_options())
    if (o->count() != 0) names.push_back(o->get_name());
  return names;
}

void add_traffic(CLI::App& command, traffic_options& o) {
  std::vector<std::string> verbs;
  for (const rnic::workloads::verb& v : rnic::workloads::verbs()) verbs.emplace_back(v.name);
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

void add_faults(CLI::App& command, fault_options& o, bool rates) {
  command.add_option("--faults", o.file, "TOML file that says what happens to which frames on the cable")
      ->type_name("FILE");
  command.add_flag("--pcap-before", o.pcap_before, "Capture what is sent, not what arrives after the faults");
  if (!rates) return;
  const auto percent = [&command](const char* name, double& target, const char* what) {
    command.add_option(name, target, what)
        ->check(CLI::Range(0.0, 100.0))
        ->check(is_number)
        ->capture_default_str()
        ->type_name("PERCENT");
  };
  percent("--drop", o.drop, "Frames that are lost, in percent of each direction's");
  percent("--duplicate", o.duplicate, "Frames that come twice");
  percent("--reorder", o.reorder, "Frames that come behind one or two later ones of their queue pair");
  percent("--corrupt", o.corrupt, "Frames of which a bit is wrong, half of them under a right FCS");
}

}  // namespace rnic::program
