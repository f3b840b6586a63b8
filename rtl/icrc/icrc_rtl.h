// SPDX-License-Identifier: Apache-2.0
// rtl/icrc/icrc_engine.sv behind the interface of its model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "model/icrc/icrc_if.h"

namespace rnic::rtl {

/// A verilated ICRC engine. Assertions of the stream contract are on: one that fails ends the program with its place.
class icrc_rtl_if : public icrc::icrc_engine_if {
 public:
  /// Writes the waveform of the following cycles to `path` (FST) until stop_trace() or destruction.
  virtual void start_trace(const std::string& path) = 0;
  virtual void stop_trace() = 0;
};

/// The engine of rtl/icrc/icrc_engine.sv, after reset. `seed` sets the values that registers have before it.
std::unique_ptr<icrc_rtl_if> make_icrc_rtl(std::uint32_t seed = 1);

}  // namespace rnic::rtl
