// SPDX-License-Identifier: Apache-2.0
#include "model/transport/responder/acknowledgement.h"

#include <algorithm>
#include <utility>

#include "model/sim/seldom.h"
#include "model/transport/responder/read_backlog.h"

namespace rnic::transport {

namespace {

/// Of two answers the one that fewer READs go before.
bool ack_goes_first(const responder_flow& f) {
  return f.ack.pending && (!f.nak.pending || behind(f.nak.after, f.ack.after));
}

}  // namespace

acknowledgement::acknowledgement(sim::clocked_block& owner, const responder_config& cfg, flow_table& flows,
                                 answer_port& out, read_port& reads, payload::frame_pool& frames,
                                 sim::span_recorder& spans)
    : owner_(owner),
      flows_(flows),
      out_(out),
      reads_(reads),
      frames_(frames),
      spans_(spans),
      interval_(cfg.ack_cycles),
      coalesce_(cfg.ack_coalesce),
      engine_(owner, "acknowledge"),
      ready_(cfg.flows),
      hands_(cfg.flows) {}

void acknowledgement::announce(sim::statistics& to, const std::string& name) const {
  to.add(name + ".acks", acks_);
  to.add(name + ".naks", naks_);
}

bool acknowledgement::is_full(const responder_flow& f) {
  const bool full = f.ack.pending && f.answers.listed && f.ack.requests >= coalesce_ && out_.has_place(f.ctx->dest);
  awaited_ = awaited_ || full;
  return full;
}

void acknowledgement::set_ack(responder_flow& f, std::uint32_t psn, std::uint32_t msn, sim::span_id asked) {
  f.ack.span = spans_.fork(asked);
  f.ack.requests = f.ack.pending ? f.ack.requests + 1 : 1;
  f.ack.pending = true;
  f.ack.psn = psn;
  f.ack.msn = msn;
  f.ack.after = f.requests.accepted;
  route(f);
}

void acknowledgement::set_nak(responder_flow& f, std::uint8_t syndrome, std::uint32_t psn, std::uint32_t msn) {
  f.ack.pending = false;  // what was received before is acknowledged by the NAK's PSN
  f.ack.requests = 0;
  f.nak.pending = true;
  f.nak.syndrome = syndrome;
  f.nak.psn = psn;
  f.nak.msn = msn;
  f.nak.after = f.requests.accepted;
  route(f);
}

/// An answer behind READs goes to the READ generator, which keeps the order; another one into the line of its port and
/// priority.
void acknowledgement::route(responder_flow& f) {
  if ((!f.ack.pending && !f.nak.pending) || f.answers.listed || f.answers.in_hand) return;
  // Of READs only those in host memory are not handed over: an answer behind them goes when the last of them is.
  if (!is_due(f.requests.accepted - f.requests.held, ack_goes_first(f) ? f.ack.after : f.nak.after))
    return owner_.wake_next();  // those may pass others (held_reads)
  if (f.in_generator()) {
    f.answers.in_hand = true;
    hands_.push(f.number);
  } else {
    f.answers.listed = true;
    ready_.put(f.number, f.ctx->dest);
    if (sim::seldom(flows_.news().short_of_places)) owner_.wake_next();  // it may leave again (parked_answers)
  }
}

/// One in an interval, in turn of ports and priorities that have a place.
void acknowledgement::send() {
  if (ready_.empty()) return;
  if (!engine_.is_free()) return engine_.await();
  if (!flows_.may_access(context_user::answers)) return;
  const std::uint16_t i = ready_.take(out_);
  if (i == answer_lines::none) return;
  responder_flow& f = flows_[i];
  f.answers.listed = false;
  let_go_on();  // the answer leaves, or goes to the READ generator
  // Firmware may have changed the path since: then it goes to the end of the new one's line.
  if ((f.ack.pending || f.nak.pending) && !f.in_generator() && ready_.is_line(i, f.ctx->dest)) send_one(f);
  route(f);
  if (!ready_.empty()) owner_.wake_at(std::max(engine_.free_at(), owner_.edge() + 1));
}

void acknowledgement::send_one(responder_flow& f) {
  flows_.access(f, context_user::answers);
  engine_.start(interval_);
  const answer_address to = address_of(*f.ctx);
  constexpr auto acknowledge = wire::operation::acknowledge;
  if (!ack_goes_first(f)) {
    out_.push(make_answer(to, frames_.get(), acknowledge, f.nak.psn, f.nak.syndrome, f.nak.msn));
    f.nak.pending = false;
    ++naks_;
    return;
  }
  payload::frame_ptr frame = frames_.get();
  frame->span = f.ack.span;
  if (f.ack.span != 0 && owner_.now_ps() > spans_.end_of(f.ack.span))
    spans_.leave(f.ack.span, owner_.name(), "acknowledge", owner_.now_ps(), sim::wait::arbitration);
  out_.push(make_answer(to, std::move(frame), acknowledge, f.ack.psn, ack_syndrome(*f.ctx), f.ack.msn));
  f.ack.pending = false;
  f.ack.requests = 0;
  ++acks_;
}

// ---------------------------------------------------------------- READ generator

/// One answer of a queue pair that has READs there, in a cycle.
void acknowledgement::hand() {
  if (sim::mostly(hands_.empty()) || !reads_.room(1) || !flows_.may_access(context_user::answers)) return;
  responder_flow& f = flows_[hands_.pop()];
  f.answers.in_hand = false;
  if (f.ack.pending || f.nak.pending) hand_one(f, ack_goes_first(f));
  route(f);
  if (!hands_.empty()) owner_.wake_next();
}

void acknowledgement::hand_one(responder_flow& f, bool ack) {
  flows_.access(f, context_user::answers);
  let_go_on();
  read_command r;
  r.what = ack ? read_command::kind::acknowledge : read_command::kind::refuse;
  r.flow = f.number;
  r.qpn = f.qpn;
  r.psn = ack ? f.ack.psn : f.nak.psn;
  r.msn = ack ? f.ack.msn : f.nak.msn;
  r.syndrome = ack ? ack_syndrome(*f.ctx) : f.nak.syndrome;
  r.span = ack ? f.ack.span : 0;
  r.to = address_of(*f.ctx);
  reads_.push(r);
  (ack ? f.ack.pending : f.nak.pending) = false;
  if (ack) f.ack.requests = 0;
  ++f.answers.handed;
}

void acknowledgement::hand_over(responder_flow& f, read_command r, bool held) {
  flows_.access(f, context_user::answers);
  const wire::psn_t psn(r.psn);
  const std::uint32_t handed = f.requests.accepted - f.requests.held - (held ? 1 : 0);
  const bool before_ack = r.again && f.ack.pending && !psn.after(wire::psn_t(f.ack.psn));
  const bool before_nak = r.again && f.nak.pending && psn.before(wire::psn_t(f.nak.psn));
  for (unsigned n = 0; n != 2; ++n) {
    const bool ack = ack_goes_first(f);
    if (ack ? before_ack : !f.nak.pending || before_nak) break;
    if (!is_due(handed, ack ? f.ack.after : f.nak.after)) break;
    hand_one(f, ack);
  }
  if (r.again) {
    ++f.ack.after;
    ++f.nak.after;
    if (before_ack) f.ack.msn = r.msn;
    if (before_nak) f.nak.msn = r.msn;
    ++f.requests.again;
    if (f.requests.held != 0) {
      f.ctx->flags |= icm::responder_flag_reads_late;
      f.dirty = true;
    }
  }
  if (!held) ++f.requests.accepted;
  reads_.take_place(f.reads_on_chip() == 1);
  r.to = address_of(*f.ctx);
  r.syndrome = ack_syndrome(*f.ctx);
  reads_.push(r);
  route(f);
}

bool acknowledgement::give_up(responder_flow& f) {
  if (f.in_generator() && !f.requests.discarding) {
    if (!reads_.room(1)) return false;
    read_command r;
    r.what = read_command::kind::discard;
    r.flow = f.number;
    reads_.push(r);
    f.requests.discarding = true;
  }
  forget_held(f);
  return true;
}

void acknowledgement::forget_held(responder_flow& f) {
  read_backlog::forget(f);
  route(f);
}

void acknowledgement::answered(responder_flow& f, const read_report& r) {
  f.answers.handed -= r.answers;
  acks_ += r.acks;
  naks_ += r.naks;
}

}  // namespace rnic::transport
