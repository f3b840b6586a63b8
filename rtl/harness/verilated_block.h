// SPDX-License-Identifier: Apache-2.0
// Wrapper of a verilated module: clock, reset, pins, waveform.
#pragma once

#include <verilated.h>
#include <verilated_fst_c.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "rtl/harness/twin.h"

namespace rnic::rtl {

/// `Top` is the verilated class. Two evaluations a cycle: inputs with the clock low, outputs sampled, then the edge.
/// Assertions of the stream contract are on: one that fails ends the program with its place.
template <class Top, class Pins>
class verilated_block : public twin<Pins> {
 public:
  /// After reset. `seed` sets the values that registers have before it.
  explicit verilated_block(std::uint32_t seed) {
    context_.randReset(2);
    context_.randSeed(static_cast<int>(seed));
    context_.traceEverOn(true);
    top_ = std::make_unique<Top>(&context_, Pins::name);
    Pins::drive(*top_, {});
    top_->rst_ni = 1;  // the asynchronous reset is an edge
    settle();
    reset();
  }
  ~verilated_block() override {
    // Verilator's scopes look their context up in a variable of the thread: with several blocks it may be the one of
    // a block that is gone.
    Verilated::threadContextp(&context_);
    finish_trace();
    top_->final();
    top_.reset();
    Verilated::threadContextp(nullptr);
  }

  typename Pins::outputs clock(const typename Pins::inputs& in) override {
    if (in.reset) {
      reset();
      return {};
    }
    if (times_) return clock_in_time(in);
    Pins::drive(*top_, in);
    settle();
    const typename Pins::outputs out = Pins::sample(*top_);
    edge();
    return out;
  }
  typename Pins::outputs sample() const override { return Pins::sample(*top_); }

  bool start_trace(const std::string& path, std::function<cycle_times()> times = {}) override {
    finish_trace();
    times_ = std::move(times);
    trace_ = std::make_unique<VerilatedFstC>();
    top_->trace(trace_.get(), 99);
    trace_->open(path.c_str());
    if (!trace_->isOpen()) trace_.reset();
    return trace_ != nullptr;
  }
  void stop_trace() override { finish_trace(); }

 protected:
  Top& top() { return *top_; }
  void reset() {
    Pins::drive(*top_, {});
    top_->rst_ni = 0;
    settle();
    edge();
    top_->rst_ni = 1;
  }

 private:
  void finish_trace() {
    if (times_ && risen_ != 0) trace_->dump(risen_);
    if (trace_ != nullptr) trace_->close();
    trace_.reset();
    times_ = {};
    risen_ = 0;
  }
  /// A cycle in the waveform of whoever has the clock. What comes first in it is an evaluation with the clock high,
  /// at which registers keep what they have; the clock stays high behind a cycle that no other one follows.
  typename Pins::outputs clock_in_time(const typename Pins::inputs& in) {
    const cycle_times t = times_();
    if (risen_ != 0 && risen_ < t.begin) trace_->dump(risen_);
    Pins::drive(*top_, in);
    top_->eval();
    trace_->dump(t.begin);
    top_->clk_i = 0;
    top_->eval();
    trace_->dump(t.fall);
    const typename Pins::outputs out = Pins::sample(*top_);
    top_->clk_i = 1;
    top_->eval();
    risen_ = t.end;
    return out;
  }
  void settle() {
    top_->clk_i = 0;
    evaluate();
  }
  void edge() {
    top_->clk_i = 1;
    evaluate();
  }
  void evaluate() {
    top_->eval();
    if (trace_ != nullptr && !times_) trace_->dump(context_.time());
    context_.timeInc(1);
  }

  VerilatedContext context_;
  std::unique_ptr<Top> top_;
  std::unique_ptr<VerilatedFstC> trace_;
  std::function<cycle_times()> times_;  // empty: the waveform has none
  std::uint64_t risen_ = 0;             // the clock's last edge, whose values the waveform does not have yet; 0: none
};

}  // namespace rnic::rtl
