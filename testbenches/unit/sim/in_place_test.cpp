// SPDX-License-Identifier: Apache-2.0
// fifo::push_made: what is written in a slot's place is an item like any other.
#include <gtest/gtest.h>

#include <array>
#include <systemc>
#include <vector>

#include "model/sim/fifo.h"
#include "model/sim/timebase.h"

namespace rnic::sim::test {
namespace {

struct parcel {
  unsigned number = 0;
  std::array<unsigned, 16> bulk{};
};

/// Pushes a parcel at each edge from 1 on, the odd ones in their place, and notes what was there before.
class packer final : public clocked_block {
 public:
  fifo_out<parcel> out{*this};
  std::vector<unsigned> before;
  explicit packer(clock_domain& domain) : clocked_block("packer", domain) { wake_at(1); }

 private:
  void tick() override {
    if (next_ == 8) return;
    if (!out.claim()) return;
    ++next_;
    if (next_ % 2 == 0) {
      out.push({next_, {}});
    } else {
      out.push_made([this](parcel& p) {
        before.push_back(p.number);
        p.number = next_;
      });
    }
    wake_next();
  }
  unsigned next_ = 0;
};

class opener final : public clocked_block {
 public:
  fifo_in<parcel> in{*this};
  std::vector<unsigned> numbers;
  std::vector<cycle_t> at;
  explicit opener(clock_domain& domain) : clocked_block("opener", domain) {}

 private:
  void tick() override {
    if (!in.can_pop()) return;
    numbers.push_back(in.front().number);
    at.push_back(now());
    in.drop();
  }
};

TEST(PushMade, InOrderWithOthersAtTheSameCycles) {
  timebase base;
  clock_domain domain{"d", base, {1000, 1, 0}};
  fifo<parcel> channel("channel", domain, 4);
  packer from(domain);
  opener to(domain);
  from.out.bind(channel);
  to.in.bind(channel);
  sc_core::sc_start(sc_core::sc_time::from_value(20000));
  EXPECT_EQ(to.numbers, (std::vector<unsigned>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(to.at, (std::vector<cycle_t>{2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(channel.used().pushes, 8u);
  EXPECT_EQ(from.before, (std::vector<unsigned>{0, 0, 1, 3}));  // four slots, taken in turn: those of 1, 3, 5 and 7
}

TEST(PushMade, IntoAFullChannelMakesNothing) {
  timebase base;
  clock_domain domain{"d", base, {1000, 1, 0}};
  fifo<parcel> channel("channel", domain, 1);
  unsigned made = 0;
  domain.as_in_tick([&] { channel.push_made([&](parcel&) { ++made; }); });
  EXPECT_THROW(domain.as_in_tick([&] { channel.push_made([&](parcel&) { ++made; }); }), invariant_error);
  EXPECT_EQ(made, 1u);
}

}  // namespace
}  // namespace rnic::sim::test
