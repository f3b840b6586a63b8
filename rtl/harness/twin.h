// SPDX-License-Identifier: Apache-2.0
// A block cycle by cycle, whoever it is made of: what lockstep drives and compares.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace rnic::rtl {

/// When the cycle that is clocked next begins, in which its inputs are there, when the clock falls in it, and when it
/// rises at its end, from which on registers have their new values. Never decreases.
struct cycle_times {
  std::uint64_t begin = 0, fall = 0, end = 0;
};

/// What can write a waveform of itself.
class traceable {
 public:
  virtual ~traceable() = default;
  /// Writes the waveform of the following cycles to `path` (FST) until stop_trace() or destruction; false when the file
  /// cannot be written, or when there is none to be had. Without `times` time counts evaluations, two a cycle.
  virtual bool start_trace(const std::string& path, std::function<cycle_times()> times = {}) {
    static_cast<void>(path);
    static_cast<void>(times);
    return false;
  }
  virtual void stop_trace() {}
};

/// One block behind its pins. `Pins` is the block's description (rtl/README.md, "The next block"):
///   inputs, outputs                values of one cycle; inputs has a field `reset`
///   each(inputs or outputs, f)     f(name, value) for every one of them that counts in that cycle
///   drive(top, inputs), sample(top)  the same at a verilated module, whose pins are clk_i, rst_ni and these
///   tracker                        what is in the block: note(inputs, outputs) after each cycle, text() for a report
template <class Pins>
class twin : public traceable {
 public:
  /// One clock cycle, in reset when the inputs say so: the outputs during it.
  virtual typename Pins::outputs clock(const typename Pins::inputs& in) = 0;
  /// The outputs at the beginning of the next cycle: those that come from registers.
  virtual typename Pins::outputs sample() const = 0;
};

template <class Pins>
using twin_ptr = std::unique_ptr<twin<Pins>>;

}  // namespace rnic::rtl
