// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/latencies.h"

#include <map>
#include <utility>

#include "testbenches/replay/packets.h"

namespace rnic::replay {

namespace {

const char* kind_suffix(const wire::packet& p) {
  if (!wire::traits(p.bth.opcode).aeth) return "";
  switch (syndrome_kind(p.aeth.syndrome)) {
    case aeth_kind::rnr:
      return " (RNR NAK)";
    case aeth_kind::nak:
      return " (NAK)";
    default:
      return "";
  }
}

}  // namespace

std::vector<answer_kind> compare_latencies(const plan& p, const comparison& c,
                                           const std::vector<std::size_t>& questions) {
  std::map<std::pair<std::uint8_t, std::string>, answer_kind> kinds;
  for (const expectation& e : c.expectations()) {
    if (e.answer == 0 || questions[e.frame] == no_frame) continue;
    const obtained_frame& o = c.answers()[e.answer - 1];
    const wire::packet& x = p.frames[e.frame].packet;
    if (o.question == 0 || o.opcode != x.bth.opcode) continue;
    if (wire::traits(o.opcode).aeth && syndrome_kind(o.syndrome) != syndrome_kind(x.aeth.syndrome)) continue;
    answer_kind& k = kinds[{o.opcode, kind_suffix(x)}];
    k.name = std::string(wire::traits(o.opcode).name) + kind_suffix(x);
    k.times.push_back({e.frame, p.frames[e.frame].at - p.frames[questions[e.frame]].at, o.latency});
  }
  std::vector<answer_kind> out;
  for (auto& [key, kind] : kinds) out.push_back(std::move(kind));
  return out;
}

}  // namespace rnic::replay
