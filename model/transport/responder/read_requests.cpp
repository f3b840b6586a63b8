// SPDX-License-Identifier: Apache-2.0
#include "model/transport/responder/read_requests.h"

#include <algorithm>

#include "model/transport/message_packets.h"

namespace rnic::transport {

read_requests::read_requests(const responder_config& cfg, read_gathers& gathers)
    : gathers_(gathers), requests_(cfg.read_queue), streams_(cfg.flows) {
  for (unsigned i = cfg.read_queue; i-- != 0;) free_.push_back(static_cast<std::uint16_t>(i));
  left_over_.reserve(cfg.read_queue);
}

unsigned read_requests::count(const read_stream& s) const {
  unsigned n = 0;
  for (std::uint16_t j = s.first; j != no_link; j = requests_[j].next) ++n;
  return n;
}

std::uint16_t read_requests::open(const read_command& r) {
  const std::uint16_t j = free_.back();
  free_.pop_back();
  requests_[j] = read_request{};
  requests_[j].used = true;
  requests_[j].r = r;
  return j;
}

/// Behind those of its queue pair with a smaller sequence. In turn is the first that is not asked for.
void read_requests::insert(read_stream& s, std::uint16_t j, std::uint32_t sequence) {
  requests_[j].sequence = sequence;
  std::uint16_t* at = &s.first;
  while (*at != no_link && !behind(requests_[*at].sequence, requests_[j].sequence)) at = &requests_[*at].next;
  requests_[j].next = *at;
  *at = j;
  s.turn = s.first;
  while (s.turn != no_link && behind(s.gathered, requests_[s.turn].sequence)) s.turn = requests_[s.turn].next;
}

void read_requests::advance(read_stream& s) {
  s.turn = requests_[s.turn].next;
  ++s.gathered;
}

void read_requests::ask_address(std::uint16_t j) {
  read_request& x = requests_[j];
  const std::uint16_t g = x.head = x.tail = gathers_.begin();
  read_gathers::packet& a = gathers_[g];
  a.offset = 0;
  a.length = atomic_bytes;
  a.job = j;
  a.flow = x.r.flow;
  a.key = x.r.key;
  a.address_only = true;
  icm::translate_request t;
  t.access = icm::access::remote_atomic;
  t.key = x.r.key;
  t.pd = x.r.pd;
  t.qpn = x.r.qpn;
  t.va = x.r.va;
  t.length = atomic_bytes;
  t.span = x.r.span;
  gathers_.translate(g, t);
}

void read_requests::found_address(std::uint16_t g) {
  const read_gathers::packet& a = gathers_[g];
  read_request& x = requests_[a.job];
  read_stream& s = streams_[a.flow];
  x.head = x.tail = no_link;
  if (!x.all_asked && a.nak != 0) {
    x.nak = a.nak;
    x.event = a.event;
    x.all_asked = true;
    if (s.turn == a.job) advance(s);
  } else {
    x.r.first = a.where;
  }
  gathers_.free(g);
}

void read_requests::close(std::uint16_t j) {
  read_request& x = requests_[j];
  read_stream& s = streams_[x.r.flow];
  // An atomic that was executed before the requester went back may leave before ask() has come past it again.
  if (s.turn == j) advance(s);
  std::uint16_t* at = &s.first;
  while (*at != j) at = &requests_[*at].next;
  *at = x.next;
  ++s.ended;
  x.used = false;
  free_.push_back(j);
}

// ---------------------------------------------------------------- going back

wire::psn_t read_requests::end_psn(const read_stream& s, const read_command& r) const {
  return wire::psn_t(r.psn) + packets_of(r.length, s.mtu);
}

/// The answer of that PSN is among those that will be sent.
bool read_requests::will_send(const read_stream& s, const read_command& r) const {
  const wire::psn_t psn(r.psn);
  for (std::uint16_t j = s.first; j != no_link; j = requests_[j].next) {
    const read_request& x = requests_[j];
    if (x.given_up) continue;
    const std::uint32_t sent = x.head != no_link ? gathers_[x.head].offset : x.gathered;
    if (!psn.before(wire::psn_t(x.r.psn + sent / s.mtu)) && psn.before(end_psn(s, x.r))) return true;
  }
  return false;
}

/// Makes room for a repeated request among those of its queue pair. What is behind it has not been answered in order
/// for the requester, whatever of it was sent: it begins again when the repeated one is answered, and so do the
/// answers that wait behind it. That way nothing depends on whether the requests behind are repeated and whether they
/// arrive. Returns the place.
std::uint32_t read_requests::go_back(read_stream& s, const read_command& r) {
  left_over_.clear();
  yield(s, r, end_psn(s, r));
  const wire::psn_t psn(r.psn);
  std::uint32_t place = s.accepted;
  for (std::uint16_t j = s.first; j != no_link; j = requests_[j].next) {
    read_request& x = requests_[j];
    if (x.given_up || wire::psn_t(x.r.psn).before(psn)) continue;
    if (behind(place, x.sequence)) place = x.sequence;
    ++x.sequence;
    x.r.msn = r.msn;  // so many messages were completed by now, and no answer takes any back
    x.r.syndrome = r.syndrome;
    begin_again(x);
  }
  if (behind(s.gathered, place)) s.gathered = place;
  if (s.ack.pending && !psn.after(wire::psn_t(s.ack.psn))) {
    ++s.ack.after;
    s.ack.msn = r.msn;
    s.ack.syndrome = r.syndrome;
  }
  if (s.nak.pending && psn.before(wire::psn_t(s.nak.psn))) {
    ++s.nak.after;
    s.nak.msn = r.msn;
  }
  return place;
}

/// Requests under way leave to the repeated one, which ends before PSN `end`, what it asks for: they keep what is
/// behind, or end.
void read_requests::yield(read_stream& s, const read_command& r, wire::psn_t end) {
  for (std::uint16_t j = s.first, next; j != no_link; j = next) {
    read_request& x = requests_[j];
    next = x.next;
    const wire::psn_t first(x.r.psn);
    const bool shares = !end_psn(s, x.r).before(wire::psn_t(r.psn) + 1) && first.before(end);
    if (x.given_up || x.r.what != read_command::kind::read || !shares) continue;
    begin_again(x);
    if (end.before(end_psn(s, x.r))) {
      const std::uint32_t bytes = static_cast<std::uint32_t>(end - first) * s.mtu;
      x.r.psn = end.value();
      x.r.va += bytes;
      x.r.length -= bytes;
      x.r.first = icm::translate_response{};
      continue;
    }
    const std::uint32_t gone = x.sequence;
    close(j);
    left_over_.push_back(j);
    --s.ended;
    --s.accepted;
    for (std::uint16_t i = s.first; i != no_link; i = requests_[i].next)
      if (behind(requests_[i].sequence, gone)) --requests_[i].sequence;
    for (std::uint32_t* at : {&s.gathered, &s.ack.after, &s.nak.after})
      if (behind(*at, gone)) --*at;
  }
}

/// Nothing of a READ was gathered or sent. An atomic is executed once; its answer waits.
void read_requests::begin_again(read_request& x) {
  if (x.r.what != read_command::kind::read) return;
  while (x.head != no_link) {
    const std::uint16_t g = x.head;
    read_gathers::packet& a = gathers_[g];
    x.head = a.next;
    if (a.open == 0) {
      gathers_.free(g);
      continue;
    }
    a.dropped = true;  // what memory and translation still owe comes to a packet of nobody
    a.job = no_link;
    ++streams_[a.flow].abandoned;
  }
  x.tail = no_link;
  x.gathered = 0;
  x.all_asked = false;
}

}  // namespace rnic::transport
