// SPDX-License-Identifier: Apache-2.0
// Who is told of messages that are followed.
#pragma once

#include <cstdint>
#include <string>

#include "model/sim/followed_requests.h"

namespace rnic::bench {

class message_sink_if {
 public:
  /// Stage in which an open loop's message waits before it is posted.
  static constexpr const char* arrived = "arrived";
  virtual ~message_sink_if() = default;
  /// Flows and workloads of each host, 0, 1, ...; before the first message.
  virtual void add_flow(std::uint32_t number, const std::string& name, unsigned host) = 0;
  /// A message that goes on no more, with its message_note. `nothing_before`: posts of those that still come.
  virtual void take(const sim::followed_request& r, sim::time_ps nothing_before) = 0;
  /// So many messages of a host are under way from now on.
  virtual void under_way(unsigned host, std::uint64_t number, sim::time_ps now) = 0;
};

}  // namespace rnic::bench
