// SPDX-License-Identifier: Apache-2.0
// What firmware's registers do with a translation (model/icm/icm_cr.h).
#pragma once

#include <cstdint>

namespace rnic::icm {

struct translation_statistics {
  std::uint64_t requests = 0, mpt_hits = 0, mpt_misses = 0, mtt_hits = 0, mtt_misses = 0;
  std::uint64_t merged = 0;   ///< requests that joined a fetch under way
  std::uint64_t refused = 0;  ///< answers with another status than ok
  std::uint64_t stale = 0;    ///< fetches not used because of a drop
};

/// Register side, between two edges. Fetches under way when something is dropped are not kept and not used: who waits
/// for one fetches again.
class translation_control_if {
 public:
  virtual ~translation_control_if() = default;
  /// Forgets an MPT (index modulo the table),
  virtual void drop_mpt(std::uint32_t index) = 0;
  /// a range of MTT entries,
  virtual void drop_mtt(std::uint64_t mtt_address, std::uint64_t entries) = 0;
  /// everything.
  virtual void drop_all() = 0;
  /// Takes a window off its region: firmware has taken back the window's entry.
  virtual void release_window(std::uint32_t index) = 0;
  /// All holders of the key let it go.
  virtual void revoke_key(std::uint32_t key) = 0;
  /// A request taken before the last drop has not been answered, or an operation on a key not ended.
  virtual bool busy() const = 0;
  /// Hits, misses and refusals are read by firmware.
  virtual const translation_statistics& counters() const = 0;
};

}  // namespace rnic::icm
