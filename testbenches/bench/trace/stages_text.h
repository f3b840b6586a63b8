// SPDX-License-Identifier: Apache-2.0
// The way of a message as the comment of a frame.
#pragma once

#include <string>
#include <string_view>

#include "model/sim/followed_requests.h"

namespace rnic::bench {

/// Which message, as comments and results name it.
struct named_message {
  std::uint64_t number = 0, what = 0;  ///< what: message_note
  std::string_view flow, host;         ///< host: that posted it
  std::uint32_t qpn = 0;
  std::uint16_t index = 0;  ///< of its work request
};

/// "message 12 of rpc, write 4096 B, qpn 72 index 11 of h1, posted 1.204567 us before": before `at`.
void put_message(const named_message& m, sim::time_ps posted, sim::time_ps at, std::string& to);
/// ": h1.root_complex post 60.000 ns, store path 48.000 ns; h1.adapter.pcie link 71.823 ns (pcie)", and so on until
/// the frame has begun, `first_bit`, what no stage explains as "elsewhere"; then `cable`, unless it is 0. The times sum
/// to first_bit + cable - way.start exactly.
void put_stages(const sim::followed_request::way& way, sim::time_ps first_bit, sim::time_ps cable, std::string& to);

}  // namespace rnic::bench
