// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/flows.h"

#include <algorithm>
#include <cstdlib>

#include "model/wire/packet.h"
#include "testbenches/replay/packets.h"

namespace rnic::replay {

namespace {

constexpr std::uint8_t class_cm = 0x07;
constexpr unsigned mad_attribute = 16, mad_data = 24, mad_bytes = 256;  // IBA volume 1, section 13.4
constexpr unsigned attribute_req = 0x10, attribute_rep = 0x13;
constexpr unsigned req_local_qpn = 32, rep_remote_id = 4, rep_local_qpn = 12;  // section 12.6, in the MAD's data
constexpr std::uint32_t smallest_mtu = 256;

std::uint32_t be(const std::uint8_t* from, unsigned bytes) {
  std::uint32_t v = 0;
  for (unsigned i = 0; i < bytes; ++i) v = v << 8 | from[i];
  return v;
}

/// Packets that a READ's answer has at most, whatever the path MTU.
std::uint32_t most_packets(const wire::packet& p) {
  if (wire::operation_of(p.bth.opcode) != wire::operation::read_request || p.reth.length == 0) return 1;
  return (p.reth.length - 1) / smallest_mtu + 1;
}

}  // namespace

bool is_connected(const wire::packet& p) {
  const wire::transport t = wire::transport_of(p.bth.opcode);
  return t == wire::transport::rc || t == wire::transport::uc || t == wire::transport::xrc ||
         t == wire::transport::manufacturer;
}

int flow_finder::exchange_of(const wire::gid& host, std::uint32_t qpn) const {
  const auto at = exchanges_.find({host, qpn});
  return at == exchanges_.end() ? -1 : at->second;
}

bool flow_finder::answers_large_read(const wire::packet& p) const {
  const auto reads = large_reads_.find({p.sgid, p.dgid});
  return reads != large_reads_.end() && std::any_of(reads->second.begin(), reads->second.end(), [&](const line& l) {
           return !p.bth.psn.before(l.low) && !p.bth.psn.after(l.high + 1);
         });
}

bool flow_finder::fits(std::size_t index, const wire::packet& p) const {
  const bool request = wire::traits(p.bth.opcode).request;
  const line& l = request ? lines_[index].requests : lines_[index].responses;
  if (!l.known) return true;
  if (p.bth.psn - l.low >= -widest_gap && p.bth.psn - l.high <= widest_gap) return true;
  return !request && answers_large_read(p);
}

void flow_finder::advance(std::size_t index, const wire::packet& p) {
  const bool request = wire::traits(p.bth.opcode).request;
  line& l = request ? lines_[index].requests : lines_[index].responses;
  const wire::psn_t last = p.bth.psn + (request ? most_packets(p) - 1 : 0);
  if (l.known && request && p.bth.psn.before(l.low)) return;  // a repetition
  l = {true, p.bth.psn, last};
  if (last - p.bth.psn > widest_gap) large_reads_[{p.dgid, p.sgid}].push_back(l);
}

std::size_t flow_finder::begin(const base_key& base, std::vector<std::size_t>& generations, const wire::packet& p) {
  flow f;
  f.key = {base.from, base.to, base.dest_qp, base.encap, static_cast<unsigned>(generations.size())};
  f.exchange = exchange_of(base.to, base.dest_qp);
  generations.push_back(flows_.size());
  flows_.push_back(f);
  lines_.emplace_back();
  advance(flows_.size() - 1, p);
  return flows_.size() - 1;
}

std::size_t flow_finder::flow_of(const captured_frame& f) {
  const wire::packet& p = f.packet;
  const base_key base{p.sgid, p.dgid, p.bth.dest_qp, p.encap};
  std::vector<std::size_t>& generations = generations_[base];
  const int exchange = exchange_of(base.to, base.dest_qp);
  if (generations.empty() || flows_[generations.back()].exchange != exchange) return begin(base, generations, p);
  if (fits(generations.back(), p)) {
    advance(generations.back(), p);
    return generations.back();
  }
  const wire::opcode_traits& t = wire::traits(p.bth.opcode);
  // Repetitions of the connection that has just ended may come late.
  if (generations.size() > 1) {
    const std::size_t former = generations[generations.size() - 2];
    const line& l = t.request ? lines_[former].requests : lines_[former].responses;
    if (flows_[former].exchange == exchange && l.known && fits(former, p) && !p.bth.psn.after(l.high)) return former;
  }
  if (t.first || t.response) return begin(base, generations, p);
  return generations.back();
}

/// REQ and REP of connection management: datagrams to queue pair 1. The same one sent again says nothing new.
void flow_finder::read_set_up(const captured_frame& f) {
  const wire::packet& p = f.packet;
  if (wire::transport_of(p.bth.opcode) != wire::transport::ud || p.bth.dest_qp != gsi_qpn) return;
  if (p.payload_length < mad_bytes || f.bytes.size() < std::size_t{p.payload_offset} + mad_bytes) return;
  const std::uint8_t* mad = f.bytes.data() + p.payload_offset;
  const std::uint8_t* data = mad + mad_data;
  if (mad[1] != class_cm) return;
  const std::uint32_t attribute = be(mad + mad_attribute, 2), id = be(data, 4);
  if (attribute != attribute_req && attribute != attribute_rep) return;
  const bool req = attribute == attribute_req;
  const std::uint32_t qpn = be(data + (req ? req_local_qpn : rep_local_qpn), 3);
  const auto [at, fresh] = messages_.try_emplace({p.sgid, id, qpn}, next_exchange_);
  if (!fresh) return;
  exchanges_[{p.sgid, qpn}] = next_exchange_;
  if (req) requests_[{p.sgid, id}] = next_exchange_;
  const auto asked = req ? requests_.end() : requests_.find({p.dgid, be(data + rep_remote_id, 4)});
  if (asked != requests_.end()) set_ups_.emplace_back(asked->second, at->second);
  ++next_exchange_;
}

}  // namespace rnic::replay
