// SPDX-License-Identifier: Apache-2.0
// Rates that software sets, as numbers.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rnic::transport {

/// Static rate of an address path: the IB rate code + 5 (adapter data plane A.7). Returns kb/s, 0 for "the port's
/// rate" and for codes that do not exist. Rates of IBA volume 1, table 224; names in the verbs (enum ibv_rate).
constexpr std::uint32_t static_rate_kbps(std::uint8_t code) {
  constexpr std::uint32_t mbps[] = {2'500,   10'000,  30'000,  5'000,  20'000,  40'000,  60'000,
                                    80'000,  120'000, 14'062,  56'250, 112'500, 168'750, 25'781,
                                    103'125, 206'250, 309'375, 28'125, 53'125,  425'000, 637'500};
  constexpr unsigned first = 2 + 5, count = sizeof mbps / sizeof mbps[0];
  return code >= first && code < first + count ? mbps[code - first] * 1000 : 0;
}

/// Rate limit of a QP context: unit in bits 15:14 (1 kb/s, 2 Mb/s, 3 Gb/s; 0: none), value in 11:0 (adapter control
/// plane 6.6; units of the driver's enum mlx4_qp_rate_limit). Returns kb/s, 0 for none.
constexpr std::uint32_t qp_rate_kbps(std::uint16_t limit) {
  constexpr std::uint32_t unit[] = {0, 1, 1'000, 1'000'000};
  return unit[limit >> 14] * (limit & 0xfffu);
}

/// The lower of two limits of which 0 is none.
constexpr std::uint32_t lower_rate(std::uint32_t a, std::uint32_t b) {
  return a == 0 || b == 0 ? a | b : std::min(a, b);
}

}  // namespace rnic::transport
