// SPDX-License-Identifier: Apache-2.0
// What completes, in order, and what software reads of it.
#include "model/transport/requester/completions.h"

#include "model/abi/queue_entries.h"
#include "model/sim/followed_requests.h"
#include "model/transport/requester/rules.h"

namespace rnic::transport {

void completions::work() {
  using result = context_memory::result;
  qp_queue& list = messages_.to_complete();
  while (!list.empty()) {
    qp_runtime& r = qps_[list.front()];
    if (r.head == no_index) {
      list.pop(qps_);
      continue;
    }
    context* c = nullptr;
    const auto found = contexts_.ask(r.qpn, c);
    if (found == result::pending) return;
    if (found != result::hit) {
      list.pop(qps_);
      continue;
    }
    const bool ready = is_complete(messages_[r.head], unacked_psn(*c));
    if (ready && !may_complete(*c, r)) return;
    if (!contexts_.access(context_memory::completions, r.qpn)) return;
    if (ready) complete_head(*c, r);
    if (ready) {
      contexts_.mark_dirty(r.qpn);
      drained_.check(*c, r);
      resumes_.wake_stalled(r);
    }
    if (r.head == no_index || !is_complete(messages_[r.head], unacked_psn(*c))) list.pop(qps_);
    if (ready) {
      if (!list.empty()) owner_.wake_next();
      return;
    }
  }
}

// There is room for what the head, which is complete, has to tell, and ports to take it.
bool completions::may_complete(const context& c, const qp_runtime& r) {
  const message& m = messages_[r.head];
  const bool failed = m.syndrome != 0;
  if (failed && go_back_.busy(r)) return false;
  if ((failed || m.signalled) && !cqe_.claim()) return false;
  if (failed && !icm::breaks_send_queue_only(c.type) && !error_.claim()) return false;
  return contexts_.claim(context_memory::completions) && messages_.may_release(message_table::by_completion);
}

void completions::complete_head(context& c, qp_runtime& r) {
  const message& m = messages_[r.head];
  const bool failed = m.syndrome != 0;
  const bool send_side_only = icm::breaks_send_queue_only(c.type);
  if (failed || m.signalled)
    report(c, m);
  else if (sim::seldom(spans_.followed() != nullptr))
    follow(c, m.wqe_index);
  if (failed) {
    diagnostics_.count_error(m.syndrome, c.dest.port);
    c.next_wqe = m.wqe_index + m.strides;
  }
  if (r.keys.valid && m.wqe_index + m.strides == r.keys.end) r.keys.valid = false;
  use_receive(c, r, m);
  messages_.release_head(c, r);
  if (sim::seldom(r.withdraw.repeated != 0)) go_back_.withdraw_complete(r);
  if (failed) {
    if (!send_side_only) error_.push({r.qpn});
    go_back_.enter_error(c, r, send_side_only ? icm::qp_state::sq_error : icm::qp_state::error, true);
  }
}

/// A message is done. Where nothing has told of receives behind it (a NAK acknowledges without credits), it has used
/// one of those that are known, or was the one that finds out: then its answer is still to come.
void completions::use_receive(context& c, const qp_runtime& r, const message& m) const {
  const bool told_behind = r.progress.told.since(m.last_psn) - 1 < half_window;
  if (m.takes_receive && c.receives_told >= 0 && !told_behind) --c.receives_told;
}

void completions::report(const context& c, const message& m) {
  completion::cqe_request e;
  e.cqn = c.cqn;
  e.qpn = c.qpn & 0xffffff;
  e.function = c.function;
  e.wqe_index = static_cast<std::uint16_t>(m.wqe_index);
  if (m.syndrome != 0) {
    e.opcode = abi::cqe::send_bit | abi::cqe::opcode_error;
    e.syndrome = m.syndrome;
    e.vendor_error = m.vendor;
  } else {
    e.opcode = static_cast<std::uint8_t>(abi::cqe::send_bit | m.opcode);
    e.byte_count = m.read ? m.length : 0;
  }
  if (sim::seldom(spans_.followed() != nullptr)) {
    e.span = follow(c, m.wqe_index);
  } else if (sim::seldom(m.span != 0)) {
    spans_.leave(m.span, owner_.name(), "payload write", owner_.now_ps(), sim::wait::pcie);
    e.span = m.span;
  }
  cqe_.push(e);
  ++completions_;
}

/// Of the completion, of the request that is done now.
sim::span_id completions::follow(const context& c, std::uint32_t wqe_index) const {
  const sim::request_key key{adapter_, c.qpn, static_cast<std::uint16_t>(wqe_index)};
  return spans_.followed()->completed(key, owner_.name(), owner_.now_ps());
}

bool completions::report_flush(const context& c, std::uint32_t wqe_index) {
  if (!cqe_.claim()) return false;
  completion::cqe_request e;
  e.cqn = c.cqn;
  e.qpn = c.qpn & 0xffffff;
  e.function = c.function;
  e.wqe_index = static_cast<std::uint16_t>(wqe_index);
  e.opcode = abi::cqe::send_bit | abi::cqe::opcode_error;
  e.syndrome = syndrome::flush;
  if (sim::seldom(spans_.followed() != nullptr)) e.span = follow(c, wqe_index);
  cqe_.push(e);
  ++completions_;
  diagnostics_.count_error(syndrome::flush, c.dest.port);
  return true;
}

}  // namespace rnic::transport
