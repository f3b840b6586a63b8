// SPDX-License-Identifier: Apache-2.0
// Register protocols of the chip.
#include "firmware/chip.h"

#include <cstring>

#include "model/completion/completion_cr.h"
#include "model/icm/icm_cr.h"
#include "model/scheduler/scheduler_cr.h"
#include "model/transport/transport_cr.h"

namespace rnic::firmware {

using register_bus::cr_base;
namespace icm_cr = icm::cr;
namespace cq_cr = completion::cr;
namespace qp_cr = transport::cr;

namespace {

constexpr std::uint32_t high(std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); }
constexpr std::uint32_t low(std::uint64_t v) { return static_cast<std::uint32_t>(v); }

}  // namespace

bool chip::wait_clear(std::uint32_t address) {
  for (unsigned i = 0; i < config_.max_polls; ++i) {
    if ((hw_.cr_read(address) & 1) == 0) return true;
    hw_.spend(config_.poll_cycles);
  }
  return false;
}

void chip::map_icm(std::uint64_t icm, std::uint64_t bus, std::uint32_t pages) {
  write(cr_base::icm, icm_cr::map_icm_hi, high(icm));
  write(cr_base::icm, icm_cr::map_icm_lo, low(icm));
  write(cr_base::icm, icm_cr::map_bus_hi, high(bus));
  write(cr_base::icm, icm_cr::map_bus_lo, low(bus));
  write(cr_base::icm, icm_cr::map_pages, pages);
  write(cr_base::icm, icm_cr::map_command, icm_cr::map_command_map);
}

void chip::unmap_icm(std::uint64_t icm, std::uint32_t pages) {
  write(cr_base::icm, icm_cr::map_icm_hi, high(icm));
  write(cr_base::icm, icm_cr::map_icm_lo, low(icm));
  write(cr_base::icm, icm_cr::map_pages, pages);
  write(cr_base::icm, icm_cr::map_command, icm_cr::map_command_unmap);
}

void chip::set_table(icm::table which, const icm::table_layout& layout) {
  write(cr_base::icm, icm_cr::table_select, static_cast<std::uint32_t>(which));
  write(cr_base::icm, icm_cr::table_base_hi, high(layout.base));
  write(cr_base::icm, icm_cr::table_base_lo, low(layout.base));
  write(cr_base::icm, icm_cr::table_entry_bytes, layout.entry_bytes);
  write(cr_base::icm, icm_cr::table_log_entries, layout.log_entries);
}

void chip::drop_mpt(std::uint32_t index) {
  write(cr_base::icm, icm_cr::tpt_index, index);
  write(cr_base::icm, icm_cr::tpt_command, icm_cr::tpt_command_drop_mpt);
}

void chip::release_window(std::uint32_t index) {
  write(cr_base::icm, icm_cr::tpt_index, index);
  write(cr_base::icm, icm_cr::tpt_command, icm_cr::tpt_command_release_window);
}

void chip::revoke_key(std::uint32_t key) {
  write(cr_base::icm, icm_cr::tpt_index, key);
  write(cr_base::icm, icm_cr::tpt_command, icm_cr::tpt_command_revoke_key);
}

bool chip::wait_translations() { return wait_clear(address(cr_base::icm, 0, icm_cr::tpt_status)); }

void chip::drop_mtts(std::uint64_t mtt_address, std::uint32_t count) {
  write(cr_base::icm, icm_cr::tpt_mtt_hi, high(mtt_address));
  write(cr_base::icm, icm_cr::tpt_mtt_lo, low(mtt_address));
  write(cr_base::icm, icm_cr::tpt_count, count);
  write(cr_base::icm, icm_cr::tpt_command, icm_cr::tpt_command_drop_mtt_range);
}

void chip::drop_translations() { write(cr_base::icm, icm_cr::tpt_command, icm_cr::tpt_command_drop_all); }

bool chip::empty_transport() {
  for (const std::uint32_t part : {0u, qp_cr::responder_offset, qp_cr::multicast_offset})
    write(cr_base::transport, part + qp_cr::reset, 1);
  bool empty = true;
  for (const std::uint32_t half : {0u, qp_cr::responder_offset})
    empty = wait_clear(address(cr_base::transport, 0, half + qp_cr::reset)) && empty;
  drop_translations();
  return wait_translations() && empty;
}

bool chip::stop_qp(std::uint32_t qpn, bool discard) {
  const std::uint32_t command = discard ? qp_cr::qp_command_discard : qp_cr::qp_command_halt;
  for (const std::uint32_t half : {0u, qp_cr::responder_offset}) {
    write(cr_base::transport, half + qp_cr::qp_select, qpn);
    write(cr_base::transport, half + qp_cr::qp_command, command);
  }
  bool stopped = true;
  for (const std::uint32_t half : {0u, qp_cr::responder_offset})
    stopped = wait_clear(address(cr_base::transport, 0, half + qp_cr::qp_status)) && stopped;
  return stopped;
}

void chip::release_qp(std::uint32_t qpn) {
  for (const std::uint32_t half : {0u, qp_cr::responder_offset}) {
    write(cr_base::transport, half + qp_cr::qp_select, qpn);
    write(cr_base::transport, half + qp_cr::qp_command, qp_cr::qp_command_release);
  }
}

void chip::set_doorbell_owner(std::uint32_t qpn, std::uint32_t uar) {
  write(cr_base::scheduler, scheduler::cr::qp_select, qpn);
  write(cr_base::scheduler, scheduler::cr::owner, uar);
}

