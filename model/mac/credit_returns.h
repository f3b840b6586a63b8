// SPDX-License-Identifier: Apache-2.0
// Credits that go back to those who send: for each frame that leaves a queue of the port.
#pragma once

#include <array>
#include <cstdint>

#include "model/mac/egress.h"
#include "model/payload/frame.h"
#include "model/sim/fifo.h"
#include "model/transport/transport_if.h"

namespace rnic::mac {

/// By transport::egress_source; those of sources that do not exist stay unbound.
using credit_ports = std::array<sim::fifo_out<transport::egress_credit>, 2>;

inline constexpr std::uint8_t no_source = 0xff;  ///< of a frame without a credit

class credit_returns {
 public:
  credit_returns(const credit_ports& ports, std::uint8_t port) : ports_(ports), port_(port) {}

  /// Those of `priorities` whose first frame's credit can be given back now; asking books a wake-up for the others.
  std::uint8_t with_room(const egress& queues, std::uint8_t priorities) const {
    unsigned ready = 0;
    for (unsigned left = priorities; left != 0; left &= left - 1) {
      const auto p = static_cast<unsigned>(__builtin_ctz(left));
      const std::uint8_t source = queues.head(p).frame->source;
      if (!takes(source) || ports_[source].claim()) ready |= 1u << p;
    }
    return static_cast<std::uint8_t>(ready);
  }
  /// The frame leaves its queue, in a cycle in which with_room() said so.
  void give_back(const payload::frame& f) const {
    if (takes(f.source)) ports_[f.source].push({port_, static_cast<std::uint8_t>(f.priority & 7u)});
  }

 private:
  bool takes(std::uint8_t source) const { return source < ports_.size() && ports_[source].bound(); }

  const credit_ports& ports_;
  std::uint8_t port_;
};

}  // namespace rnic::mac
