// SPDX-License-Identifier: Apache-2.0
// A small adapter-like network: two producers, a merging stage, a second clock domain behind an inbox, a slow consumer.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/sim/arbiter.h"
#include "model/sim/clock_domain.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/timebase.h"
#include "model/sim/timed_inbox.h"

namespace rnic::sim::test {

/// What was seen where and when; the time in both cycles and picoseconds.
struct record {
  std::uint64_t place, value, cycle, time;
  friend bool operator==(const record& a, const record& b) {
    return a.place == b.place && a.value == b.value && a.cycle == b.cycle && a.time == b.time;
  }
};

/// Pushes numbers at pseudo-random distances, some of them beyond the wheel of the clock domain.
class producer final : public clocked_block {
 public:
  fifo_out<std::uint64_t> out{*this};
  producer(std::string name, clock_domain& domain, std::uint64_t seed, unsigned count)
      : clocked_block(name, domain), state_(seed), left_(count) {
    wake_at(due_);
  }

 private:
  void tick() override {
    if (left_ == 0) return;
    if (due_ > now()) return wake_at(due_);
    if (!out.can_push()) return;
    out.push(state_);
    --left_;
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    const std::uint64_t r = state_ >> 33;
    due_ = now() + 1 + (r % 64 == 0 ? 5000 + r % 3000 : r % 4);
    wake_at(due_);
  }
  std::uint64_t state_;
  cycle_t due_ = 3;
  unsigned left_;
};

/// Merges its inputs fairly, works `interval` cycles on each item, sends it to another clock domain.
class merger final : public clocked_block {
 public:
  std::array<fifo_in<std::uint64_t>, 2> in{fifo_in<std::uint64_t>(*this), fifo_in<std::uint64_t>(*this)};
  merger(std::string name, clock_domain& domain, unsigned interval, time_ps flight)
      : clocked_block(name, domain), interval_(interval), flight_(flight) {}
  void bind(timed_inbox<std::uint64_t>& inbox) { inbox_ = &inbox; }

 private:
  void tick() override {
    std::uint64_t asking = 0;
    for (unsigned i = 0; i < 2; ++i)
      if (in[i].can_pop()) asking |= std::uint64_t{1} << i;
    if (asking == 0) return;
    if (now() < free_at_) return wake_at(free_at_);
    inbox_->push(in[static_cast<std::size_t>(turn_.pick(asking))].pop(), now_ps() + flight_);
    free_at_ = now() + interval_;
    wake_at(free_at_);
  }
  round_robin turn_;
  timed_inbox<std::uint64_t>* inbox_ = nullptr;
  unsigned interval_;
  time_ps flight_;
  cycle_t free_at_ = 0;
};

/// Takes from the other clock domain into a fifo.
class receiver final : public clocked_block {
 public:
  timed_inbox<std::uint64_t> inbox;
  fifo_out<std::uint64_t> out{*this};
  receiver(std::string name, clock_domain& domain, std::vector<record>& log)
      : clocked_block(name, domain), inbox(this->name() + ".inbox", *this, 4096), log_(log) {}

 private:
  void tick() override {
    if (!inbox.can_pop() || !out.can_push()) return;
    log_.push_back({1, inbox.front(), now(), now_ps()});
    out.push(inbox.pop());
  }
  std::vector<record>& log_;
};

/// Takes one item every few cycles, by the item.
class consumer final : public clocked_block {
 public:
  fifo_in<std::uint64_t> in{*this};
  consumer(std::string name, clock_domain& domain, std::vector<record>& log) : clocked_block(name, domain), log_(log) {}

 private:
  void tick() override {
    if (!in.can_pop()) return;
    if (now() < free_at_) return wake_at(free_at_);
    const std::uint64_t v = in.pop();
    log_.push_back({2, v, now(), now_ps()});
    free_at_ = now() + 1 + (v >> 40) % 7;
  }
  std::vector<record>& log_;
  cycle_t free_at_ = 0;
};

/// 427 MHz core, 322.265625 MHz port (102400/33 ps).
struct toy_network {
  std::vector<record> received, consumed;
  timebase base;
  clock_domain core;
  clock_domain port;
  fifo<std::uint64_t> a, b, c;
  producer first, second;
  merger merge;
  receiver receive;
  consumer consume;

  toy_network(const timebase::options& opts, unsigned items)
      : base(opts),
        core("core", base, clock_period::from_khz(427'000)),
        port("port", base, {102'400, 33, 0}),
        a("a", core, 2),
        b("b", core, 3, 2),
        c("c", port, 2),
        first("first", core, 1, items),
        second("second", core, 2, items),
        merge("merge", core, 3, 5'000),
        receive("receive", port, received),
        consume("consume", port, consumed) {
    received.reserve(std::size_t{2} * items);
    consumed.reserve(std::size_t{2} * items);
    first.out.bind(a);
    second.out.bind(b);
    merge.in[0].bind(a);
    merge.in[1].bind(b);
    merge.bind(receive.inbox);
    receive.out.bind(c);
    consume.in.bind(c);
  }
};

}  // namespace rnic::sim::test
