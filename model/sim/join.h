// SPDX-License-Identifier: Apache-2.0
// Several channels into one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/sim/arbiter.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"

namespace rnic::sim {

/// Takes one item a cycle from its inputs, round robin, as long as the output has room.
template <class T>
class join final : public clocked_block {
 public:
  join(std::string name, clock_domain& domain, unsigned inputs) : clocked_block(std::move(name), domain) {
    for (unsigned i = 0; i < inputs; ++i) in.emplace_back(*this);
  }
  std::vector<fifo_in<T>> in;
  fifo_out<T> out{*this};

 private:
  void tick() override {
    std::uint64_t waiting = 0;
    for (unsigned i = 0; i < in.size(); ++i)
      if (in[i].bound() && in[i].can_pop()) waiting |= std::uint64_t{1} << i;
    if (waiting == 0 || !out.can_push()) return;
    out.push(in[static_cast<unsigned>(turn_.pick(waiting))].pop());
    if ((waiting & (waiting - 1)) != 0) wake_next();
  }
  round_robin turn_;
};

}  // namespace rnic::sim
