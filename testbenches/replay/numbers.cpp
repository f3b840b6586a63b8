// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/numbers.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "host_driver/hosts/connection.h"
#include "model/abi/command_set.h"
#include "model/wire/ethernet.h"

namespace rnic::replay {

namespace {

constexpr std::uint32_t special_qps = 8, reserved_qps = 0x40;
constexpr unsigned log_most_srqs = 16;  // of the adapter
constexpr std::uint32_t own_keys = 64;  // places for the driver's own entries and ours

/// Whether the numbers fall into places of their own in a table of 2^log entries.
bool distinct(const std::vector<std::uint32_t>& numbers, unsigned log) {
  std::set<std::uint32_t> places;
  for (const std::uint32_t n : numbers) {
    if (!places.insert(n & ((1u << log) - 1)).second) return false;
  }
  return true;
}

std::vector<std::uint32_t> numbers_of(const plan& p) {
  std::vector<std::uint32_t> numbers;
  for (const connection& c : p.connections)
    if (c.before < 0 && !c.order.empty()) numbers.push_back(c.held_qpn);
  return numbers;
}

/// A place of the table for the special queue pairs, which is none of the numbers'; 0 when there is none.
std::uint32_t special_place(const std::vector<std::uint32_t>& numbers, unsigned log) {
  std::set<std::uint32_t> blocks;
  for (const std::uint32_t n : numbers) blocks.insert((n & ((1u << log) - 1)) / special_qps);
  for (std::uint32_t at = (1u << log) - special_qps; at >= reserved_qps; at -= special_qps)
    if (blocks.count(at / special_qps) == 0) return at;
  return 0;
}

/// The driver's own entries of the table of keys, made before any of ours and beside them, must not take the place of a
/// captured key: the first of so many places in a row that no key has.
std::uint32_t free_places(const plan& p) {
  std::set<std::uint32_t> taken;
  for (const held_region& r : p.regions) taken.insert(place_of_key(r.rkey) / own_keys);
  for (std::uint32_t block = (1u << log_key_places) / own_keys - 1; block != 0; --block)
    if (taken.count(block) == 0) return block * own_keys;
  return 0;
}

}  // namespace

std::string impossible(const connection& c) {
  constexpr wire::gid nobody{};
  if (c.held_qpn <= 1 || c.held_qpn == 0xffffff)
    return "no connection has queue pair " + fmt::format("{:#x}", c.held_qpn);
  if (c.service == wire::transport::ud) return "";
  if (!c.xrc.srqns.empty() && *c.xrc.srqns.rbegin() >> log_most_srqs != 0)
    return "no shared receive queue has number " + fmt::format("{:#x}", *c.xrc.srqns.rbegin()) + ": 0xffff at most";
  if (wire::is_multicast(c.peer_mac) || wire::to_u64(c.peer_mac) == 0) return "its peer has no unicast MAC address";
  for (const wire::gid& id : {c.held_gid, c.peer_gid})
    if (id == nobody || wire::is_multicast(id)) return "no host has the address " + wire::to_string(id);
  return "";
}

void shape_node(const plan& p, unsigned port, hosts::node_config& c) {
  // What the captured host was told, and whether it obeyed, is in the capture: all it sent is sent again.
  c.adapter.requester.end_to_end_credits = false;
  if (!p.held.empty()) c.firmware.mac[port - 1] = wire::to_u64(p.held_mac);
  const std::vector<std::uint32_t> qpns = numbers_of(p);
  unsigned& log_qp = c.driver.log_num_qp;
  while (log_qp < 18 && ((qpns.size() + 0x400) >> log_qp != 0 || !distinct(qpns, log_qp))) ++log_qp;
  for (const connection& x : p.connections)
    if (!x.xrc.srqns.empty())
      while (c.driver.log_num_srq < log_most_srqs && *x.xrc.srqns.rbegin() >> c.driver.log_num_srq != 0)
        ++c.driver.log_num_srq;
  c.driver.log_num_mpt = log_key_places;
  c.driver.log_num_mtt = 20;
  c.driver.first_mpt = free_places(p);
}

void move_special_queue_pairs(const plan& p, host_driver::device& device) {
  const unsigned log = device.settings().log_num_qp;
  const std::uint32_t place = special_place(numbers_of(p), log);
  if (place == 0) return;
  hosts::require(device.commands().command(abi::opcode::conf_special_qp, place), "moving the special queue pairs");
}

}  // namespace rnic::replay
