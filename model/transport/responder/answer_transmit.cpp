// SPDX-License-Identifier: Apache-2.0
#include "model/transport/responder/answer_transmit.h"

#include <algorithm>
#include <utility>

#include "model/transport/congestion/ecn.h"
#include "model/transport/udp_source.h"

namespace rnic::transport {

namespace {

constexpr std::uint64_t bit(unsigned l) { return std::uint64_t{1} << l; }
constexpr unsigned line_of(unsigned port, unsigned priority) { return port * answer_transmit::priorities + priority; }

}  // namespace

answer_transmit::line::line(unsigned each, std::uint16_t first_credits)
    : places{sim::ring<waiting>(each), sim::ring<waiting>(each), sim::ring<waiting>(each)},
      order(std::size_t{users} * each),
      credits(first_credits) {}

answer_transmit::answer_transmit(std::string name, sim::clock_domain& domain, const responder_config& cfg,
                                 const gid_tables& gids, const std::uint16_t& roce_v2_port, sim::span_recorder& spans,
                                 sim::statistics& stats)
    : clocked_block(name, domain),
      credit_in{sim::fifo_in<egress_credit>(*this), sim::fifo_in<egress_credit>(*this)},
      pipeline_{{"path", cfg.answer.path}, {"headers", cfg.answer.headers}, {"hand-over", cfg.answer.hand_over}},
      ect_priorities_(cfg.congestion.reaction.priorities),
      gids_(gids),
      roce_v2_port_(roce_v2_port),
      spans_(spans),
      lines_(std::size_t{ports} * priorities, line(cfg.answer.waiting, static_cast<std::uint16_t>(cfg.egress_frames))),
      credited_(cfg.egress_frames == 0 ? 0 : bit(ports * priorities) - 1) {
  const std::pair<const char*, const std::uint64_t*> all[] = {{"responses", &accepted_[0]},
                                                              {"acknowledgements", &accepted_[1]},
                                                              {"notifications", &accepted_[2]},
                                                              {"sourceless", &sourceless_},
                                                              {"credit_wait_cycles", &credit_wait_cycles_}};
  for (const auto& [n, counter] : all) stats.add(this->name() + "." + n, *counter);
}

void answer_transmit::tick() {
  take_credits();
  accept();
  leave();
  for (unsigned p = 0; p < ports; ++p) credit_in[p].set_quiet((starved_ >> line_of(p, 0) & 0xff) == 0);
}

void answer_transmit::take_credits() {
  for (unsigned p = 0; p < ports; ++p)
    credit_in[p].take_due([&](const egress_credit& c) {
      const unsigned n = line_of(p, c.priority & 7);
      line& l = lines_[n];
      ++l.credits;
      credited_ |= bit(n);
      if ((starved_ & bit(n)) == 0) return;
      starved_ &= ~bit(n);
      l.fed_at = now();
      credit_wait_cycles_ += l.fed_at - l.starved_at;
    });
}

void answer_transmit::accept() {
  for (unsigned u = 0; u < users; ++u) {
    if (!from[u].job.can_pop()) continue;
    const answer_job& j = from[u].job.front();
    const unsigned n = line_of(j.port, j.priority);
    line& l = lines_[n];
    spans_.leave(j.frame->span, name(), "accept", now_ps());
    waiting& w = l.places[u].extend();
    w.job = from[u].job.pop();
    w.accepted = now();
    l.order.push(static_cast<std::uint8_t>(u));
    waiting_ |= bit(n);
    ++accepted_[u];
    if ((credited_ & bit(n)) == 0) starve(n, now());
  }
}

void answer_transmit::starve(unsigned n, sim::cycle_t from_cycle) {
  if ((starved_ & bit(n)) != 0) return;
  starved_ |= bit(n);
  lines_[n].starved_at = from_cycle;
}

void answer_transmit::leave() {
  const std::uint64_t able = waiting_ & credited_;
  if (able == 0 || !tx_out.claim()) return;
  const auto n = static_cast<unsigned>(by_priority_.pick(able));
  line& l = lines_[n];
  const unsigned u = l.order.pop();
  waiting& w = l.places[u].front();
  entry_.start(1);
  from[u].room.push({w.job.port, w.job.priority});
  if (w.job.complete || write_headers(w.job)) {
    note_wait(l, w);
    if (--l.credits == 0) credited_ &= ~bit(n);
    tx_out.push_after(std::move(w.job.frame), pipeline_.cycles());
  } else {
    ++sourceless_;
    w.job.frame.reset();
  }
  l.places[u].drop();
  if (l.order.empty())
    waiting_ &= ~bit(n);
  else if (l.credits == 0)
    starve(n, now() + 1);
  if ((waiting_ & credited_) != 0) wake_next();
}

void answer_transmit::note_wait(const line& l, const waiting& w) {
  const sim::span_id span = w.job.frame->span;
  if (now() > w.accepted)
    spans_.leave(span, name(), l.fed_at > w.accepted ? "egress credit" : "turn", now_ps(), sim::wait::arbitration);
  pipeline_.mark(spans_, span, *this, now());
}

void answer_transmit::address(const icm::path& path, payload::frame& f) const {
  const gid::gid_table& g = *gids_[path.port & 1];
  wire::packet& p = f.packet;
  std::copy_n(path.dmac, 6, p.dmac.begin());
  p.smac = g.mac(path.smac_index);
  p.sgid = g[path.gid_index].id;
  std::copy_n(path.remote_gid, 16, p.dgid.begin());
  if ((path.flags & icm::path_flag_vlan) != 0) {
    const auto vid = g.vlan(path.vlan_index);
    p.vlan_present = true;
    p.vlan_tci = static_cast<std::uint16_t>((path.priority & 7) << 13 | vid.value_or(0));
  }
  p.encap = encapsulation_of(path);
  p.traffic_class = path.traffic_class;
  if ((path.flags & icm::path_flag_roce_v2) != 0 && (ect_priorities_ >> (path.priority & 7) & 1) != 0)
    p.traffic_class = ecn_capable(p.traffic_class);
  p.flow_label = path.flow_label & 0xfffff;
  p.hop_limit = path.hop_limit;
  p.udp_source = udp_source_of(path);
  p.udp_dest = roce_v2_port_;
  f.priority = path.priority & 7;
  f.port = path.port & 1;
  const bool looped = (path.flags & icm::path_flag_loopback) != 0 || g.owns(p.dmac);
  f.loopback = looped ? payload::frame::loopback_only : payload::frame::loopback_none;
  f.gid_index = path.gid_index;
}

// False: it has no source.
bool answer_transmit::write_headers(answer_job& j) const {
  const auto type = (j.path.flags & icm::path_flag_roce_v2) != 0 ? gid::roce_type::v2 : gid::roce_type::v1;
  if (!gids_[j.port]->may_send(j.path.gid_index, type, j.path.remote_gid, j.function)) return false;
  payload::frame& f = *j.frame;
  f.packet = wire::packet{};
  address(j.path, f);
  wire::packet& p = f.packet;
  p.bth.opcode = j.opcode;
  p.bth.dest_qp = j.remote_qpn;
  p.bth.psn = wire::psn_t(j.psn);
  p.aeth.syndrome = j.syndrome;
  p.aeth.msn = j.msn;
  p.atomic_original = j.original;
  p.payload_length = j.payload;
  const std::uint8_t* first = wire::build(p, f.buffer.data() + payload::frame::payload_start);
  f.begin = static_cast<std::uint32_t>(first - f.buffer.data());
  f.length = p.icrc_offset + 4;
  f.insert_icrc = true;
  f.source = static_cast<std::uint8_t>(egress_source::responder);
  return true;
}

}  // namespace rnic::transport
