// SPDX-License-Identifier: Apache-2.0
// A waveform in the format of GTKWave.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/sim/types.h"
#include "testbenches/bench/wave/full_disk.h"

namespace rnic::bench {

/// Bits that hold numbers up to `most`, at least one.
constexpr unsigned bits_for(std::uint64_t most) {
  unsigned bits = 1;
  while (bits < 64 && most >> bits != 0) ++bits;
  return bits;
}

/// FST file with times in picoseconds, written by GTKWave's own writer (fstapi, which comes with Verilator). First all
/// signals are added, then values in order of time.
class wave_file {
 public:
  using signal = std::uint32_t;  ///< from 0

  /// A regular file. Throws usage_error when it cannot be made.
  explicit wave_file(const std::string& name);
  ~wave_file();
  wave_file(const wave_file&) = delete;
  wave_file& operator=(const wave_file&) = delete;

  /// `path`: scopes and name, "h1.adapter.requester_to_gather_packets.valid"; with a dot in front of a name that has
  /// some of its own. Two signals may not have the same one. `bits` from 1.
  signal add(const std::string& path, unsigned bits);
  /// A parameter: a value that never changes, of 32 bits.
  void add_constant(const std::string& path, std::uint64_t value);
  /// What it is before anything is told of it: 0, but of a constant.
  std::uint64_t first(signal s) const { return signals_[s].first; }
  /// It is declared as a parameter.
  void make_constant(signal s) { signals_[s].constant = true; }
  /// The same signal by another path.
  void add_alias(const std::string& path, signal of);
  /// Of at most 64 bits.
  void change(sim::time_ps at, signal s, std::uint64_t value);
  /// A character of 0, 1, x and z for each bit, the highest one first.
  void change(sim::time_ps at, signal s, std::string_view bits);
  /// The waveform lasts up to here. Throws usage_error when it could not be written.
  void close(sim::time_ps end);

  std::size_t signals() const { return signals_.size(); }
  /// Of signals, more than one of some.
  std::size_t paths() const { return paths_; }
  std::uint64_t changes() const { return changes_; }

 private:
  struct scope;
  struct wire {
    unsigned bits = 1;
    std::uint32_t handle = 0;  // the writer's; 0: not yet
    bool constant = false;
    std::uint64_t first = 0;
  };
  scope& scope_of(const std::string& path, std::size_t dot);
  void declare(const scope& s);
  void declare_all();
  void go_to(sim::time_ps at);

  std::string name_;
  full_disk_guard guard_{name_};
  void* writer_;
  std::unique_ptr<scope> top_;
  std::vector<wire> signals_;
  std::string text_;  // of a value
  sim::time_ps now_ = 0;
  bool began_ = false;
  std::size_t paths_ = 0;
  std::uint64_t changes_ = 0;
};

}  // namespace rnic::bench
