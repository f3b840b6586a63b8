// SPDX-License-Identifier: Apache-2.0
#include "model/fabric/network_switch.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "model/payload/frame_copy.h"
#include "model/sim/check.h"
#include "model/wire/icrc.h"

namespace rnic::fabric {

namespace {

constexpr std::uint32_t preamble_and_fcs_bytes = 12, gap_bytes = 12, address_bytes = 6;
constexpr std::size_t addresses = 256;  // more are flooded to
constexpr wire::mac_address own_address{0x02, 0, 0, 0, 0x80, 0x01};

}  // namespace

network_switch::network_switch(std::string name, sim::clock_domain& domain, const config& cfg,
                               payload::frame_pool& pool, sim::statistics& stats)
    : clocked_block(name, domain), config_(cfg), pool_(pool) {
  places_.reserve(addresses);
  for (unsigned i = 0; i < cfg.ports; ++i) {
    ports_.push_back(std::make_unique<port_state>(this->name() + ".port" + std::to_string(i), *this, cfg.rate_mbps));
    ports_.back()->flow.send_pause = ports_.back()->flow.obey_pause = true;
  }
  stats.add(this->name() + ".frames", count_.frames);
  stats.add(this->name() + ".flooded", count_.flooded);
  stats.add(this->name() + ".pauses_received", count_.pauses_received);
  stats.add(this->name() + ".pauses_sent", count_.pauses_sent);
}

void network_switch::frame_queue::push(queued q) {
  if (count_ == slots_.size()) {
    std::rotate(slots_.begin(), slots_.begin() + static_cast<std::ptrdiff_t>(head_), slots_.end());
    head_ = 0;
    slots_.resize(slots_.size() * 2);
  }
  bytes_ += q.frame->length;
  slots_[(head_ + count_++) & (slots_.size() - 1)] = std::move(q);
}

network_switch::queued network_switch::frame_queue::pop() {
  queued q = std::move(slots_[head_]);
  head_ = (head_ + 1) & (slots_.size() - 1);
  --count_;
  bytes_ -= q.frame->length;
  return q;
}

int network_switch::port_of(const std::uint8_t* address) const {
  for (const place& p : places_)
    if (std::equal(p.address.begin(), p.address.end(), address)) return static_cast<int>(p.port);
  return -1;
}

void network_switch::learn(const std::uint8_t* address, unsigned from) {
  for (place& p : places_) {
    if (!std::equal(p.address.begin(), p.address.end(), address)) continue;
    p.port = from;
    return;
  }
  if (places_.size() == addresses) return;
  places_.push_back({{}, from});
  std::copy_n(address, address_bytes, places_.back().address.begin());
}

sim::time_ps network_switch::duration_of(const payload::frame& f) const {
  return line_time(f.length + preamble_and_fcs_bytes);
}

void network_switch::take(unsigned from, payload::frame_ptr frame, sim::time_ps arrival) {
  wire::pause_frame pause;
  const wire::pause_kind kind = wire::decode_pause(frame->data(), frame->length, pause);
  if (kind != wire::pause_kind::none) {
    if (kind == wire::pause_kind::unsupported || wire::ethernet_fcs(frame->data(), frame->length) != frame->fcs) return;
    ++count_.pauses_received;
    return ports_[from]->flow.receive(pause, now_ps());
  }
  ++count_.frames;
  learn(frame->data() + address_bytes, from);
  const int to = port_of(frame->data());
  if (to == static_cast<int>(from)) return;
  if (to >= 0) return queue(static_cast<unsigned>(to), std::move(frame), arrival);
  ++count_.flooded;
  for (unsigned i = 0; i < ports_.size(); ++i)
    if (i != from) queue(i, payload::copy_on_cable(pool_, *frame), arrival);
}

void network_switch::queue(unsigned to, payload::frame_ptr frame, sim::time_ps arrival) {
  port_state& p = *ports_[to];
  if (p.line == nullptr) return;
  p.queue.push({std::move(frame), arrival});
}

/// Priorities that a port's peer has to stop: all, as long as another output is full.
std::uint8_t network_switch::above(unsigned from) const {
  for (unsigned i = 0; i < ports_.size(); ++i)
    if (i != from && ports_[i]->full) return 0xff;
  return 0;
}

/// Cut-through: the last bit leaves `hop_ps` behind the one that came, if the line is free so early.
void network_switch::send(port_state& p, payload::frame_ptr frame, sim::time_ps earliest_end) {
  const sim::time_ps duration = duration_of(*frame);
  const sim::time_ps end = std::max(earliest_end, p.line_free + duration);
  frame->stamp = end - duration;
  p.line_free = end + line_time(gap_bytes);
  p.line->deliver(std::move(frame), end);
}

void network_switch::tell(port_state& p, std::uint8_t above) {
  const wire::pause_frame pause = p.flow.tell(above, now_ps(), config_.pause_quanta, config_.pause_refresh_percent);
  payload::frame_ptr f = pool_.get();
  f->begin = payload::frame::payload_start;
  f->length = wire::pause_frame_length;
  f->control = true;
  wire::encode_pause(pause, own_address, f->data());
  f->fcs = wire::ethernet_fcs(f->data(), f->length);
  ++count_.pauses_sent;
  const sim::time_ps end = std::max(now_ps(), p.line_free) + duration_of(*f);
  send(p, std::move(f), end);
}

void network_switch::serve(port_state& p, std::uint8_t above) {
  if (p.line == nullptr) return;
  const sim::time_ps at = now_ps(), soon = at + config_.hop_ps / 2;
  if (p.flow.must_tell(above, at)) tell(p, above);
  if (!p.queue.empty() && p.line_free <= soon && p.flow.paused(at) == 0) {
    queued q = p.queue.pop();
    const sim::time_ps after_pause = p.flow.paused_until(0) + duration_of(*q.frame);
    send(p, std::move(q.frame), std::max(q.arrival + config_.hop_ps, after_pause));
  }
  if (p.flow.refresh_at() != ~sim::time_ps{0})
    wake_at(std::max(now() + 1, domain().edge_at_or_after(p.flow.refresh_at())));
  if (p.queue.empty()) return;
  const sim::time_ps again = std::max(p.line_free - std::min<sim::time_ps>(p.line_free, config_.hop_ps / 2),
                                      p.flow.paused(at) != 0 ? p.flow.paused_until(0) : 0);
  wake_at(std::max(this->now() + 1, domain().edge_at_or_after(again)));
}

void network_switch::tick() {
  for (unsigned i = 0; i < ports_.size(); ++i) {
    port_state& p = *ports_[i];
    if (!p.inbox.can_pop()) continue;
    const sim::time_ps arrival = p.inbox.front_arrival();
    take(i, p.inbox.pop(), arrival);
  }
  for (auto& p : ports_)
    p->full = p->queue.bytes() > config_.xoff_bytes || (p->full && p->queue.bytes() > config_.xon_bytes);
  for (unsigned i = 0; i < ports_.size(); ++i) serve(*ports_[i], above(i));
}

}  // namespace rnic::fabric
