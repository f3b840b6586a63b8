// SPDX-License-Identifier: Apache-2.0
// Which unit reads what of a send queue, and when it has what it needs.
#include "model/transport/requester/queue_reader.h"

#include <algorithm>

#include "model/transport/requester/rules.h"

namespace rnic::transport {

// A free unit that has the queue pair's WQEs already, else one into whose memory nothing is on its way. One is free.
unsigned queue_reader::choose_unit(const scheduler::grant& g, std::uint32_t busy) {
  unsigned chosen = 0, rank = 0;
  for (unsigned i = 0; i < units_.size(); ++i) {
    descriptor_window& w = units_[i].window;
    const bool has = w.is_of(g.qpn);
    if (has && g.doorbell) w.age();
    if ((busy >> i & 1) != 0) continue;
    const unsigned its = has ? 3 : w.under_way() ? 1 : 2;
    if (its <= rank && !has) continue;
    rank = its;
    chosen = i;
  }
  return chosen;
}

void queue_reader::start(send_unit& u) {
  const context& c = *u.ctx;
  descriptor_window& w = u.window;
  u.at = send_unit::state::fetch;
  u.at_wqe.awaits_since = owner_.now();
  if (w.awaits(c, c.next_wqe)) {
    u.at_wqe.awaited = true;
    if (!w.wants()) {
      fetching_ |= units_.mask_of(u);
      return;
    }
  } else {
    std::uint32_t want = config_.prefetch_bytes;
    const std::uint32_t at = w.place_of(c, c.next_wqe);
    if (w.holds(c, c.next_wqe) && w.held() - at >= 16 && w.posted(c, at))
      want = std::max(want, wqe_size(w.at(at)));  // a long WQE, of which the start is known
    if (w.asked()) ++unclaimed_;
    w.begin(c, longest_read(c, want));
  }
  ask(u);
}

// While a unit executes WQEs it reads the next ones, if those from `next` to the end of what it holds say that the
// queue goes on behind it. Their headers are followed as their bytes come in.
void queue_reader::read_ahead(send_unit& u, std::uint32_t next) {
  const context& c = *u.ctx;
  descriptor_window& w = u.window;
  const std::uint64_t ring = std::uint64_t{1} << (c.log_sq_size + c.log_sq_stride);
  const std::uint32_t end = w.held() + config_.prefetch_bytes;
  if (w.under_way() || end > descriptor_memory::unit_bytes || end > ring || next >= w.held()) return;
  if (w.held() - next >= config_.prefetch_bytes) return;                  // early enough later
  if (!u.wqe.fetches() && u.wqe.length > packet_bytes(c, u.wqe)) return;  // this one takes long, if not several turns
  if (!w.goes_on_behind(c, next)) return;
  w.extend(end);
  ask(u);
}

void queue_reader::ask(send_unit& u) {
  if (!jobs_.claim()) return;
  jobs_.push(u.window.job(*u.ctx, u.window.extended() ? 0 : u.span));
  ++qps_[u.grant.qpn].under_way.fetches;
  if (u.at == send_unit::state::fetch) fetching_ |= units_.mask_of(u);
}

// What a unit does not want any more is nobody's.
void queue_reader::take_results() {
  if (!results_.can_pop()) return;
  results_.take_due([this](const descriptor_result& d) {
    --qps_[d.qpn].under_way.fetches;
    send_unit& u = units_[d.unit];
    if (u.window.take(d)) {
      fetching_ &= ~units_.mask_of(u);
    } else {
      --unclaimed_;
      ++late_;
    }
  });
}

void queue_reader::forget(send_unit& u) {
  if (u.window.asked()) ++unclaimed_;
  u.window.forget();
}

void queue_reader::forget_all() {
  for (send_unit& u : units_) forget(u);
  fetching_ = 0;
}

// An extension that has failed is asked for again when its turn comes, and fails then.
void queue_reader::finish(send_unit& u) {
  u.at = send_unit::state::work;
  const std::uint64_t waited = owner_.now() - u.at_wqe.awaits_since;
  fetch_cycles_ += waited;
  if (found_nothing_to_do(u)) empty_cycles_ += waited;
  descriptor_window& w = u.window;
  if (w.extended()) return;
  if (qps_[u.grant.qpn].must_stop()) return forget(u);
  const context& c = *u.ctx;
  if (!w.begins_with(c.next_wqe)) return;  // a retransmission moved the QP meanwhile
  if (w.failed()) {
    // Approximation: a send queue that cannot be read ends the QP with a local error of the WQE that is not known.
    forget(u);
    if (icm::flushes(c.state)) return units_.end_turn(u, scheduler::report::kind::idle);
    return cannot_execute(u);
  }
  if (!w.posted(c, 0)) return;  // the queue's end
  const unsigned size = wqe_size(w.at(0));
  if (size <= w.held() && !wqe_stamped(w.at(0), size)) return;
  if (w.held() < longest_read(c, size)) return start(u);  // all of it
  if (size <= w.held()) ++stamped_;
  if (++u.stamp_tries < config_.stamp_retries) return start(u);
  cannot_execute(u);
}

// The wait was one for software: a deeper queue would have had something to do in it.
bool queue_reader::found_nothing_to_do(const send_unit& u) const {
  if (u.at_wqe.behind_end && u.turn_wqes == 0) return true;
  const context& c = *u.ctx;
  return u.window.holds(c, c.next_wqe) && !u.window.posted(c, u.window.place_of(c, c.next_wqe));
}

// WQE next_wqe, which could not be read or is never finished.
void queue_reader::cannot_execute(send_unit& u) const {
  u.wqe.error = syndrome::local_qp_operation;
  u.wqe.signalled = true;
  u.at_wqe.current = true;
  u.at_wqe.index = u.ctx->next_wqe;
  u.at_wqe.strides = 1;
}

}  // namespace rnic::transport