bool chip::publish_qp(std::uint32_t qpn) {
  for (const std::uint32_t half : {0u, qp_cr::responder_offset}) {
    write(cr_base::transport, half + qp_cr::qp_select, qpn);
    write(cr_base::transport, half + qp_cr::qp_command, qp_cr::qp_command_publish);
  }
  bool published = true;
  for (const std::uint32_t half : {0u, qp_cr::responder_offset})
    published = wait_clear(address(cr_base::transport, 0, half + qp_cr::qp_status)) && published;
  return published;
}

template <class Context>
void chip::write_change(std::uint32_t half, std::uint32_t qpn, const Context& settings, const icm::qp_change& how) {
  std::array<std::uint32_t, qp_cr::settings_bytes / 4> words{};
  std::memcpy(words.data(), &settings, sizeof settings);
  for (std::uint32_t i = 0; i < words.size(); ++i) write(cr_base::transport, half + qp_cr::settings + 4 * i, words[i]);
  write(cr_base::transport, half + qp_cr::change_from, how.from);
  write(cr_base::transport, half + qp_cr::change_to, how.to);
  write(cr_base::transport, half + qp_cr::qp_select, qpn);
  write(cr_base::transport, half + qp_cr::qp_command, qp_cr::qp_command_change);
}

/// The requester knows all states, so it comes first.
chip::change_result chip::change_qp(std::uint32_t qpn, const icm::requester_context& requester,
                                    const icm::responder_context& responder, const icm::qp_change& how) {
  const auto wait = [this](std::uint32_t half) {
    return wait_clear(address(cr_base::transport, 0, half + qp_cr::qp_status));
  };
  write_change(0, qpn, requester, how);
  if (!wait(0)) return change_result::failed;
  if ((read(cr_base::transport, qp_cr::qp_status) & qp_cr::qp_status_refused) != 0) return change_result::refused;
  write_change(qp_cr::responder_offset, qpn, responder, how);
  return wait(qp_cr::responder_offset) ? change_result::done : change_result::failed;
}

bool chip::halt_cq(std::uint32_t cqn, bool discard) {
  write(cr_base::completion, cq_cr::cq_select, cqn);
  write(cr_base::completion, cq_cr::cq_command, discard ? cq_cr::queue_command_discard : cq_cr::queue_command_halt);
  return wait_clear(address(cr_base::completion, 0, cq_cr::cq_status));
}

void chip::release_cq(std::uint32_t cqn) {
  write(cr_base::completion, cq_cr::cq_select, cqn);
  write(cr_base::completion, cq_cr::cq_command, cq_cr::queue_command_release);
}

bool chip::halt_srq(std::uint32_t srqn, bool discard) {
  constexpr std::uint32_t half = qp_cr::responder_offset;
  write(cr_base::transport, half + qp_cr::srq_select, srqn);
  write(cr_base::transport, half + qp_cr::srq_command, discard ? qp_cr::qp_command_discard : qp_cr::qp_command_halt);
  return wait_clear(address(cr_base::transport, 0, half + qp_cr::srq_status));
}

void chip::release_srq(std::uint32_t srqn) {
  write(cr_base::transport, qp_cr::responder_offset + qp_cr::srq_select, srqn);
  write(cr_base::transport, qp_cr::responder_offset + qp_cr::srq_command, qp_cr::qp_command_release);
}

bool chip::halt_eq(std::uint32_t eqn, bool discard) {
  write(cr_base::completion, cq_cr::eq_select, eqn);
  write(cr_base::completion, cq_cr::eq_command, discard ? cq_cr::queue_command_discard : cq_cr::queue_command_halt);
  return wait_clear(address(cr_base::completion, 0, cq_cr::eq_status));
}

void chip::release_eq(std::uint32_t eqn) {
  write(cr_base::completion, cq_cr::eq_select, eqn);
  write(cr_base::completion, cq_cr::eq_command, cq_cr::queue_command_release);
}

bool chip::put_flow(const flow_registers& table, std::uint32_t place, const flow_rule* rule) {
  namespace f = flow::cr;
  const auto put = [&](std::uint32_t offset, std::uint32_t value) { write(table.base, table.offset + offset, value); };
  if (rule != nullptr) {
    for (std::uint32_t i = 0; i < f::key_words; ++i) {
      put(f::rule_value + 4 * i, rule->value[i]);
      put(f::rule_mask + 4 * i, rule->mask[i]);
    }
    put(f::rule_rank_high, high(rule->rank));
    put(f::rule_rank_low, low(rule->rank));
    put(f::rule_member, rule->member);
  }
  put(f::rule_write, place | (rule != nullptr ? f::rule_valid : 0));
  return wait_clear(address(table.base, 0, table.offset + f::rule_busy));
}

bool chip::raise(abi::eqe::event type, std::uint8_t subtype, const event_data& data, std::uint32_t eqn,
                 std::uint16_t function) {
  if (!wait_clear(address(cr_base::completion, 0, cq_cr::event_push))) return false;
  for (std::uint32_t i = 0; i < data.size(); ++i) write(cr_base::completion, cq_cr::event_data + 4 * i, data[i]);
  write(cr_base::completion, cq_cr::event_kind, static_cast<std::uint32_t>(type) << 8 | subtype);
  write(cr_base::completion, cq_cr::event_eqn, eqn);
  if (function != 0) write(cr_base::completion, cq_cr::event_function, function);
  write(cr_base::completion, cq_cr::event_push, 1);
  return true;
}

}  // namespace rnic::firmware
