// SPDX-License-Identifier: Apache-2.0
// The list of pages of a fast registration, copied from a work request's memory into the translations in ICM.
#pragma once

#include <cstdint>
#include <vector>

#include "model/icm/key_memory.h"
#include "model/icm/key_operation_if.h"
#include "model/icm/key_tables.h"

namespace rnic::icm {

/// Data sheet. Part of the engine of keys.
///
/// A piece at a time, of at most `entries` pages and within a page of ICM: a read of the list, then a write of what
/// came. The cycles that a piece takes between the two are the engine's (`page_cycles`).
///
/// Memory: a piece, `entries` x 8 bytes, written and read by the DMA engine.
///
/// Stalls: those of key_memory, whose one request at a time a piece's read and write are.
class page_list {
 public:
  page_list(key_memory& memory, const key_tables_if& tables, unsigned entries);

  /// Of `operation`, to the translations from `mtt_address` on.
  void begin(const key_operation& operation, std::uint64_t mtt_address);
  bool copied() const { return done_ == total_; }
  std::uint64_t pages() const { return total_; }
  std::uint64_t pages_of_piece() const { return piece_; }

  key_memory::result read_piece();
  /// failed: there is no memory for it.
  key_memory::result write_piece();
  void piece_written() { done_ += piece_; }

 private:
  key_memory& memory_;
  const key_tables_if& tables_;
  unsigned entries_;
  std::uint64_t from_ = 0, to_ = 0;  // list, and first entry of the translations
  std::uint16_t function_ = 0;
  std::uint64_t done_ = 0, total_ = 0, piece_ = 0;  // pages
  std::vector<std::uint8_t> bytes_;
};

}  // namespace rnic::icm
