// SPDX-License-Identifier: Apache-2.0
// Frames and bytes by the counter index that software has put into its queue pairs' contexts.
#pragma once

#include <array>
#include <cstdint>

#include "model/register_bus/cr_space.h"
#include "model/register_bus/reset_if.h"

namespace rnic::transport {

/// A memory of 256 entries, with one writer that counts a frame a cycle at most.
class traffic_table {
 public:
  struct entry {
    std::uint64_t frames = 0, bytes = 0;
  };
  static constexpr unsigned entries = 256;
  /// `bytes`: of a frame without its FCS.
  void add(std::uint8_t counter, std::uint32_t bytes) {
    entry& e = table_[counter];
    ++e.frames;
    e.bytes += bytes;
  }
  const entry& operator[](unsigned counter) const { return table_[counter]; }
  void clear() { table_.fill({}); }

 private:
  std::array<entry, entries> table_{};
};

/// Data sheet. What QUERY_IF_STAT tells (adapter control plane 10.1): a memory for each place where frames of queue
/// pairs leave or are taken, whatever way they go: gather (requests and plain frames), answer transmit (responses and
/// acknowledgements), completer (both of them, received), responder (requests and plain frames, received). A frame is
/// counted when it goes into the transmit pipeline, or when it has been found to be one for its queue pair; those that
/// are sent again, or received again, once more. CNPs and pauses are nobody's.
///
/// Registers, read only, at cr_base::traffic: 32 bytes for each counter, rx frames, rx bytes, tx frames and tx bytes
/// of 64 bits, high word first. A reset of the device clears them.
class traffic_counters : public register_bus::cr_target_if, public register_bus::reset_target_if {
 public:
  traffic_table requests_sent, answers_sent, answers_received, requests_received;

  std::uint32_t cr_read(std::uint32_t offset) override {
    constexpr std::uint32_t bytes_each = 32;
    if (offset >= traffic_table::entries * bytes_each) return 0;
    const unsigned counter = offset / bytes_each, word = offset % bytes_each / 4;
    const bool sends = word >= 4, in_bytes = (word & 2) != 0;
    const traffic_table::entry& one = (sends ? requests_sent : requests_received)[counter];
    const traffic_table::entry& other = (sends ? answers_sent : answers_received)[counter];
    const std::uint64_t sum = in_bytes ? one.bytes + other.bytes : one.frames + other.frames;
    return static_cast<std::uint32_t>((word & 1) == 0 ? sum >> 32 : sum);
  }
  void cr_write(std::uint32_t, std::uint32_t) override {}
  void device_reset() override {
    for (traffic_table* t : {&requests_sent, &answers_sent, &answers_received, &requests_received}) t->clear();
  }
};

}  // namespace rnic::transport
