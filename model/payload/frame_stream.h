// SPDX-License-Identifier: Apache-2.0
// A frame as bytes that take their time: when which of them is there, and what of it waits in front of whom.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "model/payload/frame.h"
#include "model/sim/beats.h"
#include "model/sim/check.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/types.h"

namespace rnic::payload {

/// Cycles that `bytes` take on a datapath of `width` bytes, one at least.
constexpr sim::cycle_t beats_of(std::uint32_t bytes, unsigned width) {
  return bytes <= width ? 1 : sim::beats_of(bytes, width);
}

/// Edge at which byte `n` of a frame is there for the block that has taken the frame out of a channel, if not before.
inline sim::cycle_t byte_at(const frame& f, std::uint32_t n, unsigned width) {
  return f.first_byte + sim::whole(n, width);
}
inline sim::cycle_t last_byte_at(const frame& f, unsigned width) {
  return byte_at(f, std::max(f.length, std::uint32_t{1}) - 1, width);
}

/// Law 17: `who` decides from byte `n` at edge `at`, or hands on what ends with it. That it is not there then is a
/// broken invariant of `who`, or of what is in front of it. A frame whose first_byte is 0 has all of its bytes.
inline void expect_byte(const frame& f, std::uint32_t n, unsigned width, sim::cycle_t at,
                        const sim::clocked_block& who) {
  RNIC_ASSERT(f.first_byte == 0 || byte_at(f, n, width) <= at,
              who.name() + ": byte " + std::to_string(n) + " of a frame is used at cycle " + std::to_string(at) +
                  " and comes at " + std::to_string(byte_at(f, n, width)));
}
/// The same of a whole RoCE packet, by a block that takes it behind the ICRC check: what a frame has behind its ICRC
/// (padding of a short one, bytes that its IP length does not count) is nobody's and may still come.
inline void expect_packet(const frame& f, unsigned width, sim::cycle_t at, const sim::clocked_block& who) {
  expect_byte(f, f.packet.icrc_offset + 3u, width, at, who);
}

/// Gives a frame on whose first byte leaves the producer `cycles` after `now`, a beat of `width` bytes in each cycle:
/// it is seen when its first byte has passed the channel (of one cycle), or its last one, as the channel forwards.
inline void stream_out(const sim::fifo_out<frame_ptr>& out, frame_ptr f, sim::cycle_t now, sim::cycle_t cycles,
                       unsigned width) {
  f->first_byte = now + cycles + 1;
  const bool whole = out.forwards() == sim::forwarding::store_and_forward;
  const sim::cycle_t behind = whole ? beats_of(f->length, width) - 1 : 0;
  out.push_after(std::move(f), cycles + behind);
}

/// Gives a frame on all of whose bytes are there.
inline void send_whole(const sim::fifo_out<frame_ptr>& out, frame_ptr f, sim::cycle_t now, unsigned width) {
  f->first_byte = now + 1 - std::min(now + 1, beats_of(f->length, width) - 1);
  out.push(std::move(f));
}

/// Word to a buffer in front: of a frame of `priority` that was in it `bytes` leave from edge `from` on, a beat a
/// cycle.
struct departure {
  sim::cycle_t from = 0;
  std::uint32_t bytes = 0;
  std::uint8_t priority = 0;
};

}  // namespace rnic::payload
