// SPDX-License-Identifier: Apache-2.0
// The two hosts of an experiment with what lies between them: a cable, or a network with flows of its own.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "host_driver/hosts/network_pair.h"
#include "host_driver/hosts/two_nodes.h"
#include "testbenches/bench/flow_set.h"
#include "testbenches/rnic/fabric/fabric_file.h"
#include "testbenches/rnic/measure/experiment.h"
#include "testbenches/rnic/options.h"
#include "testbenches/rnic/trace/run_watch.h"
#include "testbenches/rnic/trace/run_wave.h"

namespace rnic::program {

/// --topology: a network, and which of its hosts are measured.
struct measured_network {
  fabric_file file;
  std::string name;  ///< as the user gave it
  std::array<unsigned, 2> hosts{};
  std::array<std::vector<unsigned>, 2> ports;  ///< of each that are used
  sim::time_ps settle = 0;
};

/// Nothing without --topology. VLAN, priority, MTU, traffic class, RoCE and IP version become those of the network's
/// file where the user has not given them. Throws usage_error for options that do not go together, sim::config_error
/// for a bad file.
std::optional<measured_network> network_of(traffic_options& traffic);

/// What of a system is known when its programs have ended.
struct system_results {
  std::string between;        ///< the two hosts: "3 m of cable", "h1 to h4 in star"
  nlohmann::json faults;      ///< on the first cable; below "port1" or "port2" the second's; empty without a plan
  nlohmann::json statistics;  ///< every counter
  nlohmann::json use;         ///< of the two adapters
  nlohmann::json bonds;       ///< bonds_json(); empty without --bond
  nlohmann::json network;     ///< ways, flows and ports of switches; empty without --topology
  nlohmann::json trace;       ///< empty without --trace and --konata
  nlohmann::json wave;        ///< empty without --wave
};
/// A line for each way from one of the hosts to the other; nothing without a network.
void print_way(const system_results& results);
/// What bonds and flows did, ports of switches that did anything, the trace and the waveform; nothing without any.
void print_system(const system_results& results);
/// Its members faults, bonds, statistics, use, network, trace and wave, if they are not empty.
void add_to(nlohmann::json& result, const system_results& results);

class measured_system {
 public:
  static const trace_options no_trace;
  struct options {
    const common_options& common;
    const traffic_options& traffic;
    const fault_options& faults;
    const trace_options& trace = no_trace;
    std::string messages{};  ///< what a trace calls them; empty: the program opens their spans (follow_singly)
  };
  /// `network`: nullptr for a cable. Throws usage_error and sim::config_error.
  measured_system(const options& o, const demand& d, const measured_network* network, std::string* effective);
  ~measured_system();

  hosts::pair_if& pair() { return *pair_; }
  /// Runs the programs of the two hosts; those of a network once all of its hosts are ready, with its flows beside
  /// them until both have ended.
  void run(const std::function<void()>& program_a, const std::function<void()>& program_b);
  /// Messages whose spans the program opens are followed as those of these flows; nullptr: nobody has asked for it.
  bench::single_messages* follow_singly(const std::vector<std::string>& flows);
  /// Both programs are ready: what is watched, is from now on.
  void begin_watch();
  /// After the run.
  system_results results();

 private:
  void make_network(const options& o, const demand& d, std::string* effective);
  void look_on(const options& o, const bench::watched_system& system);
  void program(unsigned host, const std::array<std::function<void()>, 2>& programs);
  void join_cable(const options& o, const demand& d, std::string* effective);
  nlohmann::json network_json();

  const measured_network* asked_;
  trace_options trace_;
  unsigned metres_ = 0;
  std::unique_ptr<hosts::two_nodes> cable_;
  std::unique_ptr<hosts::network> network_;
  std::unique_ptr<hosts::network_pair> in_network_;
  std::unique_ptr<run_watch> watch_;           // nullptr: nobody has asked for it
  std::unique_ptr<bench::network_wave> wave_;  // the same
  std::unique_ptr<bench::flow_set> flows_;
  hosts::pair_if* pair_ = nullptr;
  unsigned ended_ = 0;
  sim::time_ps ready_ = 0, begin_ = 0, end_ = 0;
  nlohmann::json before_, after_;
};

}  // namespace rnic::program
