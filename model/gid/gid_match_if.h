// SPDX-License-Identifier: Apache-2.0
// The GID match of a port cycle by cycle: one interface, for the model (gid_match.h) and for RTL.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>

#include "model/sim/parameter.h"
#include "model/wire/packet.h"

namespace rnic::gid {

inline constexpr unsigned table_size = 128;

enum class roce_type : std::uint8_t { v1 = 0, v2 = 2 };

/// ::ffff:a.b.c.d
inline bool is_mapped_ipv4(const std::uint8_t* id) {
  static constexpr std::uint8_t prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(id, prefix, sizeof prefix) == 0;
}

/// How the entry of a destination GID is found.
enum class match_method : std::uint8_t {
  parallel,  ///< a comparator for each of the 128 entries and an encoder that takes the lowest; a look-up a cycle
  hashed     ///< 128 buckets in a memory of one port; entries of one bucket are read one after the other, lowest first
};

struct match_config {
  sim::parameter<match_method> method{
      match_method::parallel, {"parallel, hashed", "design: 128 comparators a port; hashed: buckets in a memory"}};
  /// Parallel: from a look-up to its result.
  sim::parameter<std::uint8_t> compare_cycles{
      2, {1, 16, "cycles", "design: compare, encode; of the RX pipeline of calibration 5"}};
  /// Hashed: from one entry of a bucket to the next.
  sim::parameter<std::uint8_t> probe_cycles{2, {1, 16, "cycles", "design: read, compare"}};

  void list(sim::fields& are) {
    are("match", method);
    are("compare_cycles", compare_cycles);
    are("probe_cycles", probe_cycles);
  }
};

/// Inputs of one cycle. A look-up is taken when valid and ready; until then it is offered unchanged.
struct match_inputs {
  bool valid = false;
  wire::gid dgid{};
  roce_type type = roce_type::v1;
};

/// Outputs of one cycle; all of them come from registers. There is no back-pressure on results: who asks has a place
/// for each.
struct match_outputs {
  bool ready = false;
  bool result_valid = false;
  bool hit = false;
  std::uint8_t index = 0;  ///< with hit: the lowest entry with this GID and type
};

/// Bucket of a GID: its bytes and its type, folded to 7 bits.
constexpr unsigned bucket_of(const wire::gid& id, roce_type type) {
  unsigned h = static_cast<unsigned>(type) << 3;
  for (unsigned i = 0; i < 16; ++i) h ^= unsigned{id[i]} << (i % 7);
  return (h ^ h >> 7) % table_size;
}

/// One look-up port. Cycles of a look-up that is taken in cycle n:
///   parallel  result in n + compare_cycles, the next look-up in n + 1
///   hashed    one cycle for the hash, then probe_cycles for each entry read, one at least: result in
///             n + 1 + probes * probe_cycles, the next look-up in n + probes * probe_cycles
class gid_match_if {
 public:
  struct result {
    std::optional<unsigned> index;
    unsigned cycles = 0;    ///< to the result
    unsigned interval = 0;  ///< to the next look-up
  };
  virtual ~gid_match_if() = default;

  /// One clock cycle: the outputs during it.
  virtual match_outputs step(const match_inputs& in) = 0;
  virtual void reset() = 0;
  /// A look-up at once, for a caller who keeps to the cycles above. Nothing may be under way by step().
  virtual result look_up(const wire::gid& dgid, roce_type type) = 0;
  /// Cycles of what passes without a look-up: those of a hit in the first probe.
  virtual unsigned pass_cycles() const = 0;
};

}  // namespace rnic::gid
