// SPDX-License-Identifier: Apache-2.0
// Flow steering rules as firmware keeps them: what a mailbox says, made words of the flow tables.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "firmware/chip.h"
#include "model/abi/command_set.h"

namespace rnic::firmware {

/// Device-managed flow steering (adapter control plane 4.19). Rules over Ethernet, IPv4, TCP and UDP headers are in the
/// table of the steering block, rules over IB headers in that of multicast.
///
/// Which rule a packet follows. A smaller priority comes first. Within one, rules of the same match are an entry: all
/// its queue pairs get the packet, as the members of a group do (QUERY_DEV_CAP has the number of queue pairs that an
/// entry holds, and the kernel attaches broadcast for each function; net/main.c: choose_steering_mode). Rules of
/// another match that fit too get nothing: the entries of a priority are asked in a queue, in which a new one is the
/// last, with flag_lifo the first. Behind all regular rules come the default ones: of all that no rule takes, and of
/// groups that no rule takes. Sniffers get a copy of what is unicast, or a group's, whoever takes it.
/// Approximation: which rule of several in one priority comes first is not published.
/// Approximation: sniffers copy plain frames; RoCE for the port's own GIDs does not pass the steering block.
///
/// flag_exclusive: the entry has this queue pair alone; who comes second gets RESOURCE_BUSY. So does a queue pair that
/// is in the entry already. All default rules of a port are one entry, and so are sniffers of the same match.
class flow_rules {
 public:
  explicit flow_rules(chip& hardware) : chip_(hardware) {}

  /// INIT_HCA with flag_dmfs: rules may be attached, as many as the hardware has room for and `most` of each table.
  void start(std::uint32_t most);
  /// After a reset of the blocks.
  void clear();
  bool enabled() const { return enabled_; }

  /// `words` of 32 bits at `mailbox`; ports are 1 to `ports`. The queue pair is the caller's to check.
  abi::status attach(const std::uint8_t* mailbox, std::size_t words, unsigned ports, std::uint64_t* id);
  abi::status detach(std::uint64_t id);

 private:
  enum table : unsigned { frames, datagrams, tables };
  struct rule {
    table where = frames;
    std::uint32_t place = 0;
    std::uint8_t type = 0;
    std::uint16_t priority = 0;
    bool exclusive = false;
    chip::flow_rule words;
  };
  abi::status check_entry(const rule& r, bool* in_entry, std::uint64_t* rank) const;
  std::uint64_t new_rank(std::uint16_t priority, bool lifo);
  static chip::flow_registers registers_of(table t);

  chip& chip_;
  bool enabled_ = false;
  std::array<std::vector<bool>, tables> used_;  // places
  std::map<std::uint64_t, rule> rules_;         // by registration id
  std::uint64_t next_id_ = 1;
  std::uint32_t last_ = 0, first_ = 0;  // of the queues: places given at the end, and at the beginning
};

}  // namespace rnic::firmware
