// SPDX-License-Identifier: Apache-2.0
#include "model/fabric/congestion_marker.h"

#include "model/wire/bytes.h"
#include "model/wire/icrc.h"

namespace rnic::fabric {

namespace {

constexpr std::uint8_t ecn_mask = 3;  // 0: cannot be marked; 3: congestion experienced

/// One's complement sums (RFC 1624, equation 3): of the header one word has changed.
void follow_change(std::uint8_t* checksum, std::uint16_t before, std::uint16_t after) {
  std::uint32_t sum = (~wire::load_be16(checksum) & 0xffffu) + (~before & 0xffffu) + after;
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  wire::store_be16(checksum, static_cast<std::uint16_t>(~sum));
}

}  // namespace

void set_congestion_experienced(payload::frame& f, const ip_place& ip) {
  const bool right = wire::ethernet_fcs(f.data(), f.length) == f.fcs;
  std::uint8_t* h = f.data() + ip.at;
  const std::uint16_t before = wire::load_be16(h);
  if (ip.version == 4) {
    constexpr unsigned checksum_at = 10;
    h[1] |= ecn_mask;
    follow_change(h + checksum_at, before, wire::load_be16(h));
  } else {
    h[1] |= ecn_mask << 4;  // traffic class: bits 27:20 of the first word
  }
  if (right) f.fcs = wire::ethernet_fcs(f.data(), f.length);
}

bool congestion_marker::look_at(payload::frame& f, std::uint32_t bytes) {
  if (!config_.on || !chooses(bytes)) return false;
  const ip_place ip = find_ip(f);
  if (ip.version == 0) return false;
  const std::uint8_t ecn = traffic_class_of(f, ip) & ecn_mask;
  if (ecn == 0 || ecn == ecn_mask) return false;
  set_congestion_experienced(f, ip);
  return true;
}

bool congestion_marker::chooses(std::uint32_t bytes) {
  if (bytes <= config_.kmin_bytes) return false;
  if (bytes > config_.kmax_bytes) return true;
  state_ += 0x9e3779b97f4a7c15;  // SplitMix64
  std::uint64_t z = state_;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  const std::uint64_t draw = (z ^ z >> 31) >> 32;  // 0 to 2^32 - 1
  // draw / 2^32 < pmax / 100 * (bytes - kmin) / (kmax - kmin)
  const std::uint64_t over = bytes - config_.kmin_bytes, span = config_.kmax_bytes - config_.kmin_bytes;
  const std::uint64_t percent = over * config_.pmax_percent;  // of a span; below 2^39, so it is shifted in two parts
  return draw * span < ((percent / 100) << 32) + ((percent % 100) << 32) / 100;
}

}  // namespace rnic::fabric
