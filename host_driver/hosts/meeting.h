// SPDX-License-Identifier: Apache-2.0
// Where programs of several hosts wait for each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <systemc>

#include "model/sim/check.h"

namespace rnic::hosts {

/// A barrier, for SC_THREADs; again and again.
class meeting {
 public:
  /// Returns when `hosts` of them have arrived.
  void arrive(std::size_t hosts) {
    if (!sc_core::sc_is_running()) throw sim::config_error("meet: only the programs of a run meet");
    const std::uint64_t round = round_;
    if (++here_ == hosts) {
      here_ = 0;
      ++round_;
      all_.notify(sc_core::SC_ZERO_TIME);
      return;
    }
    while (round_ == round) sc_core::wait(all_);
  }

 private:
  sc_core::sc_event all_{sc_core::sc_gen_unique_name("all")};
  std::size_t here_ = 0;
  std::uint64_t round_ = 0;
};

}  // namespace rnic::hosts
