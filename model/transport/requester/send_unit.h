// SPDX-License-Identifier: Apache-2.0
// Processing units: what each of them knows of the queue pair that it serves, and which of them wait for what.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "model/icm/contexts.h"
#include "model/icm/key_operation_if.h"
#include "model/scheduler/scheduler_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/span.h"
#include "model/transport/requester/descriptor_window.h"
#include "model/transport/requester/send_wqe.h"
#include "model/transport/requester/tables.h"

namespace rnic::transport {

/// Room in a port's egress queue of one priority.
struct egress_pool {
  std::uint32_t credits = 0;
  std::uint32_t awaited_by = 0;  ///< mask of units
  sim::cycle_t moved = 0;        ///< when the last credit came back
  qp_queue parked{qp_list::credit};
  bool is_awaited() const { return awaited_by != 0 || !parked.empty(); }
};

/// The WQE that a unit executes, and where it is in it.
struct wqe_place {
  bool current = false;  ///< `wqe` is parsed and is the one at `index`
  std::uint32_t index = 0, strides = 1;
  std::uint32_t message = no_index;
  std::uint32_t segment = 0, segment_offset = 0;
  sim::cycle_t started = 0;                ///< never: no packet yet
  unsigned taking = 0;                     ///< cycles in which the transmit engine takes its descriptor from the buffer
  bool awaited = false;                    ///< the unit has waited for its descriptor
  sim::cycle_t awaits_since = 0;           ///< from then on, when it is fetching
  sim::cycle_t awaits_grant = sim::never;  ///< from then on it has waited for one of the READ engine; never: it has not
  bool behind_end = false;                 ///< the queue had been executed to its end before the grant's doorbell
};

/// One processing unit.
struct send_unit {
  enum class state : std::uint8_t { free, context, work, fetch, finish };
  enum class keys_state : std::uint8_t { none, asked, refused };
  state at = state::free;
  bool pinned = false;
  /// Of the context.
  struct {
    bool missed = false, second_missed = false;  ///< the unit has waited for them
    bool second_found = false;                   ///< and goes on as soon as it gets at the context
  } entries;
  bool lone = false;                   ///< the grant's descriptor is all that software has posted
  bool paced = false;                  ///< waits, or has waited, for the QP's time
  keys_state keys = keys_state::none;  ///< of the WQE's operation on keys
  icm::key_status keys_answer = icm::key_status::ok;
  std::uint8_t stamp_tries = 0;
  scheduler::report::kind report = scheduler::report::kind::idle;
  scheduler::grant grant;
  icm::requester_context* ctx = nullptr;
  sim::cycle_t granted_at = 0, busy_until = 0;
  sim::cycle_t credit_since = sim::never;  ///< waits since then for room in an egress queue,
  egress_pool* awaits = nullptr;           ///< this one
  const char* held_up_by = nullptr;        ///< what kept the send engine from its packet when it last looked
  unsigned stall = 0;  ///< cycles for which the transmit engine stands still for entries that were missing
  std::uint32_t turn_wqes = 0, turn_bytes = 0;
  unsigned translating = 0;  ///< addresses of its packets that are looked up
  sim::span_id span = 0;
  descriptor_window window;  ///< what is on chip of a send queue
  wqe_place at_wqe;
  send_wqe wqe;
  std::array<std::uint8_t, 1024> bytes;  ///< of the WQE under execution
  /// Finds the segment that holds byte `offset` of the message.
  void seek(std::uint32_t offset) {
    at_wqe.segment = 0;
    while (at_wqe.segment < wqe.count && offset >= wqe.segments[at_wqe.segment].length)
      offset -= wqe.segments[at_wqe.segment++].length;
    at_wqe.segment_offset = offset;
  }
};

/// The units, and what the transmit engine sees of them: a register each for "has a WQE to send", "need not be looked
/// at" and "has a READ or an atomic". Units write these when a WQE is ready or their turn ends, the transmit engine
/// when it has sent or found what holds it up, go-back when a queue pair is to ask its context where to go on.
class unit_table {
 public:
  unit_table(sim::clocked_block& owner, unsigned units, qp_table& qps) : owner_(owner), qps_(qps), units_(units) {}

