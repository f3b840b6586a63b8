// SPDX-License-Identifier: Apache-2.0
// Messages in the log format of Konata, a viewer of pipelines.
#pragma once

#include <cstdint>
#include <map>
#include <queue>
#include <string>
#include <vector>

#include "model/sim/followed_requests.h"
#include "testbenches/bench/trace/trace_file.h"

namespace rnic::bench {

/// Kanata log, version 4 (github.com/shioyadan/Konata, docs/kanata-log-format.md): a message is an instruction, a stage
/// of its way a stage in lane 0; what waits is in lane 1 too, named by what it waits for. Times are cycles of one
/// clock, rounded down, which the format wants in order: what is added is kept until nothing earlier can come. What a
/// message waits before its post (message_sink_if::arrived) is not shown.
class konata_writer {
 public:
  /// Throws usage_error. `clock_khz`: of the cycles.
  konata_writer(const std::string& file, std::uint32_t clock_khz);
  void set_origin(sim::time_ps origin) { origin_ = origin; }

  /// `label`: what stands beside it; `thread`: a host. Without a completion that was polled it counts as flushed.
  void add(const sim::followed_request& r, std::uint64_t number, unsigned thread, const std::string& label);
  /// Nothing that is added from now on begins before this.
  void write_before(sim::time_ps time);
  /// Throws usage_error.
  void close();

 private:
  enum class kind : std::uint8_t { begin, end_stage, stage, end };  // in this order at one time
  struct event {
    std::uint64_t cycle = 0, number = 0, place = 0;
    kind what = kind::begin;
    std::uint8_t lane = 0;
    const char* text = nullptr;
    bool operator<(const event& e) const {  // for a heap whose first is the earliest
      return cycle != e.cycle ? cycle > e.cycle : place > e.place;
    }
  };
  struct instruction {
    std::string label;
    unsigned thread = 0;
    bool flushed = false;
    std::uint64_t in_file = 0;
  };
  std::uint64_t cycle_of(sim::time_ps at) const;
  void put(std::uint64_t cycle, std::uint64_t number, kind what, std::uint8_t lane = 0, const char* text = nullptr);
  void write(const event& e);

  trace_file file_;
  std::uint32_t clock_khz_;
  sim::time_ps origin_ = 0;
  std::uint64_t now_ = 0, instructions_ = 0, retired_ = 0, events_ = 0;
  bool began_ = false;
  std::priority_queue<event> waiting_;
  std::map<std::uint64_t, instruction> known_;
};

}  // namespace rnic::bench
