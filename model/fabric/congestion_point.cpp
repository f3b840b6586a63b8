// SPDX-License-Identifier: Apache-2.0
#include "model/fabric/congestion_point.h"

#include <algorithm>
#include <limits>

#include "model/fabric/frame_headers.h"

namespace rnic::fabric {

namespace {

constexpr std::uint32_t mac_bytes = 6;
// Random(0.85, 1.15) of 32.9, in thousandths.
constexpr std::uint64_t least_share = 850, shares = 301, whole = 1000;
constexpr unsigned coarse_shift = 3;  // of the feedback, for the distance of samples

std::int16_t in_units(std::int64_t bytes) {
  using limits = std::numeric_limits<std::int16_t>;
  return static_cast<std::int16_t>(
      std::clamp<std::int64_t>(bytes / wire::cnm_queue_unit, limits::min(), limits::max()));
}

}  // namespace

congestion_point::congestion_point(const qcn_config& config, unsigned priority, std::uint64_t seed)
    : config_(config), on_((config.priorities >> priority & 1) != 0), state_(seed) {
  left_ = next_sample(0);
}

std::optional<congestion_point::sample> congestion_point::take(std::uint32_t bytes, std::uint32_t queued) {
  left_ -= bytes;
  if (left_ >= 0) return std::nullopt;
  const std::int64_t setpoint = config_.setpoint_bytes, weight = config_.weight;
  sample s;
  s.queued = queued;
  s.q_offset = setpoint - queued;
  s.q_delta = std::int64_t{queued} - before_;
  const std::int64_t most = setpoint * (2 * weight + 1);
  const std::int64_t congestion = std::clamp<std::int64_t>(-(s.q_offset - weight * s.q_delta), 0, most);
  s.feedback = static_cast<std::uint8_t>(congestion * wire::cnm_most_feedback / most);
  before_ = queued;
  left_ = next_sample(s.feedback);
  return s;
}

std::int64_t congestion_point::next_sample(std::uint8_t feedback) {
  state_ += 0x9e3779b97f4a7c15;  // SplitMix64
  std::uint64_t z = state_;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  const std::uint64_t draw = (z ^ z >> 31) >> 32;  // 0 to 2^32 - 1
  const std::uint64_t share = least_share + (draw * shares >> 32);
  return static_cast<std::int64_t>(config_.sample_bytes / ((feedback >> coarse_shift) + 1u) * share / whole);
}

wire::cnm message_about(const payload::frame& f, unsigned priority, const congestion_point::sample& s,
                        const qcn_config& config) {
  const std::uint8_t* d = f.data();
  wire::cnm m;
  std::copy_n(d + mac_bytes, mac_bytes, m.dmac.begin());
  std::copy_n(d, mac_bytes, m.sampled_dmac.begin());
  std::uint32_t at = type_at;
  if (const auto tag = tag_of(f)) {
    m.vlan_tci = static_cast<std::uint16_t>((*tag & 0xfff) | config.cnm_priority << pcp_shift);
    at += tag_bytes;
  }
  if (f.length >= at + tag_bytes && wire::load_be16(d + at) == wire::ether_type_cn_tag) {
    m.flow = wire::load_be16(d + at + 2);
    at += tag_bytes;
  }
  m.feedback = s.feedback;
  m.q_offset = in_units(s.q_offset);
  m.q_delta = in_units(s.q_delta);
  m.priority = static_cast<std::uint8_t>(priority);
  m.msdu_bytes =
      static_cast<std::uint8_t>(std::min<std::uint32_t>(config.header_bytes, f.length > at ? f.length - at : 0));
  std::copy_n(d + at, m.msdu_bytes, m.msdu.begin());
  return m;
}

}  // namespace rnic::fabric
