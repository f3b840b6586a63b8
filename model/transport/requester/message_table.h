// SPDX-License-Identifier: Apache-2.0
// Memory on chip: the messages under way of all queue pairs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/icm/contexts.h"
#include "model/sim/clocked_block.h"
#include "model/sim/memory_ports.h"
#include "model/transport/requester/resumptions.h"
#include "model/transport/requester/scatter_lists.h"
#include "model/transport/requester/tables.h"
#include "model/wire/psn.h"

namespace rnic::transport {

/// Data sheet.
///
/// Each queue pair has a list of its messages, in the order of their PSNs; `qp_runtime` has its ends. READs and atomics
/// are linked among themselves too, so that the first one whose answer is not complete (`qp_runtime::reading`) is known
/// without a search: with it, an answer or an acknowledgement is compared, not with the messages before it.
///
/// Ports: append, `message_append_ports` messages a cycle, each when its first packet starts or when a processing unit
/// executes it without one: each unit is a user, before the transmit engine, the first one before the others; read and
/// change of one message by its index (completer; each of those who look at the message that their own report names);
/// two searches (message_search); release, one message a cycle: completions come before go-back. Of append and release,
/// who was refused is counted (`message_append.transmit.waits`, `message_append.unit<n>.waits`,
/// `message_release.<user>.waits`), asks again a cycle later and comes before who was not, in turn.
///
/// Queue pairs that find no room wait in a list for a message, in another for a scatter list, of which a READ needs one
/// too. What comes free wakes the first of its list. One that was woken may not need the room any more, or wait for
/// something else first: as long as there is room, the end of each turn of a processing unit wakes the next one.
///
/// A message that is given away gets a new generation.
class message_table {
 public:
  using context = icm::requester_context;
  /// Who appends: the transmit engine, or a processing unit.
  static constexpr unsigned by_transmit = 0;
  static constexpr unsigned by_unit(unsigned number) { return 1 + number; }
  enum releaser : unsigned { by_completion, by_go_back };

  message_table(sim::clocked_block& owner, unsigned entries, unsigned append_ports, unsigned units, qp_table& qps,
                scatter_lists& scatters, resumptions& resumes)
      : qps_(qps),
        scatters_(scatters),
        resumes_(resumes),
        owner_(owner),
        messages_(entries),
        append_ports_(owner, "message_append", append_ports, appenders(units)),
        release_port_(owner, "message_release", 1, {"completions", "go_back"}) {}
  void announce(sim::statistics& to) const {
    append_ports_.announce(to);
    release_port_.announce(to);
  }

  message& operator[](std::uint32_t index) { return messages_[index]; }
  /// There is room for a message, and for where its data goes if it `reads`. False: the queue pair waits for it.
  bool has_room(qp_runtime& r, bool reads);
  /// A scatter list whose message was gone before is free.
  void list_came() { resumes_.resume_first(lists_); }
  /// A turn has ended: room that a woken queue pair has not taken is left to the next one.
  void pass_on();

  /// Takes a port to append in this cycle; false: they are others', and the owner is ticked at the next edge.
  bool may_append(unsigned who) { return append_ports_.try_access(who); }
  /// A message behind all others of the queue pair: the entry as it was never used, to be filled.
  message& append(qp_runtime& r, std::uint32_t& index);
  /// The entry just appended is that of a READ or atomic with this scatter list. Counts it in the context.
  void append_read(context& c, qp_runtime& r, std::uint32_t index, const send_wqe& wqe);
  /// The answer of the READ `reading` is complete.
  void answered(qp_runtime& r);
  /// Takes the port to release in this cycle; false: it is another's, and the owner is ticked at the next edge.
  bool may_release(releaser who) { return release_port_.try_access(who); }
  /// The head, whose completion has been told.
  void release_head(context& c, qp_runtime& r);
  /// All behind `keep` (no_index: all) are forgotten: they are a list of their own from now on. True: there are some.
  bool cut_behind(qp_runtime& r, std::uint32_t keep);
  /// What was taken back of a list that was cut, to be taken off the context's counts.
  struct returned {
    unsigned messages = 0, reads = 0, receives = 0;
    void take_off(context& c) const;
  };
  /// Takes back the first message of the list that was cut.
  void release_cut(qp_runtime& r, returned& counts);

  /// Queue pairs whose head may be complete, for completions.
  qp_queue& to_complete() { return to_complete_; }
  void may_complete(qp_runtime& r) { to_complete_.push(qps_, r); }
  scatter_lists& scatters() { return scatters_; }

 private:
  static std::vector<sim::memory_user> appenders(unsigned units) {
    std::vector<sim::memory_user> users{{"transmit", sim::access_kind::write}};
    for (unsigned i = 0; i < units; ++i) users.emplace_back("unit" + std::to_string(i), sim::access_kind::write);
    return users;
  }
  void give(message& m, std::uint32_t index);

  qp_table& qps_;
  scatter_lists& scatters_;
  resumptions& resumes_;
  sim::clocked_block& owner_;
  index_pool<message> messages_;
  qp_queue room_{qp_list::room}, lists_{qp_list::scatter};  // who waits for a message, for a scatter list
  qp_queue to_complete_{qp_list::drain};
  sim::memory_ports append_ports_, release_port_;
};

/// One engine that looks for the message that holds a PSN, from the oldest on, an entry a cycle. It begins anew when
/// the queue pair or PSN is another, or when the entry at which it stands was given away. What it has found stays in
/// its registers until it looks for something else.
class message_search {
 public:
  message_search(sim::clocked_block& owner, message_table& messages) : owner_(owner), messages_(messages) {}
  enum class result : std::uint8_t { pending, found, none };
  /// To be called in each cycle until it is not pending; the owner is ticked for that.
  result find(const qp_runtime& r, wire::psn_t psn, std::uint32_t& index);
  /// Cycles in which it looked at an entry that was not the one.
  const std::uint64_t& steps() const { return steps_; }

 private:
  sim::clocked_block& owner_;
  message_table& messages_;
  std::uint32_t qpn_ = no_index, at_ = no_index, generation_ = 0;
  wire::psn_t psn_;
  bool found_ = false;  // it stands at the one
  sim::cycle_t looked_at_ = sim::never;
  std::uint64_t steps_ = 0;
};

}  // namespace rnic::transport
