// SPDX-License-Identifier: Apache-2.0
// Spans of all work requests of send queues, from the post to the poll of the completion.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/sim/span.h"

namespace rnic::sim {

/// Which work request. `adapter`: span_recorder::adapter_of(); `index`: as WQEs of the send queue are counted.
struct request_key {
  unsigned adapter = 0;
  std::uint32_t qpn = 0;
  std::uint16_t index = 0;
};

/// The way of a work request. The time of a mark's stage begins with the mark before it, or with the way's start.
struct followed_request {
  struct way {
    time_ps start = 0;
    std::vector<span::mark> marks;  ///< in order of time
  };
  request_key key;
  std::uint64_t number = 0;  ///< 1, 2, ... in the order in which they were opened
  std::uint64_t what = 0;    ///< of who opened it
  bool polled = false;       ///< false: it was given up, by the end of the run or of its queue pair
  std::uint8_t status = 0;   ///< of the completion, as polled() was told
  /// From the post to the poll: what its latency consists of, exactly. Unless it was polled it ends with its last mark.
  way path;
  /// What went on beside that or behind it: a payload on its way into memory while the acknowledgement travels, the
  /// receiver's completion.
  way beside, beside_answer;
};

class request_sink_if {
 public:
  virtual ~request_sink_if() = default;
  /// Valid during the call.
  virtual void take(const followed_request& r) = 0;
};

/// A request's time has three parts: what its work queue entry and its packets go through; from the responder's commit
/// on its acknowledgement; from then on its completion. Each block marks the one that it knows of, and a part begins
/// where the latency's one goes on: marks of the part before, behind that time, are beside the way. Of a request
/// without an acknowledgement of its own, since a later one acknowledges it, the stage `answer` is the wait for that.
///
/// A span_id of these names a request, a part of it, and how often its place was used before: what comes when it has
/// been handed over is dropped and counted.
///
/// Host programs may be simulated ahead of each other (sim::partitions): times of one host are in order.
class followed_requests {
 public:
  struct config {
    std::uint32_t most = 65536;     ///< under way or kept, 1 to 2^18 - 1
    time_ps kept = 20 * ps_per_us;  ///< behind the poll, for what goes on beside: then it is handed over
  };
  followed_requests(const config& cfg, request_sink_if& to);

  // Of software.
  /// A request is posted: its way begins at `since`, and until now it has left `stages` marks. 0: there is no place, it
  /// is not followed, which is counted.
  span_id open(const request_key& key, std::uint64_t what, time_ps since);
  /// What of the doorbell is told of `first` is told of `next` too: both were posted with it. For bus_if::set_span.
  span_id rung(span_id first) const { return first == 0 ? 0 : (first & ~part_mask) | doorbell; }
  void join(span_id first, span_id next);
  /// Software has polled the completion of this one, or of one behind it. `processor`: block of the last stage.
  void polled(const request_key& key, time_ps at, std::uint8_t status, const std::string& processor);
  /// Hands over all that are there, those under way too.
  void finish();

  // Of blocks.
  /// A unit parses the WQE: its span from here on. `served`: span that the unit's grant came with.
  span_id taken(const request_key& key, const std::string& block, time_ps at, span_id served);
  /// The requester has all that the request needs: span of its completion.
  span_id completed(const request_key& key, const std::string& block, time_ps at);
  span_id fork(span_id id);
  void leave(span_id id, const span::mark& m);
  time_ps end_of(span_id id) const;
  /// The way until now of the request, to the part of it that the span names: of `out` path, key, number and what.
  /// False: it has been handed over.
  bool so_far(span_id id, followed_request& out) const;

  /// Of those that have not been handed over; ~0: there is none.
  time_ps earliest() const;
  std::uint64_t opened() const { return opened_; }
  std::uint64_t not_followed() const { return not_followed_; }
  /// Marks that came when their request had been handed over.
  std::uint64_t late_marks() const { return late_; }
  std::uint64_t under_way() const { return by_key_.size(); }

 private:
  // A span_id: part, place, count of uses.
  static constexpr span_id part_mask = 3, doorbell = 3;
  static constexpr unsigned place_shift = 2, uses_shift = 20;
  enum parts : std::uint8_t { way_out = 0, answer = 1, completion = 2 };
  struct place {
    request_key key;
    std::uint64_t number = 0, what = 0;
    bool open = false, polled = false;
    bool is_taken = false;  // by a unit
    bool answered = false;  // the answer's way leads to the requester
    bool told = false;      // of a completion of its own
    std::uint8_t status = 0;
    std::uint16_t uses = 0;
    bool began[3] = {false, false, false};
    time_ps begins[3] = {0, 0, 0}, end = 0;
    std::uint32_t joined = 0;  // place of the next one of its doorbell
    std::vector<span::mark> marks[3];
  };
  struct closed {
    std::uint32_t at = 0;
    time_ps when = 0;
  };
  static std::uint64_t number_of(const request_key& k) {
    return std::uint64_t{k.adapter} << 48 | std::uint64_t{k.qpn} << 16 | k.index;
  }
  span_id id_of(std::uint32_t at, unsigned part) const {
    return std::uint32_t{places_[at].uses} << uses_shift | at << place_shift | part;
  }
  std::uint32_t place_of(span_id id) const;
  static void add(std::vector<span::mark>& to, const span::mark& m);
  std::uint32_t take_place();
  void hand_over(std::uint32_t at);
  void assemble(const place& p);
  static void move_up_to(const std::vector<span::mark>& from, time_ps cut, followed_request::way& path,
                         followed_request::way& beside);
  void close(std::uint32_t at, time_ps when);

  config config_;
  request_sink_if& to_;
  std::vector<place> places_;       // the first one is nobody's
  std::deque<std::uint32_t> free_;  // the longest unused one in front
  std::deque<closed> closed_;
  std::unordered_map<std::uint64_t, std::uint32_t> by_key_;
  followed_request out_;
  std::uint64_t opened_ = 0, not_followed_ = 0, late_ = 0;
};

}  // namespace rnic::sim
