// SPDX-License-Identifier: Apache-2.0
#include "firmware/flow_rules.h"

#include <algorithm>

#include "model/ethernet/steering_cr.h"
#include "model/transport/transport_cr.h"

namespace rnic::firmware {

namespace {

namespace f = abi::flow_rule;
namespace key = flow::cr::frame_key;
using register_bus::cr_base;
using words = chip::flow_rule;

constexpr std::uint64_t default_rank = std::uint64_t{1} << 63;
constexpr unsigned priority_shift = 32;
constexpr std::uint32_t middle = 1u << 31;  // of a priority's queue

/// What is not compared counts for nothing, so that equal matches are equal words.
void match(words& to, unsigned word, std::uint32_t value, std::uint32_t mask) {
  to.value[word] |= value & mask;
  to.mask[word] |= mask;
}

void match_addresses(words& to, const std::uint8_t* h) {
  const auto high_part = [h](std::size_t at) { return abi::load32(h, at); };
  const auto low_part = [h](std::size_t at) { return std::uint32_t{abi::load16(h, at + 4)}; };
  match(to, key::dmac_high, high_part(f::dmac), high_part(f::dmac_mask));
  match(to, key::dmac_smac, low_part(f::dmac) << 16, low_part(f::dmac_mask) << 16);
  match(to, key::dmac_smac, abi::load16(h, f::smac), abi::load16(h, f::smac_mask));
  match(to, key::smac_low, abi::load32(h, f::smac + 2), abi::load32(h, f::smac_mask + 2));
}

void match_ethernet(words& to, const std::uint8_t* h) {
  match_addresses(to, h);
  if (abi::get(h, f::ether_type_enable) != 0) match(to, key::kind, abi::get(h, f::ether_type), 0xffff);
  const std::uint32_t mask = abi::get(h, f::vlan_mask);
  if (mask == 0) return;
  match(to, key::kind, key::tagged, key::tagged);
  match(to, key::tag, abi::get(h, f::vlan), mask);
}

void match_ipv4(words& to, const std::uint8_t* h) {
  match(to, key::kind, key::ipv4, key::ipv4);
  match(to, key::destination_ip, abi::get(h, f::destination_ip), abi::get(h, f::destination_ip_mask));
  match(to, key::source_ip, abi::get(h, f::source_ip), abi::get(h, f::source_ip_mask));
}

void match_ports(words& to, const std::uint8_t* h, std::uint32_t protocol) {
  match(to, key::kind, protocol, protocol);
  match(to, key::ports, abi::get(h, f::destination_port), abi::get(h, f::destination_port_mask));
  match(to, key::ports, std::uint32_t{abi::get(h, f::source_port)} << 16,
        std::uint32_t{abi::get(h, f::source_port_mask)} << 16);
}

void match_ib(words& to, const std::uint8_t* h) {
  namespace d = flow::cr::datagram_key;
  match(to, d::kind, abi::get(h, f::l3_qpn), abi::get(h, f::l3_qpn_mask) & flow::cr::member_qpn);
  for (unsigned i = 0; i < 4; ++i)
    match(to, d::dgid + i, abi::load32(h, f::dgid + 4 * i), abi::load32(h, f::dgid_mask + 4 * i));
}

/// Headers in the order of their layers, each at most once; InfiniBand's stands for itself. Their sizes make up the
/// whole. False: they do not.
bool read_headers(const std::uint8_t* mailbox, std::size_t bytes, words& to, bool* ib) {
  unsigned layer = 0;
  *ib = false;
  for (std::size_t at = f::control_bytes; at != bytes;) {
    const std::uint8_t* h = mailbox + at;
    const std::uint16_t id = abi::get(h, f::header_id);
    const bool ports = id == f::id_tcp || id == f::id_udp;
    const std::size_t size = id == f::id_ethernet || id == f::id_ib ? f::ethernet_bytes : f::ipv4_bytes;
    const unsigned own = id == f::id_ethernet ? 1 : id == f::id_ipv4 ? 2 : ports ? 3 : id == f::id_ib ? 4 : 0;
    if (own <= layer || bytes - at < size || abi::get(h, f::header_words) * 4u != size) return false;
    if (own == 4 && layer != 0) return false;
    layer = own;
    *ib = own == 4;
    if (own == 1) match_ethernet(to, h);
    if (own == 2) match_ipv4(to, h);
    if (own == 3) match_ports(to, h, id == f::id_tcp ? key::tcp : key::udp);
    if (own == 4) match_ib(to, h);
    at += size;
  }
  return true;
}

bool is_sniffer(std::uint8_t type) { return type == f::type_unicast_sniffer || type == f::type_group_sniffer; }

}  // namespace

chip::flow_registers flow_rules::registers_of(table t) {
  namespace tr = transport::cr;
  return t == frames ? chip::flow_registers{cr_base::steering, ethernet::cr::flows}
                     : chip::flow_registers{cr_base::transport, tr::multicast_offset + tr::flows};
}

void flow_rules::start(std::uint32_t most) {
  clear();
  for (const table t : {frames, datagrams}) {
    const chip::flow_registers at = registers_of(t);
    used_[t].assign(std::min(most, chip_.read(at.base, at.offset + flow::cr::capacity)), false);
    chip_.write(at.base, at.offset + flow::cr::enable, 1);
  }
  enabled_ = true;
}

void flow_rules::clear() {
  enabled_ = false;
  rules_.clear();
  for (auto& places : used_) places.clear();
  last_ = first_ = 0;
}

abi::status flow_rules::attach(const std::uint8_t* m, std::size_t count, unsigned ports, std::uint64_t* id) {
  if (count * 4 < f::control_bytes || count * 4 > abi::mailbox_bytes) return abi::status::bad_param;
  rule r;
  r.type = abi::get(m, f::type);
  r.priority = abi::get(m, f::priority);
  const std::uint8_t flags = abi::get(m, f::flags), port = abi::get(m, f::port);
  r.exclusive = (flags & f::flag_exclusive) != 0;
  if ((flags & ~(f::flag_lifo | f::flag_exclusive | f::flag_loopback)) != 0 || port == 0 || port > ports ||
      abi::get(m, f::vep) != 0 || abi::get(m, f::qpn) > flow::cr::member_qpn)
    return abi::status::bad_param;
  bool ib = false;
  if (!read_headers(m, count * 4, r.words, &ib)) return abi::status::bad_param;
  const bool headers = count * 4 != f::control_bytes;
  const bool by_default = r.type == f::type_all_default || r.type == f::type_group_default;
  if (!by_default && !is_sniffer(r.type) && r.type != f::type_regular) return abi::status::bad_param;
  if (by_default ? headers : r.type == f::type_regular ? !headers : ib) return abi::status::bad_param;
  r.where = ib ? datagrams : frames;
  match(r.words, key::kind, port == 2 ? key::port_2 : 0, key::port_2);
  const bool of_groups = r.type == f::type_group_default || r.type == f::type_group_sniffer;
  if (of_groups || r.type == f::type_unicast_sniffer) {
    // Addresses of the other kind would make it a rule for something else.
    const std::uint32_t kind = of_groups ? key::group : 0;
    if (((r.words.value[key::dmac_high] ^ kind) & r.words.mask[key::dmac_high] & key::group) != 0)
      return abi::status::bad_param;
    match(r.words, key::dmac_high, kind, key::group);
  }
  r.words.member = abi::get(m, f::qpn) | ((flags & f::flag_loopback) != 0 ? 0 : flow::cr::member_no_loopback) |
                   (is_sniffer(r.type) ? flow::cr::member_copy : 0);

  bool in_entry = by_default;
  r.words.rank = default_rank;
  if (const abi::status s = check_entry(r, &in_entry, &r.words.rank); s != abi::status::ok) return s;
  const auto free = std::find(used_[r.where].begin(), used_[r.where].end(), false);
  if (free == used_[r.where].end() || std::max(first_, last_) == middle - 1) return abi::status::exceed_lim;
  if (!in_entry) r.words.rank = new_rank(r.priority, (flags & f::flag_lifo) != 0);
  r.place = static_cast<std::uint32_t>(free - used_[r.where].begin());
  if (!chip_.put_flow(registers_of(r.where), r.place, &r.words)) return abi::status::internal_error;
  *free = true;
  *id = next_id_++;
  rules_.emplace(*id, r);
  return abi::status::ok;
}

/// The rules whose packets `r` shares: their rank, and whether there is room for one more.
abi::status flow_rules::check_entry(const rule& r, bool* in_entry, std::uint64_t* rank) const {
  enum class kind { regular, by_default, sniffer };
  const auto kind_of = [](std::uint8_t type) {
    return is_sniffer(type) ? kind::sniffer : type == f::type_regular ? kind::regular : kind::by_default;
  };
  const kind own = kind_of(r.type);
  const bool priorities = own == kind::regular;
  unsigned members = 0;
  for (const auto& [id, other] : rules_) {
    if (other.where != r.where || kind_of(other.type) != own || (priorities && other.priority != r.priority)) continue;
    const bool same = own == kind::by_default ? other.words.value[key::kind] == r.words.value[key::kind]
                                              : other.words.value == r.words.value && other.words.mask == r.words.mask;
    if (same || own == kind::sniffer) ++members;
    if (!same) continue;
    if (r.exclusive || other.exclusive || ((other.words.member ^ r.words.member) & flow::cr::member_qpn) == 0)
      return abi::status::resource_busy;
    *in_entry = true;
    *rank = other.words.rank;
  }
  const unsigned room = is_sniffer(r.type) ? flow::cr::max_copies : flow::cr::max_members;
  return members < room ? abi::status::ok : abi::status::exceed_lim;
}

std::uint64_t flow_rules::new_rank(std::uint16_t priority, bool lifo) {
  const std::uint32_t place = lifo ? middle - ++first_ : middle + last_++;
  return std::uint64_t{priority} << priority_shift | place;
}

abi::status flow_rules::detach(std::uint64_t id) {
  const auto at = rules_.find(id);
  if (at == rules_.end()) return abi::status::bad_param;
  const rule& r = at->second;
  if (!chip_.put_flow(registers_of(r.where), r.place, nullptr)) return abi::status::internal_error;
  used_[r.where][r.place] = false;
  rules_.erase(at);
  return abi::status::ok;
}

}  // namespace rnic::firmware
