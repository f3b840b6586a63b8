// SPDX-License-Identifier: Apache-2.0
// Responder: registers, commands of firmware, the error state and its flushing.
#include <algorithm>

#include "model/transport/responder/responder.h"
#include "model/transport/responder/rules.h"
#include "model/transport/responder/tags.h"
#include "model/transport/transport_cr.h"

namespace rnic::transport {

namespace {

std::uint32_t diagnostic(const responder::counters& count, std::uint32_t offset) {
  const auto low = [](std::uint64_t c) { return static_cast<std::uint32_t>(c); };
  switch (offset) {  // adapter control plane, 10.3
    case 0x00:
      return low(count.local_length);
    case 0x08:
      return low(count.local_operation);
    case 0x18:
      return low(count.local_protection);
    case 0x20:
      return low(count.flushed);
    case 0x48:
      return low(count.remote_invalid);
    case 0x50:
      return low(count.remote_access);
    case 0x68:
      return low(count.rnr);
    case 0x100:
      return low(count.out_of_sequence);
    case 0x118:
      return low(count.drop_no_wqe);
    case 0x130:
      return low(count.duplicates);
    default:
      return 0;
  }
}

}  // namespace

std::uint32_t responder::cr_read(std::uint32_t offset) {
  if (offset >= cr::diagnostics) {
    const std::uint32_t at = offset - cr::diagnostics;
    return diagnostic(count_, at) - diagnostic(counted_at_reset_, at);
  }
  switch (offset) {
    case cr::qp_select:
      return selected_;
    case cr::qp_status:
      return command_.busy_with(selected_) ||
             std::any_of(stopping_.begin(), stopping_.end(), [&](const auto& e) { return e.qpn == selected_; });
    case cr::srq_select:
      return selected_srq_;
    case cr::srq_status:
      return shared_.halting(selected_srq_) ? 1 : 0;
    case cr::reset:
      return resetting_ ? 1 : 0;
    case cr::roce_v2_port:
      return roce_v2_port_;
    case cr::reserved_lkey:
      return reserved_lkey_;
    case cr::special_qp_base:
      return special_qp_base_;
    case cr::num_qps_log:
      return num_qps_log_;
    default:
      return 0;
  }
}

void responder::cr_write(std::uint32_t offset, std::uint32_t value) {
  switch (offset) {
    case cr::qp_select:
      selected_ = value & 0xffffff;
      break;
    case cr::qp_command:
      command(selected_, value);
      break;
    case cr::srq_select:
      selected_srq_ = value & 0xffffff;
      break;
    case cr::srq_command:
      if (value == cr::qp_command_release)
        shared_.release(selected_srq_);
      else if (value == cr::qp_command_halt || value == cr::qp_command_discard)
        shared_.halt(selected_srq_, value == cr::qp_command_discard);
      break;
    case cr::reset:
      if (value == 1) device_reset();
      break;
    case cr::roce_v2_port:
      roce_v2_port_ = static_cast<std::uint16_t>(value);
      break;
    case cr::reserved_lkey:
      reserved_lkey_ = value;
      break;
    case cr::special_qp_base:
      special_qp_base_ = value & 0xffffff;
      break;
    case cr::num_qps_log:
      num_qps_log_ = value;
      break;
    case cr::rx_checksum_mode:
      sums_packets_ = value == 1;
      break;
    default:
      command_.write(offset, value);
      break;
  }
}

void responder::command(std::uint32_t qpn, std::uint32_t code) {
  const auto same = [&](const stopping_entry& e) { return e.qpn == qpn; };
  switch (code) {
    case cr::qp_command_halt:
    case cr::qp_command_discard: {
      halted_.insert(qpn);
      const auto e = std::find_if(stopping_.begin(), stopping_.end(), same);
      if (e == stopping_.end())
        stopping_.push_back({qpn, code == cr::qp_command_discard, false});
      else
        *e = {qpn, e->discard || code == cr::qp_command_discard, false};
      break;
    }
    case cr::qp_command_release:
      stopping_.erase(std::remove_if(stopping_.begin(), stopping_.end(), same), stopping_.end());
      halted_.erase(qpn);
      if (const std::uint16_t i = find_flow(qpn); i != no_link) flows_[i].stop = false;
      attention_.push_back({qpn, flow_todo_check, 0});
      break;
    case cr::qp_command_publish:
      command_.begin(qpn, decltype(command_)::step::publish);
      break;
    case cr::qp_command_change:
      command_.begin(qpn, decltype(command_)::step::change);
      break;
    default:
      return;
  }
  wake_next();
}

// Of a queue pair that goes on working: what is on chip goes to ICM, or software's fields come from firmware.
void responder::work_command() {
  const std::uint32_t qpn = command_.qpn();
  if (command_.at() != decltype(command_)::step::change) {
    const std::uint16_t i = find_flow(qpn);
    const bool asked = command_.at() == decltype(command_)::step::publish;
    if (asked && i != no_link && flows_[i].dirty && flows_[i].ctx != nullptr) contexts_.mark_dirty(qpn);
    return command_.publish(contexts_);
  }
  icm::responder_context* ctx = nullptr;
  const auto found = contexts_.lookup(qpn, ctx);
  if (found == decltype(contexts_)::result::pending) return;
  if (found == decltype(contexts_)::result::hit && ctx->qpn != 0) {
    icm::change(*ctx, command_.settings(), command_.how());
    contexts_.mark_dirty(qpn);
  }
  command_.end();
}

void responder::work_stopping() {
  for (std::size_t k = 0; k < stopping_.size();) {
    stopping_entry& e = stopping_[k];
    if (stopping_done(e.qpn, e.discard, e.begun))
      stopping_.erase(stopping_.begin() + static_cast<std::ptrdiff_t>(k));
    else
      ++k;
  }
}

void responder::device_reset() {
  for (const std::uint32_t qpn : active_qpns_) command(qpn, cr::qp_command_discard);
  receive_.drop_all();
  attention_.clear();
  errors_.clear();
  polls_.clear();
  poll_at_ = 0;
  shared_flushes_.clear();
  selected_ = selected_srq_ = reserved_lkey_ = special_qp_base_ = 0;
  num_qps_log_ = 24;
  sums_packets_ = false;
  roce_v2_port_ = wire::roce_v2_udp_port;
  counted_at_reset_ = count_;
  command_.end();
  resetting_ = true;
  wake_next();  // finish_reset() without any
}

/// No QP is known any more: what still arrives finds no context.
void responder::finish_reset() {
  if (!reads.room(1)) return wake_next();
  read_command r;
  r.what = read_command::kind::forget_all;
  reads.push(r);
  contexts_.drop_all();
  histories_.drop_all();
  backlog_.clear();
  shared_.drop_all();
  notification_.clear();
  for (auto& queue : cnps_) queue.clear();
  halted_.clear();
  resetting_ = false;
}

bool responder::stopping_done(std::uint32_t qpn, bool discard, bool& begun) {
  const std::uint16_t i = find_flow(qpn);
  if (!begun) {
    if (discard) {
      if (!reads.room(1)) {
        wake_next();
        return false;
      }
      read_command r;
      r.what = read_command::kind::forget;
      r.qpn = qpn;
      reads.push(r);
    }
    begun = true;
    stop_polling(qpn);
    receive_.drop(qpn);
    if (i != no_link) {
      responder_flow& f = flows_[i];
      f.stop = true;
      stop_fetching(f);
      drop_waiting(f);
      if (discard) cancel_slots(f);
      if (f.todo != 0) --todo_flows_;
      f.todo = 0;
    }
  }
  if (i != no_link) {
    responder_flow& f = flows_[i];
    give_up_reads(f);
    f.ack_pending = f.nak_pending = false;
    wake_next();  // what holds the flow ends with an answer of memory, or in this tick
    return false;
  }
  const auto mine = [&](std::size_t n) { return (cqes_[(cqe_head_ + n) % cqes_.size()].cqe.qpn & 0xffffff) == qpn; };
  for (std::size_t n = 0; n < cqe_count_; ++n)
    if (mine(n)) return false;
  if (has_shared_flushes(qpn)) {
    if (!discard) return false;
    const auto mine_too = [&](const shared_flush& x) { return x.qpn == qpn; };
    shared_flushes_.erase(std::remove_if(shared_flushes_.begin(), shared_flushes_.end(), mine_too),
                          shared_flushes_.end());
  }
  if (receive_.busy(qpn)) return false;
  if (discard) {
    contexts_.drop(qpn);
    histories_.drop(qpn);
  } else {
    contexts_.flush(qpn);
    histories_.flush(qpn);
  }
  return !contexts_.busy(qpn) && !histories_.busy(qpn);
}

/// Contexts and entries of shared receive queues; their events.
void responder::work_shared() {
  std::uint8_t event = 0;
  std::uint32_t srqn = 0;
  while ((!event_out.bound() || event_out.claim()) && shared_.work(event, srqn)) raise(event, srqn);
}

void responder::take_errors() {
  for (const sim::fifo_in<qp_error>* in : {&error_in, &lost_in})
    if (in->bound() && in->can_pop()) attention_.push_back({in->pop().qpn, flow_todo_error, 0});
}

void responder::send_errors() {
  while (!errors_.empty()) {
    if (error_out.bound()) {
      if (!error_out.claim()) return;
      error_out.push({errors_.front()});
    }
    errors_.erase(errors_.begin());
  }
}

void responder::work_attention() {
  while (!attention_.empty()) {
    const attention_entry a = attention_.front();
    if (!resetting_ && halted_.count(a.qpn) == 0) {
      std::uint16_t i = find_flow(a.qpn);
      if (i == no_link) i = open_flow(a.qpn);
      if (i == no_link) break;  // some QP must leave first: that happens in our tick
      responder_flow& f = flows_[i];
      if (f.todo == 0) ++todo_flows_;
      f.todo |= a.todo;
      if ((a.todo & flow_todo_flush) != 0) f.posted = a.posted;
    }
    attention_.erase(attention_.begin());
  }
  if (todo_flows_ == 0) return;
  for (std::size_t k = 0; k < active_flows_.size(); ++k) {
    responder_flow& f = flows_[active_flows_[k]];
    if (f.todo == 0 || !resolve(f) || !attend(f)) continue;
    count_use(f);
    f.todo = 0;
    --todo_flows_;
  }
}

bool responder::attend(responder_flow& f) {
  icm::responder_context& ctx = *f.ctx;
  if ((f.todo & flow_todo_error) != 0) {
    const bool alive = ctx.state != icm::qp_state::error && ctx.state != icm::qp_state::reset;
    if (alive) {
      if (!give_up_reads(f)) return false;
      enter_error(f, first_uncompleted(f), false);
    }
    f.todo &= static_cast<std::uint8_t>(~flow_todo_error);
  }
  if ((f.todo & flow_todo_check) != 0) {
    f.todo &= static_cast<std::uint8_t>(~flow_todo_check);
    if (f.reads_held != 0 && f.reads_on_chip() == 0) read_backlog::forget(f);  // left by the halt, as those on chip
    if (ctx.state == icm::qp_state::error) {
      flush_shared(f, no_entry);
      // A SEND was under way: its WQE has no completion yet.
      if (ctx.in_message == in_send && !is_shared(ctx)) --ctx.rq_consumed;
      ctx.in_message = 0;
      f.dirty = true;
      start_polling(f);
    }
  }
  return (f.todo & flow_todo_flush) == 0 || flush_queue(f);
}

bool responder::flush_queue(responder_flow& f) {
  icm::responder_context& ctx = *f.ctx;
  ctx.rq_posted = f.posted;
  f.dirty = true;
  if (static_cast<std::uint16_t>(ctx.rq_posted - ctx.rq_consumed) > (1u << ctx.log_rq_size)) return true;
  while (ctx.rq_consumed != ctx.rq_posted) {
    if (!cqe_room()) return false;
    complete_in_error(ctx.cqn, f.qpn, ctx.rq_consumed++, cqe_flushed, 0);
  }
  return true;
}

void responder::start_polling(const responder_flow& f) {
  const icm::responder_context& ctx = *f.ctx;
  if (names_queue(ctx)) return;  // of its own it has none, and its peers' queues go on
  const bool shared = is_shared(ctx);
  if (!shared && ctx.log_rq_stride == 0) return;  // no receive queue
  stop_polling(f.qpn);
  poll_entry e;
  e.qpn = f.qpn;
  e.record = shared ? 0 : ctx.db_record;
  e.function = ctx.function;
  e.seen = ctx.rq_consumed;
  e.last_event = shared;
  polls_.push_back(e);
  if (!poll_reading_ && !poll_answered_) poll_at_ = polls_.size() - 1;
  next_poll_ = now();
  wake_next();
}

void responder::stop_polling(std::uint32_t qpn) {
  for (std::size_t k = 0; k < polls_.size(); ++k) {
    if (polls_[k].qpn != qpn) continue;
    polls_.erase(polls_.begin() + static_cast<std::ptrdiff_t>(k));
    if (poll_at_ > k) --poll_at_;
    return;
  }
}

/// A QP on a shared receive queue has nothing to flush: one event says so (A.7.2), however often software then looks at
/// the QP. False: not yet.
bool responder::tell_last_wqe(std::uint32_t qpn) {
  if (has_shared_flushes(qpn)) return false;
  icm::responder_context* ctx = nullptr;
  const auto found = contexts_.ask(qpn, ctx);
  if (found == decltype(contexts_)::result::pending) return false;
  if (found != decltype(contexts_)::result::hit || (ctx->flags & icm::responder_flag_last_wqe) != 0) return true;
  if (!raise(event_last_wqe, qpn)) return false;
  ctx->flags |= icm::responder_flag_last_wqe;
  contexts_.use(qpn);
  contexts_.mark_dirty(qpn);
  return true;
}

void responder::poll_records() {
  if (poll_answered_) {
    poll_answered_ = false;
    const auto posted = static_cast<std::uint16_t>(poll_bytes_[2] << 8 | poll_bytes_[3]);
    for (poll_entry& e : polls_) {
      if (e.qpn != poll_qpn_ || !poll_ok_ || e.seen == posted) continue;
      e.seen = posted;
      attention_.push_back({e.qpn, flow_todo_flush, posted});
    }
  }
  if (polls_.empty() || poll_reading_) return;
  if (poll_at_ >= polls_.size()) {
    poll_at_ = 0;
    next_poll_ = now() + std::max(1u, config_.flush_poll_cycles);
  }
  if (next_poll_ > now()) {
    wake_at(next_poll_);
    return;
  }
  poll_entry& e = polls_[poll_at_];
  if (e.last_event) {
    if (tell_last_wqe(e.qpn)) {
      polls_.erase(polls_.begin() + static_cast<std::ptrdiff_t>(poll_at_));
      wake_next();
    }
    return;
  }
  if (!dma_read.request.claim()) return;
  pcie::dma_request r;
  r.function = e.function;
  r.length = 4;
  r.address = e.record;
  r.destination = poll_bytes_.data();
  r.tag = tag_poll;
  dma_read.request.push(std::move(r));
  poll_qpn_ = e.qpn;
  poll_reading_ = true;
  ++poll_at_;
}

}  // namespace rnic::transport
