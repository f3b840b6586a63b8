// SPDX-License-Identifier: Apache-2.0
// Wrapper of a verilated module: clock, reset, pins, waveform.
#pragma once

#include <verilated.h>
#include <verilated_fst_c.h>

#include <cstdint>
#include <memory>
#include <string>

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
    Pins::drive(*top_, in);
    settle();
    const typename Pins::outputs out = Pins::sample(*top_);
    edge();
    return out;
  }
  typename Pins::outputs sample() const override { return Pins::sample(*top_); }

  bool start_trace(const std::string& path) override {
    finish_trace();
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
    if (trace_ != nullptr) trace_->close();
    trace_.reset();
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
    if (trace_ != nullptr) trace_->dump(context_.time());
    context_.timeInc(1);
  }

  VerilatedContext context_;
  std::unique_ptr<Top> top_;
  std::unique_ptr<VerilatedFstC> trace_;
};

}  // namespace rnic::rtl
