// SPDX-License-Identifier: Apache-2.0
// What goes to gather, and what it tells.
#pragma once

#include <cstdint>

#include "model/gid/gid_source_if.h"
#include "model/icm/contexts.h"
#include "model/payload/frame.h"
#include "model/sim/types.h"
#include "model/transport/requester/send_wqe.h"
#include "model/wire/packet.h"

namespace rnic::transport {

/// Frame of an Ethernet QP: what has to be done to it when all of it is there.
struct ethernet_work {
  bool segmented = false, last = false, software_tag = false;
  std::uint8_t own_priority = 0;  ///< of the tag whose VID is the queue pair's
  std::uint16_t software_tci = 0, udp_port = 0;
  icm::ethernet_rules rules{};
  std::uint32_t offset = 0;  ///< of the packet's payload in a segmented message
  ethernet_send offload;
};

/// A packet that the transmit engine has started: what its headers will say, a frame with room for them, and room for
/// its payload. Inline bytes are there, and the headers of frames that software has made.
struct gather_job {
  static constexpr unsigned most_pieces = send_wqe::max_segments + payload::frame::capacity / 4096;
  payload::frame_ptr frame;
  std::uint64_t number = 0;  ///< in the order in which packets were started
  std::uint32_t qpn = 0, pd = 0, message = 0, generation = 0;
  wire::psn_t psn;
  std::uint32_t reserved_lkey = 0;
  std::uint16_t function = 0;
  std::uint16_t pieces = 0;  ///< that follow through the channel of pieces, up to most_pieces
  std::uint8_t unit = 0;     ///< processing unit
  std::uint8_t counter = 0;  ///< of its queue pair's context
  std::uint8_t tables = 0;   ///< port whose tables have its source
  std::uint8_t syndrome = 0;
  bool last_local = false;  ///< its leaving completes the message
  bool reserved_key = false;
  bool plain = false;  ///< frame of an Ethernet QP
  ethernet_work ethernet;
  gid::source_request source;
};

/// What one address gives of a packet's payload: up to 4096 bytes.
struct gather_piece {
  std::uint64_t address = 0;
  std::uint32_t length = 0, lkey = 0;
  std::uint16_t place = 0;  ///< in the payload
};

/// A frame has left the transmit pipeline.
struct gather_left {
  std::uint32_t qpn = 0, message = 0, generation = 0;
  bool last_local = false;
};

/// A packet that does not leave. `failed`: its payload cannot be read; gather waits for the word to go on, and the
/// packet then ends as withdrawn.
struct gather_event {
  enum class kind : std::uint8_t { failed, withdrawn, blocked };
  kind what = kind::withdrawn;
  std::uint8_t syndrome = 0, port = 0, priority = 0;
  bool last_local = false;
  std::uint32_t qpn = 0, message = 0, generation = 0;
  wire::psn_t psn;
};

/// An address of a packet of this processing unit is known.
struct gather_address {
  std::uint8_t unit = 0;
  sim::cycle_t missed_for = 0;  ///< cycles, when it had to be fetched
};

/// The transmit engine has taken a failure, and withdrawn what has to be.
struct gather_verdict {};

}  // namespace rnic::transport
