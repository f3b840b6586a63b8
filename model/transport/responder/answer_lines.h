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
/// that waits for its port is in nobody's way. Memory: a place's line and its links to both sides, so that one leaves
/// from the middle in a cycle; head and tail of each line are registers.
class answer_lines {
 public:
  static constexpr unsigned ports = 2, priorities = 8;
  static constexpr std::uint16_t none = 0xffff;

  explicit answer_lines(unsigned places) : links_(places) {}

  bool empty() const { return waiting_ == 0; }
  /// To the end of its line. It must not stand in one.
  void put(std::uint16_t place, const icm::path& path) {
    const unsigned l = line_of(path);
    line& to = lines_[l];
    const bool first = (waiting_ >> l & 1) == 0;
    links_[place] = {none, first ? none : to.tail, static_cast<std::uint8_t>(l)};
    (first ? to.head : links_[to.tail].next) = place;
    to.tail = place;
    waiting_ |= std::uint64_t{1} << l;
  }
  /// Out of the line that it stands in.
  void remove(std::uint16_t place) {
    const link& x = links_[place];
    line& from = lines_[x.line];
    if (x.next == none && x.previous == none) waiting_ &= ~(std::uint64_t{1} << x.line);
    (x.previous == none ? from.head : links_[x.previous].next) = x.next;
    (x.next == none ? from.tail : links_[x.next].previous) = x.previous;
  }
  /// Whether the line that it stands in, or was taken out of last, is the one of this path.
  bool is_line(std::uint16_t place, const icm::path& path) const { return links_[place].line == line_of(path); }
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
    remove(place);
    return place;
  }

 private:
  struct line {
    std::uint16_t head = none, tail = none;
  };
  struct link {
    std::uint16_t next = none, previous = none;
    std::uint8_t line = 0;
  };
  static unsigned line_of(const icm::path& path) { return (path.port & 1) * priorities + (path.priority & 7); }
  std::vector<link> links_;
  line lines_[ports * priorities];
  std::uint64_t waiting_ = 0;  // lines that somebody stands in
  sim::round_robin turn_;
};

}  // namespace rnic::transport
