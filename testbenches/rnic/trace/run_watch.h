// SPDX-License-Identifier: Apache-2.0
// --trace, --konata, and comments in a capture of all ports.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "testbenches/bench/trace/message_follower.h"
#include "testbenches/bench/trace/network_trace.h"
#include "testbenches/bench/trace/single_messages.h"
#include "testbenches/bench/trace/watched_system.h"
#include "testbenches/rnic/options.h"

namespace rnic::program {

/// Throws usage_error for what cannot be right, before anything runs. `names`: of the flows or workloads.
void check_trace(const common_options& common, const trace_options& trace, const std::vector<std::string>& names);
void print_trace(const nlohmann::json& trace);

/// Looks on at a run, by follow() or by follow_singly(), which is called before the system runs.
class run_watch {
 public:
  /// Somebody has asked for what it does.
  static bool is_wanted(const common_options& common, const trace_options& trace);
  /// `title`: of the trace. Throws usage_error.
  run_watch(const bench::watched_system& system, const trace_options& trace, const std::string& title);
  ~run_watch();

  /// All messages of flows that onlooker() is told of; of other queue pairs as those of flow `others`, unless it is
  /// empty.
  void follow(const std::string& others = {});
  /// nullptr without follow().
  workloads::onlooker_if* onlooker() { return follower_.get(); }
  /// Messages whose spans the program opens, of these flows.
  bench::single_messages* follow_singly(const std::vector<std::string>& flows);
  /// All hosts are ready.
  void begin(sim::time_ps now);
  /// When the programs have ended: what --trace and --konata have; null without them. Throws usage_error when a file
  /// could not be written.
  nlohmann::json finish();

 private:
  void comment(tlm::frame_notes_if& notes);

  bench::watched_system system_;
  trace_options options_;
  sim::time_ps from_ = 0, until_ = ~sim::time_ps{0};
  std::unique_ptr<bench::network_trace> trace_;  // nullptr: none
  std::unique_ptr<bench::message_follower> follower_;
  std::unique_ptr<bench::single_messages> singles_;
};

/// Of a run of a network, following all its flows; nullptr: nobody has asked for it.
std::unique_ptr<run_watch> watch_of(hosts::network& network, const common_options& common, const trace_options& trace,
                                    const std::string& title);

}  // namespace rnic::program
