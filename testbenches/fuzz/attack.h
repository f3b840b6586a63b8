// SPDX-License-Identifier: Apache-2.0
// Inputs as things that a peer and a program do to an adapter, so that what is done is worth looking at: numbers follow
// those before, answers belong to requests, checksums are right.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "testbenches/fuzz/input.h"
#include "testbenches/system/conformance/frames.h"
#include "testbenches/system/conformance/rig.h"
#include "testbenches/system/conformance/subject.h"

namespace rnic::fuzz {

/// README.md has the layout of inputs.
class attack {
 public:
  /// `process`: operations of the program are with its own descriptors and doorbells, not through verbs.
  attack(conformance::rig& r, input& in, bool process);
  /// All that the input says, then the end of all queue pairs, then what must hold.
  void run();

 private:
  /// A queue pair, and what its peer knows.
  struct actor {
    std::unique_ptr<conformance::subject> qp;
    std::uint32_t next_in = 0;                   ///< requests of the peer so far: packets
    std::deque<conformance::heard_frame> asked;  ///< requests of the adapter, the last ones
  };
  static constexpr unsigned most_actors = 4;

  // attack.cpp
  void take_on(actor& a);
  void dismiss(actor& a);
  actor& pick() { return actors_[in_.below(static_cast<unsigned>(actors_.size()))]; }
  void step();
  void step_of_program(unsigned what);
  void move(actor& a);
  void listen();
  void end();
  void say(const std::string& what) const;
  // attack_frames.cpp: what the peer does
  void step_of_peer(unsigned what);
  void put(std::vector<std::uint8_t> frame);
  void request(actor& a);
  void answer(actor& a);
  void answer_read(actor& a);
  void put_answer(actor& a, const conformance::heard_frame& to, wire::operation op, std::uint32_t ahead,
                  std::uint32_t bytes, std::uint8_t syndrome);
  void plain_frame();
  void pause();
  std::uint32_t length();
  conformance::key key();
  // attack_work.cpp: what the process does
  void post_verb(actor& a);
  void step_of_process(unsigned what);
  void post_words(actor& a);
  void put_segments(std::vector<std::uint32_t>& words);
  void ring(actor& a);
  void blue_flame(actor& a);
  void queue_doorbell(actor& a);
  void write_receive(actor& a);

  conformance::rig& r_;
  input& in_;
  bool process_;
  std::vector<actor> actors_;
  std::vector<std::uint8_t> last_;  ///< frame of the peer
  std::uint64_t rested_ps_ = 0;
};

}  // namespace rnic::fuzz
