// SPDX-License-Identifier: Apache-2.0
// The card with which published hosts were measured.
#pragma once

#include "model/pcie/dma_engine.h"

namespace rnic::bench {

/// pcie-bench's card (calibration 2.4): its interface to the PCIe core has 256 bits at 250 MHz, the usual one of a Gen3
/// x8 core, and takes two of its cycles to set a request up. That gives 24 ns for a write of 128 bytes and 40 ns for
/// one of 256, measured 24.1 and 40.5. What it does not say stays as in `c`.
inline pcie::dma_config measuring_card(pcie::dma_config c = {}) {
  c.interface_bytes = 32;
  c.interface_cycle_ps = 4000;
  c.request_setup_ps = 8000;
  return c;
}

}  // namespace rnic::bench
