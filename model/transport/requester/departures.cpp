// SPDX-License-Identifier: Apache-2.0
// The ends of packets: left, withdrawn, blocked, failed.
#include "model/transport/requester/departures.h"

namespace rnic::transport {

void departures::started(qp_runtime& r, bool last_local) {
  if (last_local) ++local_;
  ++leaving_;
  ++r.under_way.packets;
  listen();
}

void departures::listen() {
  if (leaving_ == 0) awaited_ = false;
  ports_.left.set_quiet(local_ == 0 && !awaited_);
}

void departures::await() {
  awaited_ = true;
  listen();
}

void departures::take_left() {
  if (!ports_.left.can_pop()) return;
  ports_.left.take_due([this](const gather_left& l) {
    gone(l.qpn, l.last_local);
    if (l.last_local) message_left(l.message, l.generation, l.qpn);
  });
  listen();
}

void departures::gone(std::uint32_t qpn, bool last_local) {
  --leaving_;
  if (last_local) --local_;
  --qps_[qpn].under_way.packets;
}

void departures::message_left(std::uint32_t index, std::uint32_t generation, std::uint32_t qpn) {
  if (messages_[index].generation != generation) return;
  messages_[index].sent = true;
  messages_.may_complete(qps_[qpn]);
}

void departures::take_event() {
  if (!ports_.events.can_pop()) return;
  const gather_event& e = ports_.events.front();
  using kind = gather_event::kind;
  if (e.what == kind::failed) {
    if (!ports_.verdicts.claim() || !failed(e)) return;
    ports_.verdicts.push({});
  } else {
    ++(e.what == kind::blocked ? blocked_ : cancelled_);
    credits_.give_back(e.port, e.priority);
    gone(e.qpn, e.last_local);
    if (e.what == kind::blocked && e.last_local)
      message_left(e.message, e.generation, e.qpn);  // for software it was sent
    listen();
  }
  ports_.events.drop();
}

// Of a message that was put back: it is executed again, and its new packets tell. False: not now.
bool departures::failed(const gather_event& e) {
  using result = context_memory::result;
  if (go_back_.busy(qps_[e.qpn])) return false;
  context* c = nullptr;
  const result found = contexts_.ask(e.qpn, c);
  if (found == result::pending) return false;
  if (found == result::hit && !contexts_.access(context_memory::departures, e.qpn)) return false;
  if (found != result::hit || messages_[e.message].generation != e.generation) return true;
  go_back_.fail(*c, qps_[e.qpn], e.message, e.syndrome, 0, e.psn);
  contexts_.mark_dirty(e.qpn);
  return true;
}

}  // namespace rnic::transport
