// SPDX-License-Identifier: Apache-2.0
// Event queues and shared receive queues (adapter control plane 4.14, 4.15, 6.2, 6.4, 7.2).
#include <algorithm>

#include "firmware/context_access.h"
#include "firmware/firmware.h"
#include "firmware/limits.h"
#include "model/completion/completion_cr.h"

namespace rnic::firmware {

using icm::table;
using register_bus::cr_base;

abi::status firmware::check_buffer(const buffer& b) const {
  if (b.log_page > 31 || b.offset >= 1u << b.log_page) return status::bad_param;
  const std::uint64_t pages = (b.offset + b.bytes + (std::uint64_t{1} << b.log_page) - 1) >> b.log_page;
  return mtt_range_ok(b.mtt, pages) ? status::ok : status::bad_param;
}

/// Software writes translations without a word: what the caches know of the buffer is old.
void firmware::drop_buffer(const buffer& b) {
  const std::uint64_t pages = (b.offset + b.bytes + (std::uint64_t{1} << b.log_page) - 1) >> b.log_page;
  chip_.drop_mtts(b.mtt, static_cast<std::uint32_t>(pages));
}

/// Writes [at, at + bytes) of a queue, which must lie in one of its pages.
abi::status firmware::write_buffer(std::uint16_t function, const buffer& b, std::uint64_t at, const std::uint8_t* from,
                                   std::size_t bytes) {
  const std::uint64_t position = b.offset + at;
  std::uint8_t translation[abi::mtt::bytes];
  const std::uint64_t mtt = layout(table::mtt).base + b.mtt + (position >> b.log_page) * abi::mtt::bytes;
  if (!chip_.hw().icm_read(mtt, translation, sizeof translation)) return status::icm_error;
  const std::uint64_t page_mask = (std::uint64_t{1} << b.log_page) - 1;
  const std::uint64_t address =
      (abi::load64(translation) & ~page_mask & ~std::uint64_t{0xfff}) | (position & page_mask);
  return chip_.hw().dma_write(function, address, from, bytes) ? status::ok : status::internal_error;
}

/// Fills a queue with entries that belong to hardware: entry for running index n has the owner bit that software does
/// not wait for, which is set while (n & size) == 0. `first_index`: the index that hardware writes next.
abi::status firmware::hand_entries_to_hardware(std::uint16_t function, const buffer& b, unsigned entry_bytes,
                                               std::uint64_t first_index, unsigned log_entries) {
  std::array<std::uint8_t, 4096> chunk{};
  const std::uint64_t size = std::uint64_t{1} << log_entries;
  const std::uint64_t piece =
      std::min<std::uint64_t>(chunk.size(), b.bytes);  // powers of two: pieces stay inside pages
  for (std::uint64_t at = 0; at < b.bytes; at += piece) {
    for (std::uint64_t i = 0; i < piece; i += entry_bytes) {
      const std::uint64_t slot = (at + i) / entry_bytes;
      const std::uint64_t index = first_index + ((slot - first_index) & (size - 1));
      chunk[i + entry_bytes - 1] = (index & size) == 0 ? 0x80 : 0;
    }
    const std::uint64_t page = std::uint64_t{1} << b.log_page;
    const std::uint64_t left = page - ((b.offset + at) & (page - 1));
    const std::uint64_t head = std::min(piece, left);
    if (const status s = write_buffer(function, b, at, chunk.data(), head); s != status::ok) return s;
    if (head == piece) continue;  // an offset that is not aligned to the piece: the rest is in the next page
    if (const status s = write_buffer(function, b, at + head, chunk.data() + head, piece - head); s != status::ok)
      return s;
  }
  return status::ok;
}

abi::status firmware::sw2hw_eq(command_request& r) {
  namespace f = abi::eqc;
  const auto own = functions_.eq_index(function_of(r), r.modifier);
  if (!own || !in_table(table::eqc, *own)) return status::bad_index;
  const std::uint32_t eqn = *own;
  if (eqs_.has(eqn)) return status::bad_res_state;
  if (const status s = read_mailbox(r, f::bytes); s != status::ok) return s;
  constexpr unsigned max_log_size = 22;
  if (in(f::log_size) > max_log_size || in(f::vector) >= vectors_of(function_of(r))) return status::bad_param;

  icm::eq_context c{};
  c.eqn = eqn;
  c.valid = 1;
  c.log_size = in(f::log_size);
  c.log_page = static_cast<std::uint8_t>(in(f::log_page) + 12);
  c.state = static_cast<std::uint8_t>(in(f::state));
  c.address = abi::load_mtt(in_.data(), f::mtt_high, f::mtt_low);
  c.page_offset = in(f::page_offset);
  c.vector = in(f::vector);
  c.function = function_of(r);
  c.period_us = in(f::period);
  c.max_count = in(f::max_count);
  const buffer b{c.address, c.page_offset, c.log_page, std::uint64_t{eqe_bytes_} << c.log_size};
  if (const status s = check_buffer(b); s != status::ok) return s;
  if (const status s = hand_entries_to_hardware(c.function, b, eqe_bytes_, 0, c.log_size); s != status::ok) return s;
  drop_buffer(b);
  if (!store_context(table::eqc, eqn, c)) return status::icm_error;
  chip_.release_eq(eqn);
  eqs_.give(eqn, function_of(r));
  return status::ok;
}

abi::status firmware::hw2sw_eq(command_request& r) {
  const auto own = functions_.eq_index(function_of(r), r.modifier);
  if (!own || !in_table(table::eqc, *own)) return status::bad_index;
  const std::uint32_t eqn = *own;
  if (r.op_modifier == 0) {
    if (const status s = query_eq(r); s != status::ok) return s;
  }
  if (!eqs_.has(eqn)) return status::ok;
  if (!chip_.halt_eq(eqn, true)) return status::internal_error;
  if (!store_context(table::eqc, eqn, icm::eq_context{})) return status::icm_error;
  chip_.release_eq(eqn);
  eqs_.take_back(eqn);
  return status::ok;
}

abi::status firmware::query_eq(command_request& r) {
  namespace f = abi::eqc;
  const auto own = functions_.eq_index(function_of(r), r.modifier);
  if (!own || !in_table(table::eqc, *own)) return status::bad_index;
  const std::uint32_t eqn = *own;
  if (!eqs_.has(eqn)) return status::bad_res_state;
  icm::eq_context c{};
  if (!chip_.halt_eq(eqn)) return status::internal_error;
  const bool loaded = load_context(table::eqc, eqn, c);
  chip_.release_eq(eqn);
  if (!loaded) return status::icm_error;
  out_.fill(0);
  put(f::hardware_owner, 1);
  put(f::state, c.state);
  put(f::page_offset, c.page_offset);
  put(f::log_size, c.log_size);
  put(f::period, c.period_us);
  put(f::max_count, c.max_count);
  put(f::vector, c.vector);
  put(f::log_page, c.log_page - 12u);
  abi::store_mtt(out_.data(), f::mtt_high, f::mtt_low, c.address);
  put(f::consumer, c.consumer);
  put(f::producer, c.producer);
  return write_mailbox(r, f::bytes);
}

abi::status firmware::map_eq(command_request& r) {
  namespace cr = completion::cr;
  const std::uint32_t eqn = r.modifier & 0x7fffffff;
  const bool unmap = r.modifier >> 31 != 0;
  if (eqn >= functions_.physical_eqs() || !in_table(table::eqc, eqn)) return status::bad_index;
  if (!unmap && !eqs_.has(eqn)) return status::bad_res_state;
  for (std::uint32_t type = 0; type < cr::event_types; ++type)
    if ((r.in_param >> type & 1) != 0)
      chip_.write(cr_base::completion, cr::event_map + 4 * type, unmap ? cr::event_unmapped : eqn);
  return status::ok;
}

abi::status firmware::sw2hw_srq(command_request& r) {
  namespace f = abi::srqc;
  if (!in_table(table::srqc, r.modifier)) return status::bad_index;
  if (srqs_.has(r.modifier)) return status::bad_res_state;
  if (const status s = read_mailbox(r, f::bytes); s != status::ok) return s;
  if (in(f::srqn) != r.modifier || in(f::log_stride) < 1 || in(f::db_record) % 4 != 0) return status::bad_param;
  if (in(f::log_size) > log_max_srq_wqes || in(f::log_stride) + 4u > log_max_rq_stride) return status::bad_param;

  icm::srq_context c{};
  c.srqn = r.modifier;
  c.valid = 1;
  c.log_size = static_cast<std::uint8_t>(in(f::log_size));
  c.log_stride = static_cast<std::uint8_t>(in(f::log_stride) + 4);
  c.log_page = static_cast<std::uint8_t>(in(f::log_page) + 12);
  c.address = abi::load_mtt(in_.data(), f::mtt_high, f::mtt_low);
  c.db_record = in(f::db_record);
  c.page_offset = in(f::page_offset)*64;
  const auto domain = functions::domain_of(in(f::pd)&0xffffff, function_of(r));
  if (!domain) return status::bad_param;
  c.pd = *domain;
  c.cqn = in(f::cqn);
  c.xrcd = in(f::xrcd);
  c.function = function_of(r);
  const buffer b{c.address, c.page_offset, c.log_page, std::uint64_t{1} << (c.log_size + c.log_stride)};
  if (const status s = check_buffer(b); s != status::ok) return s;
  drop_buffer(b);
  // What was on chip of an earlier owner of the entry is forgotten.
  if (!chip_.halt_srq(r.modifier, true)) return status::internal_error;
  const bool stored = store_context(table::srqc, r.modifier, c);
  chip_.release_srq(r.modifier);
  if (!stored) return status::icm_error;
  srqs_.give(r.modifier, function_of(r));
  return status::ok;
}

abi::status firmware::hw2sw_srq(command_request& r) {
  if (!in_table(table::srqc, r.modifier)) return status::bad_index;
  if (r.op_modifier == 0) {
    if (const status s = query_srq(r); s != status::ok) return s;
  }
  if (!srqs_.has(r.modifier)) return status::ok;
  if (!chip_.halt_srq(r.modifier, true)) return status::internal_error;
  const bool stored = store_context(table::srqc, r.modifier, icm::srq_context{});
  chip_.release_srq(r.modifier);
  if (!stored) return status::icm_error;
  srqs_.take_back(r.modifier);
  return status::ok;
}

/// Arms the limit event: raised once when fewer entries than that are left.
abi::status firmware::arm_srq(command_request& r) {
  if (!in_table(table::srqc, r.modifier)) return status::bad_index;
  if (!srqs_.has(r.modifier)) return status::bad_res_state;
  if (!chip_.halt_srq(r.modifier)) return status::internal_error;
  icm::srq_context c{};
  bool done = load_context(table::srqc, r.modifier, c);
  c.limit = static_cast<std::uint16_t>(r.in_param);
  done = done && store_context(table::srqc, r.modifier, c);
  chip_.release_srq(r.modifier);
  return done ? status::ok : status::icm_error;
}

abi::status firmware::query_srq(command_request& r) {
  namespace f = abi::srqc;
  if (!in_table(table::srqc, r.modifier)) return status::bad_index;
  if (!srqs_.has(r.modifier)) return status::bad_res_state;
  icm::srq_context c{};
  if (!chip_.halt_srq(r.modifier)) return status::internal_error;
  const bool loaded = load_context(table::srqc, r.modifier, c);
  chip_.release_srq(r.modifier);
  if (!loaded) return status::icm_error;
  out_.fill(0);
  put(f::log_size, c.log_size);
  put(f::srqn, c.srqn);
  put(f::log_stride, c.log_stride - 4u);
  put(f::xrcd, c.xrcd);
  put(f::page_offset, c.page_offset / 64);
  put(f::cqn, c.cqn);
  put(f::log_page, c.log_page - 12u);
  abi::store_mtt(out_.data(), f::mtt_high, f::mtt_low, c.address);
  put(f::pd, c.pd);
  put(f::limit, c.limit);
  put(f::wqe_count, c.posted);
  put(f::wqe_counter, c.consumed);
  put(f::db_record, c.db_record);
  return write_mailbox(r, f::bytes);
}

}  // namespace rnic::firmware
