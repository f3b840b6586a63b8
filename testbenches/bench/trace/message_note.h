// SPDX-License-Identifier: Apache-2.0
// What is known of a message when it is posted.
#pragma once

#include <cstdint>

#include "host_driver/device.h"

namespace rnic::bench {

/// As sim::followed_request::what has it: in 64 bits.
struct message_note {
  std::uint32_t bytes = 0;
  std::uint16_t flow = 0;  ///< message_sink_if::add_flow()
  std::uint8_t verb = 0;   ///< of verbs(), or no_verb
  static constexpr std::uint8_t no_verb = 0xff;
  static constexpr std::size_t most_flows = 0xffff;

  static message_note of(const ibv_send_wr& wr, std::uint16_t flow);
  static message_note unpacked(std::uint64_t what) {
    return {static_cast<std::uint32_t>(what >> 32), static_cast<std::uint16_t>(what >> 8),
            static_cast<std::uint8_t>(what)};
  }
  std::uint64_t packed() const { return std::uint64_t{bytes} << 32 | std::uint64_t{flow} << 8 | verb; }
  /// "write", or "other".
  const char* verb_name() const;
};

}  // namespace rnic::bench
