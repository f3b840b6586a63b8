// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/cable_player.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "model/wire/icrc.h"

namespace rnic::bench {

namespace {

constexpr std::uint32_t shortest_frame = 60;  // without FCS (IEEE 802.3)
constexpr std::uint32_t tag_offset = 12, tci_offset = 14;
constexpr std::uint32_t fcs_bytes = 4, preamble_bytes = 8, gap_bytes = 12;

/// Untagged frames are of priority 0.
unsigned priority_of(const payload::frame& f) {
  const std::uint8_t* at = f.data();
  const bool tagged = at[tag_offset] == 0x81 && at[tag_offset + 1] == 0x00;
  return tagged ? at[tci_offset] >> 5 : 0;
}

}  // namespace

cable_player::cable_player(std::string name, sim::clock_domain& domain, payload::frame_pool& frames,
                           sim::span_recorder& spans, std::uint32_t rate_mbps)
    : clocked_block(name, domain),
      frames_(frames),
      spans_(spans),
      rate_mbps_(rate_mbps),
      from_line_(name + ".from_line", *this) {}

/// Time of `bytes` on the line, rounded up.
sim::time_ps cable_player::duration(std::uint32_t bytes) const {
  return (std::uint64_t{bytes} * 8 * sim::ps_per_us + rate_mbps_ - 1) / rate_mbps_;
}

void cable_player::send(std::size_t number, const std::vector<std::uint8_t>& bytes, bool followed) {
  payload::frame_ptr f = frames_.get();
  f->begin = 0;
  f->length = std::max(static_cast<std::uint32_t>(bytes.size()), shortest_frame);
  std::memcpy(f->data(), bytes.data(), bytes.size());
  std::memset(f->data() + bytes.size(), 0, f->length - bytes.size());
  f->fcs = wire::ethernet_fcs(f->data(), f->length);
  to_send_.push_back({number, std::move(f), followed});
  wake_next();
}

void cable_player::deliver(payload::frame_ptr frame, sim::time_ps arrival) {
  from_line_.push(std::move(frame), arrival);
}

void cable_player::tick() {
  while (from_line_.can_pop()) {
    const sim::time_ps arrival = from_line_.front_arrival();
    const payload::frame_ptr f = from_line_.pop();
    wire::pause_frame pause;
    const wire::pause_kind kind = wire::decode_pause(f->data(), f->length, pause);
    if (kind == wire::pause_kind::pause) {
      ++pauses_;
      obey(pause);
    } else if (listener_ != nullptr) {
      listener_->received(*f, arrival);
    }
  }
  transmit();
}

void cable_player::obey(const wire::pause_frame& p) {
  for (unsigned i = 0; i < 8; ++i) {
    if (p.per_priority && (p.enabled >> i & 1) == 0) continue;
    const std::uint64_t bits = p.quanta[p.per_priority ? i : 0] * wire::bits_per_quantum;
    paused_until_[i] = now_ps() + (bits * sim::ps_per_us + rate_mbps_ - 1) / rate_mbps_;
  }
}

void cable_player::transmit() {
  if (to_send_.empty()) return;
  const sim::time_ps now = now_ps();
  const sim::time_ps may = std::max(line_free_, paused_until_[priority_of(*to_send_.front().frame)]);
  if (may > now) {
    wake_at(domain().edge_at_or_after(may));
    return;
  }
  waiting w = std::move(to_send_.front());
  to_send_.pop_front();
  w.frame->stamp = now;
  if (w.followed) w.frame->span = spans_.open(now);
  const sim::time_ps last_bit = now + duration(w.frame->length + fcs_bytes + preamble_bytes);
  line_free_ = now + duration(w.frame->length + fcs_bytes + preamble_bytes + gap_bytes);
  if (listener_ != nullptr) listener_->injected(w.number, w.frame->span, now);
  line_->deliver(std::move(w.frame), last_bit);
  if (!to_send_.empty())
    wake_at(domain().edge_at_or_after(std::max(line_free_, paused_until_[priority_of(*to_send_.front().frame)])));
}

}  // namespace rnic::bench
