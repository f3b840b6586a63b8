// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/latencies.h"

#include <algorithm>
#include <map>
#include <utility>

namespace rnic::replay {

namespace {

constexpr std::size_t questions_kept = 1024;  // of a connection: more are not under way

struct question {
  std::size_t frame;
  wire::psn_t first, last;
};

question question_of(const plan& p, std::size_t i) {
  const captured_frame& f = p.frames[i];
  question q{i, f.packet.bth.psn, f.packet.bth.psn};
  if (wire::operation_of(f.packet.bth.opcode) == wire::operation::read_request && f.packet.reth.length != 0)
    q.last = q.first + (f.packet.reth.length - 1) / p.connections[static_cast<std::size_t>(f.connection)].mtu;
  return q;
}

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

std::vector<std::size_t> captured_questions(const plan& p) {
  std::vector<std::size_t> found(p.frames.size(), 0);
  std::vector<std::vector<question>> asked(p.connections.size());
  for (std::size_t i = 0; i < p.frames.size(); ++i) {
    const captured_frame& f = p.frames[i];
    if (f.connection < 0) continue;
    std::vector<question>& open = asked[static_cast<std::size_t>(f.connection)];
    const wire::opcode_traits& t = wire::traits(f.packet.bth.opcode);
    if (!f.from_held && t.request) {
      if (open.size() == 2 * questions_kept)
        open.erase(open.begin(), open.begin() + static_cast<std::ptrdiff_t>(questions_kept));
      open.push_back(question_of(p, i));
    }
    if (!f.from_held || !t.response) continue;
    const wire::psn_t psn = f.packet.bth.psn;
    const auto q = std::find_if(open.rbegin(), open.rend(),
                                [&](const question& x) { return !psn.before(x.first) && !psn.after(x.last); });
    if (q != open.rend()) found[i] = q->frame + 1;
  }
  return found;
}

std::vector<answer_kind> compare_latencies(const plan& p, const comparison& c,
                                           const std::vector<std::size_t>& questions) {
  std::map<std::pair<std::uint8_t, std::string>, answer_kind> kinds;
  for (const expectation& e : c.expectations()) {
    if (e.answer == 0 || questions[e.frame] == 0) continue;
    const obtained_frame& o = c.answers()[e.answer - 1];
    const wire::packet& x = p.frames[e.frame].packet;
    if (o.question == 0 || o.opcode != x.bth.opcode) continue;
    if (wire::traits(o.opcode).aeth && syndrome_kind(o.syndrome) != syndrome_kind(x.aeth.syndrome)) continue;
    answer_kind& k = kinds[{o.opcode, kind_suffix(x)}];
    k.name = std::string(wire::traits(o.opcode).name) + kind_suffix(x);
    k.times.push_back({e.frame, p.frames[e.frame].at - p.frames[questions[e.frame] - 1].at, o.latency});
  }
  std::vector<answer_kind> out;
  for (auto& [key, kind] : kinds) out.push_back(std::move(kind));
  return out;
}

}  // namespace rnic::replay
