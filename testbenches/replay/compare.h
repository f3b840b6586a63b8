// SPDX-License-Identifier: Apache-2.0
// What the adapter answered, beside what the real host answered.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "model/payload/frame.h"
#include "model/sim/span.h"
#include "testbenches/replay/plan.h"

namespace rnic::replay {

enum class difference_kind : std::uint8_t {
  together,  ///< an acknowledgement that came with a later one: what it says was said
  missing_answer,
  missing_request,
  extra_answer,
  extra_request,
  not_posted,
  delivery,  ///< messages that did not come into receives
  failed_completion,
  opcode,
  verdict,
  remote_address,
  payload_length,
  payload,
  immediate,
  solicited,
  msn
};
const char* to_string(difference_kind k);

/// A field of an answer that is compared, by the name that a user gives it.
struct compared_field {
  const char* name;
  difference_kind kind;  ///< of a difference in it
  const char* what;
};
/// All of them, in the order in which they are compared: the first that differs is the difference.
const std::vector<compared_field>& compared_fields();

/// A place where the run is not as the capture. `frame`: number in the capture, from 1; 0 for what is not in it.
struct difference {
  difference_kind kind{};
  std::size_t frame = 0;
  int connection = -1;
  std::size_t answer = 0;  ///< index into comparison::answers() + 1, 0: the adapter sent nothing
  std::string expected, obtained;
  std::string explanation;
  /// Of an atomic: what it found is right for another order of several queue pairs' atomics.
  bool other_order = false;
};

/// An answer that acknowledges.
bool is_positive(const wire::packet& p);

/// A frame of the held host: what the adapter is expected to send.
struct expectation {
  enum class state : std::uint8_t { open, matched, covered, different };
  std::size_t frame = 0;  ///< index in the capture
  state now = state::open;
  bool waited_for = true;  ///< false: the replay went on without it
  /// Of an answer: the transmission that the real host answered, an index in the capture; no_frame: not known.
  std::size_t question = no_frame;
  std::size_t answer = 0;  ///< index into comparison::answers() + 1, 0: none
};

/// A span that takes no more memory than it has marks.
class kept_span {
 public:
  kept_span() = default;
  explicit kept_span(const sim::span& s);
  sim::time_ps start() const { return start_; }
  sim::time_ps end() const { return marks_.empty() ? start_ : marks_.back().at; }
  operator sim::span() const;  // NOLINT(google-explicit-constructor): it is one

 private:
  sim::time_ps start_ = 0;
  std::vector<sim::span::mark> marks_;
};

/// A RoCE frame of the adapter.
struct obtained_frame {
  sim::time_ps first_bit = 0;
  int connection = -1;
  std::uint8_t opcode = 0;
  std::uint8_t syndrome = 0;  ///< of its AETH; 0 (ACK) without one
  std::uint32_t msn = 0;      ///< of its AETH
  std::uint64_t found = 0;    ///< by an atomic, of its answer
  std::uint32_t psn = 0;
  std::size_t question = 0;  ///< index in the capture + 1 of the peer's request that it answers, 0: none
  sim::time_ps latency = 0;  ///< from the first bit of the question to its own
  std::size_t expected = 0;  ///< index in the capture + 1, 0: not in it
  bool followed = false;     ///< `way` is the span from the question to this frame
  kept_span way;
};

/// Matches, connection by connection, the adapter's frames with those of the held host in the capture.
class comparison {
 public:
  /// `ignored`: of compared_fields(), what is not compared.
  explicit comparison(const plan& p, std::set<difference_kind> ignored = {});

  /// Frame `index` of the capture begins on the line.
  void injected(std::size_t index, sim::time_ps first_bit);
  /// The adapter sent a frame: of which connection, negative for none.
  int received(const payload::frame& f, const sim::span_recorder& spans);
  /// A connection that comes after others of the same queue pair numbers begins.
  void begin(int connection);
  /// Names what is still open at the end, and explains every difference.
  void finish();

  /// Whether the held host's frame has been sent, answered together with a later one, or is not waited for any more.
  bool settled(std::size_t frame) const;
  /// So many messages of the peer came into receives.
  void delivered(int connection, std::uint64_t messages);
  /// Goes on without it.
  void give_up(std::size_t frame);
  /// Whether the adapter has sent a request of this connection whose PSNs reach `psn`.
  bool asked(int connection, wire::psn_t psn) const;

  /// `frame`: index in the capture + 1, or 0.
  void note(difference_kind kind, int connection, std::size_t frame, std::string expected, std::string obtained);
  const std::vector<difference>& differences() const { return differences_; }
  const std::vector<expectation>& expectations() const { return expectations_; }
  const std::vector<obtained_frame>& answers() const { return answers_; }
  /// Index into expectations() + 1 of a frame of the capture, 0: none is expected.
  std::size_t expectation_of(std::size_t frame) const { return by_frame_[frame]; }
  std::uint64_t foreign_frames() const { return foreign_; }

 private:
  struct lane {
    std::unordered_map<std::uint32_t, std::vector<std::size_t>> by_psn;  // expectations
    bool asked = false, acknowledged = false;
    wire::psn_t asked_up_to, acknowledged_up_to;
    std::vector<std::size_t> counted;  // expectations whose MSN is compared at the end
    sim::time_ps acknowledged_at = 0;  // when the last packet of that PSN was
    struct question {
      std::size_t frame;
      wire::psn_t first, last;
      sim::time_ps at;
    };
    std::vector<question> questions;  // injected requests, the latest last
  };
  using lane_key = std::tuple<wire::gid, wire::gid, std::uint32_t, wire::encapsulation>;
  std::map<std::uint32_t, int> datagram_lanes_;  // by queue pair of the held host
  int lane_of(const wire::packet& p) const;
  bool is_covered(const expectation& e) const;
  void match(int connection, const wire::packet& p, const std::uint8_t* bytes);
  expectation* find_expectation(const lane& l, const wire::packet& p, std::size_t question);
  bool same(lane& l, const expectation& e, const wire::packet& p, const std::uint8_t* bytes);
  std::optional<difference_kind> first_difference(const captured_frame& f, const wire::packet& p,
                                                  const std::uint8_t* bytes) const;
  void compare_counts(const lane& l);
  void find_other_orders();
  void find_question(const lane& l, const wire::packet& p, obtained_frame& o) const;
  void follow(const payload::frame& f, const sim::span_recorder& spans, obtained_frame& o) const;

  const plan& plan_;
  std::set<difference_kind> ignored_;
  std::vector<lane> lanes_;
  std::map<lane_key, int> lane_index_;
  std::vector<expectation> expectations_;
  std::vector<std::size_t> by_frame_;
  std::vector<obtained_frame> answers_;
  std::vector<difference> differences_;
  std::vector<sim::time_ps> injected_at_;  // by frame of the capture, of which the first bit is known
  std::uint64_t foreign_ = 0;
};

/// One line about a RoCE packet: opcode, PSN, and what its AETH or RETH says.
std::string describe(const wire::packet& p);

}  // namespace rnic::replay
