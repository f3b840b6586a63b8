// SPDX-License-Identifier: Apache-2.0
// READ generator: what it asks for, and what leaves.
#include "model/transport/responder/read_generator.h"

#include <algorithm>
#include <utility>

#include "model/sim/beats.h"
#include "model/transport/message_packets.h"

namespace rnic::transport {

namespace {

constexpr unsigned reports_a_stream = 4, reports_beside = 1;  // fault, answers twice, discard; revocation

}  // namespace

read_generator::read_generator(std::string name, sim::clock_domain& domain, const responder_config& cfg,
                               payload::frame_pool& frames, sim::span_recorder& spans, sim::statistics& stats)
    : clocked_block(name, domain),
      answers(*this, cfg.answer.waiting),
      config_(sim::checked(cfg, this->name())),
      pacing(*this, config_),
      spans_(spans),
      gathers_(*this, cfg.read_gathers, frames, translate, dma_read),
      requests_(cfg, gathers_),
      asking_(cfg.flows),
      swapping_(cfg.flows),
      faults_(cfg.flows),
      atomics_{sim::ring<std::uint16_t>(cfg.atomics.places())},
      lines_(cfg.flows),
      reports_(cfg.read_queue + reports_a_stream * std::size_t{cfg.flows} + reports_beside) {
  const std::pair<const char*, const std::uint64_t*> all[] = {
      {"requests", &count_.requests}, {"packets", &count_.packets}, {"bytes", &count_.bytes},
      {"atomics", &count_.atomics},   {"answers", &count_.answers}, {"repeated", &count_.repeated},
      {"given_up", &count_.given_up}, {"faults", &count_.faults}};
  for (const auto& [n, counter] : all) stats.add(this->name() + "." + n, *counter);
  pacing.limits().qcn().announce(this->name(), stats);
  has_registers(pacing);
}

void read_generator::tick() {
  answers.work();
  if (notice_in.can_pop()) {
    const rate_notice n = notice_in.pop();
    pacing.limits().notified(n.qpn, n.port);
  }
  pacing.take_notice();
  if (dma_read.response.can_pop()) settle(gathers_.take_memory(dma_read.response.pop()));
  settle(gathers_.take_address());
  if (outcome_in.can_pop()) ended(outcome_in.pop());
  accept();
  leave();
  hand_atomic();
  ask();
  const std::uint16_t read = gathers_.read();
  if (read != no_link && gathers_[read].dropped) wake_next();  // a place, or an answer behind it, may be free by that
  settle(read);
  if (revocation_.under_way) end_revocation();
  report();
}

// Something has happened to a packet.
void read_generator::settle(std::uint16_t g) {
  if (g == no_link) return;
  const read_gathers::packet& a = gathers_[g];
  stream& s = requests_.of(a.flow);
  if (a.job != no_link && !requests_[a.job].given_up) {
    if (a.address_only) requests_.found_address(g);
    may_ask(a.flow);
    return may_leave(a.flow);
  }
  if (a.open != 0) return;
  if (a.job != no_link) return reap(a.job);
  --s.abandoned;
  gathers_.free(g);
  end_discard(s);
}

// ---------------------------------------------------------------- asking

/// The queue pair's request in turn goes to the queue of what it needs, unless it stands there or waits. It may stand
/// in the other one as well, for a request that was in turn before: what is asked for there finds that when it comes
/// up.
void read_generator::may_ask(std::uint16_t f) {
  stream& s = requests_.of(f);
  if (s.turn == no_link || requests_[s.turn].executing) return;
  const job& x = requests_[s.turn];
  if (x.r.what == kind::read && x.head != no_link) {
    unsigned open = 0;
    for (std::uint16_t g = x.head; g != no_link; g = gathers_[g].next) open += gathers_[g].translating ? 1 : 0;
    if (open >= config_.read_translations) return;
  }
  const bool swaps = x.may_execute();
  if (x.r.what == kind::atomic && !swaps && !x.refused && x.head != no_link) return;  // until it has its address
  bool& stands = swaps ? s.swaps : s.asks;
  if (stands) return;
  stands = true;
  (swaps ? swapping_ : asking_).push(f);
}

void read_generator::ask() {
  if (asking_.empty()) return;
  const std::uint16_t f = asking_.front();
  stream& s = requests_.of(f);
  if (s.turn != no_link) {
    const std::uint16_t j = s.turn;
    job& x = requests_[j];
    if (x.r.what == kind::read && !x.all_asked) {
      const bool granted = has_engine(x);
      if (gathers_.full()) return engine_.blocked("gathers");  // one comes free in our tick
      if (!engine_.is_free()) return engine_.await();
      const bool translated = x.r.length == 0 || x.refused || (x.gathered == 0 && x.r.first.count != 0);
      if (!granted || (!translated && !translate.request.claim())) return;
      ask_packet(j);
    } else if (x.refused && !x.all_asked && !x.executing) {
      x.nak = access_violation.nak;
      x.event = access_violation.event;
      x.all_asked = true;
    } else if (x.r.what == kind::replay) {
      x.all_asked = true;
    } else if (x.needs_address()) {
      if (gathers_.full() || !translate.request.claim()) return;
      requests_.ask_address(j);
    }
    if (x.all_asked) requests_.advance(s);
  }
  engine_.idle();
  front_.waits_for_engine = false;
  asking_.drop();
  s.asks = false;
  may_ask(f);
  may_leave(f);
  if (!asking_.empty() || may_hand() || !lines_.empty() || !faults_.empty()) wake_next();
}

/// Cycles of the READ engine that the next packet of the request takes.
unsigned read_generator::engine_cycles(const job& x) const {
  const std::uint32_t mtu = requests_.of(x.r.flow).mtu;
  return x.refused ? 0 : config_.read_engine.sent(x.gathered, std::min(mtu, x.r.length - x.gathered));
}

/// The packet may be asked for, as far as the READ engine goes.
bool read_generator::has_engine(const job& x) {
  const unsigned cycles = engine_cycles(x);
  const bool granted = cycles == 0 || read_engine.granted();
  if (!granted) read_engine.ask(cycles);
  engine_.waits_for(granted ? nullptr : "read engine");
  front_.waits_for_engine |= !granted;
  return granted;
}

void read_generator::ask_packet(std::uint16_t j) {
  job& x = requests_[j];
  if (engine_cycles(x) != 0) read_engine.use();
  if (front_.waits_for_engine && x.gathered == 0)
    spans_.leave(x.r.span, name(), "read engine", now_ps(), sim::wait::arbitration);
  const stream& s = requests_.of(x.r.flow);
  const std::uint16_t g = gathers_.begin();
  read_gathers::packet& a = gathers_[g];
  a.offset = x.gathered;
  a.length = std::min(s.mtu, x.r.length - x.gathered);
  a.job = j;
  a.flow = x.r.flow;
  a.function = s.to.function;
  a.key = x.r.key;
  (x.tail == no_link ? x.head : gathers_[x.tail].next) = g;
  x.tail = g;
  x.gathered += a.length;
  x.all_asked = x.gathered == x.r.length;
  a.span = x.all_asked ? x.r.span : 0;
  const auto beats = static_cast<unsigned>(sim::beats_of(a.length, config_.bytes_per_cycle));
  engine_.start(std::max<sim::cycle_t>(config_.read_packet_cycles, config_.beat_overhead_cycles + beats));
  if (a.length == 0) return;
  if (x.refused) {
    a.nak = access_violation.nak;
    a.event = access_violation.event;
    return;
  }
  if (a.offset == 0 && x.r.first.count != 0) return gathers_.found(g, x.r.first);
  icm::translate_request t;
  t.access = icm::access::remote_read;
  t.key = x.r.key;
  t.pd = x.r.pd;
  t.qpn = x.r.qpn;
  t.va = x.r.va + a.offset;
  t.length = a.length;
  gathers_.translate(g, t);
}

bool read_generator::may_hand() const {
  return !atomics_.abandoned.empty() || (!swapping_.empty() && atomics_.handed != config_.atomics.places());
}

/// Word of a job that was given up, or the atomic in turn. A number is given again when the job's outcome has come, and
/// no job goes before word of an older one: so word that has crossed an outcome never meets another job.
void read_generator::hand_atomic() {
  if (!may_hand() || !atomic_out.claim()) return;
  atomic_job a;
  if (!atomics_.abandoned.empty()) {
    a.what = atomic_job::kind::abandon;
    a.job = atomics_.abandoned.pop();
    atomic_out.push(a);
    if (may_hand()) wake_next();
    return;
  }
  const std::uint16_t f = swapping_.pop();
  stream& s = requests_.of(f);
  s.swaps = false;
  if (s.turn != no_link) {
    job& x = requests_[s.turn];
    if (x.may_execute()) {
      x.executing = true;
      ++atomics_.handed;
      a.job = s.turn;
      a.function = s.to.function;
      a.address = x.r.first.segments[0].address;
      a.operation = x.r.operation;
      a.span = x.r.span;
      atomic_out.push(a);
    }
  }
  may_ask(f);
  if (may_hand()) wake_next();
}

void read_generator::ended(const atomic_outcome& o) {
  job& x = requests_[o.job];
  stream& s = requests_.of(x.r.flow);
  --atomics_.handed;
  x.executing = false;
  x.executed = o.executed;
  x.r.original = o.original;
  if (x.given_up) return reap(o.job);
  if (!o.executed) {
    x.nak = memory_unreachable.nak;
    x.event = memory_unreachable.event;
  }
  ++count_.atomics;
  x.all_asked = true;
  if (s.turn == o.job) requests_.advance(s);
  may_ask(x.r.flow);
  may_leave(x.r.flow);
}

// ---------------------------------------------------------------- leaving

/// The queue pair stands in its line when its next answer is whole.
void read_generator::may_leave(std::uint16_t f) {
  stream& s = requests_.of(f);
  if (s.stands || s.parked || s.faulty || s.failed) return;
  if (!s.answer_ready()) {
    if (s.first == no_link) return;
    const job& x = requests_[s.first];
    const bool reads = x.r.what == kind::read;
    if (x.given_up || (reads ? x.head == no_link || gathers_[x.head].open != 0 : !x.all_asked)) return;
    if ((reads ? gathers_[x.head].nak : x.nak) != 0) {
      s.faulty = true;
      faults_.push(f);
      return;
    }
  }
  s.stands = true;
  lines_.put(f, s.to.path);
}

/// It waits for no place and no time to send any more: the next queue pair here may have another path and another rate.
void read_generator::leave_line(stream& s) {
  if (s.stands) lines_.remove(requests_.flow_of(s));
  if (s.parked) pacing.leave(requests_.flow_of(s));
  s.stands = s.parked = false;
}

void read_generator::leave() {
  if (const std::uint16_t f = pacing.come_back(); f != no_link) {
    requests_.of(f).parked = false;
    may_leave(f);
  }
  if (!faults_.empty()) fail(faults_.pop());
  if (!faults_.empty()) wake_next();
  if (lines_.empty()) return;
  const std::uint16_t f = lines_.take(answers);
  if (f == answer_lines::none) return;
  stream& s = requests_.of(f);
  s.stands = false;
  if (s.answer_ready()) {
    leave_answer(s);
  } else if (s.first != no_link && !requests_[s.first].given_up) {
    const job& x = requests_[s.first];
    if (x.r.what != kind::read) {
      if (x.all_asked && x.nak == 0) leave_atomic(s);
    } else if (x.head != no_link && gathers_[x.head].open == 0 && gathers_[x.head].nak == 0) {
      leave_response(f);
    }
  }
  may_leave(f);
  if (!lines_.empty() || !faults_.empty()) wake_next();
}

void read_generator::leave_answer(stream& s) {
  const bool acknowledges = s.ack_first();
  pending_answer& a = acknowledges ? s.ack : s.nak;
  payload::frame_ptr frame = gathers_.frame();
  frame->span = a.span;
  spans_.leave(a.span, name(), "acknowledge", now_ps(), sim::wait::arbitration);
  answers.push(make_answer(s.to, std::move(frame), wire::operation::acknowledge, a.psn, a.syndrome, a.msn));
  a.pending = false;
  ++count_.answers;
  end_answers(s, acknowledges ? 1 : 0, acknowledges ? 0 : 1);
}

void read_generator::leave_response(std::uint16_t f) {
  stream& s = requests_.of(f);
  const std::uint16_t j = s.first;
  job& x = requests_[j];
  rate_limiter& limits = pacing.limits();
  if (limits.any() && !pacing.in_time(f, s.qpn)) {
    s.parked = true;
    return;
  }
  const std::uint16_t g = x.head;
  read_gathers::packet& a = gathers_[g];
  const bool first = a.offset == 0, last = a.offset + a.length == x.r.length;
  const wire::operation op = first && last ? wire::operation::read_response_only
                             : first       ? wire::operation::read_response_first
                             : last        ? wire::operation::read_response_last
                                           : wire::operation::read_response_middle;
  if (last) {
    a.frame->span = x.r.span;
    spans_.leave(x.r.span, name(), "gather", now_ps(), sim::wait::payload_fetch);
  } else {
    a.frame->part_of = x.r.span;
  }
  const std::uint32_t psn = (wire::psn_t(x.r.psn) + a.offset / s.mtu).value();
  answer_job response = make_answer(s.to, std::move(a.frame), op, psn, x.r.syndrome, x.r.msn, a.length);
  if (limits.any()) limits.sent(s.qpn, answer_length(response));
  if (limits.qcn().reacts()) limits.qcn().note(s.qpn, response.path.dmac, response.remote_qpn);
  answers.push(std::move(response));
  ++count_.packets;
  count_.bytes += a.length;
  x.head = a.next;
  if (x.head == no_link) x.tail = no_link;
  gathers_.free(g);
  if (last) end(j);
}

void read_generator::leave_atomic(stream& s) {
  const job& x = requests_[s.first];
  payload::frame_ptr frame = gathers_.frame();
  frame->span = x.r.span;
  spans_.leave(x.r.span, name(), "atomic", now_ps(), sim::wait::arbitration);
  answers.push(make_answer(s.to, std::move(frame), wire::operation::atomic_acknowledge, x.r.psn, x.r.syndrome, x.r.msn,
                           0, x.r.original));
  ++count_.packets;
  end(s.first);
}

void read_generator::report() {
  if (reports_.empty() || !report_out.claim()) return;
  report_out.push(reports_.pop());
  if (!reports_.empty()) wake_next();
}

}  // namespace rnic::transport
