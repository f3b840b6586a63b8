// SPDX-License-Identifier: Apache-2.0
// Responses: whose they are, what they acknowledge, what has to be sent again.
#include "model/transport/requester/completer.h"

#include <algorithm>
#include <utility>

#include "model/payload/frame_stream.h"
#include "model/transport/requester/rules.h"

namespace rnic::transport {

namespace {

constexpr std::uint8_t vendor_retry = 0x81, vendor_rnr = 0x87, vendor_access = 0x88;  // adapter data plane C.8.2
constexpr std::uint8_t most_retries = 7;
constexpr std::uint8_t unlimited_rnr_retries = 7;

/// Negative acknowledgements (adapter data plane C.5), and how the message ends that they name (IBA volume 1, 9.9.2,
/// table 57). A sequence error ends none: it is sent again. Other codes are a bad response.
constexpr std::uint8_t sequence_error = 0x60;
struct refusal {
  std::uint8_t code, completion, vendor;
};
constexpr refusal refusals[] = {
    {0x61, syndrome::remote_invalid_request, 0},
    {0x62, syndrome::remote_access, vendor_access},
    {0x63, syndrome::remote_operation, 0},
};

enum class response_kind : std::uint8_t { ack = 0, rnr = 1, reserved = 2, nak = 3 };
response_kind kind_of(std::uint8_t syndrome) { return static_cast<response_kind>(syndrome >> 5 & 3); }

enum class answer : std::uint8_t { none, acknowledge, read, atomic };
answer answer_of(const wire::packet& p) {
  const auto op = wire::operation_of(p.bth.opcode);
  const auto carrier = wire::transport_of(p.bth.opcode);
  if (carrier != wire::transport::rc && carrier != wire::transport::xrc) return answer::none;
  if (op >= wire::operation::read_response_first && op <= wire::operation::read_response_only) return answer::read;
  if (op == wire::operation::atomic_acknowledge) return answer::atomic;
  return op == wire::operation::acknowledge ? answer::acknowledge : answer::none;
}
bool acknowledges(const wire::packet& p) {
  return answer_of(p) == answer::acknowledge && kind_of(p.aeth.syndrome) == response_kind::ack;
}
icm::service service_of(const wire::packet& p) {
  return wire::transport_of(p.bth.opcode) == wire::transport::xrc ? icm::service::xrc : icm::service::rc;
}

using found = context_memory::result;

}  // namespace

completer::completer(sim::clocked_block& owner, const requester_config& config, const requester_settings& settings,
                     const gid_tables& gids, port_set ports, qp_table& qps, context_memory& contexts,
                     message_table& messages, scatter_lists& scatters, go_back& back, timer_port& timers,
                     resumptions& resumes, diagnostic_counters& diagnostics, rate_limiter& limiter,
                     payload::frame_pool& frames, sim::span_recorder& spans)
    : owner_(owner),
      config_(config),
      settings_(settings),
      ports_(ports),
      qps_(qps),
      contexts_(contexts),
      messages_(messages),
      scatters_(scatters),
      go_back_(back),
      timers_(timers),
      resumes_(resumes),
      diagnostics_(diagnostics),
      spans_(spans),
      path_(owner, gids, settings.ports),
      congestion_(config, settings.ports, qps, contexts, frames, limiter, ports.notices, ports.cnps),
      stages_{{"response context", config.response.context},
              {"response sequence", config.response.sequence},
              {"response message", config.response.message},
              {"response place", config.response.place}},
      response_search_(owner, messages),
      timer_search_(owner, messages) {}

void completer::announce(sim::statistics& to) const {
  const std::pair<const char*, const std::uint64_t*> all[] = {{"timeouts", &counts_.timeouts},
                                                              {"naks", &counts_.naks},
                                                              {"rnr_naks", &counts_.rnr_naks},
                                                              {"stray_responses", &counts_.stray},
                                                              {"duplicate_responses", &counts_.duplicate},
                                                              {"ghost_responses", &counts_.ghost},
                                                              {"foreign_responses", &counts_.foreign},
                                                              {"not_a_response", &counts_.not_a_response},
                                                              {"dropped_halted", &counts_.dropped_halted},
                                                              {"searched_messages", &response_search_.steps()},
                                                              {"timer_searched_messages", &timer_search_.steps()}};
  for (const auto& [n, counter] : all) to.add(owner_.name() + "." + n, *counter);
  congestion_.announce(owner_.name(), to);
}

// One response per edge.
void completer::take_response() {
  if (!ports_.responses.can_pop()) return;
  const sim::span_id span = ports_.responses.front()->span;
  payload::expect_packet(*ports_.responses.front(), config_.datapath_bytes, owner_.now(), owner_);
  if (!handle(ports_.responses.front())) return;
  if (span != 0) {
    // The channel from the ICRC check is the pipeline; what is left is a wait for the context or for room, and then for
    // the READ engine.
    const sim::cycle_t entered = owner_.domain().edge_at_or_after(spans_.end_of(span));
    const sim::cycle_t complete = std::min(asked_engine_, owner_.now());
    stages_.mark(spans_, span, owner_, std::min(entered, complete - stages_.cycles()));
    spans_.leave_at_edge(span, owner_.name(), "complete", owner_.domain(), complete);
    if (asked_engine_ != sim::never)
      spans_.leave(span, owner_.name(), "read engine", owner_.now_ps(), sim::wait::arbitration);
  }
  asked_engine_ = sim::never;
  ports_.responses.pop();
}

// False: it has to wait. Until it is taken nothing is changed and nothing counted.
bool completer::handle(payload::frame_ptr& f) {
  const wire::packet& p = f->packet;
  const std::uint32_t qpn = p.bth.dest_qp;
  const answer what = answer_of(p);
  const auto drop = [](std::uint64_t& counter) {
    ++counter;
    return true;
  };
  if (what == answer::none)
    return p.bth.opcode == wire::opcode_cnp ? congestion_.handle_cnp(*f) : drop(counts_.not_a_response);
  if (!qps_.known(qpn) || qps_[qpn].head == no_index) return drop(counts_.stray);  // nothing under way
  qp_runtime& r = qps_[qpn];
  if (r.stop.halted || r.stop.halting) return drop(counts_.dropped_halted);
  if (go_back_.busy(r) || (what != answer::acknowledge && !ports_.scatter.claim())) return false;
  if (asked_engine_ != sim::never && !ports_.read_engine.granted()) return false;
  context* c = nullptr;
  const found at = contexts_.ask(qpn, c);
  if (at == found::pending) return false;
  if (at != found::hit || c->qpn != qpn) return drop(counts_.stray);
  if (!contexts_.claim(context_memory::completer)) return false;
  const bool serves =
      c->type == service_of(p) && (c->state == icm::qp_state::rts || c->state == icm::qp_state::sq_draining);
  // Else anybody could acknowledge or refuse what he has not received.
  if (!serves || !path_.of_peer(c->dest, *f) || !path_check::of_function(c->function, *f) ||
      !path_.in_vlan(c->dest, *f) || (p.bth.pkey & 0x7fff) != 0x7fff) {
    contexts_.access(context_memory::completer, qpn);
    return drop(serves ? counts_.foreign : counts_.stray);
  }
  const wire::psn_t psn = p.bth.psn;
  const std::uint32_t ahead = psn.since(unacked_psn(*c));
  const bool expected = ahead < next_psn(*c).since(unacked_psn(*c));
  std::uint32_t index = no_index;
  if (expected && !message_of(r, p, index)) return false;
  const read_part part = expected && what == answer::read ? part_of(*c, r, p, index) : read_part::stray;
  if (part == read_part::expected && !has_engine(p)) return false;
  contexts_.access(context_memory::completer, qpn);
  congestion_.note(*c, *f);
  if (traffic_ != nullptr) traffic_->add(c->dest.counter_index, f->length);
  if (ahead >= half_window) {
    if (acknowledges(p) && psn + 1 == unacked_psn(*c)) take_receives(*c, r, psn, p.aeth);  // it may know of more
    return drop(counts_.duplicate);
  }
  if (!expected)
    handle_early(*c, r, p);
  else if (what == answer::read)
    handle_read(*c, r, f, index, part);
  else if (what == answer::atomic)
    handle_atomic(*c, r, f, index);
  else
    handle_acknowledge(*c, r, p, index);
  contexts_.mark_dirty(qpn);
  return true;
}

// The message that a response names, where it is needed. False: it is being searched for.
bool completer::message_of(const qp_runtime& r, const wire::packet& p, std::uint32_t& index) {
  if (acknowledges(p)) return true;
  const bool brings_data = answer_of(p) != answer::acknowledge;
  if (brings_data && r.reading != no_index && messages_[r.reading].holds(p.bth.psn)) {
    index = r.reading;
    return true;
  }
  return response_search_.find(r, p.bth.psn, index) != message_search::result::pending;
}

// To a packet that was not sent, or not again since the requester went back. The messages behind next_psn are not known
// any more; the responder answers again when it sees their packets again. But it has all that is before them.
void completer::handle_early(context& c, qp_runtime& r, const wire::packet& p) {
  const wire::psn_t unacked = unacked_psn(c);
  const bool was_sent = r.progress.resends && p.bth.psn.since(unacked) < r.progress.sent_before.since(unacked);
  if (was_sent && !acknowledges(p)) still_answering(c, r, p.bth.psn);
  if (!acknowledges(p) || !was_sent || c.next_psn == c.unacked_psn) {
    ++counts_.ghost;
    return;
  }
  take_receives(c, r, p.bth.psn, p.aeth);
  acknowledge_before(c, r, next_psn(c));
}

void completer::handle_acknowledge(context& c, qp_runtime& r, const wire::packet& p, std::uint32_t index) {
  switch (kind_of(p.aeth.syndrome)) {
    case response_kind::ack: {
      const wire::psn_t psn = p.bth.psn;
      take_receives(c, r, psn, p.aeth);
      // A READ is complete by its data only: an acknowledgement inside it says nothing of it.
      const bool inside = r.reading != no_index && messages_[r.reading].holds(psn);
      acknowledge_before(c, r, inside ? messages_[r.reading].first_psn : psn + 1);
      return;
    }
    case response_kind::rnr:
      return handle_not_ready(c, r, p, index);
    case response_kind::nak:
      ++counts_.naks;
      return handle_nak(c, r, p, index);
    default:
      ++counts_.not_a_response;
      return;
  }
}

void completer::handle_not_ready(context& c, qp_runtime& r, const wire::packet& p, std::uint32_t index) {
  const wire::psn_t psn = p.bth.psn;
  ++counts_.rnr_naks;
  diagnostics_.count(diagnostic_counters::rnr, c.dest.port);
  c.receives_told = 0;
  if (r.progress.rnr_wait || !acknowledge_before(c, r, psn)) return;
  if (c.rnr_retry_limit != unlimited_rnr_retries) {
    if (c.rnr_retries_left == 0) {
      if (index != no_index) go_back_.fail(c, r, index, syndrome::rnr_retry_exceeded, vendor_rnr, psn);
      return;
    }
    --c.rnr_retries_left;
  }
  r.progress.rnr_wait = true;
  if (index != no_index) go_back_.rewind(c, r, index, psn);
  // What is on its way behind that packet may be answered with sequence NAKs, which can come after the wait. It is
  // sent again from there on: such a NAK is no new loss. One that is gets noticed by the timer.
  r.progress.retrying = r.progress.sent_before.since(psn) > 1;
  timers_.wait_for_receiver(r, p.aeth.syndrome);
}

void completer::handle_nak(context& c, qp_runtime& r, const wire::packet& p, std::uint32_t index) {
  const wire::psn_t psn = p.bth.psn;
  const std::uint8_t code = p.aeth.syndrome;
  if (code == sequence_error) {
    diagnostics_.count(diagnostic_counters::out_of_sequence, c.dest.port);
    if (!acknowledge_before(c, r, psn)) return;
    if (!r.progress.rnr_wait)
      retry(c, r, index, psn);  // else of packets behind the one that was not ready: the timer decides
    return;
  }
  if (!acknowledge_before(c, r, psn) || index == no_index) return;
  for (const refusal& x : refusals)
    if (x.code == code) return go_back_.fail(c, r, index, x.completion, x.vendor, psn);
  go_back_.fail(c, r, index, syndrome::bad_response, 0, psn);
}

// A READ before `psn` waits for its answer.
bool completer::lacks_data_before(const qp_runtime& r, wire::psn_t psn) const {
  return r.reading != no_index && messages_[r.reading].missing().before(psn);
}

// All packets before `psn` have arrived. False: there is a READ among them whose data has not, so responses are lost
// and the READ is asked for again.
bool completer::acknowledge_before(context& c, qp_runtime& r, wire::psn_t psn) {
  if (lacks_data_before(r, psn)) {
    const wire::psn_t missing = messages_[r.reading].missing();
    progress(c, r, missing);
    if (!r.progress.rnr_wait) {
      r.reads.lost(config_.reads_after_loss);
      retry(c, r, r.reading, missing);
    }
    return false;
  }
  progress(c, r, psn);
  return true;
}

// Moves the oldest unacknowledged PSN forward.
void completer::progress(context& c, qp_runtime& r, wire::psn_t unacked) {
  const std::uint32_t by = unacked.since(unacked_psn(c));
  if (by == 0 || by >= half_window) return;
  c.unacked_psn = unacked.value();
  if (r.progress.resends && !r.progress.sent_before.after(unacked)) {
    r.progress.resends = false;
    if (r.withdraw.repeated != 0) go_back_.repeated(r);
  }
  c.retries_left = c.retry_limit;
  c.rnr_retries_left = c.rnr_retry_limit;
  r.progress.retrying = false;
  r.progress.extra_retries = 0;
  if (!r.progress.rnr_wait) timers_.restart(c, r);
  if (is_complete(messages_[r.head], unacked)) messages_.may_complete(r);
  resumes_.wake_stalled(r);
}

// Answers to what was asked for before the requester went back are on their way, and that to the repeated request comes
// behind them: to ask once more would only make the peer later. Each of them counts once, so that this has an end.
void completer::still_answering(context& c, qp_runtime& r, wire::psn_t psn) {
  if (!r.progress.retrying || r.progress.rnr_wait || r.failing || !psn.after(r.progress.heard)) return;
  r.progress.heard = psn;
  timers_.restart(c, r);
}

// Sends again from `psn` on, which message `index` holds, once until something new is acknowledged or the timer
// expires.
void completer::retry(context& c, qp_runtime& r, std::uint32_t index, wire::psn_t psn) {
  if (r.progress.retrying) return;
  const bool extra = c.retry_limit == most_retries && r.progress.extra_retries < config_.extra_retries;
  if (c.retries_left == 0 && !extra) {
    if (index != no_index) go_back_.fail(c, r, index, syndrome::retry_exceeded, vendor_retry, psn);
    return;
  }
  if (c.retries_left != 0)
    --c.retries_left;
  else
    ++r.progress.extra_retries;
  r.progress.retrying = true;
  if (index != no_index) go_back_.rewind(c, r, index, psn);
  timers_.restart(c, r);
  resumes_.resume(r);
}

void completer::time_out(qp_runtime& r) {
  const bool stopped = r.stop.halted || r.stop.halting;
  if (go_back_.busy(r)) return;
  context* c = nullptr;
  const found at = stopped ? found::refused : contexts_.ask(r.qpn, c);
  if (at == found::pending) return;
  const bool there = at == found::hit && c->qpn == r.qpn;
  std::uint32_t index = no_index;
  const bool waits = there && !r.progress.rnr_wait && r.head != no_index && c->state != icm::qp_state::error;
  if (waits && timer_search_.find(r, unacked_psn(*c), index) == message_search::result::pending) return;
  if (there && !contexts_.access(context_memory::timers, r.qpn)) return;
  timers_.end(r);
  if (!there) return;
  contexts_.mark_dirty(r.qpn);
  if (r.progress.rnr_wait) {
    r.progress.rnr_wait = false;
    if (c->ack_timeout == 0) r.progress.retrying = false;  // only a NAK could tell of a loss
    resumes_.resume(r);
    return;
  }
  if (index == no_index || messages_[index].syndrome != 0) return;
  ++counts_.timeouts;
  timers_.was_in_vain(r);
  diagnostics_.count(diagnostic_counters::timeout, c->dest.port);
  r.progress.retrying = false;
  r.reads.lost(config_.reads_after_loss);
  retry(*c, r, index, unacked_psn(*c));
}

}  // namespace rnic::transport
