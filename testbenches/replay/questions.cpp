// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/questions.h"

#include <algorithm>
#include <map>
#include <utility>

#include "testbenches/replay/packets.h"

namespace rnic::replay {

namespace {

/// An answer whose question was sent more than once.
struct doubtful_answer {
  std::size_t frame;
  const std::vector<std::size_t>* sent;  ///< all transmissions of its question
};

/// Of an answer and a transmission: which packets of which connection they are.
using packet_key = std::pair<int, std::uint32_t>;
packet_key key_of(const captured_frame& f) { return {f.connection, f.packet.bth.psn.value()}; }

/// A sequence NAK names the packet that is missing, which is not the one that it answers.
bool answers_its_psn(const wire::packet& p) { return !is_sequence_nak(p); }

/// Chooses for answers, in the order of the capture, the latest transmission that is not too late for them and comes
/// after the one that the answer before them belongs to: each transmission is answered in its turn.
class chooser {
 public:
  chooser(const plan& p, sim::time_ps fastest) : plan_(p), fastest_(fastest) {}
  void note(std::size_t answer, std::size_t question) {
    const captured_frame& f = plan_.frames[answer];
    if (answers_its_psn(f.packet)) answered_[key_of(f)] = question;
  }
  std::size_t choose(const doubtful_answer& a) {
    const captured_frame& f = plan_.frames[a.frame];
    const auto before = answered_.find(key_of(f));
    std::size_t first = no_frame, latest = no_frame, any = a.sent->front();
    for (const std::size_t i : *a.sent) {
      if (i > a.frame) break;
      const bool in_time = fastest_ == never || f.at - plan_.frames[i].at >= fastest_;
      if (in_time) any = i;
      if (before != answered_.end() && i <= before->second) continue;
      if (first == no_frame) first = i;
      if (in_time) latest = i;
    }
    return latest != no_frame ? latest : first != no_frame ? first : any;
  }

 private:
  const plan& plan_;
  sim::time_ps fastest_;
  std::map<packet_key, std::size_t> answered_;  // by the last answer so far
};

}  // namespace

std::vector<std::size_t> captured_questions(const plan& p) {
  struct transmissions {
    std::map<std::int32_t, std::vector<std::size_t>> from;  // first PSN, after the connection's first -> frames
    bool known = false;
    wire::psn_t first;
    sim::time_ps latest = 0;  // of any request
  };
  std::vector<transmissions> lanes(p.connections.size());
  std::vector<std::size_t> questions(p.frames.size(), no_frame);
  std::vector<doubtful_answer> doubtful;
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
        doubtful.push_back({i, &at->second});
    }
  }
  chooser c(p, fastest);
  auto next = doubtful.begin();
  for (std::size_t i = 0; i < questions.size(); ++i) {
    if (questions[i] == no_frame) continue;
    if (next != doubtful.end() && next->frame == i) questions[i] = c.choose(*next++);
    c.note(i, questions[i]);
  }
  return questions;
}

}  // namespace rnic::replay
