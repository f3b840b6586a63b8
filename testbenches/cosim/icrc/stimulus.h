// SPDX-License-Identifier: Apache-2.0
// What the ICRC engine is driven with, and what must come out: packets, pauses, back-pressure, resets.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "model/icrc/icrc_if.h"

namespace rnic::cosim {

/// Bytes of a packet from its L3 header to before its ICRC. Any length of at least 1: the engine counts bytes only.
struct test_packet {
  wire::encapsulation encap = wire::encapsulation::roce_v2_ipv4;
  std::vector<std::uint8_t> bytes;
};
test_packet random_packet(std::mt19937_64& rng, wire::encapsulation encap, std::size_t length);

/// The ICRC by zlib over eight bytes of ones and the packet with its variant fields set to ones, field by field as in
/// the table of the standard; knows nothing of beats.
std::uint32_t oracle_icrc(const test_packet& p);

/// When something is offered or taken.
enum class pattern { always, alternate, bursts, random };
std::string to_string(pattern p);
bool active(pattern p, std::uint64_t cycle, std::mt19937_64& rng);

struct traffic {
  std::vector<test_packet> packets;
  pattern offer = pattern::always;
  pattern take = pattern::always;
  unsigned reset_one_in = 0;  ///< a reset cycle on average every so many cycles; 0: none
  std::uint64_t seed = 1;
};

/// Inputs of one cycle.
struct stimulus {
  icrc::icrc_beat in;
  bool result_ready = false;
  bool reset = false;
};

/// Drives one engine by the stream contract; the engine's outputs decide how it goes on.
class driver {
 public:
  explicit driver(const traffic& t) : traffic_(t), rng_(t.seed) {}
  stimulus next();
  /// After the cycle, with the outputs that it had. Returns a line when a result is not what the oracle says.
  std::optional<std::string> finish(const stimulus& s, const icrc::icrc_outputs& out);
  bool done() const { return packet_ == traffic_.packets.size() && expected_.empty(); }

 private:
  void load();

  const traffic& traffic_;
  std::mt19937_64 rng_;
  std::uint64_t cycle_ = 0;
  std::size_t packet_ = 0;
  std::size_t offset_ = 0;
  bool offered_ = false;
  icrc::icrc_beat beat_;
  std::deque<std::uint32_t> expected_;
};

}  // namespace rnic::cosim
