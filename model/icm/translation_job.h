// SPDX-License-Identifier: Apache-2.0
// A request inside the block of address translation, and what is fetched for it.
#pragma once

#include <array>
#include <cstdint>

#include "model/icm/mpt.h"
#include "model/icm/translation_if.h"
#include "model/sim/types.h"

namespace rnic::icm {

/// How far a request came in its cycle of look-up.
enum class translation_step : std::uint8_t {
  done,
  waits,    ///< for a fetch
  blocked,  ///< a fetch cannot begin
  again     ///< in the next cycle
};

/// What is being fetched: an entry of the protection table or a line of translations.
struct translation_fetch {
  std::array<std::uint8_t, 64> data;
  bool active = false, mpt = false, stale = false, arrived = false, failed = false;
  std::uint64_t line = 0;     ///< MPT index or MTT line number
  std::uint64_t waiters = 0;  ///< mask of jobs
  sim::cycle_t usable = 0;
};

/// Registers of one request.
struct translation_job {
  struct page_part {
    std::uint64_t index = 0;  ///< of the MTT entry, from the table's start
    std::uint64_t entry = 0;
    std::uint64_t offset = 0;  ///< in the page
    bool resolved = false;
  };
  // What each job uses comes first, where an address takes one byte of an instruction.
  unsigned client = 0;
  std::uint32_t key = 0;  ///< being looked up: the request's, or that of the region below a window
  bool through_window = false;
  bool have_mpt = false;  ///< `mpt` came with a fetch for this job
  bool pages_known = false;
  std::uint8_t log_page = 12;
  unsigned fetches = 0;  ///< this job waits for
  std::uint64_t sequence = 0;
  translate_request request;
  std::array<page_part, 2> pages;
  translate_response answer;
  mpt_entry mpt;

  /// Takes what was fetched at once, so that the line's replacement by another fetch cannot starve the job.
  void take(const translation_fetch& f, unsigned log_line);
  /// `offset` from the page of the MTT entry at `mtt_address` on: which pages it is, one or two.
  void split(std::uint64_t mtt_address, std::uint64_t offset);
  /// Addresses are those of the bus, of which there are none behind the last.
  void answer_contiguous();
  /// All entries are there.
  void answer_pages();
};

}  // namespace rnic::icm
