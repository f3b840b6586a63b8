// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/pairing.h"

#include <algorithm>
#include <tuple>

#include "model/wire/packet.h"
#include "testbenches/replay/packets.h"

namespace rnic::replay {

namespace {

// Many connections may have the same PSNs: an answer is compared with so many requests of its PSN, and a flow's answers
// with so many in all, at least those of its first few answers.
constexpr std::size_t questions_looked_at = 1024;
constexpr unsigned comparisons_of_flow = 4096, answers_always = 8, answers_looked_at = 64;

/// The first packets of a READ's answer have the PSN of its request.
bool has_psn_of_question(const wire::packet& p) {
  const wire::operation o = wire::operation_of(p.bth.opcode);
  return o != wire::operation::read_response_middle && o != wire::operation::read_response_last;
}

bool tells_msn(const wire::packet& p) {
  return wire::traits(p.bth.opcode).aeth && syndrome_kind(p.aeth.syndrome) == aeth_kind::ack;
}

}  // namespace

pairing::pairing(const plan& p) : of_frame_(p.frames.size(), none) {
  for (std::size_t i = 0; i < p.frames.size(); ++i) {
    const captured_frame& f = p.frames[i];
    if (!f.roce) continue;
    const bool out = f.packet.smac == p.held_mac;
    if (!out && f.packet.dmac != p.held_mac) continue;
    if (!is_connected(f.packet)) {
      finder_.read_set_up(f);
      continue;
    }
    const std::size_t here = note_flow(i, f, out);
    if (wire::traits(f.packet.bth.opcode).request) request(here, f.packet);
    if (wire::traits(f.packet.bth.opcode).response) response(here, f.packet, out);
  }
  use_set_up();
  use_ports();
  assign();
  assign_rest();
}

std::uint32_t pairing::hosts_of(const wire::gid& from, const wire::gid& to, wire::encapsulation encap) {
  return hosts_.try_emplace({from, to, encap}, static_cast<std::uint32_t>(hosts_.size())).first->second;
}

pairing::evidence& pairing::about(std::size_t a, std::size_t b) {
  const std::size_t in = flows_[a].out ? b : a, out = flows_[a].out ? a : b;
  return evidence_[std::uint64_t{in} << 32 | out];
}

std::size_t pairing::note_flow(std::size_t frame, const captured_frame& f, bool out) {
  const std::size_t at = of_frame_[frame] = finder_.flow_of(f);
  if (at == flows_.size()) {
    const flow_key& k = finder_.flows()[at].key;
    flows_.emplace_back();
    flows_[at].out = out;
    flows_[at].port = f.packet.udp_source;
    flows_[at].xrc = wire::transport_of(f.packet.bth.opcode) == wire::transport::xrc;
    flows_[at].hosts = hosts_of(k.from, k.to, k.encap);
  }
  flow& l = flows_[at];
  l.one_port = l.one_port && l.port == f.packet.udp_source && f.packet.encap != wire::encapsulation::roce_v1;
  return at;
}

void pairing::request(std::size_t index, const wire::packet& p) {
  flow& f = flows_[index];
  const wire::psn_t psn = p.bth.psn;
  if (f.requests && psn.before(f.next)) return;  // a repetition
  f.requests = true;
  f.next = psn + 1;
  const bool last = wire::traits(p.bth.opcode).last;
  if (last) ++f.messages;
  asked_[std::uint64_t{f.hosts} << 24 | psn.value()].questions.push_back({index, last ? f.messages : 0});
}

void pairing::response(std::size_t index, const wire::packet& p, bool out) {
  if (!has_psn_of_question(p)) return;
  flow& f = flows_[index];
  const flow_key& k = key(index);
  const auto found = asked_.find(std::uint64_t{hosts_of(k.to, k.from, k.encap)} << 24 | p.bth.psn.value());
  if (found == asked_.end() || f.answers >= answers_looked_at) return;
  asked& all = found->second;
  if (all.answered < all.questions.size()) ++about(all.questions[all.answered].flow, index).order;
  const std::size_t half = questions_looked_at / 2;
  const std::size_t first = all.answered > half ? all.answered - half : 0;
  const std::size_t last = std::min(all.questions.size(), first + questions_looked_at);
  ++all.answered;
  if (f.answers++ >= answers_always && f.compared > comparisons_of_flow) return;
  for (std::size_t i = first; i < last; ++i) {
    evidence& e = about(all.questions[i].flow, index);
    ++e.fits;
    ++f.compared;
    if (tells_msn(p)) judge_msn(e, out, all.questions[i], p);
  }
}

/// An answer counts the messages that have ended with the packet that it acknowledges.
void pairing::judge_msn(evidence& e, bool out, const question& q, const wire::packet& p) {
  if (q.message == 0) return;
  const std::uint32_t offset = (p.aeth.msn - q.message) & 0xffffff;
  std::uint32_t& known = e.msn_offset[out ? 1 : 0];
  if (known == no_offset)
    known = offset;
  else
    e.fits += known == offset ? 2 : -4;
  if (offset == 0) ++e.fits;  // both began with the capture
}

void pairing::use_set_up() {
  std::map<int, std::vector<std::size_t>> by_exchange;
  for (std::size_t i = 0; i < flows_.size(); ++i)
    if (finder_.flows()[i].exchange >= 0) by_exchange[finder_.flows()[i].exchange].push_back(i);
  for (const auto& [req, rep] : finder_.set_ups())
    for (const std::size_t a : by_exchange[req])
      for (const std::size_t b : by_exchange[rep])
        if (flows_[a].out != flows_[b].out && key(a).from == key(b).to && key(a).to == key(b).from &&
            key(a).encap == key(b).encap)
          ++about(a, b).known;
}

/// A UDP source port that exactly one flow of each direction uses.
void pairing::use_ports() {
  std::map<std::tuple<wire::gid, wire::gid, std::uint16_t>, std::vector<std::size_t>> in, out;
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    const flow& f = flows_[i];
    if (!f.one_port) continue;
    if (f.out)
      out[{key(i).to, key(i).from, f.port}].push_back(i);
    else
      in[{key(i).from, key(i).to, f.port}].push_back(i);
  }
  for (const auto& [where, flows] : in) {
    const auto other = out.find(where);
    if (other != out.end() && flows.size() == 1 && other->second.size() == 1)
      ++about(flows.front(), other->second.front()).port;
  }
}

