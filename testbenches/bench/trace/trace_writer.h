// SPDX-License-Identifier: Apache-2.0
// Events of a trace in the Trace Event Format of Chromium, which Perfetto opens too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "model/sim/types.h"
#include "testbenches/bench/trace/lanes.h"
#include "testbenches/bench/trace/trace_file.h"

namespace rnic::bench {

/// A JSON object with one event a line. Times of slices and arrows are whole nanoseconds: Perfetto rounds begin and
/// length of a slice each by itself, so that of two that follow one another with more decimals one may begin before the
/// end of the other. `ps` of a slice is how long it lasts exactly, `off` by how many picoseconds it begins later than
/// is shown, where that is not 0. Times of counters have six decimals, which are picoseconds. Processes are hosts and
/// switches, threads are blocks: what does not fit on a block's first row is on "BLOCK #2", and so on. What finds no
/// row (lanes::most) is an asynchronous event of the first one.
class trace_writer {
 public:
  using process = std::uint32_t;  ///< from 1
  using block = std::uint32_t;
  using kind = std::uint32_t;  ///< of slices
  using gauge = std::uint32_t;
  /// Where a slice is, for arrows.
  struct place {
    process of = 0;
    std::uint32_t row = 0;  ///< 0: none
    sim::time_ps begin = 0;
  };

  /// Throws usage_error.
  trace_writer(const std::string& file, const std::string& title);
  /// What time 0 is from now on.
  void set_origin(sim::time_ps origin) { origin_ = origin; }

  process add_process(const std::string& name);
  block add_block(process of, const std::string& name);
  kind add_kind(block on, const std::string& name);
  gauge add_gauge(process of, const std::string& name);
  /// `details` is JSON, "key":value,..., of 1 to most_details bytes. Of no time: not written.
  place slice(kind of, sim::time_ps begin, sim::time_ps end, std::string_view details);
  static constexpr std::size_t most_details = 512;
  void arrow(const place& from, const place& to);
  void counter(gauge of, sim::time_ps at, std::uint64_t value);
  /// Throws usage_error.
  void close();

  std::uint64_t events() const { return events_; }

 private:
  struct track {
    process of = 0;
    std::string name;
    std::uint32_t number = 0;
    lanes rows;
    std::vector<std::uint32_t> threads;  // by row
  };
  struct known_kind {
    block on = 0;
    std::string name;                // JSON
    std::vector<std::string> heads;  // by row: an event until its time
  };
  char* begin_event();
  char* put_exact(char* at, sim::time_ps begin, sim::time_ps end) const;
  void slice_beside_rows(const known_kind& k, track& t, sim::time_ps begin, sim::time_ps end, std::string_view details);
  const std::string& head_of(known_kind& k, track& t, std::size_t row);
  void end_event(char* at);
  std::uint32_t thread_of(track& t, std::size_t row);
  void name_thread(process of, std::uint32_t thread, const std::string& name, std::uint32_t order);

  trace_file file_;
  sim::time_ps origin_ = 0;
  process processes_ = 0;
  std::deque<track> tracks_;
  std::vector<known_kind> kinds_;
  std::vector<std::string> gauges_;  // a counter's event until its time
  std::uint32_t threads_ = 0;
  std::uint64_t events_ = 0, arrows_ = 0, async_ = 0;
};

}  // namespace rnic::bench
