// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/pairing.h"

#include <algorithm>

#include "model/wire/packet.h"

namespace rnic::replay {

namespace {

constexpr std::uint32_t gsi_qpn = 1;
constexpr std::uint8_t class_cm = 0x07;
constexpr unsigned mad_attribute = 16, mad_data = 24, mad_bytes = 256;  // IBA volume 1, section 13.4
constexpr unsigned attribute_req = 0x10, attribute_rep = 0x13;
constexpr unsigned req_local_qpn = 32, rep_remote_id = 4, rep_local_qpn = 12;  // section 12.6, in the MAD's data
constexpr unsigned answers_looked_at = 64;  // of a flow: each is compared with every flow that asked for its PSN

std::uint32_t be(const std::uint8_t* from, unsigned bytes) {
  std::uint32_t v = 0;
  for (unsigned i = 0; i < bytes; ++i) v = v << 8 | from[i];
  return v;
}

/// The first packets of a READ's answer have the PSN of its request.
bool has_psn_of_question(const wire::packet& p) {
  const wire::operation o = wire::operation_of(p.bth.opcode);
  return o != wire::operation::read_response_middle && o != wire::operation::read_response_last;
}

bool tells_msn(const wire::packet& p) { return wire::traits(p.bth.opcode).aeth && (p.aeth.syndrome >> 5 & 3) == 0; }

}  // namespace

flow_key key_of(const wire::packet& p) { return {p.sgid, p.dgid, p.bth.dest_qp, p.encap}; }

bool is_connected(const wire::packet& p) {
  const wire::transport t = wire::transport_of(p.bth.opcode);
  return t == wire::transport::rc || t == wire::transport::uc;
}

pairing::pairing(const plan& p) {
  for (const captured_frame& f : p.frames) {
    if (!f.roce) continue;
    const bool out = f.packet.smac == p.held_mac;
    if (!out && f.packet.dmac != p.held_mac) continue;
    if (!is_connected(f.packet)) {
      read_set_up(f);
      continue;
    }
    const std::size_t here = flow_of(f, out);
    if (wire::traits(f.packet.bth.opcode).request) request(here, f.packet);
    if (wire::traits(f.packet.bth.opcode).response) response(here, f.packet, out);
  }
  use_set_up();
  use_ports();
  assign();
  assign_rest();
}

std::size_t pairing::flow_of(const captured_frame& f, bool out) {
  const flow_key k = key_of(f.packet);
  const auto [at, fresh] = index_.try_emplace(k, flows_.size());
  if (fresh) {
    flows_.emplace_back();
    flows_.back().key = k;
    flows_.back().out = out;
    flows_.back().port = f.packet.udp_source;
    (out ? from_held_ : to_held_).push_back(k);
  }
  flow& l = flows_[at->second];
  l.one_port = l.one_port && l.port == f.packet.udp_source && k.encap != wire::encapsulation::roce_v1;
  return at->second;
}

void pairing::request(std::size_t flow_index, const wire::packet& p) {
  flow& f = flows_[flow_index];
  const wire::psn_t psn = p.bth.psn;
  if (f.requests && psn.before(f.next)) return;  // a repetition
  f.requests = true;
  f.next = psn + 1;
  if (wire::traits(p.bth.opcode).last) f.ends_at[psn.value()] = ++f.messages;
  std::vector<std::size_t>& same = asked_[{f.key.from, f.key.to, f.key.encap, psn.value()}];
  same.push_back(flow_index);
}

void pairing::response(std::size_t flow_index, const wire::packet& p, bool out) {
  if (!has_psn_of_question(p)) return;
  flow& f = flows_[flow_index];
  const auto asked = asked_.find({f.key.to, f.key.from, f.key.encap, p.bth.psn.value()});
  if (asked == asked_.end() || f.answers++ >= answers_looked_at) return;
  bool in_order = false;
  for (const std::size_t r : asked->second) {
    const auto pair = out ? std::make_pair(r, flow_index) : std::make_pair(flow_index, r);
    evidence& e = evidence_[pair];
    ++e.fits;
    if (tells_msn(p)) judge_msn(pair, out, flows_[r], p);
    unsigned& answered = flows_[r].answered[p.bth.psn.value()];
    if (in_order || answered != 0) continue;
    in_order = true;
    ++answered;
    ++e.order;
  }
}

/// An answer counts the messages that have ended with the packet that it acknowledges.
void pairing::judge_msn(std::pair<std::size_t, std::size_t> pair, bool out, const flow& asking, const wire::packet& p) {
  const auto end = asking.ends_at.find(p.bth.psn.value());
  if (end == asking.ends_at.end()) return;
  evidence& e = evidence_[pair];
  const std::uint32_t offset = (p.aeth.msn - end->second) & 0xffffff;
  const auto [known, fresh] = msn_offset_.try_emplace({pair.first, pair.second, out}, offset);
  if (!fresh) e.fits += known->second == offset ? 2 : -4;
  if (offset == 0) ++e.fits;  // both began with the capture
}

/// REQ and REP of connection management: datagrams to queue pair 1.
void pairing::read_set_up(const captured_frame& f) {
  const wire::packet& p = f.packet;
  if (wire::transport_of(p.bth.opcode) != wire::transport::ud || p.bth.dest_qp != gsi_qpn) return;
  if (p.payload_length < mad_bytes) return;
  const std::uint8_t* mad = f.bytes.data() + p.payload_offset;
  const std::uint8_t* data = mad + mad_data;
  if (mad[1] != class_cm) return;
  const std::uint32_t attribute = be(mad + mad_attribute, 2), id = be(data, 4);
  if (attribute == attribute_req) set_up_requests_[{p.sgid, id}] = be(data + req_local_qpn, 3);
  if (attribute != attribute_rep) return;
  const auto asked = set_up_requests_.find({p.dgid, be(data + rep_remote_id, 4)});
  if (asked != set_up_requests_.end()) set_ups_.push_back({p.dgid, p.sgid, asked->second, be(data + rep_local_qpn, 3)});
}

void pairing::use_set_up() {
  for (const set_up& s : set_ups_)
    for (std::size_t i = 0; i < flows_.size(); ++i)
      for (std::size_t o = 0; o < flows_.size(); ++o) {
        const flow_key &a = flows_[i].key, &b = flows_[o].key;
        if (flows_[i].out || !flows_[o].out || a.from != b.to || a.to != b.from || a.encap != b.encap) continue;
        const bool held_replied = a.to == s.replier && a.from == s.requester;
        const bool held_asked = a.to == s.requester && a.from == s.replier;
        if ((held_replied && a.dest_qp == s.replier_qpn && b.dest_qp == s.requester_qpn) ||
            (held_asked && a.dest_qp == s.requester_qpn && b.dest_qp == s.replier_qpn))
          ++evidence_[{i, o}].known;
      }
}

/// A UDP source port that exactly one flow of each direction uses.
void pairing::use_ports() {
  std::map<std::tuple<wire::gid, wire::gid, std::uint16_t>, std::vector<std::size_t>> in, out;
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    const flow& f = flows_[i];
    if (!f.one_port) continue;
    if (f.out)
      out[{f.key.to, f.key.from, f.port}].push_back(i);
    else
      in[{f.key.from, f.key.to, f.port}].push_back(i);
  }
  for (const auto& [where, flows] : in) {
    const auto other = out.find(where);
    if (other != out.end() && flows.size() == 1 && other->second.size() == 1)
      ++evidence_[{flows.front(), other->second.front()}].port;
  }
}