  unsigned size() const { return static_cast<unsigned>(units_.size()); }
  send_unit& operator[](unsigned i) { return units_[i]; }
  const send_unit& operator[](unsigned i) const { return units_[i]; }
  std::vector<send_unit>::iterator begin() { return units_.begin(); }
  std::vector<send_unit>::iterator end() { return units_.end(); }
  unsigned number_of(const send_unit& u) const { return static_cast<unsigned>(&u - units_.data()); }
  std::uint32_t mask_of(const send_unit& u) const { return 1u << number_of(u); }
  send_unit* of(const qp_runtime& r) {
    return r.turn.unit >= 0 ? &units_[static_cast<unsigned>(r.turn.unit)] : nullptr;
  }

  /// Units that have a WQE for the transmit engine.
  std::uint32_t sendable() const { return sendable_; }
  /// Of these the ones that may start a packet, as far as is known.
  std::uint32_t asking() const { return sendable_ & ~held_; }
  /// Units that have parsed a READ or an atomic, which has not started.
  std::uint32_t reading() const { return reading_; }
  void parsed(send_unit& u) {
    u.at_wqe.current = true;
    u.at_wqe.awaits_grant = sim::never;
    if (u.wqe.fetches() && u.wqe.error == 0) reading_ |= mask_of(u);
  }
  void offer(const send_unit& u) {
    sendable_ |= mask_of(u);
    held_ &= ~mask_of(u);
  }
  /// The unit looks at its queue pair again instead of sending.
  void give_back(send_unit& u) {
    forget_credit(u);
    sendable_ &= ~mask_of(u);
    owner_.wake_next();
  }
  /// The unit's WQE has been executed.
  void executed(send_unit& u) {
    drop_wqe(u);
    u.span = 0;
    ++u.turn_wqes;
    ++wqes_;
  }
  const std::uint64_t& wqes() const { return wqes_; }
  standstills& still() { return still_; }
  /// The unit's turn ends.
  void end_turn(send_unit& u, scheduler::report::kind kind) {
    u.report = kind;
    u.at = send_unit::state::finish;
    qps_[u.grant.qpn].turn.ends_stalled = kind == scheduler::report::kind::stalled;
    forget_credit(u);
    sendable_ &= ~mask_of(u);
    reading_ &= ~mask_of(u);
  }
  /// Its queue pair waits for something that takes long, and others have the unit.
  void give_up(send_unit& u, standstill why) {
    still_.begin(qps_[u.grant.qpn].turn.waits_for, why, owner_.now());
    end_turn(u, scheduler::report::kind::stalled);
    owner_.wake_next();
  }
  /// The unit that serves the queue pair drops its WQE and asks the context where to go on.
  void restart(const qp_runtime& r) {
    if (r.turn.unit < 0) return;
    send_unit& u = *of(r);
    drop_wqe(u);
    give_back(u);
  }
  /// Nothing can start for the unit before `until`, unless release() says otherwise.
  void hold(std::uint32_t units, sim::cycle_t until) {
    if (held_ == 0) held_until_ = sim::never;  // what is there is of those that were released
    held_ |= units;
    held_until_ = std::min(held_until_, until);
    owner_.wake_at(until);
  }
  void release(std::uint32_t units) { held_ &= ~units; }
  /// The time of the first one that is held has come: all are looked at again.
  void release_due() {
    if (held_ == 0 || owner_.now() < held_until_) return;
    held_ = 0;
    held_until_ = sim::never;
  }
  void forget_credit(send_unit& u) {
    if (u.credit_since == sim::never) return;
    u.credit_since = sim::never;
    u.awaits->awaited_by &= ~mask_of(u);
  }

 private:
  void drop_wqe(send_unit& u) {
    u.at_wqe.current = false;
    reading_ &= ~mask_of(u);
  }
  sim::clocked_block& owner_;
  qp_table& qps_;
  std::vector<send_unit> units_;
  std::uint32_t sendable_ = 0, held_ = 0, reading_ = 0;  // masks of units
  sim::cycle_t held_until_ = sim::never;                 // the first of those that are held
  std::uint64_t wqes_ = 0;
  standstills still_;
};

}  // namespace rnic::transport
