// SPDX-License-Identifier: Apache-2.0
// Completion queues (adapter control plane 4.15, 6.3; data plane A.5).
#include "firmware/context_access.h"
#include "firmware/firmware.h"
#include "model/abi/queue_entries.h"

namespace rnic::firmware {

using icm::table;
namespace f = abi::cqc;

namespace {

constexpr unsigned max_log_size = 22;
constexpr std::uint32_t index_mask = 0xffffff;

}  // namespace

abi::status firmware::sw2hw_cq(command_request& r) {
  if (!in_table(table::cqc, r.modifier)) return status::bad_index;
  if (cqs_.has(r.modifier)) return status::bad_res_state;
  if (const status s = read_mailbox(r, f::bytes); s != status::ok) return s;
  if (in(f::log_size) > max_log_size || in(f::db_record) % 8 != 0) return status::bad_param;
  const auto eqn = functions_.eq_index(function_of(r), in(f::eqn));
  if (!eqn || !eqs_.has(*eqn, function_of(r))) return status::bad_resource;
  if (in(f::timestamp) != 0) return status::bad_param;  // nobody writes times: TS is not announced

  icm::cq_context c{};
  c.cqn = r.modifier;
  c.valid = 1;
  c.function = function_of(r);
  c.log_size = static_cast<std::uint8_t>(in(f::log_size));
  c.log_page = static_cast<std::uint8_t>(in(f::log_page) + 12);
  c.eqn = static_cast<std::uint16_t>(*eqn);
  c.address = abi::load_mtt(in_.data(), f::mtt_high, f::mtt_low);
  c.db_record = in(f::db_record);
  c.page_offset = in(f::page_offset);
  c.uar = in(f::uar);
  c.period_us = in(f::period);
  c.max_count = in(f::max_count);
  c.flags = static_cast<std::uint8_t>((in(f::overrun_ignore) != 0 ? icm::cq_flag_overrun_ignore : 0) |
                                      (in(f::collapsed) != 0 ? icm::cq_flag_collapsed : 0));
  const buffer b{c.address, c.page_offset, c.log_page, std::uint64_t{cqe_bytes_} << c.log_size};
  if (const status s = check_buffer(b); s != status::ok) return s;
  if (r.op_modifier == 0) {
    if (const status s = hand_entries_to_hardware(function_of(r), b, cqe_bytes_, 0, c.log_size); s != status::ok)
      return s;
  }
  drop_buffer(b);
  if (!store_context(table::cqc, r.modifier, c)) return status::icm_error;
  chip_.release_cq(r.modifier);
  cqs_.give(r.modifier, function_of(r));
  return status::ok;
}

abi::status firmware::hw2sw_cq(command_request& r) {
  if (!in_table(table::cqc, r.modifier)) return status::bad_index;
  if (!cqs_.has(r.modifier)) return status::ok;
  // Completions on their way are written before the queue is taken back (4.15).
  icm::cq_context c{};
  if (!chip_.halt_cq(r.modifier)) return status::internal_error;
  const bool moved =
      load_context(table::cqc, r.modifier, c) && store_context(table::cqc, r.modifier, icm::cq_context{});
  chip_.release_cq(r.modifier);
  if (!moved) return status::icm_error;
  cqs_.take_back(r.modifier);
  if (r.op_modifier != 0) return status::ok;
  publish_cq(c);
  return write_mailbox(r, f::bytes);
}

void firmware::publish_cq(const icm::cq_context& c) {
  constexpr std::uint32_t states[] = {f::state_fired, f::state_armed_solicited, f::state_armed};
  out_.fill(0);
  put(f::status, c.status);
  put(f::collapsed, (c.flags & icm::cq_flag_collapsed) != 0);
  put(f::overrun_ignore, (c.flags & icm::cq_flag_overrun_ignore) != 0);
  put(f::state, states[c.arm % 3]);
  put(f::page_offset, c.page_offset);
  put(f::log_size, c.log_size);
  put(f::uar, c.uar);
  put(f::period, c.period_us);
  put(f::max_count, c.max_count);
  put(f::eqn, functions_.own_number(c.function, c.eqn));
  put(f::log_page, c.log_page - 12u);
  abi::store_mtt(out_.data(), f::mtt_high, f::mtt_low, c.address);
  put(f::last_notified, c.notified);
  put(f::solicit_producer, c.last_solicited);
  put(f::consumer, c.consumer);
  put(f::producer, c.producer);
  put(f::db_record, c.db_record);
}

abi::status firmware::query_cq(command_request& r) {
  if (!in_table(table::cqc, r.modifier)) return status::bad_index;
  if (!cqs_.has(r.modifier)) return status::bad_res_state;
  icm::cq_context c{};
  if (!chip_.halt_cq(r.modifier)) return status::internal_error;
  const bool loaded = load_context(table::cqc, r.modifier, c);
  chip_.release_cq(r.modifier);
  if (!loaded) return status::icm_error;
  publish_cq(c);
  return write_mailbox(r, f::bytes);
}

abi::status firmware::modify_cq(command_request& r) {
  if (!in_table(table::cqc, r.modifier)) return status::bad_index;
  if (!cqs_.has(r.modifier)) return status::bad_res_state;
  if (const status s = read_mailbox(r, f::bytes); s != status::ok) return s;
  if (!chip_.halt_cq(r.modifier)) return status::internal_error;
  const status s = r.op_modifier == 1 ? moderate_cq(r.modifier) : resize_cq(r.modifier, function_of(r));
  chip_.release_cq(r.modifier);
  return s;
}

abi::status firmware::moderate_cq(std::uint32_t cqn) {
  icm::cq_context c{};
  if (!load_context(table::cqc, cqn, c)) return status::icm_error;
  c.period_us = in(f::period);
  c.max_count = in(f::max_count);
  return store_context(table::cqc, cqn, c) ? status::ok : status::icm_error;
}

/// The marker goes where the next completion would have gone; completions go on behind it in the new buffer, whose
/// entries software copies to one index further (data plane A.5.6).
abi::status firmware::resize_cq(std::uint32_t cqn, std::uint16_t function) {
  icm::cq_context c{};
  if (!load_context(table::cqc, cqn, c)) return status::icm_error;
  const unsigned log_size = in(f::log_size);
  if (log_size > max_log_size) return status::bad_param;
  std::uint8_t record[8];
  if (!chip_.hw().dma_read(function, c.db_record, record, sizeof record)) return status::internal_error;
  const std::uint32_t outstanding = (c.producer - abi::load32(record)) & index_mask;
  if (outstanding + 1 > 1u << log_size || outstanding + 1 > 1u << c.log_size) return status::bad_size;
  buffer fresh{abi::load_mtt(in_.data(), f::mtt_high, f::mtt_low), in(f::page_offset),
               static_cast<std::uint8_t>(in(f::log_page) + 12), std::uint64_t{cqe_bytes_} << log_size};
  if (const status s = check_buffer(fresh); s != status::ok) return s;

  const std::uint32_t next = (c.producer + 1) & index_mask;
  if (const status s = hand_entries_to_hardware(function, fresh, cqe_bytes_, next, log_size); s != status::ok) return s;
  drop_buffer(fresh);
  const buffer old{c.address, c.page_offset, c.log_page, std::uint64_t{cqe_bytes_} << c.log_size};
  std::array<std::uint8_t, 64> marker{};
  const bool owner = (c.producer >> c.log_size & 1) != 0;
  marker[cqe_bytes_ - 1] = static_cast<std::uint8_t>(abi::cqe::opcode_resize | (owner ? abi::cqe::owner_bit : 0));
  const std::uint64_t slot = c.producer & ((1u << c.log_size) - 1);
  if (const status s = write_buffer(function, old, slot * cqe_bytes_, marker.data(), cqe_bytes_); s != status::ok)
    return s;

  c.producer = next;
  c.log_size = static_cast<std::uint8_t>(log_size);
  c.address = fresh.mtt;
  c.log_page = fresh.log_page;
  c.page_offset = fresh.offset;
  return store_context(table::cqc, cqn, c) ? status::ok : status::icm_error;
}

}  // namespace rnic::firmware
