// SPDX-License-Identifier: Apache-2.0
// Where the entries of completion and event queues are in host memory: the last translated page of each queue.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/icm/translation_if.h"
#include "model/sim/clocked_block.h"

namespace rnic::completion {

/// Small direct-mapped memory of one 4 KiB page per queue, so that a queue in steady use asks the translation only
/// when it goes to its next page. Part of the completion block.
class buffer_pages {
 public:
  enum class queue : std::uint8_t { cq, eq };
  enum class result : std::uint8_t { known, pending, failed };

  /// `entries` (a power of two) pages remembered, at most 64 translations asked for at once.
  buffer_pages(sim::clocked_block& owner, unsigned entries) : port(owner), pages_(entries) {}

  icm::translate_port port;

  /// Takes finished translations; first in each tick of the owner.
  void service();
  /// Bus address of byte `offset` of the buffer at `mtt_address`. pending: asked for, the owner is ticked when the
  /// answer is there and asks again. failed: not mapped; reported once, the next call asks again, but for
  /// keep_failed().
  result address(queue q, std::uint32_t number, std::uint64_t mtt_address, std::uint8_t log_page, std::uint64_t offset,
                 std::uint16_t function, std::uint64_t& bus);
  /// Who was told that it failed could not go on for that: the next call is told the same.
  void keep_failed(queue q, std::uint32_t number) { entry(key_of(q, number)).valid = true; }
  /// Forgets the queue's page; a translation under way is not used.
  void forget(queue q, std::uint32_t number);
  void forget_all();

 private:
  struct page {
    bool valid = false;
    bool failed = false;
    std::uint64_t key = 0;
    std::uint64_t number = 0;  // of the 4 KiB page in the buffer
    std::uint64_t bus = 0;
  };
  struct request {
    bool active = false;
    bool stale = false;
    std::uint64_t key = 0;
    std::uint64_t number = 0;
  };
  static std::uint64_t key_of(queue q, std::uint32_t number) {
    return std::uint64_t{number} << 1 | (q == queue::eq ? 1 : 0);
  }
  page& entry(std::uint64_t key) { return pages_[(key ^ key >> 9) & (pages_.size() - 1)]; }

  std::vector<page> pages_;
  std::array<request, 64> requests_{};
};

}  // namespace rnic::completion
