// SPDX-License-Identifier: Apache-2.0
// Whether the adapter's answers agree with the captured ones.
#pragma once

#include <cstdint>
#include <set>
#include <tuple>

#include "testbenches/replay/compare.h"
#include "testbenches/replay/plan.h"

namespace rnic::replay {

/// Tells differences because of which a peer would have gone on otherwise. Of use once the run is over.
class agreement {
 public:
  /// Keeps a reference to `c`.
  agreement(const comparison& c, const plan& p);

  /// Another kind of answer, verdict, address, length or content; an answer that is missing, or a NAK too many; a
  /// request that is missing or new; a completion in error. Not so: acknowledgements that are coalesced in another way,
  /// answers to repetitions and repeated requests, since both ends allow for them, atomics in another order, MSN and
  /// the solicited bit.
  bool is_fatal(const difference& d) const;

 private:
  using packet_key = std::tuple<int, std::uint32_t, std::uint8_t>;  // connection, PSN, opcode
  const comparison& compared_;
  const plan& plan_;
  std::set<packet_key> answered_;                     // packets of the held host for which the adapter sent one
  std::set<std::pair<int, std::uint32_t>> requests_;  // of the held host: connection, PSN
};

}  // namespace rnic::replay
