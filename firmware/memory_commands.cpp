// SPDX-License-Identifier: Apache-2.0
// Memory regions: protection and translation tables (adapter control plane 4.13, 5.4, 5.5, 6.5).
#include "firmware/firmware.h"
#include "model/abi/device.h"

namespace rnic::firmware {

using icm::table;
namespace mpt = abi::mpt;

/// Whether entries [mtt_address, + 8 * entries) can lie in the translation table.
bool firmware::mtt_range_ok(std::uint64_t mtt_address, std::uint64_t entries) const {
  const std::uint64_t size = std::uint64_t{8} << layout(table::mtt).log_entries;
  return mtt_address % 8 == 0 && mtt_address < size && entries <= (size - mtt_address) / 8;
}

abi::status firmware::sw2hw_mpt(command_request& r) {
  if (!in_table(table::dmpt, r.modifier)) return status::bad_index;
  if (mpts_.has(r.modifier)) return status::bad_res_state;
  if (const status s = read_mailbox(r, mpt::bytes); s != status::ok) return s;
  const std::uint32_t owner = in(mpt::owner), flags = in(mpt::flags);
  if (owner != mpt::owner_software && owner != mpt::owner_free && owner != mpt::owner_hardware)
    return status::bad_param;
  if ((in(mpt::key) & ((1u << layout(table::dmpt).log_entries) - 1)) != r.modifier) return status::bad_param;
  // Without windows in hardware's hands none can be bound (adapter control plane, INIT_HCA).
  const bool region = (flags & mpt::flag_region) != 0;
  if (!region && abi::get(hca_parameters_.data(), abi::init_hca::windows_enabled) == 0) return status::bad_op;
  const bool translated = region && (flags & mpt::flag_physical) == 0;
  if (const std::uint64_t length = in(mpt::length);
      region && length != 0 && length - 1 > ~std::uint64_t{in(mpt::start)})
    return status::bad_param;  // it would go round the end of the address space
  const std::uint32_t log_page = in(mpt::entity_size);
  const bool fast_reg = (in(mpt::pd_flags)&mpt::pd_fast_reg) != 0;
  std::uint64_t entries = in(mpt::mtt_count);
  if (translated && !fast_reg && owner != mpt::owner_free) {
    if (log_page < 12 || log_page > 31) return status::bad_param;
    const std::uint64_t mask = (std::uint64_t{1} << log_page) - 1;
    const std::uint64_t rest = (in(mpt::start)&mask) + (in(mpt::length)&mask) + mask;  // no overflow in parts
    entries = (in(mpt::length) >> log_page) + (rest >> log_page);
  }
  if (translated && !mtt_range_ok(in(mpt::mtt_address), entries)) return status::bad_param;

  const auto domain = functions::domain_of(in(mpt::pd_flags), function_of(r));
  if (!domain) return status::bad_param;
  abi::set(in_.data(), mpt::pd_flags, *domain);
  if (owner == mpt::owner_software) abi::set(in_.data(), mpt::owner, mpt::owner_hardware);
  if (!chip_.hw().icm_write(entry(table::dmpt, r.modifier), in_.data(), mpt::bytes)) return status::icm_error;
  chip_.drop_mpt(r.modifier);
  if (translated) chip_.drop_mtts(in(mpt::mtt_address), static_cast<std::uint32_t>(entries));
  mpts_.give(r.modifier, function_of(r));
  return status::ok;
}

/// Inactive entries are answered with OK: after a change in place (SYNC_TPT) hardware uses an entry that this command
/// already took back once, and a closing command must not fail (2.6, 4.13).
abi::status firmware::hw2sw_mpt(command_request& r) {
  if (!in_table(table::dmpt, r.modifier)) return status::bad_index;
  const std::uint64_t at = entry(table::dmpt, r.modifier);
  // An operation on the key that was under way may have written the entry after us: then once more. None can begin
  // when software owns the entry.
  for (unsigned attempt = 0; attempt < 2; ++attempt) {
    if (!chip_.hw().icm_read(at, out_.data(), mpt::bytes)) return status::icm_error;
    const bool mine = attempt != 0 && abi::get(out_.data(), mpt::owner) == mpt::owner_software;
    const bool region = (abi::get(out_.data(), mpt::flags) & mpt::flag_region) != 0;
    if (mpts_.has(r.modifier) && region && abi::get(out_.data(), mpt::window_count) != 0) {
      abi::set(out_.data(), mpt::owner, mpt::owner_hardware);
      if (mine && !chip_.hw().icm_write(at, out_.data(), 4)) return status::icm_error;
      if (mine) chip_.drop_mpt(r.modifier);
      return status::reg_bound;
    }
    if (mine) break;
    abi::set(out_.data(), mpt::owner, mpt::owner_software);
    if (!chip_.hw().icm_write(at, out_.data(), 4)) return status::icm_error;
    chip_.drop_mpt(r.modifier);
    if (!chip_.wait_translations()) return status::internal_error;
  }
  // What was translated before may still be on its way to memory, as at any other end of a key (A.11.1: the key is the
  // index with its upper byte below).
  const std::uint32_t index = abi::get(out_.data(), mpt::key);
  chip_.revoke_key(index << 8 | index >> 24);
  if (!chip_.wait_translations()) return status::internal_error;
  const bool window = (abi::get(out_.data(), mpt::flags) & mpt::flag_region) == 0;
  if (window && abi::get(out_.data(), mpt::lkey) != 0) {
    chip_.release_window(r.modifier);
    if (!chip_.wait_translations()) return status::internal_error;
  }
  mpts_.take_back(r.modifier);
  return r.op_modifier == 0 ? write_mailbox(r, mpt::bytes) : status::ok;
}

abi::status firmware::query_mpt(command_request& r) {
  if (!in_table(table::dmpt, r.modifier)) return status::bad_index;
  out_.fill(0);
  if (!chip_.hw().icm_read(entry(table::dmpt, r.modifier), out_.data(), mpt::bytes)) return status::icm_error;
  return write_mailbox(r, mpt::bytes);
}

abi::status firmware::write_mtt(command_request& r) {
  namespace f = abi::write_mtt_mailbox;
  if (r.modifier == 0 || r.modifier > f::max_count) return status::bad_param;
  const std::size_t bytes = r.modifier * abi::mtt::bytes;
  if (const status s = read_mailbox(r, f::entries + bytes); s != status::ok) return s;
  const std::uint64_t first = in(f::start_index);
  if (first >> layout(table::mtt).log_entries != 0 || !mtt_range_ok(first * 8, r.modifier)) return status::bad_index;
  if (!chip_.hw().icm_write(layout(table::mtt).base + first * 8, in_.data() + f::entries, bytes))
    return status::icm_error;
  chip_.drop_mtts(first * 8, r.modifier);
  return status::ok;
}

abi::status firmware::sync_tpt(command_request&) {
  chip_.drop_translations();
  return chip_.wait_translations() ? status::ok : status::internal_error;
}

}  // namespace rnic::firmware
