// SPDX-License-Identifier: Apache-2.0
// Wrapper of any verilated module with the pins of icrc_engine.sv.
#pragma once

#include <verilated.h>
#include <verilated_fst_c.h>

#include <cstring>
#include <memory>
#include <string>

#include "rtl/icrc/icrc_rtl.h"

namespace rnic::rtl {

/// `Top` is the verilated class. Two evaluations a cycle: inputs with the clock low, outputs sampled, then the edge.
template <class Top>
class icrc_rtl_core : public icrc_rtl_if {
 public:
  explicit icrc_rtl_core(std::uint32_t seed) {
    context_.randReset(2);
    context_.randSeed(static_cast<int>(seed));
    context_.traceEverOn(true);
    top_ = std::make_unique<Top>(&context_, "icrc_engine");
    idle();
    top_->rst_ni = 1;  // the asynchronous reset is an edge
    settle();
    reset();
  }
  ~icrc_rtl_core() override {
    // Verilator's scopes look their context up in a variable of the thread: with several engines it may be the one of
    // an engine that is gone.
    Verilated::threadContextp(&context_);
    stop_trace();
    top_->final();
    top_.reset();
    Verilated::threadContextp(nullptr);
  }

  icrc::icrc_outputs step(const icrc::icrc_beat& in, bool result_ready) override {
    top_->in_valid_i = in.valid;
    std::memcpy(&top_->in_data_i, in.data.data(), icrc::beat_bytes);
    top_->in_keep_i = in.keep;
    top_->in_first_i = in.first;
    top_->in_last_i = in.last;
    top_->in_encap_i = static_cast<std::uint8_t>(in.encap);
    top_->result_ready_i = result_ready;
    settle();
    const icrc::icrc_outputs out{top_->in_ready_o != 0, top_->result_valid_o != 0, top_->result_crc_o};
    edge();
    return out;
  }

  void reset() override {
    idle();
    top_->rst_ni = 0;
    settle();
    edge();
    top_->rst_ni = 1;
  }

  result process(wire::encapsulation encap, const std::uint8_t* l3, std::size_t length) override {
    icrc::icrc_beat beat;
    beat.encap = encap;
    result r;
    std::size_t offered = 0;
    for (;; ++r.cycles) {
      const std::size_t left = length - offered;
      beat.valid = left != 0;
      beat.first = offered == 0;
      beat.last = left <= icrc::beat_bytes;
      beat.keep = static_cast<std::uint8_t>(beat.last ? left : icrc::beat_bytes);
      std::memcpy(beat.data.data(), l3 + offered, beat.keep);
      const icrc::icrc_outputs out = step(beat, true);
      if (beat.valid && out.in_ready) offered += beat.keep;
      if (out.result_valid) {
        r.crc = out.crc;
        return r;
      }
    }
  }

  void start_trace(const std::string& path) override {
    stop_trace();
    trace_ = std::make_unique<VerilatedFstC>();
    top_->trace(trace_.get(), 99);
    trace_->open(path.c_str());
  }
  void stop_trace() override {
    if (trace_ != nullptr) trace_->close();
    trace_.reset();
  }

 protected:
  Top& top() { return *top_; }

 private:
  void idle() {
    top_->in_valid_i = 0;
    std::memset(&top_->in_data_i, 0, icrc::beat_bytes);
    top_->in_keep_i = icrc::beat_bytes;
    top_->in_first_i = top_->in_last_i = 0;
    top_->in_encap_i = 0;
    top_->result_ready_i = 0;
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
