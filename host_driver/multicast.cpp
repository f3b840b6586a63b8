// SPDX-License-Identifier: Apache-2.0
// Multicast groups: queue pairs attached to a GID (net/mcg.c: mlx4_qp_attach_common, mlx4_qp_detach_common,
// find_entry).
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "host_driver/device.h"
#include "model/abi/command_set.h"
#include "model/abi/device.h"

namespace rnic::host_driver {

namespace {

namespace mcg = abi::mcg;

std::uint32_t member(const std::uint8_t* entry, std::uint32_t i) { return abi::load32(entry, mcg::members + 4 * i); }

/// Place of a queue pair among the members, or their number.
std::uint32_t place_of(const std::uint8_t* entry, std::uint32_t qpn) {
  const std::uint32_t count = abi::get(entry, mcg::member_count);
  std::uint32_t i = 0;
  while (i < count && (member(entry, i) & mcg::qpn_mask) != qpn) ++i;
  return i;
}

}  // namespace

/// Walks the chain of the group's bucket: -EIO when the entries, which lie in memory lent to the device, are none that
/// this driver wrote. `box` gets the entry: that of the group, an unused head, or the chain's last.
int device::find_group(const ibv_gid& gid, command_channel::mailbox& box, group_place* at, std::uint32_t protocol) {
  std::memcpy(box.data(), gid.raw, sizeof gid.raw);
  std::uint64_t bucket = 0;
  const std::uint8_t hash = protocol == mcg::protocol_ethernet && caps_.has(abi::dev_cap::flag_mc_steer) ? 1 : 0;
  if (const int error = channel_.execute({abi::opcode::mgid_hash, 0, hash, box.address(), 0, &bucket})) return error;
  *at = {static_cast<std::uint32_t>(bucket), group_place::none, false, false};
  for (std::size_t steps = 0; steps < group_used_.size(); ++steps) {
    if (const int error = channel_.read(box, abi::opcode::read_mcg, at->index)) return error;
    if (abi::get(box.data(), mcg::member_count) > group_room() ||
        abi::get(box.data(), mcg::next_index) >= group_used_.size())
      return -EIO;
    if (abi::get(box.data(), mcg::member_count) == 0) {
      at->unused = true;
      return 0;
    }
    at->found = std::memcmp(box.data() + mcg::gid, gid.raw, sizeof gid.raw) == 0 &&
                abi::get(box.data(), mcg::protocol) == protocol;
    const std::uint32_t next = abi::get(box.data(), mcg::next_index);
    if (at->found || next == 0) return 0;
    at->previous = std::exchange(at->index, next);
  }
  return -EIO;  // it goes round in a circle
}

/// Members that an entry has room for.
std::uint32_t device::group_room() const { return 4 * (profile_.mcg_entry_bytes / 16 - 2); }

int device::attach_mcast(ibv_qp* pair, const ibv_gid* gid, bool block_loopback) {
  if (pair->qp_type != IBV_QPT_UD) return -EINVAL;
  if (by_device()) return attach_group_rule(*static_cast<queue_pair*>(pair), *gid, block_loopback);
  if (virtual_) return ask_for_group(*static_cast<queue_pair*>(pair), *gid, true, block_loopback);
  return attach_member(*gid, pair->qp_num | (block_loopback ? mcg::block_loopback : 0), mcg::protocol_roce);
}

/// The table is the physical function's.
int device::ask_for_group(const queue_pair& qp, const ibv_gid& gid, bool attach, bool block_loopback) {
  command_channel::mailbox box(channel_);
  std::memcpy(box.data(), gid.raw, sizeof gid.raw);
  return channel_.write(box, abi::opcode::qp_attach, qp.qp_num | (block_loopback ? 1u << 31 : 0), attach ? 1 : 0);
}

int device::detach_mcast(ibv_qp* pair, const ibv_gid* gid) {
  if (by_device()) return detach_group_rule(*static_cast<queue_pair*>(pair), *gid);
  if (virtual_) return ask_for_group(*static_cast<queue_pair*>(pair), *gid, false, false);
  return detach_member(*gid, pair->qp_num, mcg::protocol_roce);
}

/// `new_member`: as in the entry.
int device::attach_member(const ibv_gid& gid, std::uint32_t new_member, std::uint32_t protocol) {
  command_channel::mailbox box(channel_);
  group_place at;
  if (const int error = find_group(gid, box, &at, protocol)) return error;
  std::uint32_t index = at.index;
  const bool link = !at.found && !at.unused;
  command_channel::mailbox fresh(channel_);
  std::uint8_t* entry = link ? fresh.data() : box.data();
  if (link) {
    const auto first = group_used_.begin() + static_cast<std::ptrdiff_t>(group_used_.size() / 2);
    const auto free = std::find(first, group_used_.end(), false);
    if (free == group_used_.end()) return -ENOMEM;
    *free = true;
    index = static_cast<std::uint32_t>(free - group_used_.begin());
  }
  if (!at.found) {
    std::memcpy(entry + mcg::gid, gid.raw, sizeof gid.raw);
    abi::set(entry, mcg::protocol, protocol);
  }
  const std::uint32_t count = abi::get(entry, mcg::member_count);
  if (place_of(entry, new_member & mcg::qpn_mask) != count) return 0;  // it is attached
  if (count == group_room()) return -ENOMEM;
  abi::store32(entry, mcg::members + 4 * count, new_member);
  abi::set(entry, mcg::member_count, count + 1);
  if (const int error = channel_.write(link ? fresh : box, abi::opcode::write_mcg, index)) return error;
  if (!link) return 0;
  abi::set(box.data(), mcg::next_index, index);
  return channel_.write(box, abi::opcode::write_mcg, at.index);
}

int device::detach_member(const ibv_gid& gid, std::uint32_t qpn, std::uint32_t protocol) {
  command_channel::mailbox box(channel_);
  group_place at;
  if (const int error = find_group(gid, box, &at, protocol)) return error;
  std::uint8_t* entry = box.data();
  const std::uint32_t count = abi::get(entry, mcg::member_count);
  const std::uint32_t place = at.found ? place_of(entry, qpn) : count;
  if (!at.found || place == count) return -EINVAL;
  abi::store32(entry, mcg::members + 4 * place, member(entry, count - 1));
  abi::store32(entry, mcg::members + 4 * (count - 1), 0);
  abi::set(entry, mcg::member_count, count - 1);
  const std::uint32_t next = abi::get(entry, mcg::next_index);
  if (count != 1) return channel_.write(box, abi::opcode::write_mcg, at.index);
  if (at.previous == group_place::none) {  // the bucket's head: what follows takes its place
    std::memset(entry, 0, profile_.mcg_entry_bytes);
    if (next != 0)
      if (const int error = channel_.read(box, abi::opcode::read_mcg, next)) return error;
    if (const int error = channel_.write(box, abi::opcode::write_mcg, at.index)) return error;
    if (next != 0) group_used_[next] = false;
    return 0;
  }
  if (const int error = channel_.read(box, abi::opcode::read_mcg, at.previous)) return error;
  abi::set(entry, mcg::next_index, next);
  if (const int error = channel_.write(box, abi::opcode::write_mcg, at.previous)) return error;
  group_used_[at.index] = false;
  return 0;
}

}  // namespace rnic::host_driver
