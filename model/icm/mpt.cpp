// SPDX-License-Identifier: Apache-2.0
#include "model/icm/mpt.h"

#include <algorithm>

#include "model/abi/contexts.h"

namespace rnic::icm {

namespace {
constexpr std::uint32_t qp_flag_bound = 1u << 7;
constexpr std::uint32_t flag_zero_based = 1u << 16;
constexpr std::uint32_t window_rights = right_remote_read | right_remote_write | right_remote_atomic;
constexpr std::uint32_t all_rights = window_rights | right_local_read | right_local_write;
constexpr std::uint32_t status_bits(std::uint32_t status) { return status << 28; }

/// Rights to change memory from outside need the right to do it from inside (IBA 10.6.3.1, C10-74).
bool writes_remotely(std::uint32_t rights) { return (rights & (right_remote_write | right_remote_atomic)) != 0; }

constexpr unsigned right_bit(access a) { return 10 + static_cast<unsigned>(a); }
}  // namespace

mpt_entry decode_mpt(const std::uint8_t* b) {
  namespace layout = abi::mpt;
  mpt_entry e;
  e.flags = abi::get(b, layout::flags);
  e.qpn = abi::get(b, layout::qpn);
  e.key = abi::get(b, layout::key);
  e.pd_flags = abi::get(b, layout::pd_flags);
  e.start = abi::get(b, layout::start);
  e.length = abi::get(b, layout::length);
  e.lkey = abi::get(b, layout::lkey);
  e.windows = abi::get(b, layout::window_count);
  e.mtt_rep = abi::get(b, layout::mtt_rep);
  e.mtt_address = abi::get(b, layout::mtt_address);
  e.mtt_count = abi::get(b, layout::mtt_count);
  e.log_page = abi::get(b, layout::entity_size);
  e.first_byte_offset = abi::get(b, layout::first_byte_offset);
  return e;
}

void encode_mpt(const mpt_entry& e, std::uint8_t* b) {
  namespace layout = abi::mpt;
  std::fill_n(b, layout::bytes, std::uint8_t{0});
  abi::set(b, layout::flags, e.flags);
  abi::set(b, layout::qpn, e.qpn);
  abi::set(b, layout::key, e.key);
  abi::set(b, layout::pd_flags, e.pd_flags);
  abi::set(b, layout::start, e.start);
  abi::set(b, layout::length, e.length);
  abi::set(b, layout::lkey, e.lkey);
  abi::set(b, layout::window_count, e.windows);
  abi::set(b, layout::mtt_rep, e.mtt_rep);
  abi::set(b, layout::mtt_address, e.mtt_address);
  abi::set(b, layout::mtt_count, e.mtt_count);
  abi::set(b, layout::entity_size, e.log_page);
  abi::set(b, layout::first_byte_offset, e.first_byte_offset);
}

translate_status check_mpt(const mpt_entry& e, const translate_request& r, std::uint32_t key, bool through_window) {
  if (e.key != key_to_index(key)) return translate_status::bad_key;
  if (!e.region()) {
    if (through_window) return translate_status::bad_key;  // a window lies on a region, not on another window
    if (e.status() == mpt_entry::status_free || (e.status() == mpt_entry::status_hardware && e.length == 0))
      return translate_status::window_not_bound;
  }
  if (e.status() != mpt_entry::status_hardware) return translate_status::bad_key;
  if (!e.same_domain(r.pd)) return translate_status::wrong_pd;
  if (!through_window && (e.flags >> right_bit(r.access) & 1) == 0) return translate_status::no_rights;
  // Approximation: the published layout names bit 7 for windows of one QP but not where the number is; it is in 31:8.
  if (e.type_2() && e.qpn >> 8 != r.qpn) return translate_status::no_rights;
  const std::uint64_t start = e.zero_based() ? 0 : e.start;
  if (r.va < start) return translate_status::out_of_range;
  const std::uint64_t offset = r.va - start;
  const std::uint64_t length = std::max<std::uint64_t>(r.length, r.check_length);
  if (offset > e.length || length > e.length - offset) return translate_status::out_of_range;
  if (e.region() && !e.physical() && (e.log_page < 12 || e.log_page > 51)) return translate_status::bad_key;
  return translate_status::ok;
}

namespace {

key_status check_invalidate(const mpt_entry& e, const key_operation& o) {
  if (e.key != key_to_index(o.key) || e.status() == mpt_entry::status_software) return key_status::bad_key;
  if (!e.same_domain(o.pd)) return key_status::wrong_owner;
  if (!e.allows_invalidate()) return key_status::not_allowed;  // windows of type 1
  if (e.region() ? !e.fast_register() : !e.type_2()) return key_status::not_allowed;
  if (e.status() == mpt_entry::status_free)  // a peer may only name a key that is valid
    return o.what == key_operation::kind::remote_invalidate ? key_status::wrong_state : key_status::ok;
  if (e.type_2() && e.qpn >> 8 != o.qpn) return key_status::wrong_owner;
  return e.region() && e.windows != 0 ? key_status::wrong_state : key_status::ok;
}

key_status check_fast_register(const mpt_entry& e, const key_operation& o) {
  if (!e.same_index(o.key) || !e.region()) return key_status::bad_key;
  if (!e.same_domain(o.pd)) return key_status::wrong_owner;
  if (!e.fast_register() || (writes_remotely(o.rights) && (o.rights & right_local_write) == 0))
    return key_status::not_allowed;
  if (e.status() != mpt_entry::status_free) return key_status::wrong_state;
  if (o.length == 0 || o.length - 1 > ~o.start) return key_status::out_of_range;  // up to the last address is legal
  if (o.log_page < 12 || o.log_page > 31 || pages_of(o) > e.mtt_count) return key_status::out_of_range;
  return key_status::ok;
}

key_status check_bind(const mpt_entry& e, const key_operation& o) {
  if (!e.same_index(o.key) || e.region()) return key_status::bad_key;
  if (!e.same_domain(o.pd)) return key_status::wrong_owner;
  if (e.type_2() != o.type_2) return key_status::not_allowed;
  if (o.type_2) {
    if (e.status() != mpt_entry::status_free) return key_status::wrong_state;
    return o.length == 0 ? key_status::out_of_range : key_status::ok;  // only invalidation unbinds it
  }
  if (e.status() != mpt_entry::status_hardware) return key_status::wrong_state;
  return o.zero_based ? key_status::not_allowed : key_status::ok;
}

}  // namespace

std::uint64_t pages_of(const key_operation& o) {
  const std::uint64_t mask = (std::uint64_t{1} << o.log_page) - 1;
  const std::uint64_t rest = (o.start & mask) + (o.length & mask) + mask;  // no overflow in parts
  return (o.length >> o.log_page) + (rest >> o.log_page);
}

key_status check_target(const mpt_entry& e, const key_operation& o) {
  switch (o.what) {
    case key_operation::kind::local_invalidate:
    case key_operation::kind::remote_invalidate:
      return check_invalidate(e, o);
    case key_operation::kind::fast_register:
      return check_fast_register(e, o);
    case key_operation::kind::bind:
      return check_bind(e, o);
    default:
      return e.region() ? key_status::bad_key : key_status::ok;
  }
}

key_status check_bound_region(const mpt_entry& e, const key_operation& o) {
  if (e.key != key_to_index(o.lkey) || !e.region() || e.status() != mpt_entry::status_hardware)
    return key_status::bad_key;
  if (!e.same_domain(o.pd)) return key_status::wrong_owner;
  if (!e.allows_windows() || (writes_remotely(o.rights) && (e.flags & right_local_write) == 0))
    return key_status::not_allowed;
  if (o.start < e.start || o.start - e.start > e.length || o.length > e.length - (o.start - e.start))
    return key_status::out_of_range;
  return key_status::ok;
}

mpt_entry after(const mpt_entry& entry, const key_operation& o) {
  mpt_entry e = entry;
  e.flags &= ~(status_bits(0xf) | all_rights | flag_zero_based);
  e.key = o.what == key_operation::kind::release ? e.key : key_to_index(o.key);
  e.start = o.start;
  e.length = o.length;
  e.lkey = 0;
  if (e.type_2()) e.qpn = qp_flag_bound;
  switch (o.what) {
    case key_operation::kind::fast_register:
      e.flags |= abi::mpt::flag_mio | abi::mpt::flag_region | (o.rights & all_rights);
      e.log_page = o.log_page;
      return e;
    case key_operation::kind::bind:
      e.flags |= (o.rights & window_rights) | (o.zero_based ? flag_zero_based : 0);
      if (o.type_2) e.qpn = o.qpn << 8 | qp_flag_bound;
      e.lkey = o.length == 0 ? 0 : o.lkey;
      return e;
    case key_operation::kind::release:
      e.flags |= status_bits(entry.status());
      break;
    default:
      e.flags |= status_bits(mpt_entry::status_free);
      break;
  }
  e.start = e.length = 0;
  return e;
}

}  // namespace rnic::icm