/// The best pairs first.
void pairing::assign() {
  using candidate = std::pair<std::uint64_t, const evidence*>;
  std::vector<candidate> ranked;
  for (const auto& [pair, e] : evidence_)
    if (e.known != 0 || e.fits > 0 || e.port != 0) ranked.emplace_back(pair, &e);
  std::sort(ranked.begin(), ranked.end(), [](const candidate& a, const candidate& b) {
    const evidence &x = *a.second, &y = *b.second;
    return std::tie(x.known, x.fits, x.port, x.order, b.first) > std::tie(y.known, y.fits, y.port, y.order, a.first);
  });
  for (const auto& [pair, e] : ranked) {
    const std::size_t in = pair >> 32, out = pair & 0xffffffff;
    if (flows_[in].other == none && flows_[out].other == none && may_join(in, out)) join(in, out);
  }
}

/// What has no answer in common: the n-th flow of one direction belongs to the n-th of the other when there are as
/// many.
void pairing::assign_rest() {
  // Of XRC what asks belongs to what answers.
  enum class half : std::uint8_t { both, peer_asks, held_asks };
  const auto half_of = [](const flow& f) {
    return !f.xrc ? half::both : f.requests != f.out ? half::peer_asks : half::held_asks;
  };
  using side = std::vector<std::size_t>;
  std::map<std::pair<hosts_key, half>, std::pair<side, side>> left;
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    if (flows_[i].other != none) continue;
    const flow_key& k = key(i);
    if (flows_[i].out)
      left[{{k.to, k.from, k.encap}, half_of(flows_[i])}].second.push_back(i);
    else
      left[{{k.from, k.to, k.encap}, half_of(flows_[i])}].first.push_back(i);
  }
  for (const auto& [hosts, both] : left) {
    if (both.first.size() != both.second.size()) continue;
    for (std::size_t i = 0; i < both.first.size(); ++i) join(both.first[i], both.second[i]);
  }
}

}  // namespace rnic::replay
