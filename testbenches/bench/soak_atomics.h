// SPDX-License-Identifier: Apache-2.0
// The atomics of a soak: words on which each operation must have been done exactly once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host_driver/hosts/connection.h"
#include "testbenches/bench/soak_content.h"

namespace rnic::bench {

/// Each host has a word for every flow towards it, and one that all of them share. On its own word a flow adds,
/// compares and swaps; as requests of a queue pair are executed in order, every original value is known when it is
/// posted. On the shared word all flows add: the original values, in the order of their size, must be a chain without a
/// gap and without a fork, from the first value to the last one in memory.
class soak_atomics {
 public:
  struct operation {
    bool swap = false, shared = false;
    std::uint64_t address = 0;
    std::uint32_t rkey = 0;
    std::uint64_t compare_add = 0, swap_value = 0;
    std::uint64_t original = 0;  ///< what must be returned, of an own word
  };

  soak_atomics(unsigned flows, std::uint64_t seed);
  /// Makes the words of a host.
  void set_up(const hosts::endpoint& e, unsigned host);

  /// The next operation of a flow, from host `from`.
  operation draw(unsigned flow, unsigned from, bool swap, soak_random& random);
  /// An operation has completed with this original value. Empty, or what is wrong.
  std::string returned(const operation& o, unsigned from, std::uint64_t original);
  /// Something of these flows has failed: what its word holds is not known, nor is what the shared word holds.
  void failed(unsigned flow, unsigned from);

  struct finding {
    bool again = false;  ///< executed more than once; else lost or spoilt
    std::string text;
  };
  /// Compares memory with what must be in it, when nothing is under way any more.
  std::vector<finding> look() const;

 private:
  struct step {
    std::uint64_t original, added;
  };
  std::uint64_t word(unsigned host, unsigned place) const;
  void check_chain(unsigned host, std::vector<finding>& out) const;

  unsigned flows_;
  std::uint64_t seed_;
  hosts::buffer words_[2];                     // by host; the last word is the shared one
  std::vector<std::uint64_t> values_;          // of a flow's own word, when all that is posted is done
  std::vector<bool> unknown_;                  // by flow
  std::vector<step> steps_[2];                 // on the shared word, by host
  std::uint64_t first_[2] = {}, sum_[2] = {};  // of the shared word
  bool gap_[2] = {};                           // an operation on it may be missing
};

}  // namespace rnic::bench
