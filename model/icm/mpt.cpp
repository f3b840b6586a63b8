// SPDX-License-Identifier: Apache-2.0
#include "model/icm/mpt.h"

#include <algorithm>

namespace rnic::icm {

namespace {
constexpr std::uint32_t qp_flag_bound = 1u << 7;
constexpr std::uint32_t flag_mio = 1u << 17, flag_zero_based = 1u << 16, flag_region = 1u << 8;
constexpr std::uint32_t window_rights = right_remote_read | right_remote_write | right_remote_atomic;
constexpr std::uint32_t all_rights = window_rights | right_local_read | right_local_write;
constexpr std::uint32_t status_bits(std::uint32_t status) { return status << 28; }

std::uint32_t be32(const std::uint8_t* p) {
  return std::uint32_t{p[0]} << 24 | std::uint32_t{p[1]} << 16 | std::uint32_t{p[2]} << 8 | p[3];
}
std::uint64_t be64(const std::uint8_t* p) { return std::uint64_t{be32(p)} << 32 | be32(p + 4); }

void put32(std::uint8_t* p, std::uint32_t v) {
  for (unsigned i = 0; i < 4; ++i) p[i] = static_cast<std::uint8_t>(v >> (24 - 8 * i));
}
void put64(std::uint8_t* p, std::uint64_t v) {
  put32(p, static_cast<std::uint32_t>(v >> 32));
  put32(p + 4, static_cast<std::uint32_t>(v));
}

/// Rights to change memory from outside need the right to do it from inside (IBA 10.6.3.1, C10-74).
bool writes_remotely(std::uint32_t rights) { return (rights & (right_remote_write | right_remote_atomic)) != 0; }

constexpr unsigned right_bit(access a) { return 10 + static_cast<unsigned>(a); }
}  // namespace

mpt_entry decode_mpt(const std::uint8_t* b) {
  mpt_entry e;
  e.flags = be32(b);
  e.qpn = be32(b + 0x04);
  e.key = be32(b + 0x08);
  e.pd_flags = be32(b + 0x0c);
  e.start = be64(b + 0x10);
  e.length = be64(b + 0x18);
  e.lkey = be32(b + 0x20);
  e.windows = be32(b + 0x24);
  e.mtt_rep = b[0x2b];
  e.mtt_address = be64(b + 0x2c);
  e.mtt_count = be32(b + 0x34);
  e.log_page = be32(b + 0x38);
  e.first_byte_offset = be32(b + 0x3c);
  return e;
}

void encode_mpt(const mpt_entry& e, std::uint8_t* b) {
  std::fill_n(b, mpt_bytes, std::uint8_t{0});
  put32(b, e.flags);
  put32(b + 0x04, e.qpn);
  put32(b + 0x08, e.key);
  put32(b + 0x0c, e.pd_flags);
  put64(b + 0x10, e.start);
  put64(b + 0x18, e.length);
  put32(b + 0x20, e.lkey);
  put32(b + 0x24, e.windows);
  b[0x2b] = e.mtt_rep;
  put64(b + 0x2c, e.mtt_address);
  put32(b + 0x34, e.mtt_count);
  put32(b + 0x38, e.log_page);
  put32(b + 0x3c, e.first_byte_offset);
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
      e.flags |= flag_mio | flag_region | (o.rights & all_rights);
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
