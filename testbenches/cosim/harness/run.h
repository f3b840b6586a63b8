// SPDX-License-Identifier: Apache-2.0
// A block by itself: a driver's stimuli through model and RTL.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "rtl/harness/lockstep.h"

namespace rnic::cosim {

struct outcome {
  std::optional<rtl::difference> first_difference;
  std::uint64_t cycles = 0;
  bool finished = false;  ///< the driver says that everything went in and came out
};

/// Runs `drive` through a new reference and the RTL of `make` (the same each time), up to the first difference or
/// `max_cycles`. `name`: of the waveform. A driver has next() (the inputs of a cycle), finish(inputs, outputs) (what an
/// oracle complains of, nullopt: nothing) and done().
template <class Pins, class Driver>
outcome run_lockstep(Driver drive, rtl::twin_ptr<Pins> reference, const typename rtl::lockstep<Pins>::factory& make,
                     const std::string& name, std::uint64_t max_cycles = 2'000'000) {
  rtl::lockstep<Pins> both(name, std::move(reference), make);
  outcome result;
  try {
    while (!drive.done() && result.cycles < max_cycles) {
      ++result.cycles;
      const typename Pins::inputs in = drive.next();
      const typename Pins::outputs out = both.clock(in);
      if (const std::optional<std::string> wrong = drive.finish(in, out)) both.fail_at("oracle: " + *wrong, 0, 0);
    }
    result.finished = drive.done();
  } catch (const rtl::difference& d) {
    result.first_difference = d;
  }
  return result;
}

}  // namespace rnic::cosim
