// SPDX-License-Identifier: Apache-2.0
// Frames from one connector to the other.
#include "model/fabric/cable.h"

#include <utility>

namespace rnic::fabric {

cable::cable(tlm::frame_port_if& first, tlm::frame_port_if& second, const config& cfg)
    : propagation_(sim::time_ps{cfg.metres} * cfg.ps_per_metre), ports_{&first, &second} {
  for (unsigned i = 0; i < 2; ++i) {
    ends_[i].owner = this;
    ends_[i].from = i;
    ends_[i].peer = &(i == 0 ? second : first).receiver();
  }
  first.attach(ends_[0]);
  second.attach(ends_[1]);
}

void cable::set_live(bool live, sim::time_ps at) {
  for (tlm::frame_port_if* port : ports_) port->carrier(live, at);
}

void cable::end::deliver(tlm::frame_ptr frame, sim::time_ps last_bit) {
  ++frames;
  for (tlm::frame_observer_if* o : owner->observers_) o->observe(from, *frame, frame->stamp, last_bit);
  if (owner->fault_ != nullptr && owner->fault_->on_frame(from, *frame) == cable_fault_if::fate::lose) {
    ++lost;
    return;
  }
  peer->deliver(std::move(frame), last_bit + owner->propagation_);
}

}  // namespace rnic::fabric
