// SPDX-License-Identifier: Apache-2.0
#include "model/mac/turnaround.h"

#include <algorithm>
#include <utility>

#include "model/payload/frame_stream.h"

namespace rnic::mac {

namespace {
/// Places of frames that two sources have credits for, and of as many copies of frames for the line.
std::size_t places(const port_config& c) { return std::size_t{c.egress_frames} * 4; }
}  // namespace

turnaround::turnaround(sim::clocked_block& owner, const port_common& common, const credit_returns& credits,
                       receive_side& to)
    : owner_(owner),
      common_(common),
      credits_(credits),
      to_(to),
      queues_(places(common.config)),
      turn_(owner, "turn") {}

void turnaround::push(payload::frame_ptr frame) { queues_.push(std::move(frame), owner_.now_ps()); }

bool turnaround::push_copy(payload::frame_ptr copy) {
  if (queues_.full(copy->priority & 7u)) return false;
  copy->source = no_source;
  push(std::move(copy));
  return true;
}

void turnaround::hand_on() { to_.loop(std::move(turning_.frame), owner_.now() + common_.config.turn_cycles); }

bool turnaround::serve(bool link_up) {
  held_ = 0;
  if (!link_up) {
    turn_.idle();
    const std::uint8_t ready = credits_.with_room(queues_, queues_.waiting());
    if (ready != 0) drop(ready);
    return ready != 0;
  }
  const std::uint8_t open = below_xoff();
  held_ = static_cast<std::uint8_t>(queues_.waiting() & ~open);
  if (!turn_.is_free()) {
    turn_.await();
    return false;
  }
  const std::uint8_t ready = credits_.with_room(queues_, open);
  turn_.waits_for(ready != 0 ? nullptr : open != 0 ? "credits_out" : "ingress_buffer");
  if (ready == 0) return false;
  start(queues_.pick(ready));
  return true;
}

/// Priorities that have a frame, and room for it where it goes.
std::uint8_t turnaround::below_xoff() const {
  unsigned mask = 0;
  for (unsigned left = queues_.waiting(); left != 0; left &= left - 1) {
    const auto p = static_cast<unsigned>(__builtin_ctz(left));
    if (!to_.would_be_above_xoff(*queues_.head(p).frame)) mask |= 1u << p;
  }
  return static_cast<std::uint8_t>(mask);
}

void turnaround::start(unsigned priority) {
  egress::entry e = queues_.pop(priority);
  payload::frame& f = *e.frame;
  credits_.give_back(f);
  pad(f);
  const bool waited = owner_.now_ps() > e.since;
  common_.spans.leave(f.span, owner_.name(), "loopback queue", owner_.now_ps(),
                      waited ? sim::wait::arbitration : sim::wait::none);
  ++common_.counters.looped;
  common_.stats.transmit(eth_stats::looped, f.length + fcs_bytes, common_.set.mtu, f.data(), is_tagged(f));
  const unsigned width = common_.config.datapath_bytes;
  const sim::cycle_t last = owner_.now() + payload::beats_of(f.length, width) - 1;
  const sim::cycle_t complete = std::max(last, payload::last_byte_at(f, width));
  turn_.start(complete + 1 - owner_.now());
  to_.expect_looped(f);
  turning_ = {std::move(e.frame), complete};
  owner_.wake_at(std::max(complete, owner_.now() + 1));
  if (queues_.waiting() != 0) turn_.await();
}

/// One of `ready`, whose credit can be given back.
void turnaround::drop(std::uint8_t ready) {
  const egress::entry e = queues_.pop(queues_.pick(ready));
  credits_.give_back(*e.frame);
  ++common_.counters.drop_tx_link_down;
  common_.stats.transmit_drop();
  if (queues_.waiting() != 0) owner_.wake_next();
}

}  // namespace rnic::mac
