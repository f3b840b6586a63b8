// SPDX-License-Identifier: Apache-2.0
// The look-up of a packet's source cycle by cycle: one interface, for the model (gid_source.h) and for RTL.
#pragma once

#include <cstdint>

#include "model/gid/gid_match_if.h"
#include "model/sim/parameter.h"
#include "model/wire/packet.h"

namespace rnic::gid {

struct source_config {
  /// From a look-up to its result.
  sim::parameter<std::uint8_t> source_cycles{
      2, {1, 16, "cycles", "design: read, check; of the TX pipeline of calibration 5, for requests and answers alike"}};
  /// Of a port's tables, for the two transmit pipelines.
  sim::parameter<std::uint8_t> source_ports{
      2, {1, 2, "read ports", "design: one for each transmit pipeline; with one the pipelines read in turn"}};

  void list(sim::fields& are) {
    are("source_cycles", source_cycles);
    are("source_ports", source_ports);
  }
};

/// What a packet that leaves names of its port's tables.
struct source_request {
  bool checked = false;      ///< its headers are the adapter's: entry `index` must be one that it may leave with
  bool any_version = false;  ///< of a datagram: the version is that of the entry
  bool ipv4 = false;         ///< the destination GID is an IPv4 address
  bool tagged = false;       ///< with the VID of entry `vlan_index`
  roce_type type = roce_type::v1;
  std::uint8_t index = 0, mac_index = 0, vlan_index = 0;
  std::uint16_t function = 0;  ///< that the queue pair belongs to
  wire::mac_address dmac{};
};

/// Why a packet has no source, the first that is true (adapter data plane A.9.1, adapter control plane 8.6).
enum class refusal : std::uint8_t {
  none,
  invalid,   ///< the entry is not valid
  version,   ///< it is of the other version of RoCE
  function,  ///< it lies in the window of another function
  family     ///< RoCE v2: one address is IPv4 and the other one IPv6
};
inline constexpr unsigned refusals = 5;

/// One entry of each table, as they are in the cycle of the look-up.
struct source {
  refusal why = refusal::none;     ///< if any, nothing below counts
  roce_type type = roce_type::v1;  ///< of the entry, as `id`: of a packet that is checked
  bool own_destination = false;    ///< dmac is a valid one of the port's: the frame comes back
  bool vlan_valid = false;         ///< tagged, and the entry is valid
  std::uint16_t vlan = 0;          ///< VID; 0 when not valid
  wire::gid id{};
  wire::mac_address mac{};
};

/// Inputs of one cycle. A look-up is taken when valid and ready; until then it is offered unchanged.
struct source_inputs {
  bool valid = false;
  source_request request;
};

/// Outputs of one cycle; all of them come from registers. There is no back-pressure on results.
struct source_outputs {
  bool ready = false;
  bool result_valid = false;
  source found;
};

/// Data sheet. One look-up port onto the tables of a port, for one transmit pipeline: 128 GIDs, 128 MACs, 128 VIDs.
///
/// A look-up a cycle. Taken in cycle n, it reads one entry of each table in n and compares the destination MAC with all
/// valid ones; the check is behind that; result in n + source_cycles. What firmware writes in n is found from n + 1 on:
/// a result is one state of the tables, never the half of another.
class gid_source_if {
 public:
  virtual ~gid_source_if() = default;

  /// One clock cycle: the outputs during it.
  virtual source_outputs step(const source_inputs& in) = 0;
  virtual void reset() = 0;
  /// A look-up at once, for a caller who keeps to the cycles above. Nothing may be under way by step().
  virtual source look_up(const source_request& request) = 0;
  /// source_cycles.
  virtual unsigned cycles() const = 0;
};

}  // namespace rnic::gid
