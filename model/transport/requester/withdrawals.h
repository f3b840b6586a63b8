// SPDX-License-Identifier: Apache-2.0
// Memory on chip: which packets of a queue pair, started and not gathered yet, will not leave.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "model/sim/clocked_block.h"
#include "model/sim/types.h"

namespace rnic::transport {

/// An entry a queue pair: the packets that have a number below `complete`, whose messages have ended, and those in
/// [first, behind), which a failure or error has called back. Packets of all queue pairs are numbered as they are
/// started. Written by go-back, which owns the memory and counts its writes (`withdrawal_ports` a cycle);
/// gather has three ports to read (what asks for addresses, what reads, what leaves) and sees what was written a cycle
/// later. A write ticks gather, since a packet may be waiting for what it needs no more.
class withdrawals {
 public:
  struct range {
    std::uint64_t first = 0, behind = 0;  ///< called back; none where they are equal
    std::uint64_t complete = 0;
  };

  explicit withdrawals(unsigned log_qps) : mask_((1u << log_qps) - 1), pages_((std::size_t{1} << log_qps) / page) {}

  // ---- go-back's port
  /// Adds to what was withdrawn before. Of what was called back before, all is kept where both are one range.
  void write(std::uint32_t qpn, const range& more, sim::cycle_t now) {
    auto& p = pages_[(qpn & mask_) / page];
    if (!p) p = std::make_unique<std::array<entry, page>>();
    entry& e = (*p)[qpn % page];
    if (e.at != now) e.old = e.value;
    e.at = now;
    e.value.complete = std::max(e.value.complete, more.complete);
    if (more.first != more.behind) {
      if (more.first < e.value.first || more.first > e.value.behind) e.value.first = more.first;
      e.value.behind = more.behind;
    }
    if (reader_ != nullptr) reader_->wake_at(now + 1);
  }

  // ---- gather's ports
  void bind_reader(sim::clocked_block& reader) { reader_ = &reader; }
  bool read(std::uint32_t qpn, std::uint64_t number, sim::cycle_t now) const {
    const auto& p = pages_[(qpn & mask_) / page];
    if (!p) return false;
    const entry& e = (*p)[qpn % page];
    const range& r = e.at < now ? e.value : e.old;
    return number < r.complete || (number >= r.first && number < r.behind);
  }

 private:
  static constexpr std::uint32_t page = 256;
  struct entry {
    range value, old;
    sim::cycle_t at = sim::never;  // of the last write
  };
  std::uint32_t mask_;
  std::vector<std::unique_ptr<std::array<entry, page>>> pages_;
  sim::clocked_block* reader_ = nullptr;
};

}  // namespace rnic::transport
