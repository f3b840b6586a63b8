// SPDX-License-Identifier: Apache-2.0
#include "model/icm/mpt.h"

#include <algorithm>

namespace rnic::icm {

namespace {
constexpr std::uint32_t status_hardware = 0, status_free = 3;  // flags 31:28
constexpr std::uint32_t pd_mask = 0xffffff;                    // PD and, above it, the virtual function's bits
constexpr std::uint32_t qp_flag_bound = 1u << 7;

std::uint32_t be32(const std::uint8_t* p) {
  return std::uint32_t{p[0]} << 24 | std::uint32_t{p[1]} << 16 | std::uint32_t{p[2]} << 8 | p[3];
}
std::uint64_t be64(const std::uint8_t* p) { return std::uint64_t{be32(p)} << 32 | be32(p + 4); }

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
  e.mtt_address = be64(b + 0x2c);
  e.log_page = be32(b + 0x38);
  return e;
}

translate_status check_mpt(const mpt_entry& e, const translate_request& r, std::uint32_t key, bool through_window) {
  if (e.key != key_to_index(key)) return translate_status::bad_key;
  const std::uint32_t status = e.flags >> 28;
  if (!e.region()) {
    if (through_window) return translate_status::bad_key;  // a window lies on a region, not on another window
    if (status == status_free || (status == status_hardware && e.length == 0))
      return translate_status::window_not_bound;
  }
  if (status != status_hardware) return translate_status::bad_key;
  if (((e.pd_flags ^ r.pd) & pd_mask) != 0) return translate_status::wrong_pd;
  if (!through_window && (e.flags >> right_bit(r.access) & 1) == 0) return translate_status::no_rights;
  // Approximation: the published layout names bit 7 for windows of one QP but not where the number is; it is in 31:8.
  if (!e.region() && (e.qpn & qp_flag_bound) != 0 && e.qpn >> 8 != r.qpn) return translate_status::no_rights;
  if (r.va < e.start) return translate_status::out_of_range;
  const std::uint64_t offset = r.va - e.start;
  const std::uint64_t length = std::max<std::uint64_t>(r.length, r.check_length);
  if (offset > e.length || length > e.length - offset) return translate_status::out_of_range;
  if (e.region() && !e.physical() && (e.log_page < 12 || e.log_page > 51)) return translate_status::bad_key;
  return translate_status::ok;
}

}  // namespace rnic::icm
