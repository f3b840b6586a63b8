// SPDX-License-Identifier: Apache-2.0
#include "model/transport/responder/answer_transmit.h"

#include <algorithm>
#include <utility>

#include "model/sim/seldom.h"
#include "model/transport/congestion/ecn.h"
#include "model/transport/udp_source.h"

namespace rnic::transport {

namespace {

constexpr std::uint64_t bit(unsigned l) { return std::uint64_t{1} << l; }
constexpr unsigned line_of(unsigned port, unsigned priority) { return port * answer_transmit::priorities + priority; }

gid::source_request source_of(const answer_job& j) {
  gid::source_request r;
  if (j.complete) {
    r.dmac = j.frame->packet.dmac;
    return r;
  }
  r.checked = true;
  r.type = (j.path.flags & icm::path_flag_roce_v2) != 0 ? gid::roce_type::v2 : gid::roce_type::v1;
  r.ipv4 = gid::is_mapped_ipv4(j.path.remote_gid);
  r.tagged = (j.path.flags & icm::path_flag_vlan) != 0;
  r.index = j.path.gid_index;
  r.mac_index = j.path.smac_index;
  r.vlan_index = j.path.vlan_index;
  r.function = j.function;
  std::copy_n(j.path.dmac, 6, r.dmac.begin());
  return r;
}

}  // namespace

answer_transmit::line::line(unsigned each)
    : places{sim::ring<waiting>(each), sim::ring<waiting>(each), sim::ring<waiting>(each)},
      order(std::size_t{users} * each) {}

answer_transmit::answer_transmit(std::string name, sim::clock_domain& domain, const responder_config& cfg,
                                 const gid::source_access& sources, const std::uint16_t& roce_v2_port,
                                 sim::span_recorder& spans, sim::statistics& stats)
    : clocked_block(name, domain),
      credit_in{sim::fifo_in<egress_credit>(*this), sim::fifo_in<egress_credit>(*this)},
      sources_(*this, sources, stats),
      pipeline_{*this,
                "packets",
                {{"source gid", sources_.cycles()},
                 {"path", cfg.answer.path},
                 {"headers", cfg.answer.headers},
                 {"hand-over", cfg.answer.hand_over}}},
      ect_priorities_(cfg.congestion.reaction.priorities),
      roce_v2_port_(roce_v2_port),
      spans_(spans),
      lines_(std::size_t{ports} * priorities, line(cfg.answer.waiting)),
      in_credit_(cfg.egress_frames == 0 ? 0 : bit(ports * priorities) - 1),
      refused_(std::size_t{sources_.cycles()} + 1) {
  credits_.fill(static_cast<std::uint16_t>(cfg.egress_frames));
  const std::pair<const char*, const std::uint64_t*> all[] = {{"responses", &accepted_[0]},
                                                              {"acknowledgements", &accepted_[1]},
                                                              {"notifications", &accepted_[2]},
                                                              {"sourceless", &sourceless_},
                                                              {"credit_wait_cycles", &credit_wait_cycles_}};
  for (const auto& [n, counter] : all) stats.add(this->name() + "." + n, *counter);
}

void answer_transmit::tick() {
  take_credits();
  take_refused();
  accept();
  leave();
  for (unsigned p = 0; p < ports; ++p) credit_in[p].set_quiet(!is_starved(p));
}

// Queue of a port that a line's answers go to now.
unsigned answer_transmit::queue_of(unsigned l) const { return line_of(map_.port_of(l / priorities), l % priorities); }

// Lines whose queue has a credit.
std::uint64_t answer_transmit::credited() const {
  if (sim::mostly(map_.is_identity())) return in_credit_;
  std::uint64_t lines = 0;
  for (unsigned v = 0; v < ports; ++v) lines |= (in_credit_ >> line_of(map_.port_of(v), 0) & 0xff) << line_of(v, 0);
  return lines;
}

// An answer waits for a credit of this port.
bool answer_transmit::is_starved(unsigned port) const {
  for (unsigned v = 0; v < ports; ++v)
    if (map_.port_of(v) == port && (starved_ >> line_of(v, 0) & 0xff) != 0) return true;
  return false;
}

void answer_transmit::cr_write(std::uint32_t offset, std::uint32_t value) {
  if (offset != cr::port_map || !map_.write(value)) return;
  const std::uint64_t able = credited();
  for (unsigned l = 0; l < lines_.size(); ++l) {
    if ((waiting_ & bit(l)) == 0) continue;
    if ((able & bit(l)) != 0)
      end_starving(l, now() + 1);
    else
      starve(l, now() + 1);
  }
  wake_next();
}

void answer_transmit::take_credits() {
  for (unsigned p = 0; p < ports; ++p)
    credit_in[p].take_due([&](const egress_credit& c) { give_credit(line_of(p, c.priority & 7)); });
}

void answer_transmit::give_credit(unsigned queue) {
  ++credits_[queue];
  in_credit_ |= bit(queue);
  if (starved_ == 0) return;
  for (unsigned v = 0; v < ports; ++v) {
    const unsigned l = line_of(v, queue % priorities);
    if (queue_of(l) == queue) end_starving(l, edge());
  }
}

void answer_transmit::end_starving(unsigned n, sim::cycle_t at) {
  if ((starved_ & bit(n)) == 0) return;
  line& l = lines_[n];
  starved_ &= ~bit(n);
  if (at == l.starved_at) return;
  l.fed_at = at;
  credit_wait_cycles_ += l.fed_at - l.starved_at;
}

// Each tick behind the end of a look-up's cycles, of which one an answer is: at most one in a cycle.
void answer_transmit::take_refused() {
  if (sim::mostly(refused_.empty()) || refused_.front().known_at > edge()) return;
  give_credit(refused_.pop().queue);
  ++sourceless_;
}

void answer_transmit::accept() {
  for (unsigned u = 0; u < users; ++u) {
    if (!from[u].job.can_pop()) continue;
    const answer_job& j = from[u].job.front();
    const unsigned n = line_of(j.port, j.priority);
    line& l = lines_[n];
    spans_.leave(j.frame->span, name(), "accept", now_ps());
    waiting& w = l.places[u].extend();
    w.job = std::move(from[u].job.front());
    from[u].job.drop();
    w.accepted = edge();
    l.order.push(static_cast<std::uint8_t>(u));
    waiting_ |= bit(n);
    ++accepted_[u];
    if ((credited() & bit(n)) == 0) starve(n, edge());
  }
}

void answer_transmit::starve(unsigned n, sim::cycle_t from_cycle) {
  if ((starved_ & bit(n)) != 0) return;
  starved_ |= bit(n);
  lines_[n].starved_at = from_cycle;
}

// Ports and priorities that have an answer and a credit, and whose tables take a look-up in this cycle.
std::uint64_t answer_transmit::able() const {
  std::uint64_t lines = waiting_ & credited();
  for (unsigned v = 0; v < ports; ++v)
    if (!sources_.open(map_.tables_of(v))) lines &= ~(std::uint64_t{0xff} << line_of(v, 0));
  return lines;
}

void answer_transmit::leave() {
  const std::uint64_t lines = able();
  const bool turn_waits = lines == 0 && (waiting_ & credited()) != 0 && tx_out.claim();
  entry_.waits_for(turn_waits ? "gid table" : nullptr);
  if (turn_waits) wake_next();
  if (lines == 0 || !tx_out.claim()) return;
  const auto n = static_cast<unsigned>(by_priority_.pick(lines));
  line& l = lines_[n];
  const unsigned u = l.order.pop();
  waiting& w = l.places[u].front();
  entry_.start(1);
  from[u].room.push({w.job.port, w.job.priority});
  const unsigned queue = queue_of(n), port = queue / priorities;
  if (--credits_[queue] == 0) in_credit_ &= ~bit(queue);
  const gid::source found = sources_.look_up(map_.tables_of(n / priorities), source_of(w.job));
  if (found.why == gid::refusal::none) {
    if (!w.job.complete) {
      write_headers(w.job, found);
      if (traffic_ != nullptr) traffic_->add(w.job.path.counter_index, w.job.frame->length);
    }
    w.job.frame->port = static_cast<std::uint8_t>(port);
    if (found.own_destination) w.job.frame->loopback = payload::frame::loopback_only;
    note_wait(l, w);
    tx_out.push_after(std::move(w.job.frame), pipeline_.enter());
  } else {
    w.job.frame.reset();
    refused_.push({edge() + sources_.cycles(), queue});
    wake_at(edge() + sources_.cycles());
  }
  l.places[u].drop();
  if (l.order.empty()) waiting_ &= ~bit(n);
  if (credits_[queue] == 0)
    for (unsigned v = 0; v < ports; ++v)
      if (const unsigned of = line_of(v, n % priorities); (waiting_ & bit(of)) != 0 && queue_of(of) == queue)
        starve(of, edge() + 1);
  if ((waiting_ & credited()) != 0) wake_next();
}

void answer_transmit::note_wait(const line& l, const waiting& w) {
  const sim::span_id span = w.job.frame->span;
  if (edge() > w.accepted)
    spans_.leave(span, name(), l.fed_at > w.accepted ? "egress credit" : "turn", now_ps(), sim::wait::arbitration);
  pipeline_.mark(spans_, span, edge());
}

void answer_transmit::address(const icm::path& path, const gid::source& from_here, payload::frame& f) const {
  wire::packet& p = f.packet;
  std::copy_n(path.dmac, 6, p.dmac.begin());
  p.smac = from_here.mac;
  p.sgid = from_here.id;
  std::copy_n(path.remote_gid, 16, p.dgid.begin());
  p.vlan_present = (path.flags & icm::path_flag_vlan) != 0;
  p.vlan_tci = static_cast<std::uint16_t>((path.priority & 7) << 13 | from_here.vlan);
  p.encap = encapsulation_of(path);
  p.traffic_class = path.traffic_class;
  if ((path.flags & icm::path_flag_roce_v2) != 0 && (ect_priorities_ >> (path.priority & 7) & 1) != 0)
    p.traffic_class = ecn_capable(p.traffic_class);
  p.flow_label = path.flow_label & 0xfffff;
  p.hop_limit = path.hop_limit;
  p.udp_source = udp_source_of(path);
  p.udp_dest = roce_v2_port_;
  f.priority = path.priority & 7;
  const bool looped = (path.flags & icm::path_flag_loopback) != 0;
  f.loopback = looped ? payload::frame::loopback_only : payload::frame::loopback_none;
  f.gid_index = path.gid_index;
}

void answer_transmit::write_headers(answer_job& j, const gid::source& from_here) const {
  payload::frame& f = *j.frame;
  address(j.path, from_here, f);
  wire::packet& p = f.packet;
  p.ipv4_id = p.udp_checksum = 0;
  p.ipv4_fragment = 0x4000;
  p.bth = wire::bth{};
  p.bth.opcode = j.opcode;
  p.bth.migration = true;  // as a request's
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
}

}  // namespace rnic::transport
