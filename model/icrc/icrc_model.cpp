// SPDX-License-Identifier: Apache-2.0
#include "model/icrc/icrc_model.h"

#include <algorithm>

#include "model/sim/check.h"
#include "model/wire/crc32.h"
#include "model/wire/icrc.h"

namespace rnic::icrc {
namespace {

/// Bits of the first bytes that count as ones, by encapsulation.
constexpr unsigned masked_bytes = 64;
using variant_mask = std::array<std::uint8_t, masked_bytes>;

constexpr variant_mask make_mask(wire::encapsulation encap) {
  variant_mask m{};
  std::size_t bth = 40;
  if (encap == wire::encapsulation::roce_v2_ipv4) {
    m[1] = 0xff;           // type of service
    m[8] = 0xff;           // time to live
    m[10] = m[11] = 0xff;  // header checksum
    m[20 + 6] = m[20 + 7] = 0xff;
    bth = 20 + 8;
  } else {
    m[0] = 0x0f;  // traffic class, flow label
    m[1] = m[2] = m[3] = 0xff;
    m[7] = 0xff;  // hop limit
    if (encap == wire::encapsulation::roce_v2_ipv6) {
      m[40 + 6] = m[40 + 7] = 0xff;
      bth = 40 + 8;
    }
  }
  m[bth + 4] = 0xff;  // FECN, BECN and reserved bits of the BTH
  return m;
}

constexpr std::array<variant_mask, 3> masks = {make_mask(wire::encapsulation::roce_v1),
                                               make_mask(wire::encapsulation::roce_v2_ipv4),
                                               make_mask(wire::encapsulation::roce_v2_ipv6)};

}  // namespace

void icrc_model::take(const icrc_beat& in) {
  const unsigned offset = in.first ? 0 : s_.offset;
  s_.masked = in;
  s_.masked_valid = true;
  if (offset < masked_bytes) {
    const variant_mask& mask = masks[static_cast<std::size_t>(in.encap)];
    for (std::size_t i = 0; i < beat_bytes_; ++i)
      s_.masked.data[i] = static_cast<std::uint8_t>(s_.masked.data[i] | mask[offset + i]);
  }
  s_.offset = std::min(offset + beat_bytes_, masked_bytes);
}

icrc_outputs icrc_model::step(const icrc_beat& in, bool result_ready) {
  RNIC_ASSERT(masked_bytes % beat_bytes_ == 0, "icrc: beats must divide the masked bytes");
  const bool stalled = blocked();
  const icrc_outputs out = outputs();

  // Last stage first, so that every stage reads what the one before it held in this cycle.
  if (s_.result_valid) {
    s_.result_valid = !result_ready;
  } else if (s_.done) {
    s_.result = s_.crc;
    s_.result_valid = true;
    s_.done = false;
  }
  if (s_.masked_valid && !stalled) {
    s_.crc = wire::crc32(s_.masked.first ? seed : s_.crc, s_.masked.data.data(), s_.masked.keep);
    s_.done = s_.masked.last;
    s_.masked_valid = false;
  }
  if (in.valid && out.in_ready) take(in);
  return out;
}

icrc_engine_if::result icrc_model::process(wire::encapsulation encap, const std::uint8_t* l3, std::size_t length) {
  RNIC_ASSERT(length != 0, "icrc: packet without bytes");
  return {cycles_of(length, beat_bytes_), wire::icrc(encap, l3, length)};
}

}  // namespace rnic::icrc
