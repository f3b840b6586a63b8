// SPDX-License-Identifier: Apache-2.0
// What shall happen to which frames on a cable.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <vector>

#include "model/sim/types.h"

namespace rnic::fabric {

enum class fault_action : std::uint8_t { drop, duplicate, reorder, corrupt, delay, mark_congestion };
inline constexpr unsigned fault_actions = 6;
/// "drop", "duplicate", "reorder", "corrupt", "delay", "mark_congestion".
const char* to_string(fault_action a);

/// Where a frame is damaged.
enum class frame_part : std::uint8_t {
  any,      ///< anywhere from DMAC to before the FCS
  payload,  ///< of a RoCE packet
  header,   ///< a field by name, or anywhere in front of the payload
  icrc,
  fcs  ///< the FCS itself: the bytes stay as they are
};
/// What is computed again after the damage.
enum class made_right : std::uint8_t {
  nothing,  ///< as on a bad cable: the port sees it
  fcs,      ///< as in a bad switch: the ICRC sees it
  icrc,     ///< and the FCS: as from a wrong sender, the transport sees it
  either    ///< nothing or the FCS, by chance
};

/// A header field that can be damaged by name.
enum class header_field : std::uint8_t {
  none,
  dmac,
  smac,
  ip_ttl,       ///< or hop limit
  ip_checksum,  ///< IPv4
  udp_source,
  udp_dest,
  opcode,
  solicited,
  migration,
  pad,
  version,
  pkey,
  dest_qp,
  ack_request,
  psn,
  reth_va,
  reth_rkey,
  reth_length,
  aeth_syndrome,
  aeth_msn
};
inline constexpr unsigned header_fields = 21;
const char* to_string(header_field f);
/// Bits of the field.
unsigned width_of(header_field f);

/// Answers by the kind of their AETH.
enum class answer_kind : std::uint8_t { any, ack, rnr_nak, nak };

/// Frames of one direction to one QP, requests and responses apart, are a flow; the flows of a direction are numbered
/// from 1 in the order in which they are first seen, requests and responses apart. Everything that is counted is
/// counted for each flow; frames that are not RoCE are one flow, number 0.
struct fault_rule {
  static constexpr std::uint64_t certain = std::uint64_t{1} << 32;
  static constexpr std::uint32_t any_qp = ~0u;
  enum class psn_kind : std::uint8_t { any, absolute, relative };

  fault_action action = fault_action::drop;

  // Which frames are meant.
  std::uint8_t directions = 3;  ///< mask: bit 0 frames of the first connector, bit 1 of the second
  bool roce_only = false;       ///< any opcode; else every frame, flow control included
  bool by_opcode = false;
  std::bitset<256> opcodes;
  answer_kind answer = answer_kind::any;
  std::uint32_t qpn = any_qp;  ///< destination
  std::uint32_t flow = 0;      ///< 0: any
  psn_kind by_psn = psn_kind::any;
  std::uint32_t psn = 0;  ///< relative: to the first one seen in the flow

  // Which of them are hit: all of these must agree.
  std::uint64_t first = 0;              ///< only from the n-th of a flow on, from 1; 0: from the first
  std::uint64_t last = 0;               ///< only up to the n-th; 0: no end
  std::uint64_t every = 1;              ///< each n-th from there
  std::uint64_t probability = certain;  ///< of 2^32
  std::uint64_t times = 0;              ///< at most as often in a direction; 0: no limit

  // How.
  std::uint32_t frames = 1;                     ///< reorder: behind the next n frames of its flow's QP
  sim::time_ps hold_ps = 100 * sim::ps_per_us;  ///< reorder: or after this time, when there are not so many
  std::uint32_t copies = 1;                     ///< duplicate
  sim::time_ps delay_ps = sim::ps_per_us;       ///< delay
  frame_part part = frame_part::any;            ///< corrupt
  header_field field = header_field::none;      ///< corrupt, with part header
  bool by_offset = false, by_value = false;     ///< else by chance
  std::uint32_t offset = 0;                     ///< byte in the part (beyond its end: its last byte)
  std::uint8_t bit = 8;                         ///< 0..7; 8: by chance
  std::uint64_t value = 0;                      ///< what the field becomes
  made_right right = made_right::either;

  // What the author says will come of it.
  std::string completion;  ///< of the message that is hit: "success", "retry_exceeded", ...; empty: not said
  std::string counter;     ///< part of the name of a counter that goes up; empty: not said
  std::string name;        ///< for reports
};

/// A cable that is dead: pulled out, or cut.
struct outage {
  static constexpr sim::time_ps for_good = 0;

  unsigned port = 0;         ///< of the adapters, whose cable is meant; 0: every one
  sim::time_ps down_ps = 0;  ///< since the beginning of the simulation
  sim::time_ps lasts_ps = for_good;
  sim::time_ps every_ps = 0;  ///< from one to the next
  std::uint64_t times = 1;
};

struct fault_plan {
  std::vector<fault_rule> rules;  ///< the first that hits a frame acts; all count it
  std::vector<outage> outages;
  std::uint64_t seed = 0;       ///< 0: that of the run
  bool capture_before = false;  ///< captures show what was sent, not what arrives

  bool empty() const { return rules.empty() && outages.empty(); }
};

/// A rule for all frames of both directions that hits with `percent`, 0 to 100. Damage is under a right FCS or not by
/// chance; what is reordered goes behind one or two others.
fault_rule rate_rule(fault_action action, double percent);

/// Reads a plan from a TOML file; model/fabric/README.md has the format. Throws sim::config_error: one line with file,
/// line, field and what is legal.
fault_plan load_fault_plan(const std::string& file);
/// The same from text; `name` is what errors call it.
fault_plan parse_fault_plan(const std::string& text, const std::string& name);

}  // namespace rnic::fabric
