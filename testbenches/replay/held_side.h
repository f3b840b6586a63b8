// SPDX-License-Identifier: Apache-2.0
// What the held host of a connection sent of its own accord: the messages that become work requests.
#pragma once

#include <cstdint>
#include <map>

#include "testbenches/replay/holes.h"
#include "testbenches/replay/packets.h"
#include "testbenches/replay/plan.h"

namespace rnic::replay {

/// Reads the requests of the held host on one connection, and the answers of its peer.
class held_reader {
 public:
  held_reader(plan& p, connection& c, packet_maker& maker) : plan_(p), c_(c), maker_(maker) {}

  /// Frames in the order of the capture.
  void request(std::size_t index);
  void answer(std::size_t index);
  /// After the last one: messages, and the peer's answers to READs and atomics that the capture lacks.
  void finish();

 private:
  void note_not_ready(std::int64_t place, std::size_t index);
  void find_end_of_patience();
  void held_request(std::int64_t place, std::size_t index);
  bool fill_gap(std::int64_t from, std::int64_t to, const wire::packet& next);
  bool stand_in(std::int64_t from, std::int64_t packets);
  void open_message(std::int64_t place, wire::operation what);
  bool add_zeros(std::uint64_t bytes);
  void close_message();
  void end_held();
  void fill_answers();
  bool fill_answer(std::int64_t place, const wire::packet& request, std::uint32_t number);
  std::uint32_t psn_at(std::int64_t place) const {
    return (wire::psn_t(c_.held_start_psn) + static_cast<std::uint32_t>((place - start_) & 0xffffff)).value();
  }

  plan& plan_;
  connection& c_;
  packet_maker& maker_;
  request_line line_;
  std::map<std::int64_t, std::size_t> answered_;       // places of READs and atomics -> first answer
  std::map<std::int64_t, std::size_t> positive_;       // place -> first frame that acknowledges it
  std::map<std::uint32_t, std::uint32_t> read_parts_;  // PSN of the peer's READ responses -> bytes
  std::map<std::int64_t, std::size_t> first_sign_;     // place -> first frame at it or beyond
  std::int64_t asked_from_ = 0, asked_up_to_ = 0;      // by a NAK: places to be sent again
  bool asked_again_ = false;
  /// The peer's last RNR NAK, and how many there were for that packet; count 0: something else came since.
  struct not_ready {
    std::size_t frame = no_frame;
    std::int64_t place = -1;
    unsigned count = 0;
    bool heeded = false;  ///< the packet was sent again
  };
  not_ready not_ready_;
  std::int64_t start_ = 0, next_ = 0;
  std::uint32_t srqn_ = 0;  // XRC: of the last request
  bool in_message_ = false;
  held_message open_;
};

}  // namespace rnic::replay
