// SPDX-License-Identifier: Apache-2.0
// Answers of address translation on their way to the clients.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/icm/translation_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/seldom.h"

namespace rnic::icm {

/// Data sheet. Part of address translation.
///
/// An answer is with its client `translate_cycles` after the look-up that completed it: the channel is the end of the
/// pipeline, and the request's place is free at once. Where the channel is full, or others of the client wait already,
/// it waits in its place, in order; then it is at most one a client and cycle.
///
/// Memory: a queue of places a client, and the answers in them.
///
/// Stalls: the client takes no answers.
///
/// Counters: refused.
class translation_answers {
 public:
  translation_answers(sim::clocked_block& owner, std::vector<sim::fifo_out<translate_response>>& out, unsigned clients,
                      unsigned places, unsigned cycles, std::uint64_t& refused)
      : owner_(owner), out_(out), cycles_(cycles), refused_(refused), queues_(clients), waiting_(places) {}

  /// The request in place `index` is answered. True: its place is free.
  bool answer(unsigned client, unsigned index, const translate_response& response);
  /// To be called first in each tick. Places that are free now, a mask.
  std::uint64_t deliver() { return answering_ == 0 ? 0 : deliver_waiting(); }
  /// Edge at which the last answer that did not wait is there.
  sim::cycle_t last_at() const { return last_at_; }

 private:
  struct queue {
    std::array<std::uint8_t, 64> places;
    unsigned head = 0, count = 0;
  };
  struct waiting {
    translate_response response;
    sim::cycle_t ready = 0;
  };
  std::uint64_t deliver_waiting();
  void count(const translate_response& r) {
    if (sim::seldom(r.status != translate_status::ok)) ++refused_;
  }

  sim::clocked_block& owner_;
  std::vector<sim::fifo_out<translate_response>>& out_;
  const unsigned cycles_;
  std::uint64_t& refused_;
  std::vector<queue> queues_;     // by client
  std::vector<waiting> waiting_;  // by place
  std::uint64_t answering_ = 0;   // mask of clients with answers that wait
  sim::cycle_t last_at_ = 0;
};

}  // namespace rnic::icm
