// SPDX-License-Identifier: Apache-2.0
// rtl/gid/gid_match.sv behind the interface of its model, over the table of a port, and the model behind its pins.
#pragma once

#include <array>
#include <memory>
#include <utility>

#include "model/gid/gid_match.h"
#include "model/gid/gid_table.h"
#include "rtl/gid/gid_match_pins.h"

namespace rnic::hosts {

/// The model with a port for firmware's writes, as the RTL has one: what lockstep compares with.
class gid_match_reference final : public rtl::twin<rtl::gid_match_pins> {
 public:
  static constexpr std::uint8_t compare_cycles = 2;  ///< those of the RTL
  static gid::match_config config() {
    gid::match_config c;
    c.method = gid::match_method::parallel;
    c.compare_cycles = compare_cycles;
    return c;
  }

  rtl::gid_match_pins::outputs clock(const rtl::gid_match_pins::inputs& in) override;
  rtl::gid_match_pins::outputs sample() const override { return {}; }  // nobody asks

 private:
  gid::gid_table table_;
  gid::gid_match match_{config(), table_};
};

/// A drop-in for gid_match with the configuration above: the RTL, or lockstep of both. Firmware writes the port's table
/// word by word between the edges; what it has changed is written into the RTL's entries in front of the next look-up,
/// an entry a cycle, in cycles that nobody waits for. Result and cycles of a look-up are those of the RTL; one is under
/// way at a time.
class gid_match_rtl final : public gid::gid_match_if {
 public:
  gid_match_rtl(rtl::twin_ptr<rtl::gid_match_pins> engine, const gid::gid_table& entries)
      : engine_(std::move(engine)), entries_(entries) {}
  gid::match_outputs step(const gid::match_inputs& in) override { return engine_->clock({in, {}, false}); }
  void reset() override;
  result look_up(const wire::gid& dgid, gid::roce_type type) override;
  unsigned pass_cycles() const override { return gid_match_reference::compare_cycles; }

 private:
  void write_what_changed();

  rtl::twin_ptr<rtl::gid_match_pins> engine_;
  const gid::gid_table& entries_;
  std::array<rtl::gid_match_pins::entry_write, gid::table_size> written_{};  // what the RTL holds
};

}  // namespace rnic::hosts