/// The best pairs first.
void pairing::assign() {
  using candidate = std::pair<std::pair<std::size_t, std::size_t>, evidence>;
  std::vector<candidate> ranked(evidence_.begin(), evidence_.end());
  std::stable_sort(ranked.begin(), ranked.end(), [](const candidate& a, const candidate& b) {
    const evidence &x = a.second, &y = b.second;
    return std::tie(x.known, x.fits, x.port, x.order) > std::tie(y.known, y.fits, y.port, y.order);
  });
  std::set<std::size_t> taken;
  for (const auto& [pair, e] : ranked) {
    if (e.known == 0 && e.fits <= 0 && e.port == 0) continue;
    if (taken.count(pair.first) != 0 || taken.count(pair.second) != 0) continue;
    taken.insert(pair.first);
    taken.insert(pair.second);
    pairs_[flows_[pair.first].key] = flows_[pair.second].key;
  }
}

/// What has no answer in common: the n-th flow of one direction belongs to the n-th of the other when there are as
/// many.
void pairing::assign_rest() {
  std::map<std::tuple<wire::gid, wire::gid, wire::encapsulation>,
           std::pair<std::vector<flow_key>, std::vector<flow_key>>>
      left;
  std::set<flow_key> used;
  for (const auto& [in, out] : pairs_) used.insert(out);
  for (const flow_key& k : to_held_)
    if (pairs_.count(k) == 0) left[{k.from, k.to, k.encap}].first.push_back(k);
  for (const flow_key& k : from_held_)
    if (used.count(k) == 0) left[{k.to, k.from, k.encap}].second.push_back(k);
  for (const auto& [hosts, both] : left) {
    if (both.first.size() != both.second.size()) continue;
    for (std::size_t i = 0; i < both.first.size(); ++i) pairs_[both.first[i]] = both.second[i];
  }
}

}  // namespace rnic::replay
