// SPDX-License-Identifier: Apache-2.0
// Packets between check and commit.
#pragma once

#include <cstdint>
#include <vector>

#include "model/sim/clocked_block.h"
#include "model/sim/memory_ports.h"
#include "model/transport/responder/types.h"

namespace rnic::transport {

/// Part of the responder: a place for each packet that was checked and is not committed, in the order of acceptance.
///
/// Memory: responder_config::slots places; two links each. Ports, an access of each in a cycle: the check takes a place
/// (intake), what it is to find out about it is asked for (requests) and comes (translations), the commit carries a
/// step of one out and gives it back with the last (commit). What looks for all packets of a queue pair (the error
/// state) finds them by a comparator at each place.
class slot_table {
 public:
  enum user : unsigned { intake, requests, translations, commit };
  slot_table(sim::clocked_block& owner, unsigned places)
      : slots_(places),
        ports_(owner, "slot_table", sim::port_each{},
               {{"intake", sim::access_kind::write}, "requests", "translations", "commit"}) {
    for (unsigned i = places; i-- != 0;) free_.push_back(static_cast<std::uint16_t>(i));
  }

  /// To be called for each thing that one of them does, at most one a cycle.
  void access(user u) { ports_.access_own(u); }
  bool empty() const { return first_ == no_link; }
  bool full() const { return free_.empty(); }
  /// The oldest; `next` of a slot leads to the younger ones.
  std::uint16_t first() const { return first_; }
  responder_slot& operator[](std::size_t i) { return slots_[i]; }
  const responder_slot& operator[](std::size_t i) const { return slots_[i]; }
  std::uint16_t index_of(const responder_slot& s) const { return static_cast<std::uint16_t>(&s - slots_.data()); }

  /// A place behind all others, as its last packet left it but for the links.
  responder_slot& take() {
    access(intake);
    const std::uint16_t i = free_.back();
    free_.pop_back();
    responder_slot& s = slots_[i];
    s.next = no_link;
    s.previous = last_;
    (last_ == no_link ? first_ : slots_[last_].next) = i;
    last_ = i;
    return s;
  }
  void release(std::uint16_t i) {
    responder_slot& s = slots_[i];
    s.frame.reset();
    (s.previous == no_link ? first_ : slots_[s.previous].next) = s.next;
    (s.next == no_link ? last_ : slots_[s.next].previous) = s.previous;
    free_.push_back(i);
  }
  /// The first place from `place` on that is taken, size() when there is none.
  std::size_t taken_from(std::size_t place) const {
    while (place != slots_.size() && !slots_[place].frame) ++place;
    return place;
  }
  std::size_t size() const { return slots_.size(); }
  /// f(slot) for the packets of a queue pair that are not given up, oldest first.
  template <class F>
  void for_flow(std::uint16_t flow, F f) {
    for (std::uint16_t i = first_; i != no_link; i = slots_[i].next)
      if (slots_[i].flow == flow && !slots_[i].cancelled) f(slots_[i]);
  }

 private:
  std::vector<responder_slot> slots_;
  std::vector<std::uint16_t> free_;
  std::uint16_t first_ = no_link, last_ = no_link;
  sim::memory_ports ports_;
};

}  // namespace rnic::transport
