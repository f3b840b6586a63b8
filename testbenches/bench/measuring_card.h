// SPDX-License-Identifier: Apache-2.0
// The card with which published hosts were measured.
#pragma once

#include "model/pcie/endpoint.h"
#include "model/sim/types.h"

namespace rnic::bench {

/// pcie-bench's card (bibliography, calibration 2.4): its interface to the PCIe core has 256 bits at 250 MHz, the usual
/// one of a Gen3 x8 core, and takes two of its cycles to set a request up. That gives 24 ns for a write of 128 bytes
/// and 40 ns for one of 256, measured 24.1 and 40.5. Packets end at multiples of the maximum payload: a write of 256
/// bytes four bytes behind a line takes 44 ns, measured 44.8. It has 20 reads under way: 62.4 M of 64 bytes a second,
/// each of which takes 340 ns here. What it does not say stays as in `c`.
inline pcie::endpoint_config measuring_card(pcie::endpoint_config c = {}) {
  c.core.khz = 250'000;
  c.core.interface_bytes = 32;
  c.core.request_setup_cycles = 2;
  c.dma.aligned_packets = true;
  c.dma.reads_per_client = 20;
  return c;
}

/// What of the card is in front of that interface when it writes: the engine that fetches the data from the card's
/// memory, in units, one transfer after the other. A write of 129 bytes takes as long as one of 192, to a hundredth of
/// a nanosecond the same on Sandy Bridge, Ivy Bridge, Haswell and Broadwell, and so do 128 bytes that are not aligned
/// in the card's memory: it is the card that they wait for. Fitted to 129 bytes (38.0 ns) and 257 (55.0 ns).
struct card_fetch {
  std::uint32_t unit_bytes = 128;
  sim::time_ps unit_ps = 17'000;
  sim::time_ps start_ps = 4'000;
  /// 0 of a unit of 0 bytes: the data is there.
  sim::time_ps time(std::uint32_t bytes) const {
    if (unit_bytes == 0) return 0;
    return start_ps + (bytes + unit_bytes - 1) / unit_bytes * unit_ps;
  }
};

/// What the card's engine adds to a read beside the 33 ns of its interface and of the crossing between its clocks: its
/// 560 ns for 64 bytes (C02), less the 310 ns of the host (calibration 5). A write and a read behind it go through the
/// engine one after the other. Commands that do not use the engine do without it (440 ns).
inline constexpr sim::time_ps card_engine_ps = 560'000 - 310'000 - 33'000;

}  // namespace rnic::bench
