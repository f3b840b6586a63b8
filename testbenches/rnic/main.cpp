// SPDX-License-Identifier: Apache-2.0
// The program `rnic`: command line to experiment.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <systemc>

#include "model/sim/check.h"
#include "testbenches/rnic/options.h"

namespace {

using namespace rnic::program;

void add_common(CLI::App& command, common_options& o) {
  command.add_option("--profile", o.profile, "Adapter profile: connectx3pro_40g or connectx5_100g")
      ->capture_default_str();
  command.add_option("--config", o.config_file, "TOML file with parameters (see `rnic parameters`)")->type_name("FILE");
  command.add_option("--set", o.assignments, "Change one parameter, e.g. --set adapter.clock_khz=500000; repeatable")
      ->type_name("PATH=VALUE")
      ->take_all();
  command.add_option("--json", o.json_file, "Write the results as JSON")->type_name("FILE");
  command.add_option("--pcap", o.pcap_file, "Write every frame on the cable as a nanosecond capture")
      ->type_name("FILE");
  command.add_flag("--overwrite", o.overwrite, "Replace result files that exist");
  command.add_option("--seed", o.seed, "Seed of everything random in the run")->capture_default_str();
  command.add_flag("--quiet", o.quiet, "No progress");
}

void add_traffic(CLI::App& command, traffic_options& o) {
  command.add_option("--verb", o.verb, "RDMA WRITE, SEND, RDMA READ, compare and swap, or fetch and add")
      ->check(CLI::IsMember({"write", "send", "read", "cas", "fadd"}))
      ->capture_default_str();
  command.add_option("--transport", o.transport, "Transport service")
      ->check(CLI::IsMember({"rc"}))
      ->capture_default_str();
  command.add_option("--roce", o.roce, "RoCE version")->check(CLI::IsMember({"v1", "v2"}))->capture_default_str();
  command.add_option("--ip", o.ip, "IP version of the addresses")
      ->check(CLI::IsMember({4u, 6u}))
      ->capture_default_str();
  command.add_option("--vlan", o.vlan, "VLAN ID, 0 for untagged")->check(CLI::Range(0u, 4094u))->capture_default_str();
  command.add_option("--priority", o.priority, "Service level: PCP and egress queue")
      ->check(CLI::Range(0u, 7u))
      ->capture_default_str();
  command.add_option("--mtu", o.mtu, "Path MTU in bytes")
      ->check(CLI::IsMember({256u, 512u, 1024u, 2048u, 4096u}))
      ->capture_default_str();
  command.add_option("--inline", o.inline_bytes, "Write payloads up to this many bytes into the descriptor")
      ->check(CLI::Range(0u, 912u))
      ->capture_default_str();
  command
      .add_option("--sizes", o.sizes, "Message sizes in bytes, e.g. 2,64,4096 (default 2 to 65536 in powers of two)")
      ->delimiter(',')
      ->check(CLI::Range(0u, 1u << 31));
  command.add_option("--cable", o.cable_metres, "Cable length in metres")
      ->check(CLI::Range(0u, 100000u))
      ->capture_default_str();
  command.add_option("--rate", o.rate_mbps, "Line rate in Mb/s, 0 for the profile's")
      ->check(CLI::Range(0u, 400000u))
      ->capture_default_str();
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
  latency_cmd->add_option("--iterations", latency.iterations, "Measured messages per size")
      ->check(CLI::Range(1u, 10000000u))
      ->capture_default_str();
  add_common(*latency_cmd, latency.common);

  bandwidth_options bandwidth;
  bandwidth.traffic.inline_bytes = 0;  // as perftest's bandwidth tests
  CLI::App* bandwidth_cmd =
      app.add_subcommand("bandwidth", "Message rate and goodput per message size, and what limits them");
  add_traffic(*bandwidth_cmd, bandwidth.traffic);
  bandwidth_cmd->add_option("--depth", bandwidth.depth, "Messages under way per queue pair")
      ->check(CLI::Range(1u, 8192u))
      ->capture_default_str();
  bandwidth_cmd->add_option("--qps", bandwidth.qps, "Queue pairs")
      ->check(CLI::Range(1u, 65536u))
      ->capture_default_str();
  bandwidth_cmd->add_option("--messages", bandwidth.messages, "Messages per size, over all queue pairs of a direction")
      ->check(CLI::Range(1u, 100000000u))
      ->capture_default_str();
  bandwidth_cmd->add_flag("--bidirectional", bandwidth.bidirectional, "Both hosts send");
  add_common(*bandwidth_cmd, bandwidth.common);

  replay_options replay;
  CLI::App* replay_cmd =
      app.add_subcommand("replay", "Re-enact a capture with the adapter in the place of one of its hosts");
  replay_cmd->add_option("capture", replay.capture, "Capture (pcap or pcapng, Ethernet)")
      ->required()
      ->type_name("CAPTURE");
  replay_cmd
      ->add_option("--hold", replay.hold,
                   "Address of the host whose place the adapter takes (default: the one that mostly answers)")
      ->type_name("ADDRESS");
  replay_cmd
      ->add_option("--timing", replay.timing,
                   "captured: at the times of the capture; fast: as fast as the frames depend on each other")
      ->check(CLI::IsMember({"captured", "fast"}))
      ->capture_default_str();
  replay_cmd->add_option("--output", replay.output, "Where to write the resulting capture")->type_name("FILE");
  add_common(*replay_cmd, replay.common);

  info_options info;
  CLI::App* info_cmd = app.add_subcommand("info", "What the adapter says of itself, as ibv_devinfo -v shows it");
  add_common(*info_cmd, info.common);

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
    std::fprintf(stderr, "rnic: a subcommand is required: latency, bandwidth, replay, info or parameters\n");
    return 2;
  }
  try {
    if (latency_cmd->parsed()) return run_latency(latency);
    if (bandwidth_cmd->parsed()) return run_bandwidth(bandwidth);
    if (replay_cmd->parsed()) return run_replay(replay);
    if (info_cmd->parsed()) return run_info(info);
    return run_parameters(parameters);
  } catch (const usage_error& e) {
    std::fprintf(stderr, "rnic: %s\n", e.what());
    return 2;
  } catch (const rnic::sim::config_error& e) {
    std::fprintf(stderr, "rnic: %s\n", e.what());
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "rnic: internal error: %s\n", e.what());
    return 3;
  }
}
