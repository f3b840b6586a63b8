// SPDX-License-Identifier: Apache-2.0
// Frames from one connector to the other.
#include "model/fabric/cable.h"

#include <utility>

#include "model/sim/check.h"

namespace rnic::fabric {

cable::cable(payload::frame_port_if& first, payload::frame_port_if& second, const config& cfg)
    : propagation_(sim::time_ps{cfg.metres} * cfg.ps_per_metre + cfg.hop_ps), ports_{&first, &second} {
  for (unsigned i = 0; i < 2; ++i) {
    ends_[i].owner = this;
    ends_[i].from = i;
    halves_[i].owner = this;
    halves_[i].from = i;
    halves_[i].peer = &(i == 0 ? second : first).receiver();
  }
  first.attach(ends_[0]);
  second.attach(ends_[1]);
}

void cable::set_live(bool live, sim::time_ps at) {
  for (payload::frame_port_if* port : ports_) port->carrier(live, at);
}

void cable::insert(cable_element_if& element) {
  RNIC_ASSERT(element_ == nullptr, "a cable takes one element");
  element_ = &element;
  for (unsigned i = 0; i < 2; ++i) element.connect(i, halves_[i]);
}

void cable::follow(sim::span_recorder& spans, const std::string& first, const std::string& second) {
  spans_ = &spans;
  halves_[0].block = first + "_to_" + second;
  halves_[1].block = second + "_to_" + first;
}

/// Its other end, and who looks at it, are of another partition, or of all.
void cable::end::deliver(payload::frame_ptr frame, sim::time_ps last_bit) {
  if (put_off())
    waiting_.emplace_back(std::move(frame), last_bit);
  else
    enter(std::move(frame), last_bit);
}

void cable::end::cross() {
  auto& [frame, last_bit] = waiting_[crossed_++];
  enter(std::move(frame), last_bit);
  if (crossed_ != waiting_.size()) return;
  waiting_.clear();
  crossed_ = 0;
}

void cable::end::enter(payload::frame_ptr frame, sim::time_ps last_bit) {
  ++frames;
  for (payload::frame_observer_if* o : owner->observers_) o->observe(from, *frame, frame->stamp, last_bit);
  if (owner->fault_ != nullptr && owner->fault_->on_frame(from, *frame) == cable_fault_if::fate::lose) {
    ++lost;
    return;
  }
  if (owner->element_ != nullptr)
    owner->element_->enter(from, std::move(frame), last_bit);
  else
    owner->halves_[from].deliver(std::move(frame), last_bit);
}

void cable::half::deliver(payload::frame_ptr frame, sim::time_ps last_bit) {
  for (payload::frame_observer_if* o : owner->behind_) o->observe(from, *frame, frame->stamp, last_bit);
  if (owner->spans_ != nullptr)
    owner->spans_->leave(frame->span, block, "cable", frame->stamp + owner->propagation_, sim::wait::wire);
  peer->deliver(std::move(frame), last_bit + owner->propagation_);
}

}  // namespace rnic::fabric
