// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/questions.h"

#include <algorithm>
#include <map>
#include <utility>

#include "testbenches/replay/packets.h"

namespace rnic::replay {

std::vector<std::size_t> captured_questions(const plan& p) {
  struct transmissions {
    std::map<std::int32_t, std::vector<std::size_t>> from;  // first PSN, after the connection's first -> frames
    bool known = false;
    wire::psn_t first;
    sim::time_ps latest = 0;  // of any request
  };
  std::vector<transmissions> lanes(p.connections.size());
  std::vector<std::size_t> questions(p.frames.size(), no_frame);
  std::vector<std::pair<std::size_t, const std::vector<std::size_t>*>> doubtful;
  sim::time_ps fastest = never;
  for (std::size_t i = 0; i < p.frames.size(); ++i) {
    const captured_frame& f = p.frames[i];
    if (f.connection < 0) continue;
    transmissions& l = lanes[static_cast<std::size_t>(f.connection)];
    const wire::psn_t psn = f.packet.bth.psn;
    if (!f.from_held && wire::traits(f.packet.bth.opcode).request) {
      if (!l.known) l.first = psn;
      l.known = true;
      l.from[psn - l.first].push_back(i);
      l.latest = f.at;
    } else if (f.from_held && wire::traits(f.packet.bth.opcode).response && l.known) {
      auto at = l.from.upper_bound(psn - l.first);
      if (at == l.from.begin()) continue;
      --at;
      const wire::packet& x = p.frames[at->second.front()].packet;
      const std::uint32_t mtu = p.connections[static_cast<std::size_t>(f.connection)].mtu;
      const std::int32_t packets = is_read_request(x) ? static_cast<std::int32_t>(packets_of(x.reth.length, mtu)) : 1;
      if (psn - l.first >= at->first + packets) continue;
      questions[i] = at->second.back();
      if (at->second.size() == 1)
        fastest = std::min(fastest, f.at - l.latest);
      else
        doubtful.emplace_back(i, &at->second);
    }
  }
  for (const auto& [answer, sent] : doubtful)
    for (const std::size_t i : *sent) {
      if (i > answer) break;
      if (i == sent->front() || fastest == never || p.frames[answer].at - p.frames[i].at >= fastest)
        questions[answer] = i;
    }
  return questions;
}

}  // namespace rnic::replay
