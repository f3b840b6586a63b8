// SPDX-License-Identifier: Apache-2.0
#include "model/fabric/network_switch.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "model/fabric/frame_headers.h"
#include "model/fabric/vlan_rules.h"
#include "model/payload/frame_copy.h"
#include "model/sim/check.h"
#include "model/wire/icrc.h"

namespace rnic::fabric {

namespace {

constexpr std::uint32_t fcs_bytes = 4, preamble_and_fcs_bytes = 12, gap_bytes = 12, address_bytes = 6,
                        shortest_bytes = 60;  // without FCS
constexpr wire::mac_address own_address{0x02, 0, 0, 0, 0x80, 0x01};
constexpr unsigned dscp_class_shift = 5, most_ports = 64;

sim::time_ps line_time(std::uint64_t bytes, std::uint32_t rate_mbps) { return bytes * 8 * sim::ps_per_us / rate_mbps; }
sim::time_ps duration(const payload::frame& f, std::uint32_t rate_mbps) {
  return line_time(f.length + preamble_and_fcs_bytes, rate_mbps);
}

/// 01:80:c2:00:00:00 to 0f, LLDP's among them: what is sent there is for the next bridge, and none forwards it (IEEE
/// 802.1Q table 8-1). This one has no protocol for it.
bool is_for_bridges(const payload::frame& f) {
  constexpr std::array<std::uint8_t, 5> block{0x01, 0x80, 0xc2, 0x00, 0x00};
  return std::equal(block.begin(), block.end(), f.data()) && f.data()[5] < 0x10;
}

bool is_mac_control(const payload::frame& f) {
  return f.length >= 2 * address_bytes + 2 &&
         wire::load_be16(f.data() + 2 * address_bytes) == static_cast<std::uint16_t>(wire::ether_type::mac_control);
}

template <class What>
void for_each_number(std::uint64_t mask, What what) {
  for (; mask != 0; mask &= mask - 1) what(static_cast<unsigned>(__builtin_ctzll(mask)));
}

const switch_config& consistent(const switch_config& c, const std::string& parameters) {
  if (c.ecn.kmin_bytes >= c.ecn.kmax_bytes)
    throw sim::config_error(parameters + ".ecn.kmin_bytes: " + std::to_string(c.ecn.kmin_bytes) +
                            ": expected less than ecn.kmax_bytes, " + std::to_string(c.ecn.kmax_bytes));
  if (c.ports.size() > most_ports)
    throw sim::config_error(parameters + ": " + std::to_string(c.ports.size()) + " ports, expected 64 at most");
  return c;
}

}  // namespace

network_switch::port_state::port_state(const std::string& name, network_switch& of, const switch_config::port& cfg,
                                       unsigned port_number)
    : owner(of),
      config(cfg),
      number(port_number),
      inbox(name, of),
      changes(name + ".carrier", of, 4),
      flow(cfg.rate_mbps),
      queues(of.config_.scheduling, of.config_.weights) {
  for (unsigned p = 0; p < priorities; ++p)
    markers.emplace_back(of.config_.ecn, of.config_.seed * 0x10000 + number * priorities + p);
  for (unsigned p = 0; p < priorities && of.config_.qcn.priorities != 0; ++p)
    points.emplace_back(of.config_.qcn, p, of.config_.seed * 0x10000 + (number + most_ports) * priorities + p);
  const lossless_by by = of.config_.buffer.flow_control;
  flow.send_pause = by == lossless_by::pause;
  flow.obey_pause = by != lossless_by::pfc;
  flow.send_pfc = by == lossless_by::pfc ? of.config_.buffer.lossless_mask() : std::uint8_t{0};
  flow.obey_pfc = flow.send_pfc;
}

network_switch::network_switch(const std::string& name, sim::clock_domain& domain, const switch_config& cfg,
                               payload::frame_pool& pool, sim::statistics& stats, const std::string& parameters)
    : clocked_block(name, domain),
      config_(consistent(sim::checked(cfg, parameters), parameters)),
      pool_(pool),
      forwarding_(cfg.addresses, cfg.seed),
      arrivals_(config_.ports.size()),
      buffer_(config_.buffer, config_.ports, parameters + ".buffer"),
      arrives_(config_.ports.size()),
      dues_(config_.ports.size(), ~sim::time_ps{0}) {
  for (unsigned i = 0; i < config_.ports.size(); ++i)
    ports_.push_back(
        std::make_unique<port_state>(this->name() + ".port" + std::to_string(i), *this, config_.ports[i], i));
  announce(stats);
}

void network_switch::announce(sim::statistics& stats) {
  stats.add(name() + ".frames", count_.frames);
  stats.add(name() + ".flooded", count_.flooded);
  stats.add(name() + ".copies", count_.copies);
  for (const auto& p : ports_) {
    const port_counters& c = p->count;
    const std::pair<const char*, const std::uint64_t*> all[] = {{"rx_frames", &c.rx_frames},
                                                                {"tx_frames", &c.tx_frames},
                                                                {"rx_bytes", &c.rx_bytes},
                                                                {"tx_bytes", &c.tx_bytes},
                                                                {"rx_pause", &c.rx_pause},
                                                                {"tx_pause", &c.tx_pause},
                                                                {"marked", &c.marked},
                                                                {"qcn_sampled", &c.sampled},
                                                                {"qcn_sampled_bytes", &c.sampled_bytes},
                                                                {"qcn_cnms", &c.cnms},
                                                                {"ended", &c.ended},
                                                                {"drop_queue", &c.drop_queue},
                                                                {"drop_headroom", &c.drop_headroom},
                                                                {"drop_vlan", &c.drop_vlan},
                                                                {"drop_unknown", &c.drop_unknown},
                                                                {"drop_fcs", &c.drop_fcs},
                                                                {"drop_no_line", &c.drop_no_line}};
    const std::string port = name() + ".port" + std::to_string(p->number) + ".";
    for (const auto& [counter, value] : all) stats.add(port + counter, *value);
    const std::string gauges = name() + ".port" + std::to_string(p->number);
    for (unsigned i = 0; i < priorities; ++i)
      stats.add(gauges + " priority " + std::to_string(i) + " queue bytes", p->queued[i]);
    p->pauses.announce(gauges, stats);
  }
}

void network_switch::tick() {
  for_each(changing_, [this](port_state& p) { take_change(p); });
  const sim::time_ps now = now_ps();
  for_each_number(coming_, [this, now](unsigned number) {
    const sim::time_ps arrival = arrives_[number];
    if (arrival > now) return;
    port_state& p = *ports_[number];
    take(p, p.inbox.pop(), arrival);
    busy_ |= p.bit();
    touched_ |= p.bit();
    if (p.inbox.empty())
      coming_ &= ~p.bit();
    else
      arrives_[number] = p.inbox.front_arrival();
  });
  if (arrivals_.any())
    arrivals_.admit_all([this](edge_arrivals::frame_for& f) {
      queue(*ports_[f.in], *ports_[f.out], std::move(f.frame), f.vlan, f.priority, f.arrival);
    });
  for_each_number(busy_, [this, now](unsigned port) {
    if (dues_[port] <= now) touched_ |= std::uint64_t{1} << port;
  });
  for_each(touched_, [this](port_state& p) { release_what_left(p); });
  look_at_room();
  for_each(touched_, [this](port_state& p) {
    serve(p);
    if (p.pauses.watched()) p.tell_gauges();
    dues_[p.number] = due(p);
    if (!p.is_busy()) busy_ &= ~p.bit();
  });
  touched_ = 0;
  sim::time_ps first = ~sim::time_ps{0};
  for_each_number(busy_, [this, &first](unsigned port) { first = std::min(first, dues_[port]); });
  if (first != ~sim::time_ps{0}) wake_at(std::max(this->now() + 1, domain().edge_at_or_after(first)));
}

void network_switch::port_state::tell_gauges() {
  const sim::time_ps now = owner.now_ps();
  for (unsigned i = 0; i < priorities; ++i) queued[i].tell(owner.buffer_.queued(number, i), now);
  pauses.look(flow, now);
}

/// Nobody is paused on a cable that is gone, and who comes back does not know what was told before.
void network_switch::take_change(port_state& p) {
  if (!p.changes.can_pop()) return;
  p.changes.pop();
  if (p.changes.empty()) changing_ &= ~p.bit();
  p.flow.reset(now_ps());
  busy_ |= p.bit();
  touched_ |= p.bit();
}

/// Bytes that came or went move the thresholds of all inputs.
void network_switch::look_at_room() {
  if (config_.buffer.flow_control == lossless_by::nothing) return;
  for_each(busy_, [this](port_state& p) {
    const std::uint8_t above = buffer_.above(p.number);
    if (above != p.above) touched_ |= p.bit();
    p.above = above;
  });
}

void network_switch::take(port_state& from, payload::frame_ptr frame, sim::time_ps arrival) {
  payload::frame& f = *frame;
  const bool lost = from.cut(f.stamp, arrival), control = is_mac_control(f);
  if (control && !lost && consume_pause(from, f)) return;
  ++count_.frames;
  ++from.count.rx_frames;
  from.count.rx_bytes += f.length + fcs_bytes;
  if (lost) {
    ++from.count.drop_no_line;
    return;
  }
  const auto ends = [&from] { ++from.count.ended; };
  const bool whole = control || config_.forwarding == forwarding_mode::store_and_forward;
  if (whole && wire::ethernet_fcs(f.data(), f.length) != f.fcs) {
    ++from.count.drop_fcs;
    return;
  }
  if (control) return ends();
  const auto vlan = vlan_of(from.config.vlan, f);
  if (!vlan) {
    ++from.count.drop_vlan;
    return;
  }
  if (is_for_bridges(f)) return ends();
  const unsigned priority = priority_of(f);
  forwarding_.learn(*vlan, f.data() + address_bytes, from.number);
  const int to = forwarding_.port_of(*vlan, f);
  if (to == static_cast<int>(from.number)) return ends();
  if (to >= 0)
    return arrivals_.add({from.number, static_cast<unsigned>(to), std::move(frame), *vlan, priority, arrival});
  flood(from, std::move(frame), *vlan, priority, arrival);
}

/// True: it was a pause.
bool network_switch::consume_pause(port_state& from, const payload::frame& f) {
  wire::pause_frame pause;
  const wire::pause_kind kind = wire::decode_pause(f.data(), f.length, pause);
  if (kind != wire::pause_kind::pause || wire::ethernet_fcs(f.data(), f.length) != f.fcs) return false;
  ++from.count.rx_pause;
  from.flow.receive(pause, now_ps());
  return true;
}

void network_switch::flood(port_state& from, payload::frame_ptr frame, std::uint16_t vlan, unsigned priority,
                           sim::time_ps arrival) {
  if (!config_.floods) {
    ++from.count.drop_unknown;
    return;
  }
  ++count_.flooded;
  const std::uint16_t vid = vlan_behind(vlan, *frame);
  bool any = false;
  for (auto& p : ports_) {
    if (p.get() == &from || !is_member(p->config.vlan, vid)) continue;
    if (any) ++count_.copies;
    any = true;
    arrivals_.add({from.number, p->number, payload::copy_on_cable(pool_, *frame), vlan, priority, arrival});
  }
  if (!any) ++from.count.ended;
}

unsigned network_switch::priority_of(const payload::frame& f) const {
  if (config_.priority == priority_by::dscp)
    if (const ip_place ip = find_ip(f); ip.version != 0) return traffic_class_of(f, ip) >> dscp_class_shift;
  return tag_of(f).value_or(0) >> pcp_shift;
}

void network_switch::queue(port_state& from, port_state& to, payload::frame_ptr frame, std::uint16_t vlan,
                           unsigned priority, sim::time_ps arrival) {
  if (to.line == nullptr || to.cut(now_ps(), now_ps() + 1)) {
    ++to.count.drop_no_line;
    return;
  }
  const std::uint16_t vid = vlan_behind(vlan, *frame);
  if (!is_member(to.config.vlan, vid)) {
    ++from.count.drop_vlan;
    return;
  }
  const sim::time_ps came_in_for = duration(*frame, from.config.rate_mbps);
  set_tag(to.config.vlan, *frame, vid, priority);
  const sim::time_ps begins = earliest_begin(came_in_for, duration(*frame, to.config.rate_mbps), arrival);
  const std::uint32_t bytes = frame->length + fcs_bytes;
  switch (buffer_.admit(from.number, to.number, priority, bytes)) {
    case shared_buffer::verdict::stored:
      break;
    case shared_buffer::verdict::queue_full:
      ++to.count.drop_queue;
      return;
    case shared_buffer::verdict::no_headroom:
      ++from.count.drop_headroom;
      return;
  }
  if (to.pauses.watched()) to.queued[priority].tell(buffer_.queued(to.number, priority), now_ps());
  if (to.markers[priority].look_at(*frame, buffer_.queued(to.number, priority))) ++to.count.marked;
  if (!to.points.empty() && to.points[priority].is_on()) sample(from, to, *frame, vlan, priority, arrival);
  busy_ |= to.bit();
  touched_ |= to.bit();
  to.queues.push(priority, {std::move(frame), from.number, bytes, begins});
}

/// A frame has come into a queue that has a congestion point. What that has to tell goes back by the frame's input.
void network_switch::sample(port_state& from, port_state& to, const payload::frame& f, std::uint16_t vlan,
                            unsigned priority, sim::time_ps arrival) {
  if (wire::is_cnm(f.data(), f.length)) return;
  const auto found = to.points[priority].take(f.length + fcs_bytes, buffer_.queued(to.number, priority));
  if (!found) return;
  ++to.count.sampled;
  to.count.sampled_bytes += found->queued;
  if (found->feedback == 0 || (f.data()[address_bytes] & 1) != 0) return;
  wire::cnm m = message_about(f, priority, *found, config_.qcn);
  m.smac = own_address;
  m.cpid = config_.seed << 16 | to.number << 8 | priority;
  payload::frame_ptr told = pool_.get();
  told->begin = payload::frame::payload_start;
  told->length = static_cast<std::uint32_t>(wire::encode_cnm(m, told->data()));
  if (told->length < shortest_bytes) std::memset(told->data() + told->length, 0, shortest_bytes - told->length);
  told->length = std::max(told->length, shortest_bytes);
  told->fcs = wire::ethernet_fcs(told->data(), told->length);
  ++to.count.cnms;
  queue(to, from, std::move(told), vlan, config_.qcn.cnm_priority, arrival);
}

/// When its first bit could leave if the line were free.
sim::time_ps network_switch::earliest_begin(sim::time_ps came_in_for, sim::time_ps leaves_for,
                                            sim::time_ps arrival) const {
  if (config_.forwarding == forwarding_mode::store_and_forward) return arrival + config_.hop_ps;
  return arrival + config_.hop_ps - std::min(came_in_for, leaves_for);
}

void network_switch::release_what_left(port_state& p) {
  for (; !p.leaves.empty() && p.leaves.front().at <= now_ps(); p.leaves.drop()) {
    const leaving& l = p.leaves.front();
    buffer_.release(l.in, p.number, l.priority, l.bytes);
  }
}

void network_switch::serve(port_state& p) {
  if (p.line == nullptr) return;
  // One pause frame at a time waits for the line.
  if (now_ps() >= p.pause_begins && p.flow.must_tell(p.above, now_ps()) && !p.cut(now_ps(), now_ps() + 1)) tell(p);
  transmit(p);
}

/// The next frame, when the line will soon be free.
void network_switch::transmit(port_state& p) {
  const sim::time_ps now = now_ps();
  if (p.queues.waiting() == 0 || p.line_free > now + config_.hop_ps / 2 || p.leaves.full()) return;
  auto ready = static_cast<std::uint8_t>(p.queues.waiting() & ~p.flow.paused(now));
  for_each_number(ready, [&p, &ready, by = now + config_.hop_ps / 2](unsigned i) {
    if (p.queues.begins(i) > by) ready = static_cast<std::uint8_t>(ready & ~(1u << i));
  });
  if (ready == 0) return;
  const unsigned priority = p.queues.pick(ready);
  output_queues::entry e = p.queues.pop(priority);
  ++p.count.tx_frames;
  ++p.sent[priority];
  p.count.tx_bytes += e.bytes;
  const sim::time_ps lasts = duration(*e.frame, p.config.rate_mbps),
                     after_pause = p.flow.paused_until(priority) + config_.hop_ps / 2 + lasts;
  const sim::time_ps earliest = std::max({e.begins + lasts, after_pause, p.line_free + lasts});
  if (e.frame->span != 0)
    note_way(e.frame->span, e.begins, earliest - lasts,
             earliest == after_pause ? sim::wait::pause : sim::wait::arbitration);
  const sim::time_ps end = put(p, std::move(e.frame), earliest);
  p.leaves.push({end, e.in, priority, e.bytes});
}

/// The way of a frame that was `ready` to leave, and did from `begun` on.
void network_switch::note_way(sim::span_id span, sim::time_ps ready, sim::time_ps begun, sim::wait why) {
  if (spans_ == nullptr) return;
  spans_->wait_until(span, name(), "store", ready - config_.hop_ps, sim::wait::bytes);
  spans_->leave(span, name(), "forward", ready);
  spans_->wait_until(span, name(), "queue", begun, why);
}

/// Gives a frame to the line; returns when its last bit leaves.
sim::time_ps network_switch::put(port_state& p, payload::frame_ptr frame, sim::time_ps earliest_end) {
  const sim::time_ps lasts = duration(*frame, p.config.rate_mbps);
  const sim::time_ps end = std::max(earliest_end, p.line_free + lasts);
  frame->stamp = end - lasts;
  p.line_free = end + line_time(gap_bytes, p.config.rate_mbps);
  p.line->deliver(std::move(frame), end);
  return end;
}

/// Goes before all that waits.
void network_switch::tell(port_state& p) {
  const wire::pause_frame pause = p.flow.tell(p.above, now_ps(), config_.pause_quanta, config_.pause_refresh_percent);
  payload::frame_ptr f = pool_.get();
  f->begin = payload::frame::payload_start;
  f->length = wire::pause_frame_length;
  f->control = true;
  wire::encode_pause(pause, own_address, f->data());
  f->fcs = wire::ethernet_fcs(f->data(), f->length);
  ++p.count.tx_pause;
  const sim::time_ps end = std::max(now_ps(), p.line_free) + duration(*f, p.config.rate_mbps);
  p.pause_begins = end - duration(*f, p.config.rate_mbps);
  put(p, std::move(f), end);
}

/// The first of what time alone will make possible.
sim::time_ps network_switch::due(const port_state& p) const {
  if (p.line == nullptr) return ~sim::time_ps{0};
  sim::time_ps first = std::max(p.flow.refresh_at(), p.pause_begins);
  if (now_ps() < p.pause_begins && p.flow.must_tell(p.above, now_ps())) first = p.pause_begins;
  if (!p.leaves.empty()) first = std::min(first, p.leaves.front().at);
  if (p.queues.waiting() == 0) return first;
  const std::uint8_t paused = p.flow.paused(now_ps());
  if (!p.leaves.full())
    for_each_number(p.queues.waiting() & ~paused, [this, &p, &first](unsigned i) {
      const sim::time_ps on_line = std::max(p.line_free, p.queues.begins(i));
      first = std::min(first, on_line - std::min<sim::time_ps>(on_line, config_.hop_ps / 2));
    });
  for (unsigned left = p.queues.waiting() & paused; left != 0; left &= left - 1)
    first = std::min(first, p.flow.paused_until(static_cast<unsigned>(__builtin_ctz(left))));
  return first;
}

}  // namespace rnic::fabric
