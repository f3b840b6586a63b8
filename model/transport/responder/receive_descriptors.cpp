// SPDX-License-Identifier: Apache-2.0
#include "model/transport/responder/receive_descriptors.h"

#include <algorithm>

#include "model/sim/seldom.h"
#include "model/transport/responder/rules.h"

namespace rnic::transport {

receive_descriptors::receive_descriptors(const std::string& name, sim::clocked_block& owner,
                                         const responder_config& cfg, const icm::icm_map& map, receive_port& port,
                                         completion_port& completions)
    : owner_(owner),
      completions_(completions),
      own_(cfg, port),
      contexts_(name, owner, cfg, map),
      shared_(owner, cfg, contexts_, port) {
  flushes_.reserve(cfg.slots + cfg.flows);
}

receive_descriptors::result receive_descriptors::find(icm::responder_context& ctx, bool first, bool payload,
                                                      entry& out) {
  if (is_shared(ctx)) {
    out.index = ctx.rq_consumed;
    if (first) return counted(shared_.head(srqn_of(ctx), out));
    return payload ? counted(shared_.taken(srqn_of(ctx), ctx.rq_consumed, out)) : result::ready;
  }
  const result posted = first ? counted(own_.available(ctx)) : result::ready;
  if (posted != result::ready) return posted;
  out.index = static_cast<std::uint16_t>(ctx.rq_consumed - (first ? 0 : 1));
  out.pd = ctx.pd;
  out.bytes = 1u << ctx.log_rq_stride;
  return payload ? counted(own_.get(ctx, out.index, out.segments)) : result::ready;
}

void receive_descriptors::take(icm::responder_context& ctx, const entry& e, bool keep) {
  if (!is_shared(ctx)) {
    ++ctx.rq_consumed;
    return;
  }
  shared_.take(srqn_of(ctx), e, keep);
  ctx.rq_consumed = e.index;
}

void receive_descriptors::look_ahead(const icm::responder_context& ctx) {
  if (!is_shared(ctx)) own_.look_ahead(ctx);
}

bool receive_descriptors::give_back(const responder_flow& f) {
  icm::responder_context& ctx = *f.ctx;
  if (ctx.in_message != in_send) return true;
  if (is_shared(ctx) && (f.slots != 0 || !completions_.room())) return false;  // its payload may be on its way
  ++given_back_;
  if (!is_shared(ctx)) {
    --ctx.rq_consumed;
    return true;
  }
  completions_.fail({f.qpn, ctx.cqn, 0, ctx.rq_consumed, ctx.function, ctx.dest.port}, cqe_remote_invalid);
  owner_.wake_next();  // completions go on in front of the check
  return true;
}

receive_descriptors::result receive_descriptors::in_domain(const icm::responder_context& ctx, std::uint32_t srqn,
                                                           std::uint32_t& pd) {
  return counted(contexts_.in_domain(srqn, domain_of(ctx), ctx.function, pd));
}

receive_descriptors::result receive_descriptors::choose(icm::responder_context& ctx, std::uint32_t srqn) {
  const result found = in_domain(ctx, srqn, ctx.pd);
  if (found != result::ready) return found;
  ctx.srqn = srqn_valid | srqn;
  ctx.cqn = contexts_.completion_queue(srqn);
  return found;
}

std::uint64_t receive_descriptors::steps() const {
  return own_.steps() + given_back_ + contexts_.ports().accesses(static_cast<unsigned>(srq_user::check));
}

// ---------------------------------------------------------------- flushing

void receive_descriptors::add_flush(const flushed& x) {
  const auto same = [&](const flushed& y) { return y.qpn == x.qpn && y.index == x.index && y.srqn == x.srqn; };
  if (std::none_of(flushes_.begin(), flushes_.end(), same)) flushes_.push_back(x);
}

void receive_descriptors::flush(const responder_flow& f, slot_table& slots, std::uint32_t done) {
  const icm::responder_context& ctx = *f.ctx;
  if (!is_shared(ctx)) return;
  slots.for_flow(f.number, [&](const responder_slot& s) {
    if (s.completion.has_wqe && s.completion.due && s.completion.wqe_index != done)
      add_flush({f.qpn, s.completion.cqn, s.completion.srqn, s.completion.wqe_index, ctx.function, ctx.dest.port});
  });
  if (ctx.in_message == in_send && ctx.rq_consumed != done)
    add_flush({f.qpn, ctx.cqn, names_queue(ctx) ? srqn_of(ctx) : 0, ctx.rq_consumed, ctx.function, ctx.dest.port});
  owner_.wake_next();
}

void receive_descriptors::work_flushes() {
  if (sim::mostly(flushes_.empty()) || !completions_.room()) return;
  completions_.fail(flushes_.front(), cqe_flushed);
  flushes_.erase(flushes_.begin());
  owner_.wake_next();  // for the next one, or for who waits for the last
}

bool receive_descriptors::flushing(std::uint32_t qpn) const {
  return std::any_of(flushes_.begin(), flushes_.end(), [&](const flushed& x) { return x.qpn == qpn; });
}

void receive_descriptors::drop_flushes(std::uint32_t qpn) {
  const auto mine = [&](const flushed& x) { return x.qpn == qpn; };
  flushes_.erase(std::remove_if(flushes_.begin(), flushes_.end(), mine), flushes_.end());
}

// ----------------------------------------------------------------

void receive_descriptors::fetched(const receive_fetch_result& r) {
  if (r.place.in == receive_place::part::own || r.place.in == receive_place::part::own_record)
    own_.fetched(r);
  else
    shared_.fetched(r);
}

void receive_descriptors::work() {
  contexts_.on_chip().service();
  shared_.work();
  contexts_.work_halts([this](std::uint32_t srqn) { return shared_.forget(srqn); });
  if (sim::mostly(!contexts_.has_notice()) || !completions_.may_raise()) return;
  const shared_contexts::notice n = contexts_.take_notice();
  completions_.raise(n.event, n.srqn, n.function);
}

void receive_descriptors::drop_shared() {
  shared_.drop_all();
  contexts_.drop_all();
}

void receive_descriptors::drop_own() {
  own_.drop_all();
  flushes_.clear();
}

}  // namespace rnic::transport
