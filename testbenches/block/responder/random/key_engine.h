// SPDX-License-Identifier: Apache-2.0
// The engine that withdraws keys.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>

#include "testbenches/block/responder/random/host_memory.h"

namespace rnic::transport::random_test {

/// One withdrawal at a time, asked for by the responder (a SEND with invalidate) or by somebody else: the region is
/// closed, the responder says that it writes nothing more under the key, the operation is answered.
class key_engine final : public sim::clocked_block {
 public:
  key_engine(sim::clock_domain& d, responder& r, const behaviour& how, region_table& regions)
      : clocked_block("key_engine", d),
        how_(how),
        regions_(regions),
        requests_("key_requests", d, 2),
        answers_("key_answers", d, 2),
        revocations_("revocations", d, 2),
        revoked_("revoked", d, 2) {
    r.keys.request.bind(requests_);
    request_in_.bind(requests_);
    r.keys.response.bind(answers_);
    answer_out_.bind(answers_);
    r.keys.revoke.bind(revocations_);
    revoke_out_.bind(revocations_);
    r.keys.revoked.bind(revoked_);
    revoked_in_.bind(revoked_);
  }

  /// Others' withdrawals: cycle, key; in the order of cycles.
  std::deque<std::pair<sim::cycle_t, std::uint32_t>> withdrawals;
  journal seen;

 private:
  enum class step : std::uint8_t { idle, closed, told, done };

  void tick() override {
    if (at_ == step::idle) begin();
    if (at_ == step::closed && now() >= until_ && revoke_out_.claim()) {
      revoke_out_.push({key_});
      at_ = step::told;
    }
    if (at_ == step::told && revoked_in_.can_pop()) hear();
    if (at_ == step::done && now() >= until_ && (!asked_ || answer_out_.claim())) {
      if (asked_) answer_out_.push(answer_);
      at_ = step::idle;
    }
    if (at_ != step::idle || request_in_.can_pop()) wake_next();
    if (at_ == step::idle && !withdrawals.empty()) wake_at(std::max(now() + 1, withdrawals.front().first));
  }

  void begin() {
    region* r = nullptr;
    if (!withdrawals.empty() && withdrawals.front().first <= now()) {
      asked_ = false;
      key_ = withdrawals.front().second;
      withdrawals.pop_front();
      r = regions_.find(key_);
    } else if (request_in_.can_pop() && how_.takes(channel::keys, now())) {
      const icm::key_operation o = request_in_.pop();
      asked_ = true;
      key_ = o.key;
      answer_ = {o.tag, icm::key_status::ok};
      seen.note(now(), "invalidation: key, domain, queue pair, tag", {o.key, o.pd, o.qpn, o.tag});
      r = (key_ & 0xff) == invalidated_tag ? regions_.find(key_) : nullptr;
      if (r == nullptr || r->closed <= now()) {
        answer_.status = icm::key_status::bad_key;
        r = nullptr;
      }
    } else {
      return;
    }
    until_ = now() + how_.delay(channel::keys, begun_++);
    at_ = r == nullptr ? step::done : step::closed;
    if (r != nullptr) r->closed = std::min(r->closed, now() + 1);
  }

  void hear() {
    const std::uint32_t key = revoked_in_.pop().key;
    seen.note(now(), "revoked: key", {key});
    if (key != key_) seen.fault("the responder gives up another key than it was asked to");
    if (region* const r = regions_.find(key_)) r->revoked = std::min(r->revoked, now());
    at_ = step::done;
  }

  const behaviour& how_;
  region_table& regions_;
  sim::fifo<icm::key_operation> requests_;
  sim::fifo<icm::key_answer> answers_;
  sim::fifo<icm::key_revocation> revocations_, revoked_;
  sim::fifo_in<icm::key_operation> request_in_{*this};
  sim::fifo_out<icm::key_answer> answer_out_{*this};
  sim::fifo_out<icm::key_revocation> revoke_out_{*this};
  sim::fifo_in<icm::key_revocation> revoked_in_{*this};
  step at_ = step::idle;
  bool asked_ = false;  // by the responder
  std::uint32_t key_ = 0;
  icm::key_answer answer_;
  sim::cycle_t until_ = 0;
  std::uint64_t begun_ = 0;
};

}  // namespace rnic::transport::random_test
