// SPDX-License-Identifier: Apache-2.0
// A congestion point of quantised congestion notification (IEEE 802.1Q clause 30, 32.8, 32.9).
#pragma once

#include <cstdint>
#include <optional>

#include "model/fabric/qcn_config.h"
#include "model/payload/frame.h"
#include "model/wire/cnm.h"

namespace rnic::fabric {

/// Data sheet. Part of a switch: one for each output's priority. It has no time of its own, and what happens at one
/// does not depend on the order in which outputs are served.
///
/// Each frame that comes into the queue takes its bytes from a counter. The one with which the counter falls below 0 is
/// sampled: Fb = (Qsp - Q) - W * (Q - Qold), Q being the queue with that frame in it and Qold what it was at the last
/// sample. -Fb, cut at Qsp * (2 W + 1), becomes six bits (32.9: the whole range is 63). If these are not 0 a CNM goes
/// to the source of the frame. The next sample is `sample_bytes` away, as often divided as the upper three bits of the
/// feedback and one say, with a jitter of 15 % to either side.
class congestion_point {
 public:
  /// What a sample has found.
  struct sample {
    std::uint32_t queued = 0;
    std::uint8_t feedback = 0;               ///< 0: there is nothing to tell
    std::int64_t q_offset = 0, q_delta = 0;  ///< bytes: set point less queue; queue less the one before
  };

  congestion_point(const qcn_config& config, unsigned priority, std::uint64_t seed);

  bool is_on() const { return on_; }
  /// A frame of `bytes` has come into the queue that has `queued` with it. Nothing: it is not sampled.
  std::optional<sample> take(std::uint32_t bytes, std::uint32_t queued);

 private:
  std::int64_t next_sample(std::uint8_t feedback);

  const qcn_config& config_;
  const bool on_;
  std::uint64_t state_;       // of the jitter
  std::int64_t left_ = 0;     // bytes until the next sample
  std::uint32_t before_ = 0;  // the queue at the last sample
};

/// The CNM for a sample of frame `f`, of `priority`: VLAN tag with `cnm_priority` where the frame has one, its CN-TAG
/// where it has one, and up to `header_bytes` of what is behind these.
wire::cnm message_about(const payload::frame& f, unsigned priority, const congestion_point::sample& s,
                        const qcn_config& config);

}  // namespace rnic::fabric
