// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/crossings.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "model/wire/packet.h"
#include "testbenches/replay/packets.h"

namespace rnic::replay {

namespace {

constexpr std::ptrdiff_t packets_under_way = 4096;  // of a connection, in both directions, at most
/// After it the held host sends again from the packet that it names, and nothing new before that.
bool sends_back(const captured_frame& f) { return is_rnr(f.packet) || is_sequence_nak(f.packet); }

using place = std::vector<std::size_t>::iterator;

/// The last new request behind the NAK at `nak` that the held host sent without having it.
place last_crossing(const plan& p, place nak, place end) {
  const captured_frame& refusal = p.frame(*nak);
  const place none = end;
  place last = none;
  if (end - nak > packets_under_way) end = nak + packets_under_way;
  for (place i = std::next(nak); i != end; ++i) {
    const captured_frame& f = p.frame(*i);
    if (is_rnr(refusal.packet) && f.at >= refusal.at + rnr_wait(refusal.packet.aeth.syndrome)) break;
    if (!f.from_held) {
      if (wire::traits(f.packet.bth.opcode).response && !sends_back(f)) break;
      continue;
    }
    if (!wire::traits(f.packet.bth.opcode).request) continue;
    if (f.repeated || !f.packet.bth.psn.after(refusal.packet.bth.psn)) break;
    last = i;
  }
  return last;
}

}  // namespace

void let_cross(plan& p, connection& c) {
  if (c.service != wire::transport::rc && c.service != wire::transport::xrc) return;
  for (place i = c.order.begin(); i != c.order.end();) {
    const place last = *i < p.frames.size() && !p.frames[*i].from_held && sends_back(p.frames[*i])
                           ? last_crossing(p, i, c.order.end())
                           : c.order.end();
    if (last == c.order.end()) {
      ++i;
      continue;
    }
    const std::size_t behind = *last;
    const place naks = std::stable_partition(i, std::next(last), [&](std::size_t n) {
      return n >= p.frames.size() || p.frames[n].from_held || !sends_back(p.frames[n]);
    });
    for (place n = naks; n != std::next(last); ++n) p.frames[*n].crosses = behind;
    i = std::next(last);
  }
}

}  // namespace rnic::replay
