// SPDX-License-Identifier: Apache-2.0
// Contexts of shared receive queues on chip.
#include "model/transport/responder/shared_contexts.h"

#include <algorithm>

namespace rnic::transport {
namespace {

constexpr std::uint8_t event_srq_catastrophic = 0x12;

}  // namespace

shared_contexts::shared_contexts(const std::string& name, sim::clocked_block& owner, const responder_config& cfg,
                                 const icm::icm_map& map)
    : owner_(owner),
      line_bytes_(cfg.receive_line_bytes),
      contexts_(name, owner, cfg.srqs, map, icm::table::srqc, 0),
      ports_(owner, "srq_memory", cfg.srq_ports, {"limits", "check"}) {
  notices_.reserve(16);
  stopped_.reserve(16);
}

shared_contexts::result shared_contexts::open(std::uint32_t srqn, srq_user user, icm::srq_context*& ctx) {
  if (find_halt(srqn) != stopped_.end()) return result::pending;
  const cache::result found = contexts_.ask(srqn, ctx);
  if (found == cache::result::pending) return result::pending;
  if (found == cache::result::refused) return result::failed;
  // Contexts come from host memory: one with sizes that no queue has is as if there was none.
  const bool good = ctx->srqn == srqn && ctx->valid != 0 && ctx->error == 0 && ctx->log_size <= 16 &&
                    ctx->log_stride >= 5 && (1u << ctx->log_stride) <= line_bytes_;
  if (good) return result::ready;
  if (!may_access(srqn, user)) return result::pending;
  access(srqn, user);
  return result::failed;
}

bool shared_contexts::may_access(std::uint32_t srqn, srq_user user) {
  return accessed(srqn, user) || ports_.claim(static_cast<unsigned>(user));
}

void shared_contexts::access(std::uint32_t srqn, srq_user user) {
  if (accessed(srqn, user)) return;
  ports_.access(static_cast<unsigned>(user));
  accessed_at_ = owner_.edge();
  accessed_ = srqn;
  accessed_by_ = user;
}

// Domain 0 is none: queue pairs that only send, and queues that are not for everybody, have it.
shared_contexts::result shared_contexts::in_domain(std::uint32_t srqn, std::uint16_t domain, std::uint16_t function,
                                                   std::uint32_t& pd) {
  icm::srq_context* c = nullptr;
  const result r = open(srqn, srq_user::check, c);
  if (r != result::ready) return r;
  if (!may_access(srqn, srq_user::check)) return result::pending;
  if (domain == 0 || c->xrcd != domain || c->function != function) {
    access(srqn, srq_user::check);
    return result::failed;
  }
  pd = c->pd;
  return result::ready;
}

void shared_contexts::used(std::uint32_t srqn) {
  access(srqn, srq_user::check);
  contexts_.use(srqn);
}

void shared_contexts::fail(icm::srq_context& c) {
  if (c.error == 0) tell(event_srq_catastrophic, c);
  c.error = 1;
  contexts_.mark_dirty(c.srqn);
  owner_.wake_next();
}

// ---------------------------------------------------------------- software

void shared_contexts::tell(std::uint8_t event, const icm::srq_context& c) {
  notices_.push_back({event, c.function, c.srqn});
  owner_.wake_next();
}

shared_contexts::notice shared_contexts::take_notice() {
  const notice first = notices_.front();
  notices_.erase(notices_.begin());
  if (!notices_.empty()) owner_.wake_next();
  return first;
}

/// A queue has one halt at most: halt() begins anew.
std::vector<shared_contexts::stopped>::iterator shared_contexts::find_halt(std::uint32_t srqn) {
  return std::find_if(stopped_.begin(), stopped_.end(), [&](const stopped& s) { return s.srqn == srqn; });
}

void shared_contexts::forget_halt(std::uint32_t srqn) {
  if (const auto s = find_halt(srqn); s != stopped_.end()) stopped_.erase(s);
}

void shared_contexts::halt(std::uint32_t srqn, bool discard) {
  forget_halt(srqn);
  stopped_.push_back({srqn, discard, false});
  owner_.wake_next();
}

void shared_contexts::release(std::uint32_t srqn) {
  forget_halt(srqn);
  owner_.wake_next();
}

bool shared_contexts::halting(std::uint32_t srqn) const {
  return std::any_of(stopped_.begin(), stopped_.end(), [&](const stopped& x) { return x.srqn == srqn && !x.done; });
}

void shared_contexts::write_back(stopped& s) {
  if (s.discard)
    contexts_.drop(s.srqn);
  else
    contexts_.flush(s.srqn);
  s.done = !contexts_.busy(s.srqn);
}

void shared_contexts::drop_all() {
  contexts_.drop_all();
  notices_.clear();
  stopped_.clear();
}

}  // namespace rnic::transport
