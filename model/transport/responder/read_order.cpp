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
    if (!front_.walks) {
      const unsigned requests = requests_.count(requests_.of(r.flow));
      if (requests > 1) {
        order_.start(requests);
        front_.walks = true;
      }
    }
    if (!order_.is_free()) return order_.await();
    front_.walks = false;
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
      stream& s = requests_.of(r.flow);
      give_up(s);
      s.failed = false;
      s.discarding = true;
      end_discard(s);
      break;
    }
    case kind::revoke:
      revocation_ = {true, r.key};
      refuse_key(r.key);
      break;
    case kind::forget:
      pacing.limits().forget(r.qpn);
      break;
    case kind::forget_all:
      pacing.limits().clear();
      break;
  }
  command_in.drop();
}

void read_generator::take(const read_command& r) {
  stream& s = requests_.of(r.flow);
  address(s, r);
  s.mtu = icm::mtu_bytes(r.to.path.mtu_code > 5 ? 5 : r.to.path.mtu_code);
  ++count_.requests;
  if (r.again) ++count_.repeated;
  const bool sent_anyway = r.again && requests_.will_send(s, r);
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
  spans_.leave(r.span, name(), "accept", now_ps());
  const std::uint16_t j = requests_.open(r);
  const std::uint32_t sequence = r.again ? requests_.go_back(s, r) : s.accepted;
  ++s.accepted;
  if (r.again)
    for (const std::uint16_t left : requests_.left_over()) report_end(requests_[left]);
  const std::uint8_t code = s.to.path.static_rate;
  if (code != 0 || pacing.limits().any()) pacing.limits().limit(s.qpn, static_rate_kbps(code));
  requests_.insert(s, j, sequence);
  may_ask(r.flow);
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
  stream& s = requests_.of(r.flow);
  address(s, r);
  ++s.answers;
  if (s.failed) return end_answers(s, 0, 0);
  if (r.what == kind::refuse) s.ack.pending = false;  // what was received before is acknowledged by the NAK's PSN
  (r.what == kind::refuse ? s.nak : s.ack) = {true, r.syndrome, r.psn, r.msn, s.accepted, r.span};
  may_leave(r.flow);
}

// ---------------------------------------------------------------- giving up

/// Its oldest request cannot be answered. The responder will say when the queue pair is in the error state.
void read_generator::fail(std::uint16_t f) {
  stream& s = requests_.of(f);
  s.faulty = false;
  if (s.first == no_link || s.failed) return may_leave(f);  // an answer may have come meanwhile
  const job& x = requests_[s.first];
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
    job& x = requests_[j];
    next = x.next;
    if (x.given_up) continue;
    ++count_.given_up;
    x.given_up = x.all_asked = true;
    if (x.executing) atomics_.abandoned.push(j);
    for (std::uint16_t g = x.head; g != no_link; g = gathers_[g].next) gathers_[g].dropped = true;
    reap(j);
  }
}

void read_generator::reap(std::uint16_t j) {
  job& x = requests_[j];
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
  requests_.close(j);
  const job& x = requests_[j];
  report_end(x);
  end_discard(requests_.of(x.r.flow));
}

void read_generator::report_end(const job& x) {
  read_report e;
  e.flow = x.r.flow;
  e.again = x.r.again;
  e.atomic = x.r.what == kind::atomic;
  e.replay = x.r.what == kind::replay;
  e.executed = x.executed;
  e.psn = x.r.psn;
  e.original = x.r.original;
  reports_.push(e);
}

void read_generator::end_answers(stream& s, unsigned acks, unsigned naks) {
  read_report e;
  e.what = read_report::kind::answered;
  e.flow = requests_.flow_of(s);
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
  e.flow = requests_.flow_of(s);
  reports_.push(e);
}

// ---------------------------------------------------------------- keys that lose their meaning

/// What was not asked for under the key is refused. What of a READ was gathered already is sent, unless it has to begin
/// once more.
void read_generator::refuse_key(std::uint32_t key) {
  for (job& x : requests_.all()) {
    if (!x.used || x.r.key != key || x.r.what == kind::replay) continue;
    if (x.r.what == kind::read || (!x.executing && !x.all_asked)) x.refused = true;
    const std::uint16_t turn = requests_.of(x.r.flow).turn;
    if (x.refused && turn != no_link && &requests_[turn] == &x) may_ask(x.r.flow);  // it needs no place of the unit
  }
}

void read_generator::end_revocation() {
  const auto executes = [this](const job& x) { return x.used && x.executing && x.r.key == revocation_.key; };
  if (gathers_.uses_key(revocation_.key) || std::any_of(requests_.all().begin(), requests_.all().end(), executes))
    return;
  revocation_.under_way = false;
  read_report e;
  e.what = read_report::kind::revoked;
  reports_.push(e);
}

}  // namespace rnic::transport
