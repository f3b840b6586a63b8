// SPDX-License-Identifier: Apache-2.0
#include "model/host/device_writes.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "model/sim/clock_domain.h"

namespace rnic::host {

device_writes::device_writes(sim::clocked_block& owner, const root_complex_config& c, host_memory& memory,
                             memory_timing& timing, device_credits& credits, sim::span_recorder& spans)
    : owner_(owner),
      memory_(memory),
      timing_(timing),
      credits_(credits),
      spans_(spans),
      posted_(std::max<std::size_t>(c.posted_headers, 256)) {
  owner.domain().base().add(*this);
  memory.add(*this);
}

device_writes::~device_writes() {
  memory_.remove(*this);
  owner_.domain().base().remove(*this);
}

void device_writes::accept(payload::tlp_ptr packet, sim::time_ps at) {
  const sim::clock_domain& domain = owner_.domain();
  write_unseen(domain.base().now_ps());
  if (posted_.full()) return credits_.broken();
  const bool message = packet->type == payload::tlp_type::message;
  if (!message) memory_.touch_soon(packet->address, packet->length, true);
  posted_write& w = posted_.extend();
  constexpr std::uint32_t as_msi = 4;
  w.edge = domain.edge_at_or_after(message ? timing_.write(msi_base, as_msi, at)
                                           : timing_.write(packet->address, packet->length, at));
  w.visible = domain.edge_time(w.edge);
  w.seen = is_seen(*packet);
  if (w.seen)
    owner_.wake_at(w.edge);
  else
    credits_.give(*packet, w.visible);
  w.packet = std::move(packet);
}

/// Whether anything but the bytes in memory tells that it has become visible.
bool device_writes::is_seen(const payload::tlp& t) const {
  return !owner_.domain().base().may_defer() || t.span != 0 || t.poisoned || t.type == payload::tlp_type::message ||
         (t.address >= msi_base && t.address < msi_end) || memory_.tells(t.address, t.length) ||
         !memory_.admits(t.requester & 0xff, t.address);
}

/// Those before the first seen one that are visible before `before`.
void device_writes::write_unseen(sim::time_ps before) {
  while (!posted_.empty()) {
    posted_write& w = posted_.front();
    if (w.seen || w.visible >= before) return;
    write(*w.packet, w.visible);
    w.packet.reset();
    posted_.drop();
  }
}

void device_writes::catch_up(sim::time_ps before) {
  write_unseen(before);
  if (!posted_.empty() && !posted_.front().seen) owner_.wake_at(posted_.front().edge);
}

void device_writes::watch_added() {
  for (std::size_t i = 0; i < posted_.size(); ++i) {
    const posted_write& w = posted_[i];
    if (!w.seen && w.edge > owner_.now()) owner_.wake_at(w.edge);
  }
}

void device_writes::work() {
  while (!posted_.empty() && posted_.front().edge <= owner_.now()) {
    const posted_write w = posted_.pop();
    write(*w.packet, w.visible);
    if (w.seen) credits_.give(*w.packet, w.visible);
  }
}

void device_writes::write(const payload::tlp& t, sim::time_ps at) {
  if (t.poisoned) {
    ++(t.status == payload::tlp_status::success ? counts_.poisoned : counts_.unsupported);
    return;
  }
  if (t.type == payload::tlp_type::message) return move_line(t.code, at);
  if (t.address >= msi_base && t.address < msi_end) return interrupt(t, at);
  if (crosses_page(t)) return credits_.broken();
  spans_.leave(t.span, owner_.name(), "memory write", at);
  if (!memory_.admits(t.requester & 0xff, t.address) || !memory_.device_write(t.address, t.data.data(), t.length, at)) {
    ++counts_.unsupported;
    return;
  }
  ++counts_.writes;
  counts_.bytes += t.length;
}

void device_writes::move_line(payload::message_code code, sim::time_ps at) {
  ++counts_.messages;
  if (interrupts_ != nullptr) interrupts_->line(code == payload::message_code::assert_inta, at);
}

void device_writes::interrupt(const payload::tlp& t, sim::time_ps at) {
  ++counts_.messages;
  std::uint32_t data = 0;
  std::memcpy(&data, t.data.data(), std::min<std::uint32_t>(t.length, 4));
  if (interrupts_ != nullptr)
    interrupts_->interrupt(static_cast<std::uint16_t>(t.requester & 0xff), t.address, data, at);
}

}  // namespace rnic::host
