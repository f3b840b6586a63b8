// SPDX-License-Identifier: Apache-2.0
// GID hardware of one port: who we are on the wire.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "model/gid/gid_match_if.h"
#include "model/register_bus/cr_space.h"
#include "model/register_bus/reset_if.h"
#include "model/wire/packet.h"

namespace rnic::gid {

inline constexpr unsigned physical_window = 16;  ///< entries of the physical function; the other 112 are divided

/// First entry and number of entries of a function (0 = physical, 1..num_vfs virtual, counted on this port): 16 for the
/// physical one, then 112 / num_vfs each, the remainder one each to the first ones (adapter control plane, 8.6).
struct window {
  unsigned first = 0;
  unsigned count = 0;
};
window window_of(unsigned function, unsigned num_vfs);

struct entry {
  wire::gid id{};
  roce_type type = roce_type::v1;
  bool valid = false;
  bool vlan_valid = false;
  std::uint16_t vlan = 0;      ///< VID when vlan_valid
  std::uint16_t function = 0;  ///< owner, by window
};

/// 128 entries, with the port's MAC and VLAN tables beside them. Written by firmware through the register bus, which
/// has edges of its own between those of the core clock. Read by what sends through gid_source, and in the receive path
/// by, each by a port of its own:
///   parser                       a look-up of GIDs (gid_match), and the VLAN of the entry that it has found; the
///                                comparators of the MAC table, for one frame
///   steering                     the comparators of the MAC table, for one frame that is not RoCE
///   completer and request check  one GID entry, where the parser's look-up has not found the path's (path_check)
///   ethernet check               one VLAN, of a frame for an Ethernet queue pair
class gid_table : public register_bus::cr_target_if, public register_bus::reset_target_if {
 public:
  const entry& operator[](unsigned index) const { return entries_[index % table_size]; }
  /// The entry with this GID and type; the lowest of several. How long it takes to find is gid_match's.
  std::optional<unsigned> match(const wire::gid& dgid, roce_type type) const;
  /// Entries of the GID's bucket that are read to find `found` (what match() says), or to find out that there is none;
  /// one at least.
  unsigned probes(const wire::gid& dgid, roce_type type, std::optional<unsigned> found) const;

  /// RoCE for a GID of the other port's table may come in here.
  bool takes_both_tables() const { return both_tables_; }
  /// Virtual functions of the port. If there are any, each entry is one function's own.
  std::uint16_t num_vfs() const { return static_cast<std::uint16_t>(num_vfs_); }
  const wire::mac_address& mac(unsigned index) const { return macs_[index % table_size]; }
  bool mac_valid(unsigned index) const { return mac_valid_[index % table_size]; }
  /// Whether a frame to this address is for this port (a valid MAC of the table, broadcast or multicast).
  bool accepts(const wire::mac_address& dmac) const;
  /// Whether a frame to this address would come back to the port that sends it: a valid MAC of the table.
  bool owns(const wire::mac_address& dmac) const { return (dmac[0] & 1) == 0 && accepts(dmac); }
  /// VID of a VLAN table entry (index as in the QP's path); nullopt when not valid.
  std::optional<std::uint16_t> vlan(unsigned index) const;

  /// The port takes packets of RoCE v2.
  bool takes_roce_v2() const { return roce_v2_; }

  void set_num_vfs(unsigned n);
  std::uint32_t cr_read(std::uint32_t offset) override;
  void cr_write(std::uint32_t offset, std::uint32_t value) override;
  void device_reset() override;

 private:
  std::uint16_t function_of(unsigned window) const;
  std::array<entry, table_size> entries_{};
  std::array<wire::mac_address, table_size> macs_{};
  std::array<bool, table_size> mac_valid_{};
  bool roce_v2_ = true;
  std::array<std::uint64_t, table_size / 64> gid_mask_{}, mac_mask_{};  // valid entries: receive looks at these only
  std::array<std::uint32_t, table_size> vlans_{};                       // bit 31 valid, VID
  unsigned num_vfs_ = 0;
  std::uint32_t vf_numbers_ = 1u << 16;  // register vf_numbers
  bool both_tables_ = false;
};

}  // namespace rnic::gid
