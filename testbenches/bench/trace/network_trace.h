// SPDX-License-Identifier: Apache-2.0
// A trace of what a network does: messages, queues, credits and pauses.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/sim/followed_requests.h"
#include "testbenches/bench/trace/konata_writer.h"
#include "testbenches/bench/trace/message_sink.h"
#include "testbenches/bench/trace/record_queue.h"
#include "testbenches/bench/trace/trace_writer.h"
#include "testbenches/bench/trace/watched_system.h"

namespace rnic::bench {

struct trace_config {
  std::string file;    ///< of events; ends in .gz: compressed; empty: none
  std::string konata;  ///< log for Konata, in cycles of the first host's adapter; empty: none
  std::string title;   ///< of the trace
  /// Changes of gauges that are written, since begin().
  sim::time_ps from = 0, until = ~sim::time_ps{0};
};

struct trace_counts {
  std::uint64_t messages = 0;    ///< written
  std::uint64_t unfinished = 0;  ///< of these: without a completion that was polled
  std::uint64_t events = 0;      ///< lines of the file
};

/// Writes what happens from begin() to finish(), of messages what it is told of. A message is a slice in the row of its
/// flow at the host that posts it, and a slice for each stage in the row of its block, with the number of the message
/// (`m`) and what it waited for; arrows lead from host to host, through switches, and back. What goes on beside the way
/// that its latency consists of (sim::followed_request) has slices too. The slices of its way sum to the latency
/// exactly. Gauges (sim::gauge) of all blocks are counters, in which every change is, and so is how many messages each
/// host has under way.
class network_trace final : public message_sink_if, private sim::gauge_watcher_if {
 public:
  /// Before the system runs. Throws usage_error for a file that cannot be made.
  network_trace(const watched_system& system, const trace_config& config);

  /// All hosts are ready: times count from now.
  void begin(sim::time_ps now);
  /// When the programs have ended. Throws usage_error when the file could not be written.
  trace_counts finish();

  void add_flow(std::uint32_t number, const std::string& name, unsigned host) override;
  void take(const sim::followed_request& r, sim::time_ps nothing_before) override;
  void under_way(unsigned host, std::uint64_t number, sim::time_ps now) override;

 private:
  struct flow_at_host {
    std::string name;
    trace_writer::block row = 0;
    unsigned host = 0;
    std::unordered_map<const char*, trace_writer::kind> verbs;
  };
  struct known_block {
    const char* name = nullptr;
    trace_writer::block row = 0;
    trace_writer::process of = 0;
    bool is_cable = false;
  };
  struct gauge_state {
    trace_writer::gauge written = 0;
    std::uint64_t value = 0;
    bool told = false;
  };

  enum class record_kind : std::uint8_t { gauge, message };
  struct gauge_record;
  struct message_record;
  void changed(std::size_t gauge, std::uint64_t value, sim::time_ps at) override;
  void read(const record_queue::batch& b);
  std::size_t read_message(const char* from);
  void write_counter(std::size_t gauge, std::uint64_t value, sim::time_ps at);
  void watch_gauges();
  bool in_window(sim::time_ps at) const { return records_ && at >= from_ && at < until_; }
  const known_block& block_of(const char* name);
  struct known_stage {
    const char *block = nullptr, *stage = nullptr;
    trace_writer::kind kind = 0;
    bool is_cable = false;
  };
  const known_stage& stage_of(const sim::span::mark& m);
  trace_writer::kind kind_of(flow_at_host& f, const char* verb);
  trace_writer::process process_of(const std::string& name);
  void write_way(const sim::followed_request::way& w, std::string_view details);
  void write_message(const sim::followed_request& r, std::string_view message);
  void write_events(const sim::followed_request& r);
  void write_konata(const sim::followed_request& r, sim::time_ps nothing_before);
  void add_rows();

  watched_system system_;
  trace_config config_;
  std::unique_ptr<trace_writer> writer_;   // nullptr: none
  std::unique_ptr<konata_writer> konata_;  // nullptr: none
  sim::time_ps from_ = 0, until_ = 0;
  std::unordered_map<std::string, trace_writer::process> processes_;
  trace_writer::process cables_ = 0;
  std::vector<flow_at_host> flows_;
  std::unordered_map<const char*, known_block> blocks_;
  std::map<std::pair<const char*, const char*>, trace_writer::kind> kinds_;  // of a block and a stage
  static constexpr std::size_t known_stages = 1024;
  std::vector<known_stage> stages_{known_stages};  // the last one of each place
  std::vector<gauge_state> gauges_;
  std::size_t under_way_ = 0;   // number of the first host's gauge of that
  sim::followed_request read_;  // of the thread that writes
  trace_counts counts_;
  /// From begin() to finish(): what is written with, and counts_, belong to its thread then.
  std::unique_ptr<record_queue> records_;
};

}  // namespace rnic::bench
