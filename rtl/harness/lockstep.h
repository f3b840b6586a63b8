// SPDX-License-Identifier: Apache-2.0
// Model and RTL of a block side by side: same inputs, outputs compared in every cycle, the first difference is the end.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "rtl/harness/twin.h"

namespace rnic::rtl {

/// The first cycle in which a block and its reference differ. what() is the report: a line with block, cycle, port,
/// both values, what was in the block, and the waveform's name; then the last cycles of both.
class difference : public std::runtime_error {
 public:
  struct place {
    std::uint64_t cycle = 0;
    std::string port;
    std::uint64_t model = 0, rtl = 0;
    std::string waveform;  ///< FST file of the cycles before; empty: it could not be written
  };
  difference(place where, const std::string& report) : std::runtime_error(report), where_(std::move(where)) {}
  const place& where() const { return where_; }

 private:
  place where_;
};

/// Is the reference for who drives it, and beside it the RTL. A second instance of the RTL follows `window` cycles
/// behind; after a difference it is taken through these with a waveform, so that nothing has to be written before.
template <class Pins>
class lockstep final : public twin<Pins> {
 public:
  using inputs = typename Pins::inputs;
  using outputs = typename Pins::outputs;
  using factory = std::function<twin_ptr<Pins>()>;
  static constexpr std::size_t window = 64;  ///< cycles in the waveform
  static constexpr std::size_t shown = 16;   ///< cycles in the report

  /// `make` makes the same RTL each time. `name`: of the block, and of the waveform's file. `cycle`: number of the
  /// present cycle; without it the cycles of this object are counted.
  lockstep(std::string name, twin_ptr<Pins> reference, const factory& make, std::function<std::uint64_t()> cycle = {})
      : name_(std::move(name)),
        reference_(std::move(reference)),
        rtl_(make()),
        follower_(make()),
        cycle_(std::move(cycle)),
        log_(window) {}

  /// Throws difference.
  outputs clock(const inputs& in) override {
    event& e = next_event();
    e.cycle = cycle_ ? cycle_() : clocks_;
    ++clocks_;
    e.in = in;
    e.model = reference_->clock(in);
    e.rtl = rtl_->clock(in);
    if (auto d = compare(e)) fail(std::move(*d));
    tracker_.note(in, e.model);
    return e.model;
  }
  outputs sample() const override { return reference_->sample(); }
  /// Of the RTL.
  bool start_trace(const std::string& path, std::function<cycle_times()> times = {}) override {
    return rtl_->start_trace(path, std::move(times));
  }
  void stop_trace() override { rtl_->stop_trace(); }
  /// Ends the run for a reason that another oracle found at `port` in the cycle that was clocked last.
  [[noreturn]] void fail_at(const std::string& port, std::uint64_t model, std::uint64_t rtl) {
    fail({log_[(head_ + count_ - 1) % window].cycle, port, model, rtl, {}});
  }

 private:
  struct event {
    std::uint64_t cycle = 0;
    inputs in;
    outputs model, rtl;
  };

  event& next_event() {
    if (count_ == window) {
      follower_->clock(log_[head_].in);
      head_ = (head_ + 1) % window;
      --count_;
    }
    return log_[(head_ + count_++) % window];
  }

  static std::optional<difference::place> compare(const event& e) {
    std::array<std::pair<const char*, std::uint64_t>, 64> ports{};
    std::size_t n = 0;
    Pins::each(e.model, [&](const char* port, std::uint64_t value) { ports[n++] = {port, value}; });
    std::optional<difference::place> found;
    std::size_t i = 0;
    Pins::each(e.rtl, [&](const char* port, std::uint64_t value) {
      if (i < n && !found && std::string_view(ports[i].first) == port && ports[i].second != value)
        found = difference::place{e.cycle, port, ports[i].second, value, {}};
      ++i;
    });
    return found;
  }

  [[noreturn]] void fail(difference::place d) {
    d.waveform = write_waveform();
    std::ostringstream text;
    text << name_ << ": model and RTL differ in cycle " << d.cycle << " at " << d.port << ": model 0x" << std::hex
         << d.model << ", RTL 0x" << d.rtl << std::dec << "; " << tracker_.text() << "; "
         << (d.waveform.empty() ? "no waveform: its file cannot be written" : "waveform in " + d.waveform);
    for (std::size_t i = count_ > shown ? count_ - shown : 0; i < count_; ++i) print(text, log_[(head_ + i) % window]);
    throw difference(std::move(d), text.str());
  }
  static void print(std::ostream& to, const event& e) {
    to << "\n  cycle " << e.cycle << ":" << std::hex;
    const auto value = [&to](const char* port, std::uint64_t v) { to << ' ' << port << ' ' << v; };
    Pins::each(e.in, value);
    to << " | model";
    Pins::each(e.model, value);
    to << " | rtl";
    Pins::each(e.rtl, value);
    to << std::dec;
  }
  std::string write_waveform() {
    std::string path = name_ + ".fst";
    for (unsigned n = 2; std::filesystem::exists(path); ++n) path = name_ + "-" + std::to_string(n) + ".fst";
    if (!follower_->start_trace(path)) return {};
    for (std::size_t i = 0; i < count_; ++i) follower_->clock(log_[(head_ + i) % window].in);
    follower_->stop_trace();
    return path;
  }

  std::string name_;
  twin_ptr<Pins> reference_, rtl_, follower_;
  std::function<std::uint64_t()> cycle_;
  typename Pins::tracker tracker_;
  std::vector<event> log_;  // the last cycles, which the follower has not seen
  std::size_t head_ = 0, count_ = 0;
  std::uint64_t clocks_ = 0;
};

}  // namespace rnic::rtl
