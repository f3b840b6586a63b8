// SPDX-License-Identifier: Apache-2.0
// The ports of a memory as signals.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/sim/memory_ports.h"
#include "testbenches/bench/wave/channel_wave.h"
#include "testbenches/bench/wave/wave_file.h"

namespace rnic::bench {

/// A memory with counted ports. Declared, as constants:
///
///   ports                                      accesses that it takes in a cycle
///   read_ports, write_ports, read_write_ports  of these, by what their users do; what there is none of is not shown
///   shared                                     1: any user may have any port; 0: each has one of its own
///
/// and in each cycle:
///
///   reads, writes, updates                     accesses, by what their user does (sim::access_kind)
///   <user>.access, <user>.wait                 accesses of one user; it was refused (of shared ports)
///
/// Found from the memory's counters behind each edge at which its domain has ticked a block: accesses are made in
/// ticks.
class memory_wave {
 public:
  memory_wave(wave_file& to, const sim::memory_ports& of);
  void clock_by(clock_wave& clock) { clock_ = &clock; }
  const sim::memory_ports& of() const { return memory_; }
  void begin();
  /// An edge of the clock has been served.
  void look();

 private:
  static constexpr std::size_t kinds = 3;
  struct user {
    wave_file::signal access = 0, wait = 0;
    std::uint64_t accesses = 0, waits = 0;  // known
  };
  void declare_ports(wave_file& to) const;

  const sim::memory_ports& memory_;
  clock_wave* clock_ = nullptr;
  std::array<wave_file::signal, kinds> made_{};
  std::vector<user> users_;
};

}  // namespace rnic::bench
