// SPDX-License-Identifier: Apache-2.0
// Multicast group table (adapter control plane 4.18).
#include "firmware/firmware.h"
#include "model/ethernet/steering_cr.h"
#include "model/icm/mgid_hash.h"
#include "model/transport/transport_cr.h"

namespace rnic::firmware {

using icm::table;

abi::status firmware::mgid_hash(command_request& r) {
  if (flows_.enabled()) return status::bad_sys_state;
  if (const status s = read_mailbox(r, 16); s != status::ok) return s;
  r.out_param = icm::mgid_hash(in_.data(), log_mcg_hash_);
  return status::ok;
}

abi::status firmware::read_mcg(command_request& r) {
  if (flows_.enabled()) return status::bad_sys_state;
  if (!in_table(table::mcg, r.modifier)) return status::bad_index;
  const std::size_t bytes = layout(table::mcg).entry_bytes;
  out_.fill(0);  // an entry never written has no members, whatever the host's memory holds
  if (groups_written_[r.modifier] && !chip_.hw().icm_read(entry(table::mcg, r.modifier), out_.data(), bytes))
    return status::icm_error;
  return write_mailbox(r, bytes);
}

/// Default (promiscuous) entries are of the Ethernet receive path, RoCE does not use them.
abi::status firmware::write_mcg(command_request& r) {
  if (flows_.enabled()) return status::bad_sys_state;
  const std::size_t bytes = layout(table::mcg).entry_bytes;
  const bool default_entry = r.op_modifier == 1;
  if (default_entry && (!valid_port(r.modifier >> abi::mcg::default_port_shift) || (r.modifier & 0xffff & ~2u) != 0))
    return status::bad_param;
  if (!default_entry && !in_table(table::mcg, r.modifier)) return status::bad_index;
  if (const status s = read_mailbox(r, bytes); s != status::ok) return s;
  if (in(abi::mcg::member_count) > (bytes - abi::mcg::members) / 4) return status::bad_param;
  // The hardware reads so much of an entry, however long software has made it.
  if (in(abi::mcg::member_count) > icm::multicast_group::max_members) return status::exceed_lim;
  if (default_entry) return write_default_entry(r);
  if (!chip_.hw().icm_write(entry(table::mcg, r.modifier), in_.data(), bytes)) return status::icm_error;
  groups_written_[r.modifier] = true;
  chip_.write(register_bus::cr_base::transport, transport::cr::multicast_offset + transport::cr::mcg_written,
              r.modifier);
  chip_.write(register_bus::cr_base::steering, ethernet::cr::group_written, r.modifier);
  return status::ok;
}

/// Where frames go whose address no group has.
abi::status firmware::write_default_entry(const command_request& r) {
  const unsigned port = (r.modifier >> abi::mcg::default_port_shift) - 1;
  const std::uint32_t kind = r.modifier >> abi::mcg::default_steer_shift & 1;
  const std::uint32_t at = ethernet::cr::default_entry + kind * ethernet::cr::default_stride;
  const std::uint32_t count = in(abi::mcg::member_count);
  chip_.write_port(register_bus::cr_base::steering, port, at, 0);
  for (std::uint32_t i = 0; i < count; ++i)
    chip_.write_port(register_bus::cr_base::steering, port, at + 4 + 4 * i,
                     abi::load32(in_.data(), abi::mcg::members + 4 * i));
  chip_.write_port(register_bus::cr_base::steering, port, at, count);
  return status::ok;
}

}  // namespace rnic::firmware
