// SPDX-License-Identifier: Apache-2.0
// The chip as firmware's commands see it: registers by block, and the small protocols on them.
#pragma once

#include <array>
#include <cstdint>

#include "firmware/firmware_config.h"
#include "firmware/hardware_if.h"
#include "model/abi/queue_entries.h"
#include "model/flow/flow_cr.h"
#include "model/icm/context_change.h"
#include "model/icm/icm_map.h"
#include "model/register_bus/cr_space.h"

namespace rnic::firmware {

/// Register protocols documented in the blocks' *_cr.h. Functions returning bool give false when the hardware does not
/// become ready within config.max_polls, or a page is not mapped.
class chip {
 public:
  chip(hardware_if& hardware, const firmware_config& config) : hw_(hardware), config_(config) {}

  hardware_if& hw() { return hw_; }
  std::uint32_t read(register_bus::cr_base base, std::uint32_t offset) { return hw_.cr_read(address(base, 0, offset)); }
  void write(register_bus::cr_base base, std::uint32_t offset, std::uint32_t value) {
    hw_.cr_write(address(base, 0, offset), value);
  }
  /// Registers of a port; `port` is 0-based.
  std::uint32_t read_port(register_bus::cr_base base, unsigned port, std::uint32_t offset) {
    return hw_.cr_read(address(base, port, offset));
  }
  void write_port(register_bus::cr_base base, unsigned port, std::uint32_t offset, std::uint32_t value) {
    hw_.cr_write(address(base, port, offset), value);
  }

  void map_icm(std::uint64_t icm, std::uint64_t bus, std::uint32_t pages);
  void unmap_icm(std::uint64_t icm, std::uint32_t pages);
  void set_table(icm::table which, const icm::table_layout& layout);
  void drop_mpt(std::uint32_t index);
  /// Takes a window that hardware does not use any more off its region; wait_translations() tells when that is done.
  void release_window(std::uint32_t index);
  void revoke_key(std::uint32_t key);
  /// Waits until no translation that was looked up before the last drop is open.
  bool wait_translations();
  void drop_mtts(std::uint64_t mtt_address, std::uint32_t count);
  void drop_translations();

  /// Discards all QPs and waits until nothing of the transport or of address translation is on chip any more.
  bool empty_transport();

  /// QP, CQ and EQ control: stop, change the context in ICM, release.
  bool halt_qp(std::uint32_t qpn) { return stop_qp(qpn, false); }
  bool discard_qp(std::uint32_t qpn) { return stop_qp(qpn, true); }
  void release_qp(std::uint32_t qpn);
  /// The scheduler forgets what waits for the QP, and obeys doorbells of this page (scheduler::uar_of) from now on.
  void set_doorbell_owner(std::uint32_t qpn, std::uint32_t uar);
  /// QP that goes on working: brings ICM up to date, or changes software's fields of both halves in one of the states
  /// of `how`. In an other one nothing changes.
  bool publish_qp(std::uint32_t qpn);
  enum class change_result : std::uint8_t { done, refused, failed };
  change_result change_qp(std::uint32_t qpn, const icm::requester_context& requester,
                          const icm::responder_context& responder, const icm::qp_change& how);
  bool halt_cq(std::uint32_t cqn, bool discard = false);
  void release_cq(std::uint32_t cqn);
  bool halt_srq(std::uint32_t srqn, bool discard = false);
  void release_srq(std::uint32_t srqn);
  bool halt_eq(std::uint32_t eqn, bool discard = false);
  void release_eq(std::uint32_t eqn);

  /// Bytes 0x04..0x1b of an event, for the EQ to which its type is mapped, or `eqn`; `function`: whose object it is.
  using event_data = std::array<std::uint32_t, 6>;
  static constexpr std::uint32_t mapped_eq = 0xffff;
  bool raise(abi::eqe::event type, std::uint8_t subtype, const event_data& data, std::uint32_t eqn = mapped_eq,
             std::uint16_t function = 0);

  /// A rule of a flow table whose registers are at `table`; returns when look-ups see it. nullptr: the place is empty.
  struct flow_rule {
    std::array<std::uint32_t, flow::cr::key_words> value{}, mask{};
    std::uint64_t rank = 0;
    std::uint32_t member = 0;
  };
  struct flow_registers {
    register_bus::cr_base base;
    std::uint32_t offset;
  };
  bool put_flow(const flow_registers& table, std::uint32_t place, const flow_rule* rule);

 private:
  static std::uint32_t address(register_bus::cr_base base, unsigned port, std::uint32_t offset) {
    return static_cast<std::uint32_t>(base) + port * register_bus::cr_port_stride + offset;
  }
  bool stop_qp(std::uint32_t qpn, bool discard);
  template <class Context>
  void write_change(std::uint32_t half, std::uint32_t qpn, const Context& settings, const icm::qp_change& how);
  bool wait_clear(std::uint32_t address);

  hardware_if& hw_;
  const firmware_config& config_;
};

}  // namespace rnic::firmware
