// SPDX-License-Identifier: Apache-2.0
// The completion block and the requester's half, as the responder sees them.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "testbenches/block/responder/random/host_memory.h"

namespace rnic::transport::random_test {

/// Takes completions, events and the errors of queue pairs; tells of errors of the other half, and of completions that
/// were lost.
class queues final : public sim::clocked_block {
 public:
  queues(sim::clock_domain& d, responder& r, const behaviour& how)
      : clocked_block("queues", d),
        how_(how),
        completion_("completion", d, 2),
        event_("event", d, 2),
        error_("error", d, 2),
        other_error_("other_error", d, 4),
        lost_("lost", d, 4) {
    r.cqe_out.bind(completion_);
    completion_in_.bind(completion_);
    r.event_out.bind(event_);
    event_in_.bind(event_);
    r.error_out.bind(error_);
    error_in_.bind(error_);
    r.error_in.bind(other_error_);
    other_error_out_.bind(other_error_);
    r.lost_in.bind(lost_);
    lost_out_.bind(lost_);
  }

  using due = std::deque<std::pair<sim::cycle_t, std::uint32_t>>;  // cycle, queue pair; in the order of cycles
  due errors_to_tell, losses_to_tell;

  struct completed {
    sim::cycle_t at;
    completion::cqe_request entry;
  };
  std::vector<completed> completions;
  std::vector<completion::event_request> events;
  std::vector<std::uint32_t> errors;
  journal seen;

  static std::uint32_t number_of(const completion::event_request& e) {
    return wire::load_be32(e.data.data()) & 0xffffff;
  }

 private:
  void tick() override {
    if (completion_in_.can_pop() && how_.takes(channel::completions, now())) take_completion();
    if (event_in_.can_pop() && how_.takes(channel::events, now())) {
      const completion::event_request& e = events.emplace_back(event_in_.pop());
      seen.note(now(), "event: type, number, function, digest",
                {e.type, number_of(e), e.function, digest(e.data.data(), e.data.size())});
    }
    if (error_in_.can_pop() && how_.takes(channel::errors, now())) {
      errors.push_back(error_in_.pop().qpn);
      seen.note(now(), "queue pair in error", {errors.back()});
    }
    tell(errors_to_tell, other_error_out_);
    tell(losses_to_tell, lost_out_);
    if (completion_in_.can_pop() || event_in_.can_pop() || error_in_.can_pop()) wake_next();
  }

  void take_completion() {
    completions.push_back({now(), completion_in_.pop()});
    const completion::cqe_request& c = completions.back().entry;
    const std::uint64_t place = std::uint64_t{c.cqn} << 32 | std::uint64_t{c.function} << 16 | c.sl_vid;
    seen.note(now(), "completion: queue pair, opcode, syndrome, index, bytes, immediate, peer, queue",
              {c.qpn, c.opcode + (c.solicited ? 0x100u : 0u), c.syndrome, c.wqe_index, c.byte_count, c.immediate,
               c.remote_qpn, place});
  }

  template <class T>
  void tell(due& all, sim::fifo_out<T>& out) {
    if (!all.empty() && all.front().first <= now() && out.claim()) {
      out.push({all.front().second});
      all.pop_front();
      seen.active(now());
    }
    if (!all.empty()) wake_at(std::max(now() + 1, all.front().first));
  }

  const behaviour& how_;
  sim::fifo<completion::cqe_request> completion_;
  sim::fifo<completion::event_request> event_;
  sim::fifo<qp_error> error_, other_error_;
  sim::fifo<completion::lost_completion> lost_;
  sim::fifo_in<completion::cqe_request> completion_in_{*this};
  sim::fifo_in<completion::event_request> event_in_{*this};
  sim::fifo_in<qp_error> error_in_{*this};
  sim::fifo_out<qp_error> other_error_out_{*this};
  sim::fifo_out<completion::lost_completion> lost_out_{*this};
};

}  // namespace rnic::transport::random_test
