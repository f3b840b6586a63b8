// SPDX-License-Identifier: Apache-2.0
// Queue pairs on their way into the error state, and those that are in it.
#pragma once

#include <cstdint>
#include <vector>

#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/transport/responder/acknowledgement.h"
#include "model/transport/responder/completion_port.h"
#include "model/transport/responder/flow_table.h"
#include "model/transport/responder/place_lookup.h"
#include "model/transport/responder/receive_descriptors.h"
#include "model/transport/responder/receive_port.h"
#include "model/transport/responder/slot_table.h"
#include "model/transport/responder/types.h"

namespace rnic::transport {

/// Part of the responder: what was accepted of a queue pair in error is given up; the requester's half is told;
/// receives that software posts are flushed as long as the queue pair stays there (IBA 10.3.1; adapter data plane
/// A.7.2): its doorbell record is looked at every `flush_poll_cycles`.
///
/// Ports: of both halves one error a cycle in, one out; one doorbell record at a time, of receive fetch.
/// Memories: three lists of queue pairs, in each of which one is once, a link and what is noted a queue pair: those
/// with errors to be told; those to be attended to that have no place yet (for what, and the posted count), of which
/// one gets it in a cycle; those whose records are looked at, in turn. Of those with a place the one that has waited
/// longest and can go on is attended to, one a cycle. Stalls: the place on chip, the context, the room for a completion
/// or an event that the next step needs.
class error_state {
 public:
  error_state(sim::clocked_block& owner, const responder_config& cfg, flow_table& flows, flow_table::contexts& contexts,
              slot_table& slots, place_lookup& places, receive_descriptors& receives, completion_port& completions,
              acknowledgement& answers, drop_counters& drops, receive_port& port);

  /// `rq_consumed`: of the own queue, behind what was completed. `done`: receive descriptor that was completed in
  /// error.
  void enter(responder_flow& f, std::uint16_t rq_consumed, bool tell_requester,
             std::uint32_t done = receive_descriptors::none);
  /// Of the own queue, the first that has no completion.
  std::uint16_t first_uncompleted(const responder_flow& f);
  /// What was checked and not committed is given up.
  void cancel(responder_flow& f);

  /// Takes what others report of a queue pair: the requester's half, or completion (a completion was lost).
  template <class T>
  void take(sim::fifo_in<T>& in) {
    if (in.bound() && in.can_pop()) note(in.pop().qpn, flow_todo_error);
  }
  /// A look at a queue pair that firmware has released. What it was to be attended to for before is of its former life.
  void check(std::uint32_t qpn);
  /// Doorbell records; in each tick.
  void poll();
  /// A result of receive fetch: the part error_record.
  void fetched(const receive_fetch_result& r);
  /// What queue pairs are to be attended to for. In each tick.
  void attend();
  /// Tells the requester's half; in each tick, behind what enters errors.
  void tell(sim::fifo_out<qp_error>& out);
  /// No look at its records any more.
  void stop(std::uint32_t qpn);
  /// It is discarded: nobody is told of its errors any more.
  void forget(std::uint32_t qpn);
  /// Reset: nobody is attended to.
  void clear();

 private:
  struct poll_entry {
    std::uint32_t qpn = 0;
    std::uint64_t record = 0;
    std::uint16_t function = 0;
    std::uint16_t seen = 0;  // posted count up to which was flushed
    bool last_event = false;
  };
  struct attention_entry {
    std::uint32_t qpn = 0;
    std::uint8_t todo = 0;
    std::uint16_t posted = 0;
  };
  enum class step : std::uint8_t { none, one, last };
  void note(std::uint32_t qpn, std::uint8_t todo, std::uint16_t posted = 0);
  void place();
  step attend(responder_flow& f);
  static step next(responder_flow& f, std::uint8_t done);
  step flush(responder_flow& f);
  bool tell_last(std::uint32_t qpn);
  void start(const responder_flow& f);

  sim::clocked_block& owner_;
  flow_table& flows_;
  flow_table::contexts& contexts_;
  slot_table& slots_;
  place_lookup& places_;
  receive_descriptors& receives_;
  completion_port& completions_;
  acknowledgement& answers_;
  drop_counters& drops_;
  receive_port& port_;
  const unsigned interval_;
  std::vector<attention_entry> attention_;
  std::vector<std::uint32_t> errors_;  // QPNs the requester has to be told of
  std::vector<poll_entry> polls_;
  std::size_t at_ = 0;
  struct {
    bool reading = false, answered = false, ok = false;
    std::uint32_t qpn = 0;
  } record_;
  sim::cycle_t next_ = 0;
};

}  // namespace rnic::transport
