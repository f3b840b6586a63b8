// SPDX-License-Identifier: Apache-2.0
// The pins of icrc_engine.sv, for the harness.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "model/icrc/icrc_if.h"
#include "rtl/harness/twin.h"

namespace rnic::rtl {

struct icrc_pins {
  static constexpr const char* name = "icrc_engine";
  struct inputs {
    icrc::icrc_beat in;
    bool result_ready = false;
    bool reset = false;
  };
  using outputs = icrc::icrc_outputs;

  template <class F>
  static void each(const inputs& i, F&& f) {
    if (i.reset) f("reset", 1);
    f("in_valid", i.in.valid);
    if (i.in.valid) {
      f("first", i.in.first);
      f("last", i.in.last);
      f("keep", i.in.keep);
      f("encap", static_cast<std::uint64_t>(i.in.encap));
    }
    f("result_ready", i.result_ready);
  }
  template <class F>
  static void each(const outputs& o, F&& f) {
    f("in_ready", o.in_ready);
    f("result_valid", o.result_valid);
    if (o.result_valid) f("result_crc", o.crc);
  }

  template <class Top>
  static void drive(Top& top, const inputs& i) {
    top.in_valid_i = i.in.valid;
    std::memcpy(&top.in_data_i, i.in.data.data(), sizeof top.in_data_i);
    top.in_keep_i = i.in.keep;
    top.in_first_i = i.in.first;
    top.in_last_i = i.in.last;
    top.in_encap_i = static_cast<std::uint8_t>(i.in.encap);
    top.result_ready_i = i.result_ready;
  }
  template <class Top>
  static outputs sample(const Top& top) {
    return {top.in_ready_o != 0, top.result_valid_o != 0, top.result_crc_o};
  }

  // For the stream driver of testbenches/cosim/harness.
  using beat = icrc::icrc_beat;
  static void offer(inputs& i, const beat& b) { i.in = b; }
  static bool taken(const inputs& i, const outputs& o) { return i.in.valid && o.in_ready; }
  static void set_ready(inputs& i, bool ready) { i.result_ready = ready; }
  static std::optional<std::uint64_t> result(const outputs& o) {
    return o.result_valid ? std::optional<std::uint64_t>(o.crc) : std::nullopt;
  }

  /// The packets whose results are due.
  class tracker {
   public:
    void note(const inputs& i, const outputs& o);
    /// Of the one whose result comes next.
    std::string text() const;

   private:
    struct packet {
      std::uint64_t number = 0;
      wire::encapsulation encap = wire::encapsulation::roce_v1;
      std::size_t length = 0;
      std::array<std::uint8_t, icrc::widest_beat> bytes{};
    };
    std::deque<packet> open_;
    std::uint64_t packets_ = 0;
  };
};

/// The model's engine as what lockstep compares with.
class icrc_reference final : public twin<icrc_pins> {
 public:
  explicit icrc_reference(std::unique_ptr<icrc::icrc_engine_if> engine) : engine_(std::move(engine)) {}
  icrc::icrc_outputs clock(const icrc_pins::inputs& i) override {
    if (!i.reset) return engine_->step(i.in, i.result_ready);
    engine_->reset();
    return {};
  }
  icrc::icrc_outputs sample() const override { return engine_->outputs(); }

 private:
  std::unique_ptr<icrc::icrc_engine_if> engine_;
};

}  // namespace rnic::rtl
