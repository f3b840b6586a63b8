// SPDX-License-Identifier: Apache-2.0
#include "model/transport/responder/error_state.h"

#include <algorithm>

#include "model/sim/seldom.h"
#include "model/transport/responder/rules.h"

namespace rnic::transport {

namespace {
constexpr receive_place record_place{receive_place::part::error_record, 0};
}  // namespace

error_state::error_state(sim::clocked_block& owner, const responder_config& cfg, flow_table& flows,
                         flow_table::contexts& contexts, slot_table& slots, place_lookup& places,
                         receive_descriptors& receives, completion_port& completions, acknowledgement& answers,
                         drop_counters& drops, receive_port& port)
    : owner_(owner),
      flows_(flows),
      contexts_(contexts),
      slots_(slots),
      places_(places),
      receives_(receives),
      completions_(completions),
      answers_(answers),
      drops_(drops),
      port_(port),
      interval_(cfg.flush_poll_cycles) {
  attention_.reserve(64);
  polls_.reserve(64);
}

void error_state::enter(responder_flow& f, std::uint16_t rq_consumed, bool tell_requester, std::uint32_t done) {
  icm::responder_context& ctx = *f.ctx;
  receives_.flush(f, slots_, done);
  cancel(f);
  flows_.drop_waiting(f, &drops_.error);
  ctx.state = icm::qp_state::error;
  if (!is_shared(ctx)) ctx.rq_consumed = rq_consumed;
  ctx.in_message = in_none;
  f.dirty = true;
  if (tell_requester) errors_.push_back(f.qpn);
  start(f);
}

std::uint16_t error_state::first_uncompleted(const responder_flow& f) {
  for (std::uint16_t i = slots_.first(); i != no_link; i = slots_[i].next)
    if (slots_[i].flow == f.number && !slots_[i].cancelled) return slots_[i].completion.rq_before;
  return static_cast<std::uint16_t>(f.ctx->rq_consumed - (f.ctx->in_message == in_send ? 1 : 0));
}

void error_state::cancel(responder_flow& f) {
  slots_.for_flow(f.number, [&](responder_slot& s) {
    s.cancelled = true;
    if (s.fetches() && !s.duplicate) --f.requests.fresh;
    places_.cancel(s);
  });
}

// ---------------------------------------------------------------- queue pairs that are to be attended to

void error_state::note(std::uint32_t qpn, std::uint8_t todo, std::uint16_t posted) {
  const auto same = [qpn](const attention_entry& a) { return a.qpn == qpn; };
  const auto at = std::find_if(attention_.begin(), attention_.end(), same);
  if (at == attention_.end()) return attention_.push_back({qpn, todo, posted});
  at->todo |= todo;
  if ((todo & flow_todo_flush) != 0) at->posted = posted;
}

void error_state::check(std::uint32_t qpn) {
  const auto same = [qpn](const attention_entry& a) { return a.qpn == qpn; };
  attention_.erase(std::remove_if(attention_.begin(), attention_.end(), same), attention_.end());
  attention_.push_back({qpn, flow_todo_check, 0});
}

void error_state::tell(sim::fifo_out<qp_error>& out) {
  if (sim::mostly(errors_.empty())) return;
  if (out.bound()) {
    if (!out.claim()) return;
    out.push({errors_.front()});
  }
  errors_.erase(errors_.begin());
  if (!errors_.empty()) owner_.wake_next();
}

/// One queue pair gets its place and one is attended to in a cycle, that which has waited longest of those that can be.
void error_state::attend() {
  if (sim::seldom(!attention_.empty())) place();
  for (const std::uint16_t i : flows_.to_do()) {
    responder_flow& f = flows_[i];
    const flow_table::found context = flows_.resolve(f, context_user::errors);
    if (context == flow_table::found::unknown) return owner_.wake_next();  // it has nothing to do any more
    if (context != flow_table::found::known || !flows_.may_access(f, context_user::errors)) continue;
    const step done = attend(f);
    if (done == step::none) continue;
    flows_.access(f, context_user::errors);
    if (done == step::last) {
      flows_.count_use(f);
      flows_.clear_todo(f);
    }
    return owner_.wake_next();
  }
}

void error_state::place() {
  const attention_entry a = attention_.front();
  if (!flows_.halts().halted(a.qpn)) {
    std::uint16_t i = flows_.find(a.qpn);
    if (i == no_link) i = flows_.open(a.qpn);
    if (i == no_link) return;  // some QP must leave first: that happens in our tick
    responder_flow& f = flows_[i];
    flows_.add_todo(f, a.todo);
    if ((a.todo & flow_todo_flush) != 0) f.posted = a.posted;
  }
  attention_.erase(attention_.begin());
  if (!attention_.empty()) owner_.wake_next();
}

error_state::step error_state::attend(responder_flow& f) {
  icm::responder_context& ctx = *f.ctx;
  if ((f.todo & flow_todo_error) != 0) {
    const bool alive = ctx.state != icm::qp_state::error && ctx.state != icm::qp_state::reset;
    if (alive) {
      if (!answers_.give_up(f)) return step::none;
      enter(f, first_uncompleted(f), false);
    }
    return next(f, flow_todo_error);
  }
  if ((f.todo & flow_todo_check) != 0) {
    if (f.requests.held != 0 && f.reads_on_chip() == 0) {  // left by the halt, as those on chip
      acknowledgement::forget(f);
      answers_.forget_held(f);
    }
    if (ctx.state == icm::qp_state::error) {
      receives_.flush(f, slots_, receive_descriptors::none);
      // A SEND was under way: its WQE has no completion yet.
      if (ctx.in_message == in_send && !is_shared(ctx)) --ctx.rq_consumed;
      ctx.in_message = in_none;
      f.dirty = true;
      start(f);
    }
    return next(f, flow_todo_check);
  }
  return flush(f);
}

/// `done` is; nothing else may be left.
error_state::step error_state::next(responder_flow& f, std::uint8_t done) {
  if (f.todo == done) return step::last;
  f.todo &= static_cast<std::uint8_t>(~done);
  return step::one;
}

/// One receive of those that software has posted.
error_state::step error_state::flush(responder_flow& f) {
  icm::responder_context& ctx = *f.ctx;
  if (ctx.state != icm::qp_state::error) return step::last;
  ctx.rq_posted = f.posted;
  f.dirty = true;
  const auto left = static_cast<std::uint16_t>(ctx.rq_posted - ctx.rq_consumed);
  if (left == 0 || left > (1u << ctx.log_rq_size)) return step::last;
  if (!completions_.room()) return step::none;
  completions_.fail({f.qpn, ctx.cqn, 0, ctx.rq_consumed++, ctx.function, ctx.dest.port}, cqe_flushed);
  return left == 1 ? step::last : step::one;
}

// ---------------------------------------------------------------- doorbell records

void error_state::start(const responder_flow& f) {
  const icm::responder_context& ctx = *f.ctx;
  if (flows_.halts().halted(f.qpn)) return;  // nothing of it may come on chip again; its release looks at it
  if (names_queue(ctx)) return;              // of its own it has none, and its peers' queues go on
  const bool shared = is_shared(ctx);
  if (!shared && ctx.log_rq_stride == 0) return;  // no receive queue
  stop(f.qpn);
  poll_entry e;
  e.qpn = f.qpn;
  e.record = shared ? 0 : ctx.db_record;
  e.function = ctx.function;
  e.seen = ctx.rq_consumed;
  e.last_event = shared;
  polls_.push_back(e);
  if (!record_.reading && !record_.answered) at_ = polls_.size() - 1;
  next_ = owner_.now();
  owner_.wake_next();
}

void error_state::stop(std::uint32_t qpn) {
  const auto e = std::find_if(polls_.begin(), polls_.end(), [&](const poll_entry& x) { return x.qpn == qpn; });
  if (e == polls_.end()) return;
  if (at_ > static_cast<std::size_t>(e - polls_.begin())) --at_;
  polls_.erase(e);
}

void error_state::forget(std::uint32_t qpn) {
  errors_.erase(std::remove(errors_.begin(), errors_.end(), qpn), errors_.end());
}

void error_state::clear() {
  attention_.clear();
  errors_.clear();
  polls_.clear();
  at_ = 0;
}

/// A QP on a shared receive queue has nothing to flush: one event says so (A.7.2), however often software then looks at
/// the QP. False: not yet.
bool error_state::tell_last(std::uint32_t qpn) {
  if (receives_.flushing(qpn) || completions_.awaits(qpn)) return false;
  icm::responder_context* ctx = nullptr;
  const auto found = contexts_.ask(qpn, ctx);
  if (found == flow_table::contexts::result::pending) return false;
  if (found != flow_table::contexts::result::hit || (ctx->flags & icm::responder_flag_last_wqe) != 0) return true;
  if (!completions_.may_raise() || !flows_.may_access(context_user::errors)) return false;
  flows_.access(context_user::errors);
  completions_.raise(event_last_wqe, qpn, ctx->function);
  ctx->flags |= icm::responder_flag_last_wqe;
  contexts_.use(qpn);
  contexts_.mark_dirty(qpn);
  return true;
}

void error_state::fetched(const receive_fetch_result& r) {
  record_.reading = false;
  record_.answered = true;
  record_.ok = r.ok;
}

void error_state::poll() {
  if (sim::seldom(record_.answered)) {
    record_.answered = false;
    const auto posted = port_.posted(record_place);
    for (poll_entry& e : polls_) {
      if (e.qpn != record_.qpn || !record_.ok || e.seen == posted) continue;
      e.seen = posted;
      note(e.qpn, flow_todo_flush, posted);
    }
  }
  if (sim::mostly(polls_.empty()) || record_.reading) return;
  if (at_ >= polls_.size()) {
    at_ = 0;
    next_ = owner_.now() + interval_;
  }
  if (next_ > owner_.now()) return owner_.wake_at(next_);
  poll_entry& e = polls_[at_];
  if (e.last_event) {
    if (!tell_last(e.qpn)) return;
    polls_.erase(polls_.begin() + static_cast<std::ptrdiff_t>(at_));
    return owner_.wake_next();
  }
  port_.ask_record(record_place, e.record, e.function);
  record_.qpn = e.qpn;
  record_.reading = true;
  ++at_;
}

}  // namespace rnic::transport
