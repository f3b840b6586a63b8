// SPDX-License-Identifier: Apache-2.0
// rtl/gid_source/gid_source.sv behind the interface of its model, over the tables of a port, and the model behind its
// pins.
#pragma once

#include <array>
#include <memory>
#include <utility>

#include "model/gid/gid_source.h"
#include "model/gid/gid_table.h"
#include "rtl/gid_source/gid_source_pins.h"

namespace rnic::hosts {

/// The model with a port for firmware's writes, as the RTL has one: what lockstep compares with. Its table finds the
/// owners of entries itself; the RTL is told with each. Which functions the port has it learns from these.
class gid_source_reference final : public rtl::twin<rtl::gid_source_pins> {
 public:
  static constexpr std::uint8_t source_cycles = 2;

  rtl::gid_source_pins::outputs clock(const rtl::gid_source_pins::inputs& in) override;
  rtl::gid_source_pins::outputs sample() const override { return {}; }  // nobody asks

 private:
  static gid::source_config config() {
    gid::source_config c;
    c.source_cycles = source_cycles;
    return c;
  }

  std::uint32_t numbers() const;

  gid::gid_table table_;
  gid::gid_source source_{config(), table_};
  std::array<std::uint16_t, gid::table_size> told_{};  // owners
};

/// A drop-in for gid_source with the configuration above: the RTL, or lockstep of both. What firmware has changed in
/// the port's tables is written into the RTL's in front of the next look-up, a row a cycle, in cycles that nobody waits
/// for. A look-up's result is the RTL's; it must have it after its two cycles. One is under way at a time.
class gid_source_rtl final : public gid::gid_source_if {
 public:
  gid_source_rtl(rtl::twin_ptr<rtl::gid_source_pins> engine, const gid::gid_table& entries)
      : engine_(std::move(engine)), entries_(entries) {}
  gid::source_outputs step(const gid::source_inputs& in) override { return engine_->clock({in, {}, false}); }
  void reset() override;
  gid::source look_up(const gid::source_request& request) override;
  unsigned cycles() const override { return gid_source_reference::source_cycles; }

 private:
  using row = rtl::gid_source_pins::row_write;
  using rows = std::array<row, gid::table_size>;
  void write_what_changed();
  void write(rows& written, const row& now);

  rtl::twin_ptr<rtl::gid_source_pins> engine_;
  const gid::gid_table& entries_;
  rows gids_{}, macs_{}, vids_{};  // what the RTL holds
};

}  // namespace rnic::hosts
