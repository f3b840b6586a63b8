// SPDX-License-Identifier: Apache-2.0
// Parameters of the congestion points of a switch.
#pragma once

#include <cstdint>

#include "model/sim/parameter.h"

namespace rnic::fabric {

/// Quantised congestion notification: what an output's queue of these priorities tells the sources of its frames.
struct qcn_config {
  /// Congestion controlled ones (CNPVs).
  sim::parameter<std::uint8_t> priorities{
      0, {0, 255, "priorities, one bit each", "design: off, until an administrator says otherwise"}};
  /// Length at which a queue is to stay.
  sim::parameter<std::uint32_t> setpoint_bytes{26'000, {100, 1u << 28, "bytes", "IEEE 802.1Q 32.8: cpQSp"}};
  /// How much a change of the length counts against its distance from the set point.
  sim::parameter<std::uint16_t> weight{2, {1, 1024, "", "IEEE 802.1Q 32.8: 2 to the power of cpW, which is 1"}};
  /// From one sample to the next where there is no congestion.
  sim::parameter<std::uint32_t> sample_bytes{150'000, {10'000, 1u << 30, "bytes", "IEEE 802.1Q 32.8: cpSampleBase"}};
  /// Of the CNMs themselves.
  sim::parameter<std::uint8_t> cnm_priority{6, {0, 7, "", "IEEE 802.1Q 32.2: cngCnmTransmitPriority"}};
  /// Of a sampled frame that its CNM gives back; by less than 62 a reaction point cannot tell what flow it is of.
  sim::parameter<std::uint8_t> header_bytes{64, {0, 64, "bytes", "IEEE 802.1Q 33.4: encapsulated MSDU"}};

  void list(sim::fields& are) {
    are("priorities", priorities);
    are("setpoint_bytes", setpoint_bytes);
    are("weight", weight);
    are("sample_bytes", sample_bytes);
    are("cnm_priority", cnm_priority);
    are("header_bytes", header_bytes);
  }
};

}  // namespace rnic::fabric
