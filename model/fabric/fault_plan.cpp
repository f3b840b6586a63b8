// SPDX-License-Identifier: Apache-2.0
// Names and widths.
#include "model/fabric/fault_plan.h"

#include <cmath>

namespace rnic::fabric {

namespace {

constexpr const char* action_names[fault_actions] = {"drop",    "duplicate", "reorder",
                                                     "corrupt", "delay",     "mark_congestion"};

struct field_row {
  const char* name;
  unsigned bits;
};
constexpr field_row fields[header_fields] = {{"", 0},
                                             {"dmac", 48},
                                             {"smac", 48},
                                             {"ip_ttl", 8},
                                             {"ip_checksum", 16},
                                             {"udp_source", 16},
                                             {"udp_dest", 16},
                                             {"opcode", 8},
                                             {"solicited", 1},
                                             {"migration", 1},
                                             {"pad", 2},
                                             {"version", 4},
                                             {"pkey", 16},
                                             {"dest_qp", 24},
                                             {"ack_request", 1},
                                             {"psn", 24},
                                             {"reth_va", 64},
                                             {"reth_rkey", 32},
                                             {"reth_length", 32},
                                             {"aeth_syndrome", 8},
                                             {"aeth_msn", 24}};

}  // namespace

const char* to_string(fault_action a) { return action_names[static_cast<unsigned>(a)]; }
const char* to_string(header_field f) { return fields[static_cast<unsigned>(f)].name; }
unsigned width_of(header_field f) { return fields[static_cast<unsigned>(f)].bits; }

fault_rule rate_rule(fault_action action, double percent) {
  fault_rule r;
  r.action = action;
  r.probability = static_cast<std::uint64_t>(std::llround(percent / 100 * static_cast<double>(fault_rule::certain)));
  r.frames = 2;
  r.name = std::string("rate of ") + to_string(action);
  return r;
}

}  // namespace rnic::fabric
