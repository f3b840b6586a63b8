// SPDX-License-Identifier: Apache-2.0
// Where the time of a message went.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/sim/seldom.h"
#include "model/sim/types.h"

namespace rnic::sim {

/// What a message waited for in a stage (law 7). `none`: it was being worked on.
enum class wait : std::uint8_t {
  none,
  descriptor_fetch,
  context_miss,
  translation_miss,
  payload_fetch,
  pcie,
  pcie_credit,
  arbitration,
  pause,
  rate_limit,
  bytes,  ///< of the message, which come a beat a cycle
  wire,
  peer,
  software
};
const char* to_string(wait w);

/// The way of one message: a mark for each stage that it left. The time of a stage is the difference of its mark and
/// the one before, so the stages sum to the end-to-end time exactly. Marks are written along the way of the message's
/// last packet: what precedes it in its own message shows as the stage in which it waited for that.
class span {
 public:
  struct mark {
    const char* block = nullptr;  ///< full name, "a.adapter.requester"; lives as long as the program
    const char* stage = nullptr;  ///< string literal
    wait waited = wait::none;
    time_ps at = 0;
  };
  static constexpr unsigned max_marks = 128;
  static constexpr const char* beyond = "more stages";  ///< stage of the last mark when there were more

  void begin(time_ps at) {
    start_ = at;
    count_ = 0;
  }
  /// The message leaves `stage` of `block` at time `at`. Marks are kept in order of time: for a while a message's
  /// payload and its completion are under way side by side, and each block tells of its own. Of marks beyond max_marks
  /// the latest is kept, as `beyond`.
  void leave(const char* block, const char* stage, time_ps at, wait waited = wait::none) {
    if (count_ == max_marks) {
      mark& last = marks_[max_marks - 1];
      if (at >= last.at) last = {block, beyond, waited, at};
      last.stage = beyond;
      return;
    }
    unsigned i = count_++;
    for (; i != 0 && marks_[i - 1].at > at; --i) marks_[i] = marks_[i - 1];
    marks_[i] = {block, stage, waited, at};
  }
  time_ps start() const { return start_; }
  time_ps end() const { return count_ == 0 ? start_ : marks_[count_ - 1].at; }
  unsigned count() const { return count_; }
  const mark& operator[](unsigned i) const { return marks_[i]; }

 private:
  std::array<mark, max_marks> marks_{};
  unsigned count_ = 0;
  time_ps start_ = 0;
};

/// Names of the spans of a simulation: index 0 means "not followed". Tracing is opt-in: `open` gives 0 while disabled.
using span_id = std::uint32_t;

class followed_requests;

/// Two ways to use it. By enable() and open(): the user names the message that is followed, and reads its span soon. By
/// follow(): each work request of a send queue has spans, which blocks find by its queue pair and index, until software
/// has polled its completion (model/sim/followed_requests.h).
class span_recorder {
 public:
  explicit span_recorder(std::size_t capacity = 256) : spans_(capacity) {}
  void enable(bool on) { enabled_ = on; }
  bool enabled() const { return enabled_; }
  /// `all` outlives the simulation, or nullptr: none are followed any more. Not beside enable().
  void follow(followed_requests* all) { followed_ = all; }
  /// nullptr: work requests are not followed.
  followed_requests* followed() const { return followed_; }
  /// Number of the adapter that `block` is a part of, "a.adapter.requester": by what precedes the last dot.
  unsigned adapter_of(const std::string& block);
  /// Starts a span; the oldest one is reused when all are taken.
  span_id open(time_ps at) {
    if (!enabled_) return 0;
    next_ = next_ + 1 == spans_.size() ? 1 : next_ + 1;
    spans_[next_].begin(at);
    return static_cast<span_id>(next_);
  }
  /// A second span with the way of `id` so far: for what splits off from a message, such as its acknowledgement.
  span_id fork(span_id id) { return seldom(id != 0) ? fork_off(id) : 0; }
  /// `block`: full name of the block that the stage belongs to.
  void leave(span_id id, const std::string& block, const char* stage, time_ps at, wait waited = wait::none) {
    if (seldom(id != 0)) mark(id, block, stage, at, waited);
  }
  /// The same at edge `edge` of a clock domain: its time is reckoned for a message that is followed, and for no other.
  template <class Clock>
  void leave_at_edge(span_id id, const std::string& block, const char* stage, const Clock& clock, cycle_t edge) {
    if (seldom(id != 0)) mark(id, block, stage, clock.edge_time(edge), wait::none);
  }
  /// leave() where it has waited until `at` since it left its last stage; nothing where that was later.
  void wait_until(span_id id, const std::string& block, const char* stage, time_ps at, wait waited) {
    if (id != 0 && at > end_of(id)) leave(id, block, stage, at, waited);
  }
  /// Its last mark; without one its start.
  time_ps end_of(span_id id) const;
  /// The span that was opened, or forked, behind `id`, or that will be the next one: they are taken in turn.
  span_id after(span_id id) const { return id + 1 == spans_.size() ? 1 : id + 1; }
  /// Of a message that open() was called for.
  const span& operator[](span_id id) const { return spans_[id]; }

 private:
  // Of a million messages few are followed: for the others this is a comparison.
  void mark(span_id id, const std::string& block, const char* stage, time_ps at, wait waited);
  span_id fork_off(span_id id);
  std::vector<span> spans_;
  std::size_t next_ = 0;
  bool enabled_ = false;
  followed_requests* followed_ = nullptr;
  std::vector<std::string> adapters_;
};

/// The same text for as long as the program runs, and one pointer for it: spans are read after the system that they
/// are of.
const char* kept_name(const std::string& block);

}  // namespace rnic::sim
