// SPDX-License-Identifier: Apache-2.0
// Who has an answer to hand over to answer_transmit.
#pragma once

#include <cstdint>
#include <vector>

#include "model/sim/arbiter.h"
#include "model/transport/responder/answer_port.h"

namespace rnic::transport {

/// Queue pairs (by their place on chip) that have an answer ready, in a line by the port and priority that it leaves
/// by: first come, first served within a line, in turn among those lines that answer_transmit has a place for. So one
/// that waits for its port is in nobody's way. Memory: a link a place; head and tail of each line are registers.
class answer_lines {
 public:
  static constexpr unsigned ports = 2, priorities = 8;
  static constexpr std::uint16_t none = 0xffff;

  explicit answer_lines(unsigned places) : next_(places, none) {}

  bool empty() const { return waiting_ == 0; }
  /// To the end of its line. It must not stand in one.
  void put(std::uint16_t place, const icm::path& path) {
    const unsigned l = (path.port & 1) * priorities + (path.priority & 7);
    next_[place] = none;
    ((waiting_ >> l & 1) == 0 ? lines_[l].head : next_[lines_[l].tail]) = place;
    lines_[l].tail = place;
    waiting_ |= std::uint64_t{1} << l;
  }
  /// Takes out the one whose turn it is; `none` without a place for any. The owner of `out` is ticked when that may
  /// have changed.
  std::uint16_t take(answer_port& out) {
    std::uint64_t able = 0;
    for (std::uint64_t left = waiting_; left != 0; left &= left - 1) {
      const auto l = static_cast<unsigned>(__builtin_ctzll(left));
      if (out.claim(l / priorities, l % priorities)) able |= std::uint64_t{1} << l;
    }
    if (able == 0) return none;
    const auto l = static_cast<unsigned>(turn_.pick(able));
    const std::uint16_t place = lines_[l].head;
    lines_[l].head = next_[place];
    if (place == lines_[l].tail) waiting_ &= ~(std::uint64_t{1} << l);
    return place;
  }

 private:
  struct line {
    std::uint16_t head = none, tail = none;
  };
  std::vector<std::uint16_t> next_;
  line lines_[ports * priorities];
  std::uint64_t waiting_ = 0;  // lines that somebody stands in
  sim::round_robin turn_;
};

}  // namespace rnic::transport
