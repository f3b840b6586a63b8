// SPDX-License-Identifier: Apache-2.0
// Send work queue entries: what software wrote, checked and taken apart.
#pragma once

#include <array>
#include <cstdint>

#include "model/abi/queue_entries.h"
#include "model/icm/contexts.h"
#include "model/icm/key_operation_if.h"
#include "model/transport/message_packets.h"

namespace rnic::transport {

/// WQE opcodes (adapter data plane A.4.2).
using wqe_opcode = abi::wqe::opcode;
/// Without a branch for each: opcodes are five bits.
template <class... Opcodes>
constexpr bool is_one_of(wqe_opcode op, Opcodes... those) {
  const std::uint32_t all = ((1u << static_cast<unsigned>(those)) | ...);
  return (all >> (static_cast<unsigned>(op) & 31) & 1) != 0;
}
/// A message with it uses up a receive at the other end.
constexpr bool takes_receive(wqe_opcode op) {
  return is_one_of(op, wqe_opcode::send, wqe_opcode::send_imm, wqe_opcode::send_inval, wqe_opcode::rdma_write_imm);
}

/// Syndromes of error CQEs (adapter data plane A.5.3).
namespace syndrome {
constexpr std::uint8_t code(abi::cqe::error e) { return static_cast<std::uint8_t>(e); }
inline constexpr auto local_length = code(abi::cqe::error::local_length),
                      local_qp_operation = code(abi::cqe::error::local_qp_operation),
                      local_protection = code(abi::cqe::error::local_protection),
                      flush = code(abi::cqe::error::flushed), window_bind = code(abi::cqe::error::window_bind),
                      bad_response = code(abi::cqe::error::bad_response),
                      remote_invalid_request = code(abi::cqe::error::remote_invalid_request),
                      remote_access = code(abi::cqe::error::remote_access),
                      remote_operation = code(abi::cqe::error::remote_operation),
                      retry_exceeded = code(abi::cqe::error::retry_exceeded),
                      rnr_retry_exceeded = code(abi::cqe::error::rnr_retry_exceeded);
}  // namespace syndrome

/// A piece of the message: host memory under a key, or bytes of the WQE itself.
struct wqe_segment {
  std::uint64_t address = 0;  ///< virtual address; inline: offset in the WQE
  std::uint32_t length = 0;
  std::uint32_t lkey = 0;
  bool is_inline = false;
};

/// Address vector of a datagram (adapter data plane B.2).
struct datagram_address {
  std::array<std::uint8_t, 16> gid;
  std::array<std::uint8_t, 6> dmac;
  std::uint32_t qpn, qkey, flow_label;
  std::uint16_t vlan_tci;  ///< as given; PCP in 15:13
  std::uint8_t gid_index, hop_limit, traffic_class, priority, static_rate;
  bool vlan_present, loopback;
};

/// Operands of an atomic operation (adapter data plane A.4.3, A.4.4).
struct atomic_operands {
  std::uint64_t swap_add, compare;        ///< masked fetch and add: `compare` has the field boundaries
  std::uint64_t swap_mask, compare_mask;  ///< masked compare and swap
};

/// What the control segment of an Ethernet QP's WQE asks for (adapter data plane A.4.1, A.8.1).
struct ethernet_send {
  std::uint16_t tag_type = 0;  ///< EtherType of the tag to put in; 0: none
  std::uint16_t tci = 0;
  bool ip_checksum = false, l4_checksum = false;
  bool icrc = false;  ///< a RoCE packet of software's making gets its ICRC
  bool loopback = false;
  std::array<std::uint8_t, 6> dmac{};  ///< the switch inside the adapter looks at this one; 0: at none
  /// Segmentation: headers in the WQE, payload bytes of a packet.
  std::uint16_t header_at = 0, header_bytes = 0, segment_bytes = 0;
};

struct send_wqe {
  static constexpr unsigned max_segments = 64;
  wqe_opcode opcode = wqe_opcode::nop;
  bool signalled = false, solicited = false, fence = false;
  bool local = false;           ///< nothing of it goes over the wire: NOP, operations on keys
  bool keep_icrc = false;       ///< special queue pairs: the ICRC is as software has written it
  bool all_inline = true;       ///< no byte of the message is in host memory
  std::uint8_t error = 0;       ///< syndrome when the WQE cannot be executed
  std::uint16_t size = 0;       ///< bytes
  std::uint16_t count = 0;      ///< segments
  std::uint32_t immediate = 0;  ///< host order
  std::uint32_t rkey = 0;
  std::uint32_t srqn = 0;    ///< XRC: receive queue at the other end
  std::uint32_t length = 0;  ///< bytes of the message, up to 2^31
  std::uint64_t remote_va = 0;
  datagram_address address;
  atomic_operands atomic;
  ethernet_send ethernet;
  icm::key_operation keys;  ///< without who asks
  std::array<wqe_segment, max_segments> segments;

  bool is_segmented() const { return opcode == wqe_opcode::lso; }
  bool is_read() const { return opcode == wqe_opcode::rdma_read; }
  bool is_masked_atomic() const {
    return is_one_of(opcode, wqe_opcode::masked_atomic_cs, wqe_opcode::masked_atomic_fa);
  }
  bool is_atomic() const {
    return is_one_of(opcode, wqe_opcode::atomic_cs, wqe_opcode::atomic_fa, wqe_opcode::masked_atomic_cs,
                     wqe_opcode::masked_atomic_fa);
  }
  /// The response brings data for the scatter list; the request has none.
  bool fetches() const {
    return is_one_of(opcode, wqe_opcode::rdma_read, wqe_opcode::atomic_cs, wqe_opcode::atomic_fa,
                     wqe_opcode::masked_atomic_cs, wqe_opcode::masked_atomic_fa);
  }
  bool is_key_operation() const {
    return is_one_of(opcode, wqe_opcode::bind_mw, wqe_opcode::fast_reg, wqe_opcode::local_inval);
  }
  bool takes_receive() const { return transport::takes_receive(opcode); }
  bool is_write() const { return opcode == wqe_opcode::rdma_write || opcode == wqe_opcode::rdma_write_imm; }
  bool has_immediate() const { return opcode == wqe_opcode::send_imm || opcode == wqe_opcode::rdma_write_imm; }
};

/// Owner bit of the control segment's first word.
bool wqe_owner(const std::uint8_t* wqe);
/// Size in bytes from the control segment (ds * 16); 0 is possible.
unsigned wqe_size(const std::uint8_t* wqe);
/// Whether a 64-byte chunk after the first still has software's "not written" stamp (adapter data plane A.3.2).
bool wqe_stamped(const std::uint8_t* wqe, unsigned bytes);

/// The control segment, and the header of a segmented message, of an Ethernet QP's WQE; `at` moves behind that header.
/// False: malformed.
bool parse_ethernet(const std::uint8_t* wqe, unsigned& at, send_wqe& out);

/// Takes a WQE of wqe_size() bytes apart. Never fails: what is wrong is in `out.error`. Leftovers of BlueFlame posting
/// (WQE index and QPN in the control segment) are ignored.
void parse_send_wqe(const std::uint8_t* wqe, icm::service type, send_wqe& out);

}  // namespace rnic::transport
