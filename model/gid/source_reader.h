// SPDX-License-Identifier: Apache-2.0
// A transmit pipeline's look-ups of sources: when it may, and how many there were.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "model/gid/gid_source_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/memory_ports.h"
#include "model/sim/statistics.h"

namespace rnic::gid {

/// What a transmit pipeline is given to look up sources with.
struct source_access {
  std::array<gid_source_if*, 2> by_port{};
  bool shared = false;  ///< one read port a table for both pipelines (source_config::source_ports 1)
  unsigned turn = 0;    ///< which of them it is
};

/// Part of a block whose pipeline begins with the look-up.
///
/// Arbiter of a read port that two pipelines share: fixed turns. A table is read in even cycles by one pipeline and in
/// odd ones by the other, and the table of the other port the other way round: neither has to know of the other's
/// look-ups. A packet waits a cycle at most; the block's engine counts that as blocked by "gid table".
///
/// A look-up a cycle, of one port's tables or the other's (memory `source_tables`).
///
/// Counters: source_gid.look_ups, and of these source_gid.<why> for each kind of refusal.
class source_reader {
 public:
  source_reader(sim::clocked_block& owner, const source_access& access, sim::statistics& stats)
      : owner_(owner),
        access_(access),
        port_(owner, "source_tables", sim::port_each{}, {{"look_up", sim::access_kind::read}}) {
    const std::string prefix = owner.name() + ".source_gid.";
    stats.add(prefix + "look_ups", look_ups_);
    constexpr const char* why[] = {"", "invalid", "version", "function", "family"};
    for (unsigned i = 1; i < refusals; ++i) stats.add(prefix + why[i], refused_[i]);
  }

  unsigned cycles() const { return access_.by_port[0]->cycles(); }
  /// Whether the tables of the port take the pipeline's look-up in this cycle.
  bool open(unsigned port) const { return !access_.shared || (owner_.now() + port + access_.turn) % 2 == 0; }
  /// One a cycle, to an open table.
  source look_up(unsigned port, const source_request& request) {
    port_.access_own(0);
    ++look_ups_;
    const source found = access_.by_port[port]->look_up(request);
    if (found.why != refusal::none) ++refused_[static_cast<unsigned>(found.why)];
    return found;
  }

 private:
  const sim::clocked_block& owner_;
  const source_access access_;
  sim::memory_ports port_;
  std::uint64_t look_ups_ = 0;
  std::array<std::uint64_t, refusals> refused_{};
};

}  // namespace rnic::gid
