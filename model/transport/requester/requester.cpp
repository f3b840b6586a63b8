// SPDX-License-Identifier: Apache-2.0
// The requester as a block: its edge, its channels, its registers.
#include "model/transport/requester/requester.h"

#include <algorithm>
#include <utility>

#include "model/transport/transport_cr.h"

namespace rnic::transport {

namespace {

void check(bool ok, const char* what) {
  if (!ok) throw sim::config_error(std::string("requester: ") + what);
}

void check(const requester_config& c) {
  check(c.processing_units >= 1 && c.processing_units <= 32, "processing_units must be 1..32");
  check(c.prefetch_bytes >= 64 && c.prefetch_bytes <= 1024, "prefetch_bytes must be 64..1024");
  check(c.gather_depth >= 1 && c.gather_depth <= 64, "gather_depth must be 1..64");
  check(c.gather_pieces >= 1, "gather_pieces must be at least 1");
  check(c.scatter_jobs >= 1 && c.scatter_jobs <= 64, "scatter_jobs must be 1..64");
  check(c.outstanding_entries >= 1 && c.scatter_lists >= 1, "outstanding_entries and scatter_lists must be at least 1");
  check(c.max_unacked_packets >= 1 && c.max_unacked_packets <= 1u << 23, "max_unacked_packets must be 1..2^23");
  check(c.timers.entries >= 1 && c.timers.expiry_cycles >= 1, "timers.entries and .expiry_cycles must be at least 1");
  check(c.log_qps >= 8 && c.log_qps <= 24, "log_qps must be 8..24");
  check(c.datapath_bytes >= 1, "datapath_bytes must be at least 1");
  check(c.turn_wqes >= 1 && c.turn_bytes >= 1, "turn_wqes and turn_bytes must be at least 1");
}

constexpr std::uint8_t event_wq_catastrophic = 0x05;  // adapter data plane A.6
constexpr sim::time_ps timeout_unit_ps = 4'096'000;   // IBA 9.7.6.1.3: 4.096 us

}  // namespace

requester::requester(std::string name, sim::clock_domain& domain, const requester_config& cfg, const icm::icm_map& map,
                     const gid_tables& gids, tlm::frame_pool& frames, sim::span_recorder& spans, sim::statistics& stats)
    : clocked_block(name, domain),
      config_(cfg),
      gids_(gids),
      frames_(frames),
      spans_(spans),
      contexts_(name + ".contexts", *this, cfg.contexts, map, icm::table::qpc, 0),
      qps_(cfg.log_qps),
      messages_(cfg.outstanding_entries),
      scatters_(cfg.scatter_lists),
      timers_(cfg.timers, domain),
      limiter_(config_.congestion, domain, cfg.log_qps),
      notification_(config_.congestion.notification, cfg.log_qps),
      timeout_unit_(domain.cycles(timeout_unit_ps)),
      units_(cfg.processing_units),
      slots_(cfg.gather_depth),
      jobs_(cfg.scatter_jobs) {
  check(cfg);
  for (auto& port : egress_)
    for (egress_pool& pool : port) pool.credits = cfg.egress_frames;
  port_mtu_.fill(cfg.port_mtu);
  announce(stats);
}

void requester::announce(sim::statistics& stats) {
  const std::pair<const char*, const std::uint64_t*> all[] = {{"packets", &packets_},
                                                              {"wqes", &wqes_},
                                                              {"completions", &completions_},
                                                              {"descriptor_fetches", &fetches_},
                                                              {"blueflame_used", &blueflame_used_},
                                                              {"retransmissions", &retransmissions_},
                                                              {"timeouts", &timeouts_},
                                                              {"timer_waits", &timers_.waits()},
                                                              {"naks", &naks_},
                                                              {"rnr_naks", &rnr_naks_},
                                                              {"wrong_uar", &wrong_uar_},
                                                              {"no_context", &no_context_},
                                                              {"bad_grant", &bad_grant_},
                                                              {"stray_responses", &stray_responses_},
                                                              {"duplicate_responses", &duplicate_responses_},
                                                              {"ghost_responses", &ghost_responses_},
                                                              {"foreign_responses", &foreign_responses_},
                                                              {"not_a_response", &not_a_response_},
                                                              {"cancelled_packets", &cancelled_packets_},
                                                              {"stalls", &stalls_},
                                                              {"credit_stalls", &credit_stalls_},
                                                              {"stamped_wqes", &stamped_},
                                                              {"dropped_halted", &drop_halted_},
                                                              {"unit_busy_cycles", &unit_busy_cycles_},
                                                              {"ethernet_frames", &ethernet_frames_},
                                                              {"ethernet_blocked", &ethernet_blocked_},
                                                              {"key_operations", &key_operations_},
                                                              {"paced", &paced_},
                                                              {"rp_cnp_handled", &cnp_handled_},
                                                              {"rp_cnp_ignored", &cnp_ignored_},
                                                              {"np_ecn_marked_roce_packets", &ecn_marked_},
                                                              {"np_cnp_lost", &cnp_lost_},
                                                              {"context_hits", &contexts_.counters().hits},
                                                              {"context_misses", &contexts_.counters().misses}};
  for (const auto& [n, counter] : all) stats.add(name() + "." + n, *counter);
}

void requester::tick() {
  contexts_.service();
  read_engine.work();
  take_credits();
  take_errors();
  take_dma();
  take_key_answers();
  emit();
  finish_gather();
  take_translations();
  write_scatter();
  take_responses();
  run_timers();
  if (limiter_.earliest() <= now()) wake_paced();
  drain_completions();
  if (!halts_.empty()) run_halts();
  if (!command_.idle()) work_command();
  ask_scatter();
  run_units();
  start_packets();
  ask_pieces();
  if (revocation_ != revocation::none || keys.revoke.can_pop()) take_revocation();
  take_grants();
  push_resumes();
  const sim::cycle_t next = std::min(std::max(timers_.earliest(), timers_free_), limiter_.earliest());
  if (next != sim::never) wake_at(std::max(next, now() + 1));
}

void requester::take_credits() {
  for (unsigned port = 0; port < ports; ++port) {
    if (!credit_in[port].can_pop()) continue;
    while (credit_in[port].can_pop()) {
      const unsigned priority = credit_in[port].pop().priority % priorities;
      return_credit(port, priority);
    }
    if (!awaits_credit_[port]) continue;
    const auto& all = egress_[port];
    awaits_credit_[port] = std::any_of(all.begin(), all.end(), [](const egress_pool& p) { return p.is_awaited(); });
    credit_in[port].set_quiet(!awaits_credit_[port]);
  }
}

// The responder found an error, or a completion was lost: everything not yet complete is flushed.
void requester::take_errors() {
  while (error_in.can_pop() && stop_for(error_in.front().qpn, false)) error_in.pop();
  if (!lost_in.bound()) return;
  while (lost_in.can_pop() && stop_for(lost_in.front().qpn, true)) lost_in.pop();
}

// False: not now. `fatal`: nobody has told software yet.
bool requester::stop_for(std::uint32_t qpn, bool fatal) {
  if (!qps_.legal(qpn) || qps_[qpn].halted || qps_[qpn].flushing) return true;
  if (fatal && !event_out.can_push()) return false;
  context* c = nullptr;
  const auto found = contexts_.lookup(qpn, c);
  if (found == decltype(contexts_)::result::pending) return false;
  if (found != decltype(contexts_)::result::hit || c->qpn != qpn || c->state == icm::qp_state::error) return true;
  enter_error(*c, qps_[qpn]);
  contexts_.mark_dirty(qpn);
  if (!fatal) return true;
  completion::event_request e;
  e.type = event_wq_catastrophic;
  for (unsigned i = 0; i < 4; ++i) e.data[i] = static_cast<std::uint8_t>(qpn >> (24 - 8 * i));
  event_out.push(e);
  return true;
}

void requester::take_dma() {
  while (dma.response.can_pop()) {
    const pcie::dma_response d = dma.response.pop();
    const auto kind = static_cast<tag_kind>(d.tag >> 56);
    const unsigned slot = static_cast<unsigned>(d.tag >> 40) & 0xffff;
    const bool ok = d.status == pcie::dma_status::ok;
    switch (kind) {
      case tag_kind::fetch: {
        unit& u = units_[slot];
        if (--u.fetch_pending == 0) fetching_ &= ~mask_of(u);
        if (!ok) u.fetch_failed = true;
        break;
      }
      case tag_kind::gather: {
        packet_slot& s = slots_[slot];
        --s.pending;
        if (!ok && s.failed == 0) s.failed = syndrome::local_protection;
        break;
      }
      case tag_kind::scatter:
        if (!ok) jobs_[slot].failed = true;
        finish_job(slot);
        break;
      case tag_kind::flush:
        revocation_ = revocation::done;
        break;
    }
  }
}

void requester::take_translations() {
  while (translate.response.can_pop()) {
    if (!use_translation(translate.response.front())) return;
    translate.response.pop();
  }
}

// A unit stands still while an address that it needs is fetched.
void requester::translated(unit& u, sim::cycle_t missed_for) {
  if (config_.translation_blocks) u.busy_until += missed_for;
  if (--u.translating != 0 || (translating_ & mask_of(u)) == 0) return;
  translating_ &= ~mask_of(u);
  wake_next();
}

// False: the DMA engine has no room for the reads; the answer waits.
bool requester::use_translation(const icm::translate_response& r) {
  const auto kind = static_cast<tag_kind>(r.tag >> 56);
  const unsigned slot = static_cast<unsigned>(r.tag >> 40) & 0xffff;
  std::uint32_t place = static_cast<std::uint32_t>(r.tag);
  if (kind == tag_kind::scatter) {
    pieces_[slot].answer = r;
    pieces_[slot].answered = true;
    return true;
  }
  const bool ok = r.status == icm::translate_status::ok;
  if (ok && dma.request.free_slots() < r.count) {
    if (dma.request.can_push()) wake_next();
    return false;
  }
  std::uint8_t* base = kind == tag_kind::fetch ? units_[slot].buffer.data()
                                               : slots_[slot].frame->buffer.data() + tlm::frame::payload_start;
  const unsigned reads = ok ? r.count : 0;
  for (unsigned i = 0; i < reads; ++i) {
    pcie::dma_request d;
    d.length = r.segments[i].length;
    d.address = r.segments[i].address;
    d.tag = r.tag;
    d.destination = base + place;
    place += d.length;
    d.function = kind == tag_kind::fetch ? units_[slot].ctx->function : slots_[slot].function;
    if (kind == tag_kind::gather) d.span = slots_[slot].frame->span;
    dma.request.push(std::move(d));
  }
  if (kind == tag_kind::fetch) {
    units_[slot].fetch_pending += reads - 1;
    if (!ok) units_[slot].fetch_failed = true;
    if (units_[slot].fetch_pending == 0) fetching_ &= ~mask_of(units_[slot]);
  } else {
    packet_slot& s = slots_[slot];
    translated(units_[s.unit], r.missed ? now() - s.asked_at : 0);
    s.pending = static_cast<std::uint16_t>(s.pending + reads - 1);
    if (!ok && s.failed == 0) s.failed = syndrome::local_protection;
  }
  return true;
}

void requester::resume(qp_runtime& r) {
  if (r.halting || r.halted) return;
  r.has_work = true;
  if (r.unit >= 0)
    r.poked = true;
  else
    resumes_.push(qps_, r);
}

void requester::push_resumes() {
  while (!resumes_.empty() && report_out.can_push()) {
    qp_runtime& r = resumes_.pop(qps_);
    if (r.unit >= 0) {  // a grant was under way: its report says `more`
      r.poked = true;
      continue;
    }
    r.stalled = false;
    report_out.push({r.qpn, report_kind::resume, r.priority});
  }
}

void requester::run_halts() {
  qp_runtime& first = qps_[halts_.front()];
  if (halt_step(first)) {
    halts_.pop(qps_);
    first.halting = first.flushing = first.discard = false;
    first.halted = true;
  }
  if (!halts_.empty()) wake_next();
  if (halts_.empty() && resetting_) finish_reset();
}

// QPs at rest have nothing to be discarded but their context, which goes with all of them in the end.
void requester::device_reset() {
  qps_.for_each([this](qp_runtime& r) {
    const bool rests = r.head == no_index && r.unit < 0 && r.packets == 0 && r.jobs == 0 && !r.halting;
    timers_.stop(qps_, r, now());
    r.halted = rests;
    r.keys_valid = false;
    if (rests) return;
    r.halting = r.discard = true;
    cancel_packets(r.qpn);
    halts_.push(qps_, r);
  });
  for (unit& u : units_) u.buffer_qpn = no_index;
  selected_ = reserved_lkey_ = special_base_ = num_qps_log_ = 0;
  udp_port_ = wire::roce_v2_udp_port;
  port_mtu_.fill(config_.port_mtu);
  diagnostics_.fill(0);
  drained_.clear();
  command_.end();
  resetting_ = true;
  if (halts_.empty()) finish_reset();
  wake_next();
}

void requester::finish_reset() {
  contexts_.drop_all();
  limiter_.clear();
  resetting_ = false;
}

// True: nothing of the QP is on chip any more.
bool requester::halt_step(qp_runtime& r) {
  if (!r.flushing) {
    if (r.unit >= 0 || r.packets != 0 || r.jobs != 0) return false;
    context* c = nullptr;
    const auto found = contexts_.lookup(r.qpn, c);
    if (found == decltype(contexts_)::result::pending) return false;
    if (found == decltype(contexts_)::result::hit) {
      if (!r.discard && r.head != no_index && complete(*c, messages_[r.head])) {
        drain_.push(qps_, r);
        return false;
      }
      if (!r.discard && c->state == icm::qp_state::rts) note_begun(*c, r);
      if (r.head != no_index) {
        if (!r.discard) save_position(*c, r);
        cut_after(*c, r, no_index);
      }
      c->outstanding = 0;
      c->rd_outstanding = 0;
      contexts_.mark_dirty(r.qpn);
    }
    timers_.stop(qps_, r, now());
    r.rnr_wait = r.nak_while_rnr = r.retrying = r.failing = false;
    if (r.discard) r.keys_valid = false;
    for (unit& u : units_)
      if (u.buffer_qpn == r.qpn) u.buffer_qpn = no_index;
    if (r.discard) limiter_.forget(r.qpn);
    r.flushing = true;
  }
  contexts_.flush(r.qpn);
  return !contexts_.busy(r.qpn);
}

// The oldest message that is not complete, from its first unacknowledged packet on, is what comes next.
void requester::save_position(context& c, qp_runtime& r) {
  const message& m = messages_[r.head];
  if (m.local) {
    c.next_wqe = m.wqe_index;
    return;
  }
  c.next_wqe = m.wqe_index;
  c.message_offset = distance(m.first_psn, c.unacked_psn) * mtu_of(c);
  c.next_psn = c.unacked_psn;
}

// What has been started has to be finished in SQ_DRAINING, although it starts again after the halt.
void requester::note_begun(context& c, qp_runtime& r) {
  std::uint32_t end = c.next_wqe + (c.message_offset != 0 ? 1 : 0);
  if (r.tail != no_index) end = std::max(end, messages_[r.tail].wqe_index + messages_[r.tail].strides);
  if (static_cast<std::int32_t>(end - c.drain_end) > 0) c.drain_end = end;
}

void requester::check_drained(context& c, qp_runtime& r) {
  if (c.state != icm::qp_state::sq_draining || drain_left(c) || r.head != no_index) return;
  c.state = icm::qp_state::sqd;
  contexts_.mark_dirty(r.qpn);
  tell_drained(r.qpn);
}

void requester::tell_drained(std::uint32_t qpn) {
  drained_.push_back(qpn);
  if (firmware_ != nullptr) firmware_->push(command::notice::drained, now_ps() + notice_ps_);
}

// Of a queue pair that goes on working: what is on chip goes to ICM, or software's fields come from firmware. XRC
// targets, whose numbers are beyond those that send, have no more than a context here.
void requester::work_command() {
  const std::uint32_t qpn = command_.qpn();
  qp_runtime* const r = qps_.legal(qpn) ? &qps_[qpn] : nullptr;
  if (command_.at() != decltype(command_)::step::change) {
    if (r != nullptr && r->unit >= 0 && units_[static_cast<unsigned>(r->unit)].pinned) contexts_.mark_dirty(qpn);
    return command_.publish(contexts_);
  }
  context* c = nullptr;
  const auto found = contexts_.lookup(qpn, c);
  if (found == decltype(contexts_)::result::pending) return;
  const bool there = found == decltype(contexts_)::result::hit && c->qpn == qpn;
  const icm::qp_state was = there ? c->state : icm::qp_state::reset;
  if (there && r != nullptr && was == icm::qp_state::rts) note_begun(*c, *r);
  const bool changed = there && icm::change(*c, command_.settings(), command_.how());
  command_.end(!changed);
  if (!changed) return;
  contexts_.mark_dirty(qpn);
  if (r != nullptr) changed_by_command(*c, *r, was);
}

// What is under way goes on. A send queue that is stopped or started, or a new limit, is seen by the unit at once.
void requester::changed_by_command(context& c, qp_runtime& r, icm::qp_state was) {
  start_timer(c, r);
  change_limit(c, r);
  if (c.state == was) return;
  restart_unit(r);
  if (was == icm::qp_state::rts && c.state == icm::qp_state::sqd) tell_drained(r.qpn);
  if (c.state == icm::qp_state::rts) resume(r);
  wake_next();
}

std::uint32_t requester::cr_read(std::uint32_t offset) {
  switch (offset) {
    case cr::qp_select:
      return selected_;
    case cr::qp_status:
      if (command_.busy_with(selected_) || (qps_.known(selected_) && qps_[selected_].halting))
        return cr::qp_status_busy;
      return command_.refused() ? cr::qp_status_refused : 0;
    case cr::reset:
      return resetting_ ? 1 : 0;
    case cr::roce_v2_port:
      return udp_port_;
    case cr::reserved_lkey:
      return reserved_lkey_;
    case cr::special_qp_base:
      return special_base_;
    case cr::num_qps_log:
      return num_qps_log_;
    case cr::drained:
      return drained_.empty() ? 0 : cr::drained_valid | (drained_.front() & 0xffffff);
    default:
      break;
  }
  if (offset - cr::port_mtu < 4 * ports) return port_mtu_[(offset - cr::port_mtu) / 4];
  const std::uint32_t word = (offset - cr::diagnostics) / 4;
  return offset >= cr::diagnostics && word < diagnostic_words ? diagnostics_[word] : 0;
}

void requester::cr_write(std::uint32_t offset, std::uint32_t value) {
  if (offset == cr::reset && value == 1) device_reset();
  if (offset == cr::drained && value == 1 && !drained_.empty()) drained_.erase(drained_.begin());
  if (offset == cr::qp_select) selected_ = value;
  if (offset == cr::roce_v2_port) udp_port_ = static_cast<std::uint16_t>(value);
  if (offset == cr::reserved_lkey) reserved_lkey_ = value;
  if (offset == cr::special_qp_base) special_base_ = value;
  if (offset == cr::num_qps_log) num_qps_log_ = value;
  if (offset - cr::port_mtu < 4 * ports) port_mtu_[(offset - cr::port_mtu) / 4] = value;
  if (command_.write(offset, value)) return;
  if (offset != cr::qp_command) return;
  if (value == cr::qp_command_publish || value == cr::qp_command_change) {
    using step = decltype(command_)::step;
    command_.begin(selected_, value == cr::qp_command_change ? step::change : step::publish);
    return wake_next();
  }
  if (!qps_.legal(selected_)) return;
  qp_runtime& r = qps_[selected_];
  if (value == cr::qp_command_release) {
    if (r.halting) return;
    r.halted = false;
    resume(r);
  } else if (value == cr::qp_command_halt || value == cr::qp_command_discard) {
    r.halting = true;
    r.halted = false;
    r.discard = value == cr::qp_command_discard;
    if (r.discard) cancel_packets(r.qpn);
    halts_.push(qps_, r);
  }
  wake_next();
}

}  // namespace rnic::transport
