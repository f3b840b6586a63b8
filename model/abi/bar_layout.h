// SPDX-License-Identifier: Apache-2.0
// Registers in BAR0, doorbells in BAR2 (adapter control plane 1.3, 1.4, 2.1; data plane A.1).
#pragma once

#include <cstdint>

#include "model/abi/endian.h"

namespace rnic::abi {

namespace bar0 {
inline constexpr std::uint64_t bytes = 1u << 20;
inline constexpr std::uint64_t hcr = 0x80680;              ///< 0x1c bytes, see namespace hcr
inline constexpr std::uint64_t ownership = 0x8069c;        ///< read claims: old value, then 1; write 0 frees
inline constexpr std::uint64_t reset = 0xf0010;            ///< write of 1 resets the device
inline constexpr std::uint64_t flash_semaphore = 0xf03fc;  ///< read claims; freed by reset
// The following addresses are the device's choice; the driver learns them from QUERY_FW.
inline constexpr std::uint64_t clock = 0x085b0;  ///< free-running counter, high word then low word
inline constexpr std::uint64_t comm = 0x1e000;   ///< communication channel of virtual functions
inline constexpr std::uint64_t catas = 0x1f020;  ///< catastrophic error buffer
inline constexpr unsigned catas_words = 16;
inline constexpr std::uint64_t clr_int = 0xf00d8;  ///< two words, written by the INTx handler
inline constexpr std::uint64_t clr_int_bytes = 8;
inline constexpr unsigned inta_pin = 0;  ///< bit of the second word that takes the line back (QUERY_ADAPTER)
inline constexpr std::uint64_t msix_table = 0x7c000;
inline constexpr std::uint64_t msix_pba = 0x7d000;
}  // namespace bar0

/// Host command register, offsets from bar0::hcr.
namespace hcr {
inline constexpr unsigned in_param_high = 0x00, in_param_low = 0x04, in_modifier = 0x08;
inline constexpr unsigned out_param_high = 0x0c, out_param_low = 0x10, token = 0x14, control = 0x18, bytes = 0x1c;
/// Control word.
inline constexpr unsigned status_shift = 24, go_bit = 23, event_bit = 22, toggle_bit = 21, opcode_modifier_shift = 12;
inline constexpr std::uint32_t go = 1u << go_bit, event = 1u << event_bit, toggle = 1u << toggle_bit;
inline constexpr std::uint32_t opcode_mask = 0xfff, opcode_modifier_mask = 0xf;
inline constexpr unsigned token_shift = 16;
}  // namespace hcr

/// Communication channel of virtual functions (adapter control plane 8.1, 8.2): a slot for each function behind
/// bar0::comm, which a virtual function sees, with two registers more, at the beginning of its BAR2.
namespace comm {
inline constexpr unsigned functions = 128;
inline constexpr std::uint64_t slot_bytes = 8;
inline constexpr std::uint64_t slave_write = 0x0, slave_read = 0x4;  ///< of a slot, and of BAR2
inline constexpr std::uint64_t capabilities = 0x8, flags = 0xc;      ///< of BAR2
inline constexpr std::uint32_t capability_reset = 1u << 30;          ///< the function may ask to be reset
inline constexpr std::uint32_t flag_offline = 1u << 9;               ///< the physical function's driver is not there
inline constexpr std::uint32_t flag_reset_request = 1u << 16, flag_reset_done = 1u << 8;  ///< done: as the request is
/// A word of the channel: the toggle turns over with each command and its answer.
inline constexpr unsigned toggle_shift = 31, command_shift = 16, version = 0x0101;
inline constexpr std::uint32_t parameter_mask = 0xffff, command_mask = 0xff, internal_error = 1u << 17;
enum class command : std::uint8_t { reset = 0, vhcr0 = 1, vhcr1 = 2, vhcr2 = 3, vhcr_enable = 4, vhcr_post = 5 };
}  // namespace comm

/// User access region: pages of BAR2.
namespace uar {
inline constexpr unsigned log_page = 12;
inline constexpr unsigned reserved_pages = 128;       ///< 4 KiB pages that hold only EQ doorbells
inline constexpr std::uint32_t send_doorbell = 0x14;  ///< 32 bits: QPN << 8
inline constexpr std::uint32_t cq_doorbell = 0x20;    ///< 64 bits, see cq_arm_*
inline constexpr std::uint32_t eq_doorbell = 0x800;   ///< + 8 * (eqn % 4), in page eqn / 4

constexpr std::uint32_t send_doorbell_value(std::uint32_t qpn) { return qpn << 8; }
constexpr std::uint32_t send_doorbell_qpn(std::uint32_t value) { return value >> 8; }
constexpr std::uint64_t eq_doorbell_offset(std::uint32_t eqn, unsigned log_uar_page = log_page) {
  return (std::uint64_t{eqn / 4} << log_uar_page) + eq_doorbell + 8 * (eqn % 4);
}
inline constexpr std::uint32_t eq_arm = 1u << 31, eq_index_mask = 0xffffff;
constexpr std::uint32_t eq_doorbell_value(std::uint32_t consumer, bool arm) {
  return (consumer & eq_index_mask) | (arm ? eq_arm : 0);
}
/// CQ arm: first word of the doorbell (command, sequence number, CQN); the second is the consumer index. The arm word
/// of the doorbell record has the consumer index in place of the CQN.
inline constexpr std::uint32_t cq_arm_solicited = 1u << 24, cq_arm_next = 2u << 24, cq_index_mask = 0xffffff;
constexpr std::uint32_t cq_arm_word(unsigned sequence, std::uint32_t command, std::uint32_t number_or_index) {
  return (sequence & 3) << 28 | command | (number_or_index & cq_index_mask);
}
constexpr unsigned cq_arm_sequence(std::uint32_t word) { return word >> 28 & 3; }
constexpr std::uint32_t cq_arm_command(std::uint32_t word) { return word & (7u << 24); }
}  // namespace uar

}  // namespace rnic::abi
