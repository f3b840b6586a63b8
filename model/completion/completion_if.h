// SPDX-License-Identifier: Apache-2.0
// Requests to the completion block: completion queue entries, events, doorbells for CQs and EQs.
#pragma once

#include <array>
#include <cstdint>

#include "model/abi/queue_entries.h"
#include "model/sim/fifo.h"
#include "model/sim/span.h"

namespace rnic::completion {

/// One CQE, fields as in the published 32-byte entry (adapter data plane, A.5.2 and A.5.3).
struct cqe_request {
  std::uint32_t cqn = 0;
  std::uint32_t qpn = 0;         ///< my_qpn with flag bits 31:24 as in the entry
  std::uint32_t immediate = 0;   ///< immed_rss_invalid
  std::uint32_t remote_qpn = 0;  ///< g_mlpath_rqpn
  std::uint16_t sl_vid = 0;
  std::array<std::uint8_t, 6> smac{};
  std::uint32_t byte_count = 0;
  std::uint16_t wqe_index = 0;
  std::uint16_t checksum = 0;  ///< Ethernet receive
  std::uint8_t opcode = 0;     ///< owner_sr_opcode without owner: bit 6 send, 4:0 opcode (abi::cqe)
  std::uint8_t syndrome = 0;   ///< error entries
  std::uint8_t vendor_error = 0;
  bool solicited = false;      ///< error entries count as solicited by themselves
  std::uint16_t function = 0;  ///< of the queue pair: a CQ of another one takes none of its entries
  sim::span_id span = 0;
};

/// An event for the EQ to which its type is mapped (MAP_EQ), or for `eqn` when not 0xffff.
struct event_request {
  std::uint8_t type = 0;  ///< abi::eqe::event
  std::uint8_t subtype = 0;
  std::uint16_t eqn = 0xffff;
  static constexpr std::uint16_t data_offset = 0x04;
  std::array<std::uint8_t, 24> data{};  ///< bytes 0x04..0x1b of the EQE
  std::uint16_t function = 0;

  /// Sets a field of the entry that lies in its data.
  template <class T>
  void set(abi::field<T> f, T value) {
    f.offset = static_cast<std::uint16_t>(f.offset - data_offset);
    abi::set(data.data(), f, value);
  }
};

/// completion -> both halves of the queue pair: a completion of it was lost, which is fatal for it.
struct lost_completion {
  std::uint32_t qpn = 0;
};

/// doorbell -> completion.
struct queue_doorbell {
  enum class kind : std::uint8_t { cq_arm, eq_update };
  kind what = kind::cq_arm;
  std::uint32_t number = 0;   ///< CQN or EQN
  std::uint32_t index = 0;    ///< consumer index, 24 bits
  std::uint8_t command = 0;   ///< cq_arm: 1 next solicited, 2 next
  std::uint8_t sequence = 0;  ///< cq_arm: arm_sn
  bool arm = false;           ///< eq_update
  std::uint32_t uar = 0;      ///< cq_arm: page of the function's that it was rung on
  std::uint16_t function = 0;
};

}  // namespace rnic::completion
