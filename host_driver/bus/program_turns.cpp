// SPDX-License-Identifier: Apache-2.0
#include "host_driver/bus/program_turns.h"

#include <algorithm>
#include <utility>

namespace rnic::host_driver {

namespace {

constexpr std::uint64_t behind_all = std::uint64_t{1} << 63;

sim::time_ps kernel_time() { return sc_core::sc_time_stamp().value(); }

}  // namespace

void program_turns::alarm::ring(sim::timebase& base, sim::time_ps when) {
  when = std::max(when, base.now_ps());
  bool in_kernel = waiting_.empty();
  for (turn* t : waiting_) {
    t->due_ = std::min(t->due_, when);
    if (t->goes_on_ != nullptr)
      base.apart().due(t->among_.partition_, when);
    else
      in_kernel = true;
  }
  if (in_kernel) base.notify(event_, when);
}

program_turns::turn::turn(program_turns& among, alarm* until_rung, rank r)
    : among_(among),
      alarm_(until_rung),
      number_(among.begun_++ | (r == rank::visitor ? behind_all : 0)),
      place_(among.waiting_.size()) {
  among.waiting_.push_back(this);
  if (alarm_ != nullptr) alarm_->waiting_.push_back(this);
}

program_turns::turn::~turn() {
  std::vector<turn*>& all = among_.waiting_;
  all[place_] = all.back();
  all[place_]->place_ = place_;
  all.pop_back();
  if (alarm_ == nullptr) return;
  std::vector<turn*>& same = alarm_->waiting_;
  same.erase(std::find(same.begin(), same.end(), this));
}

bool program_turns::is_first(const turn& t, sim::time_ps now) const {
  return std::none_of(waiting_.begin(), waiting_.end(),
                      [&](const turn* other) { return other->number_ < t.number_ && other->due_ <= now; });
}

sim::time_ps program_turns::go_on(sim::time_ps now) {
  const turn* first = nullptr;
  sim::time_ps next = no_time;
  for (const turn* t : waiting_) {
    if (t->goes_on_ == nullptr) continue;
    const bool before = t->due_ <= now && (first == nullptr || t->number_ < first->number_);
    if (const turn* later = before ? std::exchange(first, t) : t; later != nullptr)
      next = std::min(next, std::max(later->due_, now));
  }
  if (first != nullptr) first->goes_on_->notify();
  return next;
}

void program_turns::turn::wait(sim::time_ps until) {
  due_ = until;
  if (const sim::time_ps now = among_.base_.now_ps(); among_.base_.apart().keep_programs()) {
    if (due_ > now || !among_.is_first(*this, now)) wait_apart(std::max(due_, now));
  } else {
    if (due_ > kernel_time()) wait_in_kernel();
    while (!among_.is_first(*this, kernel_time())) sc_core::wait(sc_core::SC_ZERO_TIME);
  }
  due_ = no_time;
}

/// It goes on as the first of those that are due.
void program_turns::turn::wait_apart(sim::time_ps until) {
  if (among_.unused_.empty()) {
    among_.events_.push_back(std::make_unique<sc_core::sc_event>());
    among_.unused_.push_back(among_.events_.back().get());
  }
  goes_on_ = among_.unused_.back();
  among_.unused_.pop_back();
  among_.base_.apart().due(among_.partition_, until);
  sc_core::wait(*goes_on_);
  among_.base_.apart().resumed(among_.partition_);
  among_.unused_.push_back(goes_on_);
  goes_on_ = nullptr;
}

/// The kernel keeps the record of a time-out until its time comes, also when the event was first. So a long patience is
/// cut into pieces, each four times as long as the one before: a million commands must not leave a million records.
void program_turns::turn::wait_in_kernel() {
  constexpr sim::time_ps first_piece = sim::ps_per_us;
  for (sim::time_ps piece = first_piece; due_ > kernel_time(); piece *= 4) {
    const sim::time_ps rest = due_ - kernel_time();
    if (alarm_ == nullptr)
      sc_core::wait(sc_core::sc_time::from_value(rest));
    else if (due_ == no_time)
      sc_core::wait(alarm_->event_);
    else
      sc_core::wait(sc_core::sc_time::from_value(std::min(piece, rest)), alarm_->event_);
  }
}

}  // namespace rnic::host_driver
