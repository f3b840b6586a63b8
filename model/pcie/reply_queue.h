// SPDX-License-Identifier: Apache-2.0
// The endpoint's answers to the host's requests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "model/payload/tlp.h"
#include "model/pcie/transmit_path.h"
#include "model/sim/clocked_block.h"
#include "model/sim/ring.h"

namespace rnic::pcie {

/// Completions in the order of their requests, each not before its latency is over, one a cycle. As many places as the
/// host has credits for requests that are answered.
class reply_queue {
 public:
  reply_queue(sim::clocked_block& owner, std::size_t places, payload::tlp_pool& pool, transmit_path& path)
      : owner_(owner), pool_(pool), path_(path), replies_(places) {}

  bool full() const { return replies_.full(); }
  bool empty() const { return replies_.empty(); }
  /// Puts a completion without data into the queue, which may leave after `cycles`; the caller may add data to it.
  payload::tlp_ptr put(const payload::tlp& request, payload::tlp_status status, std::uint16_t completer,
                       unsigned cycles) {
    payload::tlp_ptr t = pool_.get();
    t->type = payload::tlp_type::completion;
    t->status = status;
    t->requester = request.requester;
    t->completer = completer;
    t->tag = request.tag;
    t->address = request.address & 0x7f;  // lower address field
    t->byte_count = 4;
    sim::cycle_t ready = owner_.now() + cycles;
    if (!replies_.empty()) ready = std::max(ready, replies_.back().ready);
    replies_.push({t, ready});
    owner_.wake_at(ready);
    return t;
  }
  /// Sends the first one if its time has come and the link takes it.
  bool send() {
    pending& r = replies_.front();
    if (r.ready > owner_.now()) {
      owner_.wake_at(r.ready);
      return false;
    }
    if (!path_.can_send(credit_class::completion, r.packet->length)) return false;
    path_.send_reply(std::move(r.packet));
    replies_.drop();
    owner_.wake_next();
    return true;
  }

 private:
  struct pending {
    payload::tlp_ptr packet;
    sim::cycle_t ready = 0;
  };
  sim::clocked_block& owner_;
  payload::tlp_pool& pool_;
  transmit_path& path_;
  sim::ring<pending> replies_;
};

}  // namespace rnic::pcie
