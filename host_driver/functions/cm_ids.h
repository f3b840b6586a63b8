// SPDX-License-Identifier: Apache-2.0
// Communication IDs of several functions that share one QP1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace rnic::host_driver {

/// Functions choose the communication IDs of their connections without knowing of each other, and their peers find one
/// QP1: on the wire each ID is another one, and what comes back has its function's again (ib/cm.c:
/// mlx4_ib_multiplex_cm_handler, mlx4_ib_demux_cm_handler). An ID goes out as the function has it where nobody else's
/// is the same.
///
/// An ID lasts as long as its connection, and `keep_ps` longer (CM_CLEANUP_CACHE_TIMEOUT): from a DREQ, DREP, REJ or
/// SIDR_REP in either direction on, unless a new request has it.
class cm_ids {
 public:
  cm_ids(std::uint64_t keep_ps, std::size_t most_of_function) : keep_ps_(keep_ps), most_(most_of_function) {}

  /// unknown: a message of a connection that has no ID here. foreign: the ID is another function's. no_room: the
  /// function has all that it may have.
  enum class verdict : std::uint8_t { passes, unknown, foreign, no_room };
  /// A CM message (256 bytes, mad_rules.h: fault_of) from a function to the wire, and from the wire to the function
  /// that it is addressed to; what passes is changed in place.
  verdict leave(unsigned function, std::uint8_t* message, std::uint64_t now_ps);
  verdict arrive(unsigned function, std::uint8_t* message, std::uint64_t now_ps);
  /// All of the function's.
  void forget(unsigned function);
  std::size_t size() const { return by_wire_.size(); }

 private:
  struct entry {
    unsigned function = 0;
    std::uint32_t own = 0;
    std::uint64_t until = ~std::uint64_t{0};
  };
  using on_wire = std::map<std::uint32_t, entry>;
  on_wire::iterator find(unsigned function, std::uint32_t own);
  on_wire::iterator make(unsigned function, std::uint32_t own, std::uint64_t now_ps);
  on_wire::iterator remove(on_wire::iterator at);
  void expire(std::uint64_t now_ps);

  const std::uint64_t keep_ps_;
  const std::size_t most_;
  on_wire by_wire_;
  std::map<std::pair<unsigned, std::uint32_t>, std::uint32_t> by_function_;
  std::map<unsigned, std::size_t> count_;  // by function
  std::uint32_t next_ = 1;
  std::uint64_t first_end_ = ~std::uint64_t{0};  // no ID ends before
};

}  // namespace rnic::host_driver
