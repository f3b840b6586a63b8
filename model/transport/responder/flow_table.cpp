// SPDX-License-Identifier: Apache-2.0
#include "model/transport/responder/flow_table.h"

#include <algorithm>

#include "model/sim/seldom.h"
#include "model/transport/responder/owed_answer.h"

namespace rnic::transport {

flow_table::flow_table(sim::clocked_block& owner, const responder_config& cfg, contexts& cache, read_backlog& backlog,
                       const slot_table& slots, drop_counters& drops)
    : owner_(owner),
      contexts_(cache),
      backlog_(backlog),
      slots_(slots),
      drops_(drops),
      ports_(owner, "context_memory", cfg.context_ports, {"check", "answers", "reads", "errors", "firmware"}),
      flows_(cfg.flows),
      frames_(cfg.context_wait_frames) {
  for (unsigned i = cfg.flows; i-- != 0;) free_.push_back(static_cast<std::uint16_t>(i));
  for (unsigned i = cfg.context_wait_frames; i-- != 0;) {
    frames_[i].next = free_frame_;
    free_frame_ = static_cast<std::uint16_t>(i);
  }
  active_.reserve(cfg.flows);
  active_qpns_.reserve(cfg.flows);
  news_.touched.reserve(cfg.flows);
  to_do_.reserve(cfg.flows);
  news_.brought_back.reserve(cfg.flows);
}

std::uint16_t flow_table::find(std::uint32_t qpn) const {
  for (std::size_t i = 0; i < active_qpns_.size(); ++i)
    if (active_qpns_[i] == qpn) return active_[i];
  return no_link;
}

std::uint16_t flow_table::open(std::uint32_t qpn) {
  if (free_.empty()) {
    if (!news_.short_of_places) owner_.wake_next();  // for who makes room (parked_answers)
    news_.short_of_places = true;
    return no_link;
  }
  const std::uint16_t i = free_.back();
  free_.pop_back();
  const bool touched = flows_[i].touched;
  responder_flow& f = flows_[i];
  f = responder_flow{};
  f.number = i;
  f.touched = touched;
  f.qpn = qpn;
  f.used = true;
  active_.push_back(i);
  active_qpns_.push_back(qpn);
  if (free_.empty() && !backlog_.empty()) owner_.wake_next();  // the first of the backlog has to be passed
  return i;
}

bool flow_table::may_access(const responder_flow& f, context_user user) {
  return accesses(f, user) || ports_.claim(static_cast<unsigned>(user));
}

void flow_table::access(responder_flow& f, context_user user) {
  if (accesses(f, user)) return;
  ports_.access(static_cast<unsigned>(user));
  f.access.at = owner_.edge();
  f.access.by = static_cast<std::uint8_t>(user);
}

flow_table::found flow_table::resolve(responder_flow& f, context_user user) {
  const found now = find_context(f, user);
  if (now != found::read) return now;
  access(f, user);
  return found::known;
}

flow_table::found flow_table::find_context(responder_flow& f, context_user user) {
  if (f.ctx != nullptr) return found::known;
  // One that is not there needs no port: who held one for it would keep it from the others until it comes.
  icm::responder_context* ctx = nullptr;
  const contexts::result r = contexts_.ask(f.qpn, ctx);
  if (r == contexts::result::pending) {
    f.waits.context = true;
    return found::pending;
  }
  if (r == contexts::result::hit && !may_access(f, user)) return found::no_port;
  return look_up(f, r == contexts::result::hit ? ctx : nullptr);
}

/// `ctx`: what has come for it, if anything.
flow_table::found flow_table::look_up(responder_flow& f, icm::responder_context* ctx) {
  // Contexts come from host memory: one with sizes that no QP has is as if there was none.
  const auto impossible = [](const icm::responder_context& c) {
    return c.log_rq_size > 15 || c.log_rq_stride > 10 || c.log_max_rd_atomic > 7;
  };
  if (ctx == nullptr || ctx->qpn != f.qpn || impossible(*ctx)) {
    drop_waiting(f, &drops_.no_qp);
    if (f.todo != 0) clear_todo(f);
    f.waits.context = false;
    return found::unknown;
  }
  if (!f.pinned) contexts_.pin(f.qpn);  // while its ring is fetched, too: else each could go when the other comes
  f.pinned = true;
  f.ctx = ctx;
  const read_backlog::result ring = backlog_.open(f);
  if (ring == read_backlog::result::pending || ring == read_backlog::result::no_port) {
    f.ctx = nullptr;
    if (ring == read_backlog::result::no_port) return found::no_port;
    f.waits.context = true;
    return found::pending;
  }
  if (sim::seldom(bring_owed(f))) {
    news_.brought_back.push_back(f.number);
    owner_.wake_next();
  }
  if (f.requests.held != 0) owner_.wake_next();  // they may pass others (held_reads)
  return found::read;
}

/// A place that is opened for a frame which then cannot stay is closed again, and has used nothing.
void flow_table::count_use(responder_flow& f) {
  if (f.counted) return;
  f.counted = true;
  if (f.waits.context) ++context_waits;
  contexts_.use(f.qpn);
}

void flow_table::leave() {
  for (const std::uint16_t i : news_.touched) {
    flows_[i].touched = false;
    leave(i);
  }
  news_.touched.clear();
}

void flow_table::leave(std::uint16_t i) {
  responder_flow& f = flows_[i];
  if (!f.used || !may_leave(f)) return;
  bool awaited = !backlog_.empty() || free_.empty();  // QPs may have waited for the place
  if (f.ctx != nullptr) {
    owe(f);
    if (f.dirty) contexts_.mark_dirty(f.qpn);
    awaited = awaited || (!slots_.empty() && contexts_.crowded(f.qpn));  // so may a checked READ: held_reads::has_place
  }
  if (f.pinned) contexts_.unpin(f.qpn);
  f.pinned = false;
  f.used = false;
  f.ctx = nullptr;
  const auto k =
      static_cast<std::size_t>(std::find(active_qpns_.begin(), active_qpns_.end(), f.qpn) - active_qpns_.begin());
  active_qpns_[k] = active_qpns_.back();
  active_qpns_.pop_back();
  active_[k] = active_.back();
  active_.pop_back();
  free_.push_back(i);
  news_.short_of_places = false;
  if (awaited) owner_.wake_next();
}

void flow_table::wait(responder_flow& f, payload::frame_ptr frame) {
  const std::uint16_t w = free_frame_;
  free_frame_ = frames_[w].next;
  frames_[w].frame = std::move(frame);
  frames_[w].next = no_link;
  (f.waits.tail == no_link ? f.waits.head : frames_[f.waits.tail].next) = w;
  f.waits.tail = w;
}

void flow_table::pop(responder_flow& f) {
  const std::uint16_t w = f.waits.head;
  f.waits.head = frames_[w].next;
  if (f.waits.head == no_link) f.waits.tail = no_link;
  frames_[w].frame.reset();
  frames_[w].next = free_frame_;
  free_frame_ = w;
}

void flow_table::drop_waiting(responder_flow& f, std::uint64_t* counter) {
  while (f.waits.head != no_link) {
    if (counter != nullptr) ++*counter;
    pop(f);
  }
}

void flow_table::add_todo(responder_flow& f, std::uint8_t todo) {
  if (f.todo == 0) to_do_.push_back(f.number);
  f.todo |= todo;
}

void flow_table::clear_todo(responder_flow& f) {
  f.todo = 0;
  to_do_.erase(std::remove(to_do_.begin(), to_do_.end(), f.number), to_do_.end());
}

}  // namespace rnic::transport
