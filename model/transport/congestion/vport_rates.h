// SPDX-License-Identifier: Apache-2.0
// Rates of virtual ports: what the queue pairs of a function send together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/sim/clock_domain.h"
#include "model/transport/transport_cr.h"

namespace rnic::transport {

/// Part of the requester (SET_VPORT_QOS; net/fw_qos.c). A queue pair names a virtual port; together with the port and
/// the priority of its path that is an entry here, which all queue pairs that name it share. A frame of n bytes on the
/// line moves the entry's next one by the time that n bytes take at its rate. Whoever asks first when it is due goes
/// first. As for a queue pair's own rate, lateness by a little is made up for.
/// Approximation: what the responder sends for a function, answers and the data of its peers' READs, has no part in the
/// rate; a real adapter weighs all that leaves.
///
/// Memory: a rate and a time for each of 128 virtual ports, two ports and eight priorities; one is read and one written
/// in a cycle.
class vport_rates {
 public:
  static constexpr std::uint32_t numbers = cr::vports, priorities = 8, ports = 2;
  static constexpr std::uint32_t place(unsigned port, std::uint32_t number, unsigned priority) {
    return (port % ports * numbers + number % numbers) * priorities + priority % priorities;
  }

  explicit vport_rates(const sim::clock_domain& domain) : domain_(domain) {}

  /// False as long as none has ever had a rate: nothing else needs to be asked.
  bool any() const { return !entries_.empty(); }
  /// In kb/s; 0: none.
  void limit(std::uint32_t place, std::uint32_t kbps) {
    if (kbps != 0 && entries_.empty()) entries_.resize(std::size_t{ports} * numbers * priorities);
    if (!entries_.empty()) entries_[place].kbps = kbps;
  }
  std::uint32_t rate(std::uint32_t place) const { return entries_.empty() ? 0 : entries_[place].kbps; }
  /// First edge at which a frame of it may start.
  sim::cycle_t due(std::uint32_t place) const {
    return rate(place) == 0 ? 0 : domain_.edge_at_or_after(entries_[place].next);
  }
  /// A frame that takes `bytes` on the line starts now. `excused`: lateness that is made up for.
  void sent(std::uint32_t place, std::uint32_t bytes, sim::time_ps excused) {
    if (rate(place) == 0) return;
    constexpr std::uint64_t kbps_ps_per_bit = 1'000'000'000;
    entry& e = entries_[place];
    const sim::time_ps now = domain_.now_ps(), late = now - std::min(now, e.next);
    e.next = (late <= excused ? e.next : now) + (std::uint64_t{bytes} * 8 * kbps_ps_per_bit + e.kbps - 1) / e.kbps;
  }
  void clear() { entries_.clear(); }

 private:
  struct entry {
    std::uint32_t kbps = 0;
    sim::time_ps next = 0;  // the next frame not before
  };
  const sim::clock_domain& domain_;
  std::vector<entry> entries_;
};

}  // namespace rnic::transport
