// SPDX-License-Identifier: Apache-2.0
// Two captures of one run: what was lost between them.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/sim/types.h"
#include "model/wire/packet.h"

namespace rnic::replay {

struct plan;
struct difference;

/// A packet that was sent and did not arrive: one capture has it, the other lacks it.
struct lost_packet {
  std::string file;       ///< that has it
  std::size_t frame = 0;  ///< its number there, from 1
  sim::time_ps at = 0;    ///< by the clock of the capture that is replayed
  bool from_held = false;
  int connection = -1;  ///< negative: of none that is replayed
  wire::packet packet;
};

/// What two captures of one run tell together. Empty without a second one.
struct both_ends {
  std::string replayed, other;  ///< files; frame numbers are those of `replayed`
  std::vector<lost_packet> lost;
  std::uint64_t in_one_only = 0;  ///< packets that one lacks although it shows more of that direction: not captured
};

/// Makes of two captures, in whatever order, what the held host saw: of each direction the one with packets that the
/// other lacks was taken before the loss and the other behind it. What the held host sent is expected whether it
/// arrived or not; what was sent to it and lost is not injected (counted as rejected). The capture that shows more of
/// what the held host sent, or without losses the one with the shorter way to it, is the one that is replayed: `p` and
/// `second` may change their places. Packets are the same when GIDs, transport headers, payload, ICRC and IPv4
/// identification are; sent again, the nearest in time.
/// Throws usage_error when the two have no packet of the held host in common.
void join_ends(plan& p, plan& second, const std::string& first_file, const std::string& second_file,
               const std::vector<wire::gid>& held);

/// Finds the connections of what was lost.
void place_losses(plan& p);

/// Says of a request that the real host sent again and the adapter did not which loss made it do so.
class loss_reasons {
 public:
  /// Keeps a reference.
  explicit loss_reasons(const plan& p);
  /// Empty when no loss is the reason.
  std::string explain(const difference& d) const;

 private:
  const plan& plan_;
  std::unordered_map<std::size_t, const lost_packet*> cause_;  // by frame
};

}  // namespace rnic::replay
