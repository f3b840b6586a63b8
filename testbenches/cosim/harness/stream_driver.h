// SPDX-License-Identifier: Apache-2.0
// Drives a block with one stream in and one stream of results out, and holds its results against an oracle.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace rnic::cosim {

/// When something is offered or taken.
enum class pattern { always, alternate, bursts, random };
inline std::string to_string(pattern p) {
  constexpr const char* names[] = {"always", "alternate", "bursts", "random"};
  return names[static_cast<unsigned>(p)];
}
inline bool active(pattern p, std::uint64_t cycle, std::mt19937_64& rng) {
  switch (p) {
    case pattern::always:
      return true;
    case pattern::alternate:
      return cycle % 2 == 0;
    case pattern::bursts:
      return (cycle / 13) % 2 == 0;
    case pattern::random:
      return rng() % 4 == 0;
  }
  return false;
}

/// What goes in, when, and what must come out. Of `Pins` it wants, beside rtl/harness/twin.h: `beat` (what one transfer
/// at the input is), offer(inputs, beat), taken(inputs, outputs) (the beat was), set_ready(inputs, bool) and
/// result(outputs) (an optional number: the result that is there).
template <class Pins>
struct plan {
  struct item {
    std::vector<typename Pins::beat> beats;
    std::uint64_t result = 0;  ///< by the oracle
  };
  std::vector<item> items;
  pattern offer = pattern::always;
  pattern take = pattern::always;
  unsigned reset_one_in = 0;  ///< a reset cycle on average every so many cycles; 0: none
  std::uint64_t seed = 1;
};

/// Drives one block by the stream contract (rtl/README.md); the block's outputs decide how it goes on.
template <class Pins>
class stream_driver {
 public:
  using inputs = typename Pins::inputs;
  using outputs = typename Pins::outputs;

  explicit stream_driver(plan<Pins> p) : plan_(std::move(p)), rng_(plan_.seed) {}

  inputs next() {
    inputs in;
    in.reset = plan_.reset_one_in != 0 && rng_() % plan_.reset_one_in == 0;
    if (!offered_ && item_ < plan_.items.size()) offered_ = active(plan_.offer, cycle_, rng_);
    if (offered_) Pins::offer(in, plan_.items[item_].beats[beat_]);
    ready_ = active(plan_.take, cycle_, rng_);
    Pins::set_ready(in, ready_);
    ++cycle_;
    return in;
  }

  /// After the cycle, with the outputs that it had. Returns a line when a result is not what the oracle says.
  std::optional<std::string> finish(const inputs& in, const outputs& out) {
    if (in.reset) return lose(), std::nullopt;
    std::optional<std::string> wrong;
    if (const std::optional<std::uint64_t> result = Pins::result(out); result && ready_) wrong = compare(*result);
    if (offered_ && Pins::taken(in, out)) {
      offered_ = false;
      const auto& item = plan_.items[item_];
      if (++beat_ == item.beats.size()) {
        expected_.push_back(item.result);
        ++item_;
        beat_ = 0;
      }
    }
    return wrong;
  }
  bool done() const { return item_ == plan_.items.size() && expected_.empty(); }

 private:
  /// A reset: the item under way is lost, the next one starts afresh.
  void lose() {
    if (beat_ != 0) ++item_;
    beat_ = 0;
    offered_ = false;
    expected_.clear();
  }
  std::optional<std::string> compare(std::uint64_t result) {
    std::ostringstream line;
    line << "result " << std::hex << result << ", the oracle says ";
    if (expected_.empty()) return line.str() + "none is due";
    const std::uint64_t due = expected_.front();
    expected_.pop_front();
    line << due;
    return due == result ? std::nullopt : std::optional(line.str());
  }

  plan<Pins> plan_;
  std::mt19937_64 rng_;
  std::uint64_t cycle_ = 0;
  std::size_t item_ = 0, beat_ = 0;
  bool offered_ = false, ready_ = false;
  std::deque<std::uint64_t> expected_;
};

}  // namespace rnic::cosim
