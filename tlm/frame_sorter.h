// SPDX-License-Identifier: Apache-2.0
// Frames of both directions of a cable put in order of time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/payload/frame.h"

namespace rnic::tlm {

/// The two sides tell their frames a little out of order, in an order that depends on nothing real, so frames wait
/// until they are older than `reorder_ps`, and leave by time, and at the same time by direction, `from`.
class frame_sorter {
 public:
  struct record {
    sim::time_ps at = 0;  ///< first bit
    unsigned from = 0;
    std::uint64_t number = 0;  ///< order of arrival, the last tie-break
    std::vector<std::uint8_t> bytes;
    std::string comment;
  };

  explicit frame_sorter(sim::time_ps reorder_ps) : reorder_ps_(reorder_ps) {
    pending_.reserve(expected_pending);
    free_.reserve(expected_pending);
  }

  /// With its FCS at the end if `fcs`. Hands frames that are old enough to `write(const record&)`.
  template <typename Write>
  void add(const payload::frame& f, unsigned from, sim::time_ps at, bool fcs, Write&& write) {
    keep(f, from, at, fcs);
    flush_old(at, write);
  }

  /// The same, and hands over nothing. Its comment, which is that of an earlier one, is to be set.
  record& keep(const payload::frame& f, unsigned from, sim::time_ps at, bool fcs) {
    std::unique_ptr<record> r;
    if (free_.empty()) {
      r = std::make_unique<record>();
    } else {
      r = std::move(free_.back());
      free_.pop_back();
    }
    record& kept = *r;
    r->at = at;
    r->from = from;
    r->number = frames_++;
    r->bytes.assign(f.data(), f.data() + f.length);
    if (fcs)
      for (unsigned bit = 0; bit < 32; bit += 8) r->bytes.push_back(static_cast<std::uint8_t>(f.fcs >> bit));
    pending_.push_back(std::move(r));
    std::push_heap(pending_.begin(), pending_.end(), later);
    return kept;
  }

  /// A frame that comes now begins at `at`: those that no later one can precede are handed over.
  template <typename Write>
  void flush_old(sim::time_ps at, Write&& write) {
    if (at > reorder_ps_) flush_before(at - reorder_ps_, write);
  }

  template <typename Write>
  void flush_before(sim::time_ps limit, Write&& write) {
    while (!pending_.empty() && pending_.front()->at < limit) {
      std::pop_heap(pending_.begin(), pending_.end(), later);
      write(static_cast<const record&>(*pending_.back()));
      free_.push_back(std::move(pending_.back()));
      pending_.pop_back();
    }
  }

  const std::uint64_t& frames() const { return frames_; }

 private:
  static constexpr std::size_t expected_pending = 512;
  static bool later(const std::unique_ptr<record>& a, const std::unique_ptr<record>& b) {
    if (a->at != b->at) return a->at > b->at;
    if (a->from != b->from) return a->from > b->from;
    return a->number > b->number;
  }

  sim::time_ps reorder_ps_;
  std::vector<std::unique_ptr<record>> pending_;  // heap, the earliest on top
  std::vector<std::unique_ptr<record>> free_;
  std::uint64_t frames_ = 0;
};

/// How simulated time is written in a file: the moment `at` has the time `ns`, and before it time stops.
struct file_clock {
  sim::time_ps at = 0;
  std::uint64_t ns = 0;
  std::uint64_t of(sim::time_ps t) const { return ns + (t > at ? (t - at) / sim::ps_per_ns : 0); }
};

}  // namespace rnic::tlm
