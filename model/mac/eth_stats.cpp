// SPDX-License-Identifier: Apache-2.0
// Counting into the DUMP_ETH_STATS image.
#include "model/mac/eth_stats.h"

#include <algorithm>

namespace rnic::mac {

namespace {

constexpr std::size_t rx_columns = 9;
constexpr std::size_t tx_columns = 10;
constexpr std::size_t rx_octets = 0x3a8 / 8;
constexpr std::size_t rx_frames = 0x480 / 8;
constexpr std::size_t tx_histogram = 0x598 / 8;
constexpr std::size_t tx_octets = 0x9a8 / 8;
constexpr std::size_t tx_frames = 0xa98 / 8;
constexpr std::size_t giants = 9, broadcasts = 10, multicasts = 11, others = 12;
constexpr std::uint32_t framing = 18;  // addresses, EtherType, FCS

/// Row of the histogram by size.
std::size_t bucket(std::uint32_t size, std::uint32_t mtu) {
  if (size > mtu) return giants;
  constexpr std::uint32_t last_of[] = {64, 127, 255, 511, 1023, 1518, 1522, 1548};
  std::size_t row = 0;  // no branch hangs on the size
  for (const std::uint32_t last : last_of) row += std::size_t{size > last};
  return row;
}

std::size_t cast_row(const std::uint8_t* dmac) {
  if ((dmac[0] & 1) == 0) return others;
  return std::all_of(dmac, dmac + 6, [](std::uint8_t b) { return b == 0xff; }) ? broadcasts : multicasts;
}

}  // namespace

void eth_stats::receive(unsigned column, std::uint32_t size, std::uint32_t mtu, const std::uint8_t* dmac) {
  ++q_[bucket(size, mtu) * rx_columns + column];
  ++q_[cast_row(dmac) * rx_columns + column];
  q_[rx_octets + 3 * column] += size;
  q_[rx_octets + 3 * column + 1] += size - std::min(size, framing);
  q_[rx_octets + 3 * column + 2] += size;
  ++q_[rx_frames + 3 * column];
  if (column != untagged) ++q_[rx_frames + 3 * column + 1];
  ++d_[7];
}

void eth_stats::transmit(unsigned column, std::uint32_t size, std::uint32_t mtu, const std::uint8_t* dmac,
                         bool tagged) {
  ++q_[tx_histogram + bucket(size, mtu) * tx_columns + column];
  ++q_[tx_histogram + cast_row(dmac) * tx_columns + column];
  q_[tx_octets + 3 * column] += size;
  q_[tx_octets + 3 * column + 1] += size - std::min(size, framing);
  q_[tx_octets + 3 * column + 2] += size;
  ++q_[tx_frames + 3 * column];
  if (tagged) ++q_[tx_frames + 3 * column + 1];
}

void eth_stats::receive_bad(unsigned column, std::uint32_t size, std::uint32_t mtu) {
  q_[rx_octets + 3 * column] += size;
  ++d_[7];
  if (size < 64)
    ++d_[2];
  else if (size > mtu)
    ++d_[0];
  else
    ++d_[1];
}

std::uint32_t eth_stats::word(std::uint32_t offset) const {
  if (offset >= words32_offset) {
    const std::size_t i = (offset - words32_offset) / 4;
    return i < d_.size() ? d_[i] : 0;
  }
  return static_cast<std::uint32_t>(q_[offset / 8] >> (offset % 8 == 0 ? 32 : 0));
}

}  // namespace rnic::mac
