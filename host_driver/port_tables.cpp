// SPDX-License-Identifier: Apache-2.0
// Tables of MAC addresses and VLANs of a port: entries that are counted, and have limits (net/port.c:
// __mlx4_register_mac, __mlx4_register_vlan; net/resource_tracker.c: mlx4_init_resource_tracker, RES_MAC and RES_VLAN).
#include <algorithm>
#include <cerrno>

#include "host_driver/device.h"
#include "model/abi/command_set.h"
#include "model/abi/device.h"

namespace rnic::host_driver {

namespace {

namespace port_table = abi::set_port;
constexpr unsigned first_regular_mac = 1, first_regular_vlan = 2;  // 0: the port's own; 0: no tag, 1: priority alone
constexpr std::uint64_t table_mac_bits = 0xffff'ffff'ffff;
constexpr std::uint32_t table_vid_bits = 0xfff;

/// A port's table, and the other port's where the two may become one.
template <class Word>
struct table_pair {
  const std::array<Word, port_table::table_size>& entries;
  const std::array<table_users, port_table::table_size>& users;
  const std::array<Word, port_table::table_size>* twin;
  const std::array<table_users, port_table::table_size>* twin_users;
  unsigned first;  // that can be chosen
  unsigned limit;  // behind the last one

  unsigned find(Word entry) const {
    const auto end = entries.begin() + limit;
    return static_cast<unsigned>(std::find(entries.begin(), end, entry) - entries.begin());
  }
  bool is_own(unsigned i) const { return users[i].own != 0 || (twin != nullptr && (*twin_users)[i].own != 0); }
  /// Entries of table_user::own. The ports' own addresses are two when the tables are one.
  unsigned own() const {
    unsigned count = twin != nullptr && entries[0] != (*twin)[0] ? 1 : 0;
    for (unsigned i = 0; i < limit; ++i) count += is_own(i) ? 1 : 0;
    return count;
  }
  /// Entries that functions alone have.
  unsigned of_functions() const {
    unsigned count = 0;
    for (unsigned i = 0; i < limit; ++i) {
      const bool any = users[i].functions != 0 || (twin != nullptr && (*twin_users)[i].functions != 0);
      count += any && !is_own(i) ? 1 : 0;
    }
    return count;
  }
  /// Where the other port's table has this entry, else the first place that is free in both, else the first one; limit:
  /// there is none.
  unsigned place_for(Word entry) const {
    unsigned in_both = limit, here = limit;
    for (unsigned i = limit; i-- > first;) {
      if (entries[i] != 0) continue;
      here = i;
      if (twin == nullptr || (*twin)[i] == 0) in_both = i;
    }
    if (twin != nullptr) {
      for (unsigned i = first; i < limit; ++i)
        if (entries[i] == 0 && (*twin)[i] == entry) return i;
    }
    return in_both != limit ? in_both : here;
  }
};

unsigned& registrations_of(table_users& users, table_user who) {
  return who == table_user::own ? users.own : users.functions;
}

/// How many entries a user may have.
struct most_entries {
  unsigned own, functions;
};
constexpr unsigned no_limit = ~0u;

/// The entry's place, known or to be used from now on, or a negative errno. One that is there needs no other place.
template <class Word>
int choose_place(const table_pair<Word>& t, Word entry, table_user who, const most_entries& most) {
  const unsigned known = t.find(entry);
  if (who == table_user::own && (known == t.limit || !t.is_own(known)) && t.own() >= most.own) return -ENOSPC;
  const unsigned place = known != t.limit ? known : t.place_for(entry);
  if (place == t.limit) return -ENOSPC;
  if (who == table_user::functions && known == t.limit && t.of_functions() >= most.functions) return -EDQUOT;
  return static_cast<int>(place);
}

constexpr unsigned without_kept(unsigned from, unsigned part) { return from > part ? from - part : 0; }

}  // namespace

void device::keep_entries(unsigned port, unsigned macs, unsigned vlans) {
  ports_[port - 1].kept_macs = macs;
  ports_[port - 1].kept_vlans = vlans;
}

int device::add_mac(unsigned port, std::uint64_t mac, table_user who) {
  port_state& s = ports_[port - 1];
  const std::uint64_t entry = port_table::mac_valid | (mac & table_mac_bits);
  const port_state* const other = pair_of(port);
  const table_pair<std::uint64_t> table{s.macs,
                                        s.mac_users,
                                        other != nullptr ? &other->macs : nullptr,
                                        other != nullptr ? &other->mac_users : nullptr,
                                        first_regular_mac,
                                        s.max_macs};
  const int place = choose_place(table, entry, who, {without_kept(s.max_macs, s.kept_macs), no_limit});
  if (place < 0) return place;
  const auto index = static_cast<unsigned>(place);
  if (s.macs[index] == 0) {
    s.macs[index] = entry;
    if (const int error = write_mac_table(port)) {
      s.macs[index] = 0;
      return error;
    }
  }
  ++registrations_of(s.mac_users[index], who);
  return place;
}

int device::remove_mac(unsigned port, unsigned index, table_user who) {
  port_state& s = ports_[port - 1];
  if (index >= s.macs.size() || registrations_of(s.mac_users[index], who) == 0) return -EINVAL;
  --registrations_of(s.mac_users[index], who);
  if (s.mac_users[index].all() != 0 || (mirrored_ && ports_[2 - port].mac_users[index].all() != 0)) return 0;
  s.macs[index] = 0;
  return write_mac_table(port);
}

/// Of a virtual function: its index is that in the port's table.
int device::ask_for_vlan(unsigned port, std::uint16_t vid) {
  port_state& s = ports_[port - 1];
  const std::uint32_t entry = port_table::vlan_valid | vid;
  auto own = std::find(s.vlans.begin(), s.vlans.end(), entry);
  if (own == s.vlans.end()) {
    std::uint64_t index = 0;
    if (const int error =
            channel_.execute({abi::opcode::alloc_res, static_cast<std::uint32_t>(resource::vlan) | port << 8,
                              abi::res_op::reserve_and_map, vid, 0, &index}))
      return error;
    own = s.vlans.begin() + static_cast<std::ptrdiff_t>(index % s.vlans.size());
    *own = entry;
  }
  const auto place = own - s.vlans.begin();
  ++s.vlan_users[static_cast<std::size_t>(place)].own;
  return static_cast<int>(place);
}

int device::add_vlan(unsigned port, std::uint16_t vid, table_user who) {
  if (virtual_) return ask_for_vlan(port, vid);
  port_state& s = ports_[port - 1];
  const std::uint32_t entry = port_table::vlan_valid | vid;
  const port_state* const other = pair_of(port);
  const table_pair<std::uint32_t> table{s.vlans,
                                        s.vlan_users,
                                        other != nullptr ? &other->vlans : nullptr,
                                        other != nullptr ? &other->vlan_users : nullptr,
                                        first_regular_vlan,
                                        s.max_vlans};
  const int place = choose_place(
      table, entry, who,
      {without_kept(s.max_vlans, first_regular_vlan + s.kept_vlans), s.kept_vlans != 0 ? s.kept_vlans : no_limit});
  if (place < 0) return place;
  const auto index = static_cast<unsigned>(place);
  if (s.vlans[index] == 0) {
    s.vlans[index] = entry;
    if (const int error = write_vlan_table(port)) {
      s.vlans[index] = 0;
      return error;
    }
  }
  ++registrations_of(s.vlan_users[index], who);
  return place;
}

int device::remove_vlan(unsigned port, unsigned index, table_user who) {
  port_state& s = ports_[port - 1];
  if (index >= s.vlans.size() || registrations_of(s.vlan_users[index], who) == 0) return -EINVAL;
  --registrations_of(s.vlan_users[index], who);
  if (s.vlan_users[index].all() != 0 || (mirrored_ && ports_[2 - port].vlan_users[index].all() != 0)) return 0;
  const std::uint32_t vid = s.vlans[index] & table_vid_bits;
  s.vlans[index] = 0;
  if (!virtual_) return write_vlan_table(port);
  return channel_.command(abi::opcode::free_res, static_cast<std::uint32_t>(resource::vlan) | port << 8,
                          abi::res_op::reserve_and_map, vid);
}

}  // namespace rnic::host_driver
