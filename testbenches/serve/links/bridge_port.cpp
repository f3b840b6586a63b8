// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/links/bridge_port.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "model/wire/icrc.h"

namespace rnic::serve {

namespace {

constexpr std::uint32_t shortest_frame = 60;  // without FCS (IEEE 802.3)
constexpr std::uint32_t tag_offset = 12, tci_offset = 14;
constexpr std::uint16_t longest_pause = 0xffff;  // quanta
constexpr wire::mac_address own_address{0x02, 0, 0, 0, 0, 0xfe};
constexpr std::uint32_t fcs_bytes = 4, preamble_bytes = 8, gap_bytes = 12;

/// Untagged frames are of priority 0.
unsigned priority_of(const payload::frame& f) {
  const std::uint8_t* at = f.data();
  const bool tagged = at[tag_offset] == 0x81 && at[tag_offset + 1] == 0x00;
  return tagged ? at[tci_offset] >> 5 : 0;
}

}  // namespace

bridge_port::bridge_port(const std::string& name, sim::clock_domain& domain, const config& cfg,
                         payload::frame_pool& frames, outside_if& outside, sim::statistics& stats)
    : clocked_block(name, domain),
      config_(cfg),
      frames_(frames),
      outside_(outside),
      queue_(cfg.queue_frames),
      from_line_(name + ".from_line", *this) {
  stats.add(name + ".to_adapter", to_adapter_);
  stats.add(name + ".from_adapter", from_adapter_);
  stats.add(name + ".drop.queue_full", drop_queue_full_);
  stats.add(name + ".pauses", pauses_);
  stats.add(name + ".pauses_said", pauses_said_);
}

/// Time of `bytes` on the line, rounded up.
sim::time_ps bridge_port::duration(std::uint32_t bytes) const {
  return (std::uint64_t{bytes} * 8 * sim::ps_per_us + config_.rate_mbps - 1) / config_.rate_mbps;
}

void bridge_port::inject(const std::uint8_t* frame, std::size_t length, sim::time_ps at) {
  if (count_ == queue_.size()) {
    ++drop_queue_full_;
    return;
  }
  payload::frame_ptr f = frames_.get();
  f->begin = 0;
  f->length = std::max(static_cast<std::uint32_t>(length), shortest_frame);
  std::memcpy(f->data(), frame, length);
  std::memset(f->data() + length, 0, f->length - length);
  f->fcs = wire::ethernet_fcs(f->data(), f->length);
  queue_[(head_ + count_++) % queue_.size()] = {std::move(f), at};
  if (count_ == 1) wake_at(std::max(now() + 1, domain().edge_at_or_after(head_may_start())));
}

void bridge_port::tick() {
  while (from_line_.can_pop()) {
    const payload::frame_ptr f = from_line_.pop();
    wire::pause_frame pause;
    switch (wire::decode_pause(f->data(), f->length, pause)) {
      case wire::pause_kind::none:
        ++from_adapter_;
        outside_.leave(f->data(), f->length);
        break;
      case wire::pause_kind::pause:
        ++pauses_;
        obey(pause);
        break;
      case wire::pause_kind::unsupported:
        break;
    }
  }
  hold_or_resume();
  transmit();
}

/// Whoever takes something is not dead.
void bridge_port::relieved() {
  held_since_ = now_ps();
  if (hold_ != hold::none && outside_.queued() < config_.resume_below_bytes) wake_next();
}

/// PAUSE is repeated before it ends.
void bridge_port::hold_or_resume() {
  const std::size_t queued = outside_.queued();
  if (hold_ == hold::none && queued <= config_.hold_above_bytes) return;
  const sim::time_ps now = now_ps();
  const bool enough = queued < config_.resume_below_bytes;
  if (hold_ == hold::none) {
    hold_ = hold::held;
    held_since_ = say_again_at_ = now;
  }
  if (hold_ == hold::held && (enough || now - held_since_ >= config_.longest_hold_ps)) {
    pause_to_say_ = std::uint16_t{0};
    hold_ = hold::given_up;
  }
  if (enough) hold_ = hold::none;
  if (hold_ != hold::held) return;  // given up: relieved() says when that is over
  if (now >= say_again_at_) {
    pause_to_say_ = longest_pause;
    say_again_at_ = now + duration(longest_pause * wire::bits_per_quantum / 8) / 2;
  }
  wake_at(domain().edge_at_or_after(std::min(say_again_at_, held_since_ + config_.longest_hold_ps)));
}

void bridge_port::obey(const wire::pause_frame& p) {
  for (unsigned i = 0; i < 8; ++i) {
    if (p.per_priority && (p.enabled >> i & 1) == 0) continue;
    const std::uint64_t bits = p.quanta[p.per_priority ? i : 0] * wire::bits_per_quantum;
    paused_until_[i] = now_ps() + (bits * sim::ps_per_us + config_.rate_mbps - 1) / config_.rate_mbps;
  }
}

sim::time_ps bridge_port::head_may_start() const {
  const waiting& w = queue_[head_];
  return std::max({w.at, line_free_, paused_until_[priority_of(*w.frame)]});
}

void bridge_port::send(payload::frame_ptr frame) {
  const sim::time_ps now = now_ps();
  frame->stamp = now;
  const sim::time_ps last_bit = now + duration(frame->length + fcs_bytes + preamble_bytes);
  line_free_ = now + duration(frame->length + fcs_bytes + preamble_bytes + gap_bytes);
  line_->deliver(std::move(frame), last_bit);
}

payload::frame_ptr bridge_port::pause_frame(std::uint16_t quanta) {
  payload::frame_ptr f = frames_.get();
  wire::pause_frame p;
  p.quanta[0] = quanta;
  f->begin = 0;
  f->length = wire::pause_frame_length;
  wire::encode_pause(p, own_address, f->data());
  f->fcs = wire::ethernet_fcs(f->data(), f->length);
  return f;
}

/// PAUSE goes before everything else, and is not held by the adapter's.
void bridge_port::transmit() {
  const sim::time_ps now = now_ps();
  if (pause_to_say_ && line_free_ <= now) {
    send(pause_frame(*pause_to_say_));
    pause_to_say_.reset();
    ++pauses_said_;
  } else if (count_ != 0 && head_may_start() <= now) {
    payload::frame_ptr f = std::move(queue_[head_].frame);
    head_ = (head_ + 1) % queue_.size();
    --count_;
    ++to_adapter_;
    send(std::move(f));
    if (count_ == queue_.size() / 2) outside_.half_empty();
  }
  if (pause_to_say_) wake_at(std::max(this->now() + 1, domain().edge_at_or_after(line_free_)));
  if (count_ != 0) wake_at(std::max(this->now() + 1, domain().edge_at_or_after(head_may_start())));
}

}  // namespace rnic::serve
