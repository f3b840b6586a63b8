// SPDX-License-Identifier: Apache-2.0
// Decides which send queues the requester serves.
#include "model/scheduler/scheduler.h"

#include <utility>

namespace rnic::scheduler {

scheduler::scheduler(std::string name, sim::clock_domain& domain, const config& cfg, sim::span_recorder& spans,
                     sim::statistics& stats)
    : clocked_block(name, domain), config_(sim::checked(cfg, this->name())), spans_(spans) {
  if (cfg.log_qps < 8 || cfg.log_qps > 24) throw sim::config_error("scheduler: log_qps must be 8..24");
  for (const std::uint8_t w : cfg.weights)
    if (w == 0) throw sim::config_error("scheduler: weights must be 1..255");
  table_.resize((std::size_t{1} << cfg.log_qps) / chunk);
  const std::string prefix = this->name() + ".";
  stats.add(prefix + "doorbells", doorbells_);
  stats.add(prefix + "merged", merged_);
  stats.add(prefix + "dropped_descriptors", dropped_descriptors_);
  stats.add(prefix + "bad_qpn", bad_qpn_);
  stats.add(prefix + "wrong_uar", wrong_uar_);
  stats.add(prefix + "grants", grants_);
  stats.add(prefix + "resumes", resumes_);
  stats.add(prefix + "stalls", stalls_);
}

void scheduler::tick() {
  if (nonempty_ != 0 && !grant_one() && in_service_ < config_.grants && !arbiter_.is_free()) arbiter_.await();
  if (report_in.can_pop()) take_report();
  if (doorbell_in.can_pop() && has_room()) take_doorbell();
  if (nonempty_ == 0) return;
  if (in_service_ < config_.grants)
    wake_at(std::max(arbiter_.free_at(), now() + 1));
  else
    arbiter_.blocked("processing units");
}

void scheduler::device_reset() {
  forget_all();
  selected_ = 0;
  wake_next();  // a doorbell may have waited for a place among the descriptors
}

void scheduler::forget_all() {
  for (auto& c : table_) {
    if (!c) continue;
    for (queue_pair& qp : *c) {
      forget_doorbells(qp);
      qp.owner = no_owner;
    }
  }
}

void scheduler::forget_doorbells(queue_pair& qp) {
  while (qp.descriptor) take_descriptor(qp);
  qp.doorbell = qp.more = false;
  qp.span = 0;
}

std::uint32_t scheduler::cr_read(std::uint32_t offset) {
  if (offset == cr::qp_select) return selected_;
  if (offset != cr::owner) return 0;
  return has_word(selected_) ? find(selected_).owner : no_owner;
}

void scheduler::cr_write(std::uint32_t offset, std::uint32_t value) {
  if (offset == cr::qp_select) selected_ = value;
  if (offset != cr::owner || !has_word(selected_)) return;
  queue_pair& qp = find(selected_);
  forget_doorbells(qp);
  qp.owner = value;
  wake_next();
}

scheduler::queue_pair& scheduler::find(std::uint32_t qpn) {
  const std::uint32_t index = qpn & ((1u << config_.log_qps) - 1);
  auto& c = table_[index / chunk];
  if (!c) c = std::make_unique<std::array<queue_pair, chunk>>();
  queue_pair& qp = (*c)[index % chunk];
  qp.qpn = qpn;
  return qp;
}

void scheduler::activate(queue_pair& qp) {
  qp.at = state::active;
  qp.next = none;
  list& l = active_[qp.priority];
  if (l.head == none) {
    l.head = qp.qpn;
    nonempty_ |= 1u << qp.priority;
  } else {
    find(l.tail).next = qp.qpn;
  }
  l.tail = qp.qpn;
}

void scheduler::merge(queue_pair& qp, send_doorbell d) {
  if (qp.doorbell) ++merged_;
  qp.doorbell = true;
  if (!keep(qp, std::move(d.descriptor))) qp.more = true;
  if (qp.at == state::stalled) drop_descriptors(qp);
  if (qp.span == 0) qp.span = d.span;
}

/// Doorbells stay in their channel, and the bus behind it, while descriptors fill their place: those that wait are of
/// queue pairs that move, so there will be room.
bool scheduler::has_room() {
  const send_doorbell& d = doorbell_in.front();
  if (held_ < config_.descriptors || !d.descriptor) return true;
  return !has_word(d.qpn) || !obeys(find(d.qpn), d);
}

/// A queue pair that may stand still for long reads its WQEs from memory later.
void scheduler::drop_descriptors(queue_pair& qp) {
  if (!qp.descriptor) return;
  qp.more = true;
  while (qp.descriptor) {
    take_descriptor(qp);
    ++dropped_descriptors_;
  }
}

bool scheduler::keep(queue_pair& qp, blueflame_ptr descriptor) {
  if (!descriptor) return false;
  kept_.access_own(written);
  ++held_;
  if (qp.descriptor)
    qp.last->behind = descriptor;
  else
    qp.descriptor = descriptor;
  qp.last = std::move(descriptor);
  return true;
}

blueflame_ptr scheduler::take_descriptor(queue_pair& qp) {
  blueflame_ptr first = std::move(qp.descriptor);
  if (!first) return first;
  --held_;
  qp.descriptor = std::move(first->behind);
  if (!qp.descriptor) qp.last.reset();
  return first;
}

void scheduler::take_doorbell() {
  send_doorbell d = doorbell_in.pop();
  ++doorbells_;
  if (!has_word(d.qpn)) {  // software can ring for any number
    ++bad_qpn_;
    return;
  }
  words_.access_own(of_doorbells);
  queue_pair& qp = find(d.qpn);
  if (!obeys(qp, d)) {
    ++wrong_uar_;
    return;
  }
  merge(qp, std::move(d));
  if (qp.at == state::idle) activate(qp);
}

void scheduler::take_report() {
  const report r = report_in.pop();
  words_.access_own(of_reports);
  queue_pair& qp = find(r.qpn);
  const bool unasked = r.what == report::kind::resume;
  if (!unasked) {
    RNIC_ASSERT(qp.at == state::granted, name() + ": report without a grant");
    --in_service_;
  }
  if (unasked && qp.at == state::active) return;
  qp.priority = r.priority % priorities;
  if (unasked) {
    ++resumes_;
    if (qp.at == state::granted) qp.resumed = true;
    if (qp.at == state::idle || qp.at == state::stalled) activate(qp);
    return;
  }
  const bool again = qp.resumed;
  qp.resumed = false;
  if (r.what == report::kind::more || again || (r.what == report::kind::idle && qp.doorbell)) {
    activate(qp);
  } else {
    qp.at = r.what == report::kind::stalled ? state::stalled : state::idle;
    if (r.what == report::kind::stalled) {
      ++stalls_;
      drop_descriptors(qp);
    }
  }
}

unsigned scheduler::choose_priority() {
  if ((nonempty_ >> current_ & 1) == 0 || served_ >= config_.weights[current_]) {
    do current_ = (current_ + 1) % priorities;
    while ((nonempty_ >> current_ & 1) == 0);
    served_ = 0;
  }
  ++served_;
  return current_;
}

bool scheduler::grant_one() {
  if (in_service_ >= config_.grants || !arbiter_.is_free()) return false;
  if (!grant_out.claim()) {
    arbiter_.blocked("requester");
    return false;
  }
  list& l = active_[choose_priority()];
  words_.access_own(of_grants);
  queue_pair& qp = find(l.head);
  l.head = qp.next;
  if (l.head == none) {
    l.tail = none;
    nonempty_ &= ~(1u << qp.priority);
  }
  grant g;
  g.qpn = qp.qpn;
  g.uar = qp.owner;
  if (qp.descriptor) kept_.access_own(read);
  g.descriptor = take_descriptor(qp);
  g.span = qp.span;
  g.doorbell = qp.doorbell;
  g.more = qp.more;
  qp.doorbell = bool(qp.descriptor);
  qp.more = false;
  qp.span = 0;
  qp.at = state::granted;
  spans_.leave(g.span, name(), "scheduler", now_ps());
  grant_out.push(std::move(g));
  ++grants_;
  ++in_service_;
  arbiter_.start(config_.grant_cycles);
  return true;
}

}  // namespace rnic::scheduler
