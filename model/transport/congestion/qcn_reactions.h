// SPDX-License-Identifier: Apache-2.0
// The reaction points (802.1Qau) of one half of the transport: which flow a CNM is for, and what that may send.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/sim/statistics.h"
#include "model/sim/types.h"
#include "model/transport/congestion/notice.h"
#include "model/transport/congestion/qcn_group.h"
#include "model/transport/congestion/qcn_reaction_point.h"
#include "model/wire/packet.h"

namespace rnic::transport {

/// Data sheet. Part of the rate limiter of one half of the transport (IEEE 802.1Q clauses 31.2, 32.10 to 32.15).
///
/// A flow is what a queue pair sends in this half: its requests, or its READ responses. It has one reaction point from
/// the first CNM about one of its frames on until its rate is the highest one again. The reaction point belongs to the
/// port and the priority that this CNM names; with max_rps of them there, CNMs for other flows are ignored.
///
/// A CNM does not name the queue pair that has sent the sampled frame, only where that went: destination address and
/// queue pair. The flow table turns these round. It is written with each frame that starts while a priority reacts, and
/// its entry is the last queue pair that has sent there; a CNM whose entry was taken by another flow is ignored. Ports
/// do not count: below a bond a queue pair's frames may leave by either.
///
/// Memories: flow table, direct mapped by a hash of address and queue pair (one write port, of frames that start; one
/// read port, of CNMs); reaction points with their timers; parameters and statistics by port and priority, which
/// firmware writes and reads (qcn_cr.h).
///
/// Timers run in all reaction points at once in hardware; here each is brought up to date when it is asked, and all of
/// a group when a place is wanted.
class qcn_reactions {
 public:
  qcn_reactions(const qcn_config& config, const std::array<std::uint32_t, qcn_ports>& line_mbps);
  void announce(const std::string& name, sim::statistics& to) const;

  /// Some priority of a port reacts: else nothing else needs to be asked.
  bool reacts() const { return enabled_ != 0; }
  /// A frame of the queue pair starts for this address and queue pair.
  void note(std::uint32_t qpn, const std::uint8_t* dmac, std::uint32_t dest_qp);

  /// Reaction points by number, from 1.
  using number = std::uint16_t;
  static constexpr number none = 0;
  /// The queue pair that a CNM is for; nothing: ignored.
  std::optional<std::uint32_t> flow_of(const cnm_notice& n);
  /// The CNM moves the queue pair's reaction point, `at` where it has one, and returns it; none: ignored.
  number take(const cnm_notice& n, std::uint32_t qpn, number at, sim::time_ps now);
  /// Whether this one is there, and is the queue pair's.
  bool holds(number at, std::uint32_t qpn) const {
    return at != none && points_[at - 1u].there && points_[at - 1u].qpn == qpn;
  }
  /// A frame of `bytes` starts. Returns the flow's rate in kb/s; 0: it has its highest one again, and no reaction
  /// point.
  std::uint32_t sent(number at, std::uint32_t bytes, sim::time_ps now);
  void forget(number at, sim::time_ps now);
  /// Device reset.
  void clear();

  /// Registers from cr::qcn on.
  std::uint32_t read(std::uint32_t offset, sim::time_ps now) const;
  void write(std::uint32_t offset, std::uint32_t value, sim::time_ps now);

 private:
  struct flow_entry {
    std::array<std::uint8_t, 6> dmac{};
    bool valid = false;
    std::uint32_t dest_qp = 0, qpn = 0;
  };
  struct point {
    bool there = false;
    std::uint8_t group = 0;
    std::uint32_t qpn = 0;
    std::uint32_t counted_kbps = 0;  // in the group's total
    sim::time_ps since = 0;
    qcn_reaction_point rate;
  };
  struct group {
    qcn_group set;
    std::uint32_t points = 0;                // that are there
    sim::time_ps since_ps = 0, past_ps = 0;  // beginnings of these together; times of those that were
    std::uint64_t total_kbps = 0, least_kbps = 0, most_kbps = 0;
    std::uint32_t created = 0, handled = 0, ignored = 0;
  };
  static constexpr std::size_t most_points = 0xffff;
  flow_entry& place_of(const std::uint8_t* dmac, std::uint32_t dest_qp);
  number open(unsigned g, std::uint32_t qpn, unsigned port, sim::time_ps now);
  void count_rate(point& p);
  void end_finished(unsigned g, sim::time_ps now);
  void close(point& p, sim::time_ps at);
  std::uint32_t highest_index(unsigned g) const;

  const std::array<std::uint32_t, qcn_ports>& line_mbps_;
  std::uint32_t mask_;
  std::vector<flow_entry> flows_;  // none as long as nothing reacts
  std::vector<point> points_;
  std::vector<number> free_;  // of these
  std::array<group, qcn_groups> groups_{};
  std::uint16_t enabled_ = 0;  // groups
  struct {
    std::uint64_t handled = 0, unknown_flow = 0, disabled = 0, no_place = 0, created = 0, ended = 0;
  } count_;
};

}  // namespace rnic::transport
