// SPDX-License-Identifier: Apache-2.0
// Responder: the tick, flows of queue pairs, admission of packets.
#include "model/transport/responder/responder.h"

#include <algorithm>

#include "model/transport/responder/rules.h"
#include "model/transport/responder/tags.h"
#include "model/transport/transport_cr.h"
#include "model/wire/groups.h"

namespace rnic::transport {

namespace {
constexpr unsigned log_flows = 18;  // QPNs on chip, as requester_config::log_qps
}  // namespace

responder::responder(std::string name, sim::clock_domain& domain, const responder_config& config,
                     const icm::icm_map& map, const std::array<gid::gid_table*, 2>& gids, payload::frame_pool& frames,
                     sim::span_recorder& spans, sim::statistics& stats)
    : clocked_block(name, domain),
      rx_in(*this),
      ethernet_in(*this),
      copies_in(*this),
      dma_write(*this),
      dma_read(*this),
      translate(*this),
      keys(*this),
      cqe_out(*this),
      event_out(*this),
      error_out(*this),
      error_in(*this),
      lost_in(*this),
      notice_in(*this),
      acknowledgements(*this, config.answer.waiting),
      notifications(*this, config.answer.waiting),
      reads(*this, config),
      config_(config),
      map_(map),
      gids_(gids),
      frames_(frames),
      spans_(spans),
      contexts_(this->name() + ".contexts", *this, config.contexts, map, icm::table::qpc, 128),
      histories_(this->name() + ".histories", *this, config.histories, map, icm::table::rdmarc, 0),
      flows_(config.flows),
      receive_(config_, translate, dma_read, tag_receive, tag_receive),
      shared_(this->name() + ".srqs", *this, config_, map, translate, dma_read, tag_shared, tag_shared),
      notification_(config_.congestion.notification, log_flows),
      cnps_{sim::ring<payload::frame_ptr>(config_.congestion.notification.queue),
            sim::ring<payload::frame_ptr>(config_.congestion.notification.queue)},
      backlog_(map, histories_),
      waiting_(config.context_wait_frames),
      slots_(config.slots),
      cqes_(config.cqe_queue),
      ready_(config.flows),
      hands_(config.flows) {
  if (config.flows == 0 || config.slots == 0 || config.cqe_queue == 0 || config.receive_lines == 0 ||
      config.bytes_per_cycle == 0 || config.read_fetches == 0 || config.ack_coalesce == 0 ||
      config.context_wait_frames == 0 || config.read_hand_over < 3)
    throw sim::config_error(this->name() +
                            ": flows, slots, cqe_queue, receive_lines, bytes_per_cycle, read_fetches, ack_coalesce "
                            "and context_wait_frames must be 1 or more, read_hand_over 3");
  for (unsigned i = config.flows; i-- != 0;) free_flows_.push_back(static_cast<std::uint16_t>(i));
  for (unsigned i = config.slots; i-- != 0;) free_slots_.push_back(static_cast<std::uint16_t>(i));
  for (unsigned i = config.context_wait_frames; i-- != 0;) {
    waiting_[i].next = free_waiting_;
    free_waiting_ = static_cast<std::uint16_t>(i);
  }
  active_flows_.reserve(config.flows);
  active_qpns_.reserve(config.flows);
  waiting_flows_.reserve(config.flows);
  fetching_.reserve(config.read_fetches);
  attention_.reserve(64);
  polls_.reserve(64);
  stopping_.reserve(16);
  const std::pair<const char*, const std::uint64_t*> named[] = {
      {"packets", &count_.packets},
      {"check_busy_cycles", &count_.check_cycles},
      {"writes", &count_.writes},
      {"sends", &count_.sends},
      {"reads", &count_.reads},
      {"reads_held", &backlog_.kept()},
      {"atomics", &count_.atomics},
      {"invalidations", &count_.invalidations},
      {"acks", &count_.acks},
      {"naks", &count_.naks},
      {"duplicates", &count_.duplicates},
      {"rnr", &count_.rnr},
      {"out_of_sequence", &count_.out_of_sequence},
      {"context_waits", &count_.context_waits},
      {"drop.no_qp", &count_.drop_no_qp},
      {"drop.state", &count_.drop_state},
      {"drop.service", &count_.drop_service},
      {"drop.address", &count_.drop_address},
      {"drop.pkey", &count_.drop_pkey},
      {"drop.qkey", &count_.drop_qkey},
      {"drop.mad_length", &count_.drop_mad_length},
      {"drop.halted", &count_.drop_halted},
      {"drop.error", &count_.drop_error},
      {"drop.sequence", &count_.drop_sequence},
      {"drop.duplicate_read", &count_.drop_duplicate_read},
      {"drop.duplicate_atomic", &count_.drop_duplicate_atomic},
      {"drop.no_wqe", &count_.drop_no_wqe},
      {"drop.unreliable", &count_.drop_unreliable},
      {"ethernet", &count_.ethernet},
      {"drop.ethernet_no_wqe", &count_.drop_ethernet_no_wqe},
      {"drop.ethernet_vlan", &count_.drop_ethernet_vlan},
      {"drop.ethernet_function", &count_.drop_ethernet_function},
      {"error.local_length", &count_.local_length},
      {"error.local_operation", &count_.local_operation},
      {"error.local_protection", &count_.local_protection},
      {"error.flushed", &count_.flushed},
      {"error.remote_invalid", &count_.remote_invalid},
      {"error.remote_access", &count_.remote_access},
      {"np_ecn_marked_roce_packets", &count_.ecn_marked},
      {"np_cnp_sent", &count_.cnps},
      {"np_cnp_lost", &count_.cnps_lost}};
  for (const auto& [n, c] : named) stats.add(this->name() + "." + n, *c);
  contexts_.announce(stats);
  histories_.announce(stats);
  shared_.contexts().announce(stats);
}

void responder::tick() {
  contexts_.service();
  read_engine.work();
  histories_.service();
  take_answers();
  take_key_answers();
  take_errors();
  take_report();
  acknowledgements.work();
  notifications.work();
  receive_.work();
  work_shared();
  commit();
  if (notice_in.can_pop()) take_notices();
  send_cnp();
  send_answers();
  poll_records();
  work_attention();
  if (!backlog_.empty() || !fetching_.empty()) work_backlog();
  push_shared_flushes();
  push_cqes();
  send_errors();
  if (revoking_ || keys.revoke.can_pop()) take_revocation();
  // Flows without work leave; those that only now became free of it are found by this walk from the back.
  for (std::size_t i = active_flows_.size(); i-- != 0;) settle(active_flows_[i]);
  if (!stopping_.empty()) work_stopping();
  if (resetting_ && stopping_.empty()) finish_reset();
  if (!command_.idle()) work_command();
  hand_answers();
  reads.work(writes_done_);
  accept();
}

void responder::take_answers() {
  if (translate.response.can_pop()) {
    const icm::translate_response r = translate.response.pop();
    const auto index = static_cast<std::uint32_t>(r.tag);
    switch (r.tag & tag_kind) {
      case tag_receive:
        receive_.translated(index, r);
        break;
      case tag_shared:
        shared_.translated(index, r);
        break;
      default: {
        responder_slot& s = slots_[index >> 8];
        const unsigned piece = index & 0xff;
        ++s.translated;
        if (s.fetches()) --reads_translating_;
        s.missed = s.missed || r.missed;
        s.segments[2 * piece] = r.count > 0 ? r.segments[0] : icm::translate_response::segment{};
        s.segments[2 * piece + 1] = r.count > 1 ? r.segments[1] : icm::translate_response::segment{};
        if (r.status != icm::translate_status::ok && s.status == icm::translate_status::ok) s.status = r.status;
      }
    }
  }
  if (dma_read.response.can_pop()) {
    const pcie::dma_response r = dma_read.response.pop();
    const auto index = static_cast<std::uint32_t>(r.tag);
    switch (r.tag & tag_kind) {
      case tag_receive:
        receive_.read_done(index, r.status);
        break;
      case tag_shared:
        shared_.read_done(index, r.status);
        break;
      default:
        poll_reading_ = false;
        poll_answered_ = true;
        poll_ok_ = r.status == pcie::dma_status::ok;
    }
  }
  if (dma_write.response.can_pop()) {
    dma_write.response.pop();
    ++writes_done_;
  }
}

void responder::accept() {
  if (unissued_ != 0)
    for (std::uint16_t i = first_slot_; i != no_link; i = slots_[i].next)
      if (slots_[i].issued != slots_[i].pieces) issue(slots_[i]);
  const bool others = ethernet_in.can_pop() || copies_in.can_pop();
  const bool new_frame = rx_in.can_pop() || others;
  if (!new_frame && waiting_flows_.empty()) return;
  if (!check_.is_free()) return check_.await();
  if (!accept_waiting()) {
    if (others)
      accept_in_turn();
    else if (new_frame)
      accept_new();
  }
  const bool more = rx_in.can_pop() || !waiting_flows_.empty() || ethernet_in.can_pop() || copies_in.can_pop();
  if (more && !check_.is_free()) check_.await();
}

bool responder::accept_waiting() {
  for (std::size_t k = 0; k < waiting_flows_.size(); ++k) {
    const std::uint16_t i = waiting_flows_[k];
    responder_flow& f = flows_[i];
    const bool known = resolve(f);
    if (f.wait_head == no_link) {  // its frames were dropped: no such QP, or it is in the error state
      f.in_waiting = false;
      waiting_flows_.erase(waiting_flows_.begin() + static_cast<std::ptrdiff_t>(k));
      settle(i);
      wake_next();
      return true;
    }
    if (!known) continue;
    waiting_frame& w = waiting_[f.wait_head];
    if (run(i, w.frame) == verdict::wait) continue;
    const std::uint16_t next = w.next;
    w.frame.reset();
    w.next = free_waiting_;
    free_waiting_ = f.wait_head;
    f.wait_head = next;
    if (next == no_link) {
      f.wait_tail = no_link;
      f.in_waiting = false;
      waiting_flows_.erase(waiting_flows_.begin() + static_cast<std::ptrdiff_t>(k));
    }
    check_.start(cost_);
    count_.check_cycles += cost_;
    settle(i);
    return true;
  }
  return false;
}

bool responder::accept_new() {
  payload::frame_ptr& front = rx_in.front();
  if (!admit(front, destination(*front))) return false;
  rx_in.pop();
  return true;
}

/// Of a datagram to a group, for the queue pair that multicast has put into it.
bool responder::accept_copy() {
  payload::frame_ptr& front = copies_in.front();
  if (!admit(front, front->packet.bth.dest_qp)) return false;
  copies_in.pop();
  return true;
}

/// Requests, copies for groups and plain frames in turn. One that cannot be taken now does not hold up the others.
void responder::accept_in_turn() {
  const std::array<bool, 3> waits{rx_in.can_pop(), copies_in.can_pop(), ethernet_in.can_pop()};
  for (unsigned k = 0; k != waits.size(); ++k) {
    const unsigned kind = (turn_ + k) % 3;
    if (!waits[kind]) continue;
    if (kind == 0 ? accept_new() : kind == 1 ? accept_copy() : accept_ethernet()) {
      turn_ = (kind + 1) % 3;
      return;
    }
  }
}

/// Checks a frame for a QP, lets it wait, or drops it. False: no place for it now.
bool responder::admit(payload::frame_ptr& frame, std::uint32_t qpn) {
  std::uint16_t i = find_flow(qpn);
  if (qpn == 0 || resetting_ || (i == no_link && halted_.count(qpn) != 0) || (i != no_link && flows_[i].stop)) {
    ++(qpn == 0 ? count_.drop_no_qp : count_.drop_halted);
    check_.start(1);
    return true;
  }
  if (i == no_link) i = open_flow(qpn);
  if (i == no_link) return false;  // some QP must leave first: that happens in our tick
  responder_flow& f = flows_[i];
  const bool known = resolve(f);
  if (known && f.wait_head == no_link && run(i, frame) == verdict::done) {
    check_.start(cost_);
    count_.check_cycles += cost_;
    settle(i);
    return true;
  }
  if (!known && f.ctx == nullptr && !f.waited_context) {  // refused: no such QP
    ++count_.drop_no_qp;
    check_.start(1);
    settle(i);
    return true;
  }
  if (free_waiting_ == no_link) return false;  // one of the frames that wait goes on in our tick
  enqueue(i, std::move(frame));
  check_.start(1);
  return true;
}

responder::verdict responder::run(std::uint16_t i, payload::frame_ptr& frame) {
  responder_flow& f = flows_[i];
  if (free_slots_.empty()) return verdict::wait;
  const unsigned payload = frame->packet.payload_length;
  const wire::opcode_traits& t = wire::traits(frame->packet.bth.opcode);
  const wire::operation op = wire::operation_of(frame->packet.bth.opcode);
  const bool receives =
      is_send(op) || op == wire::operation::write_last_immediate || op == wire::operation::write_only_immediate;
  const bool fetches = !frame->plain && (op == wire::operation::read_request || op == wire::operation::compare_swap ||
                                         op == wire::operation::fetch_add);
  const unsigned base = fetches        ? config_.read_cycles
                        : !receives    ? config_.write_cycles
                        : payload != 0 ? config_.receive_cycles
                                       : config_.receive_header_cycles;
  const unsigned beats = (payload + config_.bytes_per_cycle - 1) / config_.bytes_per_cycle;
  const sim::span_id span = t.last ? frame->span : 0;
  if (fetches && reads_translating_ >= config_.read_translations) return verdict::wait;  // the address ticks us
  if (fetches && !read_engine.is_free()) {
    wake_at(read_engine.free_at());
    return verdict::wait;
  }
  const bool marked = !frame->plain && notification_point::marked(frame->packet) && notification_.answers(*frame);
  if (marked) keep_marked(*frame);
  const verdict v = check(f, frame);
  if (v == verdict::wait) return v;
  if (marked) note_marked(f);
  if (fetches) read_engine.use(config_.read_cycles + (f.waited_context ? config_.read_miss_cycles : 0));
  ++count_.packets;
  count_use(f);
  cost_ = std::max({1u, base, config_.beat_overhead_cycles + beats});
  spans_.leave(span, name(), "context", now_ps(), f.waited_context ? sim::wait::context_miss : sim::wait::none);
  f.waited_context = false;
  return v;
}

std::uint32_t responder::destination(const payload::frame& f) const {
  const std::uint32_t qpn = f.packet.bth.dest_qp;
  // GSI packets of both encapsulations go to the port's main GSI QP (A.9.3).
  if (qpn == 1) return special_qp_base_ == 0 ? 0 : special_qp_base_ + cr::special_qp1 + f.port;
  // The wire does not know the numbers that special QPs have in the adapter. Number 0 has no place on Ethernet.
  const bool special = special_qp_base_ != 0 && qpn - special_qp_base_ < cr::special_qps;
  return qpn == wire::group_qpn || special ? 0 : qpn;
}

std::uint16_t responder::find_flow(std::uint32_t qpn) const {
  for (std::size_t i = 0; i < active_qpns_.size(); ++i)
    if (active_qpns_[i] == qpn) return active_flows_[i];
  return no_link;
}

std::uint16_t responder::open_flow(std::uint32_t qpn) {
  if (free_flows_.empty()) return no_link;
  const std::uint16_t i = free_flows_.back();
  free_flows_.pop_back();
  flows_[i] = responder_flow{};
  flows_[i].qpn = qpn;
  flows_[i].used = true;
  active_flows_.push_back(i);
  active_qpns_.push_back(qpn);
  return i;
}

bool responder::resolve(responder_flow& f) {
  if (f.ctx != nullptr) return true;
  icm::responder_context* ctx = nullptr;
  const auto r = contexts_.ask(f.qpn, ctx);
  if (r == icm::context_cache<icm::responder_context>::result::pending) {
    f.waited_context = true;
    return false;
  }
  // Contexts come from host memory: one with sizes that no QP has is as if there was none.
  const auto impossible = [](const icm::responder_context& c) {
    return c.log_rq_size > 15 || c.log_rq_stride > 10 || c.log_max_rd_atomic > 7;
  };
  if (r == icm::context_cache<icm::responder_context>::result::refused || ctx->qpn != f.qpn || impossible(*ctx)) {
    for (std::uint16_t w = f.wait_head; w != no_link; w = waiting_[w].next) ++count_.drop_no_qp;
    drop_waiting(f);
    if (f.todo != 0) --todo_flows_;
    f.todo = 0;
    f.waited_context = false;
    return false;
  }
  f.ctx = ctx;
  if (backlog_.open(f) == read_backlog::result::pending) {
    f.ctx = nullptr;
    f.waited_context = true;
    return false;
  }
  contexts_.pin(f.qpn);
  return true;
}

/// A flow that is opened for a frame which then finds no place is closed again, and has used nothing.
void responder::count_use(responder_flow& f) {
  if (f.counted) return;
  f.counted = true;
  if (f.waited_context) ++count_.context_waits;
  contexts_.use(f.qpn);
}

void responder::settle(std::uint16_t i) {
  responder_flow& f = flows_[i];
  if (!f.used || f.wait_head != no_link || f.in_waiting || f.slots != 0 || f.in_generator() || f.fetching ||
      f.ack_pending || f.nak_pending || f.in_answers || f.in_hand || f.todo != 0)
    return;
  bool awaited = !backlog_.empty();  // its QPs may have waited for the place
  if (f.ctx != nullptr) {
    if (f.dirty) contexts_.mark_dirty(f.qpn);
    awaited = awaited || (first_slot_ != no_link && contexts_.crowded(f.qpn));  // so may a checked READ: read_has_place
    contexts_.unpin(f.qpn);
  }
  f.used = false;
  f.ctx = nullptr;
  const auto k =
      static_cast<std::size_t>(std::find(active_qpns_.begin(), active_qpns_.end(), f.qpn) - active_qpns_.begin());
  active_qpns_[k] = active_qpns_.back();
  active_qpns_.pop_back();
  active_flows_[k] = active_flows_.back();
  active_flows_.pop_back();
  free_flows_.push_back(i);
  if (awaited) wake_next();
}

void responder::enqueue(std::uint16_t i, payload::frame_ptr frame) {
  responder_flow& f = flows_[i];
  const std::uint16_t w = free_waiting_;
  free_waiting_ = waiting_[w].next;
  waiting_[w].frame = std::move(frame);
  waiting_[w].next = no_link;
  (f.wait_tail == no_link ? f.wait_head : waiting_[f.wait_tail].next) = w;
  f.wait_tail = w;
  if (!f.in_waiting) {
    f.in_waiting = true;
    waiting_flows_.push_back(i);
  }
}

void responder::drop_waiting(responder_flow& f) {
  while (f.wait_head != no_link) {
    const std::uint16_t w = f.wait_head;
    f.wait_head = waiting_[w].next;
    waiting_[w].frame.reset();
    waiting_[w].next = free_waiting_;
    free_waiting_ = w;
  }
  f.wait_tail = no_link;
}

}  // namespace rnic::transport
