// SPDX-License-Identifier: Apache-2.0
#include "testbenches/block/responder/random/firmware.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "model/transport/transport_cr.h"
#include "testbenches/block/responder/random/pools.h"

namespace rnic::transport::random_test {

void firmware::work() {
  responder& r = system_.tested.requests;
  const auto on_chip = [&] { return r.contexts().on_chip(of_->qpn); };
  switch (at_) {
    case step::idle:
      if (left_ != 0 && dice_.percent(30)) begin();
      break;
    case step::halting:
      if (is_busy()) break;
      if (has_place(system_.tested, of_->qpn)) faults_.emplace_back("a queue pair is halted and has a place on chip");
      if (on_chip()) faults_.emplace_back("a queue pair is halted and its context is on chip");
      edit();
      at_ = step::edited;
      break;
    case step::edited:
      if (on_chip()) faults_.emplace_back("the context of a halted queue pair comes on chip");
      command(step::idle, cr::qp_command_release);
      break;
    case step::halting_shared:
      r.cr_write(cr::srq_select, srqn_);
      if (r.cr_read(cr::srq_status) != 0 || !dice_.percent(30)) break;
      command_shared(cr::qp_command_release);
      at_ = step::idle;
      break;
    case step::live_command:
      if (!is_busy()) at_ = step::idle;
      break;
    case step::reset:
      if (r.cr_read(cr::reset) != 0) break;
      if (attends_to_errors(system_.tested)) faults_.emplace_back("errors of queue pairs have outlived a reset");
      at_ = step::idle;
      break;
  }
}

bool firmware::is_busy() {
  responder& r = system_.tested.requests;
  r.cr_write(cr::qp_select, of_->qpn);
  return (r.cr_read(cr::qp_status) & cr::qp_status_busy) != 0;
}

void firmware::begin() {
  --left_;
  of_ = &with_.queue_pairs[dice_.below(static_cast<std::uint32_t>(with_.queue_pairs.size()))];
  const unsigned drawn = dice_.below(12);
  if (drawn < 4) {
    discards_ = dice_.percent(50);
    command(step::halting, discards_ ? cr::qp_command_discard : cr::qp_command_halt);
  } else if (drawn < 6 && with_.last_shared() != 0) {
    srqn_ = 1 + dice_.below(with_.last_shared());
    command_shared(cr::qp_command_halt);
    at_ = step::halting_shared;
  } else if (drawn == 6) {
    command(step::live_command, cr::qp_command_publish);
  } else if (drawn == 7) {
    change(*of_);
  } else if (drawn == 8 && !was_reset_) {
    was_reset_ = true;
    system_.tested.requests.device_reset();
    at_ = step::reset;
  } else {
    post(*of_);
  }
}

void firmware::command(step next, std::uint32_t code) {
  responder& r = system_.tested.requests;
  r.cr_write(cr::qp_select, of_->qpn);
  r.cr_write(cr::qp_command, code);
  at_ = next;
}

void firmware::command_shared(std::uint32_t code) {
  system_.tested.requests.cr_write(cr::srq_select, srqn_);
  system_.tested.requests.cr_write(cr::srq_command, code);
}

/// To RTS, with the settings it had.
void firmware::change(const queue_pair& q) {
  const icm::responder_context c = with_.context_of(q);
  std::array<std::uint32_t, cr::settings_bytes / 4> words{};
  static_assert(sizeof words == sizeof c);
  std::memcpy(words.data(), &c, sizeof c);
  responder& r = system_.tested.requests;
  for (std::uint32_t i = 0; i < words.size(); ++i) r.cr_write(cr::settings + 4 * i, words[i]);
  r.cr_write(cr::change_from, 0xff);
  r.cr_write(cr::change_to, static_cast<std::uint32_t>(icm::qp_state::rts));
  command(step::live_command, cr::qp_command_change);
}

/// A receive or two more.
void firmware::post(const queue_pair& q) {
  if (!q.has_own_queue() && q.srqn == 0) return;
  std::uint8_t* const record =
      system_.memory.bytes.data() + (q.has_own_queue() ? record_at(q.index) : shared_record_at(q.srqn));
  const auto posted = static_cast<std::uint16_t>(wire::load_be32(record));
  const std::uint32_t more = q.has_own_queue() ? dice_.below(3) : 1;
  wire::store_be32(record, static_cast<std::uint16_t>(posted + more));
}

/// Nothing of a halted queue pair is on chip: firmware moves it into another state, or lets it go on.
void firmware::edit() {
  std::uint8_t* const at = system_.memory.bytes.data() + contexts_at + of_->qpn * 256 + 128;
  icm::responder_context c;
  std::memcpy(&c, at, sizeof c);
  const bool leaves = dice_.percent(33);
  if (!discards_) {
    if (leaves) c.state = icm::qp_state::error;
  } else {
    const std::uint32_t expected = c.expected_psn;
    c = with_.context_of(*of_);
    if (leaves) {
      c.state = icm::qp_state::reset;
    } else {
      c.expected_psn = expected;
      std::memset(system_.memory.bytes.data() + histories_at + of_->qpn * history_bytes, 0, history_bytes);
    }
  }
  std::memcpy(at, &c, sizeof c);
}

}  // namespace rnic::transport::random_test
