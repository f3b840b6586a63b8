// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/trace/message_note.h"

#include <algorithm>

#include "host_driver/workloads/verb.h"

namespace rnic::bench {

namespace {

std::uint8_t verb_number(const ibv_send_wr& wr) {
  const bool masked = wr.opcode == IBV_WR_DRIVER1;
  const auto& all = workloads::verbs();
  const auto same = [&](const workloads::verb& v) {
    if (!masked) return !v.masked && v.opcode == wr.opcode;
    const auto what = static_cast<const host_driver::driver_wr&>(wr).operation;
    const bool adds = v.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    return v.masked && what == (adds ? host_driver::driver_opcode::masked_fetch_add
                                     : host_driver::driver_opcode::masked_compare_swap);
  };
  const auto at = std::find_if(all.begin(), all.end(), same);
  return at == all.end() ? message_note::no_verb : static_cast<std::uint8_t>(at - all.begin());
}

std::uint32_t bytes_of(const ibv_send_wr& wr) {
  std::uint64_t bytes = 0;
  for (int i = 0; i < wr.num_sge; ++i) bytes += wr.sg_list[i].length;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, ~std::uint32_t{0}));
}

}  // namespace

message_note message_note::of(const ibv_send_wr& wr, std::uint16_t flow) {
  return {bytes_of(wr), flow, verb_number(wr)};
}

const char* message_note::verb_name() const { return verb == no_verb ? "other" : workloads::verbs()[verb].name; }

}  // namespace rnic::bench
