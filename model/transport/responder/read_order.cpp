// SPDX-License-Identifier: Apache-2.0
// READ generator: commands, and the order of a queue pair's answers when its requester goes back.
#include <algorithm>

#include "model/transport/congestion/rates.h"
#include "model/transport/message_packets.h"
#include "model/transport/responder/read_generator.h"

namespace rnic::transport {

void read_generator::accept() {
  if (!command_in.can_pop()) return;
  read_command& r = command_in.front();
  if (r.again || r.what == kind::discard) {  // looks at the requests of its queue pair, one a cycle
    if (!walking_) {
      unsigned requests = 0;
      for (std::uint16_t j = streams_[r.flow].first; j != no_link; j = jobs_[j].next) ++requests;
      if (requests > 1) {
        order_.start(requests);
        walking_ = true;
      }
    }
    if (!order_.is_free()) return order_.await();
    walking_ = false;
  }
  switch (r.what) {
    case kind::read:
    case kind::atomic:
    case kind::replay:
      take(r);
      break;
    case kind::acknowledge:
    case kind::refuse:
      take_answer(r);
      break;
    case kind::discard: {
      stream& s = streams_[r.flow];
      give_up(s);
      s.failed = false;
      s.discarding = true;
      end_discard(s);
      break;
    }
    case kind::revoke:
      revoked_key_ = r.key;
      revoking_ = true;
      refuse_key(r.key);
      break;
    case kind::notified:
      limiter_.notified(r.qpn);
      break;
    case kind::forget:
      limiter_.forget(r.qpn);
      break;
    case kind::forget_all:
      limiter_.clear();
      break;
  }
  command_in.drop();
}

void read_generator::take(const read_command& r) {
  stream& s = streams_[r.flow];
  address(s, r);
  s.mtu = icm::mtu_bytes(r.to.path.mtu_code > 5 ? 5 : r.to.path.mtu_code);
  ++count_.requests;
  if (r.again) ++count_.repeated;
  const bool sent_anyway = r.again && will_send(s, r);
  if (s.failed || sent_anyway) {
    read_report e;
    e.flow = r.flow;
    e.again = r.again;
    e.atomic = r.what == kind::atomic;
    e.replay = r.what == kind::replay;
    e.dropped = sent_anyway;
    reports_.push(e);
    return;
  }
  const std::uint16_t j = free_jobs_.back();
  free_jobs_.pop_back();
  job& x = jobs_[j];
  x = job{};
  x.used = true;
  spans_.leave(r.span, name(), "accept", now_ps());
  x.sequence = r.again ? go_back(s, r) : s.accepted;
  ++s.accepted;
  x.r = r;
  const std::uint8_t code = s.to.path.static_rate;
  if (code != 0 || limiter_.any()) limiter_.limit(s.qpn, static_rate_kbps(code));
  insert(s, j);
  may_ask(x.r.flow);
}

/// The line that it stands in is that of its path, by which all its answers go from now on.
void read_generator::address(stream& s, const read_command& r) {
  s.qpn = r.qpn;
  s.to = r.to;
  if (!s.stands || lines_.is_line(r.flow, s.to.path)) return;
  lines_.remove(r.flow);
  lines_.put(r.flow, s.to.path);
}

void read_generator::take_answer(const read_command& r) {
  stream& s = streams_[r.flow];
  address(s, r);
  ++s.answers;
  if (s.failed) return end_answers(s, 0, 0);
  if (r.what == kind::refuse) s.ack.pending = false;  // what was received before is acknowledged by the NAK's PSN
  (r.what == kind::refuse ? s.nak : s.ack) = {true, r.syndrome, r.psn, r.msn, s.accepted, r.span};
  may_leave(r.flow);
}

/// Behind those of its queue pair with a smaller sequence. In turn is the first that is not asked for.
void read_generator::insert(stream& s, std::uint16_t j) {
  std::uint16_t* at = &s.first;
  while (*at != no_link && !behind(jobs_[*at].sequence, jobs_[j].sequence)) at = &jobs_[*at].next;
  jobs_[j].next = *at;
  *at = j;
  s.turn = s.first;
  while (s.turn != no_link && behind(s.gathered, jobs_[s.turn].sequence)) s.turn = jobs_[s.turn].next;
}

wire::psn_t read_generator::end_psn(const stream& s, const read_command& r) const {
  return wire::psn_t(r.psn) + packets_of(r.length, s.mtu);
}

/// The answer of that PSN is among those that will be sent.
bool read_generator::will_send(const stream& s, const read_command& r) const {
  const wire::psn_t psn(r.psn);
  for (std::uint16_t j = s.first; j != no_link; j = jobs_[j].next) {
    const job& x = jobs_[j];
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
std::uint32_t read_generator::go_back(stream& s, const read_command& r) {
  yield(s, r, end_psn(s, r));
  const wire::psn_t psn(r.psn);
  std::uint32_t place = s.accepted;
  for (std::uint16_t j = s.first; j != no_link; j = jobs_[j].next) {
    job& x = jobs_[j];
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
void read_generator::yield(stream& s, const read_command& r, wire::psn_t end) {
  for (std::uint16_t j = s.first, next; j != no_link; j = next) {
    job& x = jobs_[j];
    next = x.next;
    const wire::psn_t first(x.r.psn);
    const bool shares = !end_psn(s, x.r).before(wire::psn_t(r.psn) + 1) && first.before(end);
    if (x.given_up || x.r.what != kind::read || !shares) continue;
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
    this->end(j);
    --s.ended;
    --s.accepted;
    for (std::uint16_t i = s.first; i != no_link; i = jobs_[i].next)
      if (behind(jobs_[i].sequence, gone)) --jobs_[i].sequence;
    for (std::uint32_t* at : {&s.gathered, &s.ack.after, &s.nak.after})
      if (behind(*at, gone)) --*at;
  }
}

/// Nothing of a READ was gathered or sent. An atomic is executed once; its answer waits.
void read_generator::begin_again(job& x) {
  if (x.r.what != kind::read) return;
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

// ---------------------------------------------------------------- giving up

/// Its oldest request cannot be answered. The responder will say when the queue pair is in the error state.
void read_generator::fail(std::uint16_t f) {
  stream& s = streams_[f];
  s.faulty = false;
  if (s.first == no_link || s.failed) return may_leave(f);  // an answer may have come meanwhile
  const job& x = jobs_[s.first];
  const bool reads = x.r.what == kind::read;
  read_report e;
  e.what = read_report::kind::fault;
  e.flow = f;
  e.nak = reads && x.head != no_link ? gathers_[x.head].nak : x.nak;
  if (x.given_up || e.nak == 0) return may_leave(f);  // it was given up, or begins again
  e.event = reads ? gathers_[x.head].event : x.event;
  e.psn = reads ? (wire::psn_t(x.r.psn) + gathers_[x.head].offset / s.mtu).value() : x.r.psn;
  e.msn = x.r.msn;
  ++count_.faults;
  reports_.push(e);  // ahead of the ends of what is given up
  give_up(s);
  s.failed = true;
}

void read_generator::give_up(stream& s) {
  leave_line(s);
  s.ack.pending = s.nak.pending = false;
  if (s.answers != 0) end_answers(s, 0, 0);
  s.turn = no_link;
  s.gathered = s.accepted;
  for (std::uint16_t j = s.first, next; j != no_link; j = next) {
    job& x = jobs_[j];
    next = x.next;
    if (x.given_up) continue;
    ++count_.given_up;
    x.given_up = x.all_asked = true;
    if (x.executing) atomics_.abandon(j);
    for (std::uint16_t g = x.head; g != no_link; g = gathers_[g].next) gathers_[g].dropped = true;
    reap(j);
  }
}

void read_generator::reap(std::uint16_t j) {
  job& x = jobs_[j];
  while (x.head != no_link && gathers_[x.head].open == 0) {
    const std::uint16_t g = x.head;
    x.head = gathers_[g].next;
    gathers_.free(g);
  }
  if (x.head != no_link || x.executing) return;
  end(j);
  may_leave(x.r.flow);  // an answer that goes behind what was given up
}

void read_generator::end(std::uint16_t j) {
  job& x = jobs_[j];
  stream& s = streams_[x.r.flow];
  // An atomic that was executed before the requester went back may leave before ask() has come past it again.
  if (s.turn == j) advance(s);
  std::uint16_t* at = &s.first;
  while (*at != j) at = &jobs_[*at].next;
  *at = x.next;
  ++s.ended;
  x.used = false;
  free_jobs_.push_back(j);
  read_report e;
  e.flow = x.r.flow;
  e.again = x.r.again;
  e.atomic = x.r.what == kind::atomic;
  e.replay = x.r.what == kind::replay;
  e.executed = x.executed;
  e.psn = x.r.psn;
  e.original = x.r.original;
  reports_.push(e);
  end_discard(s);
}

void read_generator::end_answers(stream& s, unsigned acks, unsigned naks) {
  read_report e;
  e.what = read_report::kind::answered;
  e.flow = number(s);
  e.acks = static_cast<std::uint8_t>(acks);
  e.naks = static_cast<std::uint8_t>(naks);
  const std::uint32_t left = (s.ack.pending ? 1 : 0) + (s.nak.pending ? 1 : 0);
  e.answers = s.answers - left;
  s.answers = left;
  reports_.push(e);
}

/// The last word on a queue pair that was to be given up.
void read_generator::end_discard(stream& s) {
  if (!s.discarding || s.first != no_link || s.abandoned != 0) return;
  s.discarding = false;
  read_report e;
  e.what = read_report::kind::discarded;
  e.flow = number(s);
  reports_.push(e);
}

// ---------------------------------------------------------------- keys that lose their meaning

/// What was not asked for under the key is refused. What of a READ was gathered already is sent, unless it has to begin
/// once more.
void read_generator::refuse_key(std::uint32_t key) {
  for (job& x : jobs_) {
    if (!x.used || x.r.key != key || x.r.what == kind::replay) continue;
    if (x.r.what == kind::read || (!x.executing && !x.all_asked)) x.refused = true;
    const std::uint16_t f = x.r.flow;
    if (x.refused && streams_[f].swaps) ++tries_;  // an atomic that waits for the unit does not need it
  }
}

void read_generator::end_revocation() {
  const auto executes = [this](const job& x) { return x.used && x.executing && x.r.key == revoked_key_; };
  if (gathers_.uses_key(revoked_key_) || std::any_of(jobs_.begin(), jobs_.end(), executes)) return;
  revoking_ = false;
  read_report e;
  e.what = read_report::kind::revoked;
  reports_.push(e);
}

}  // namespace rnic::transport
