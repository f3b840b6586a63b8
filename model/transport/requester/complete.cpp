// SPDX-License-Identifier: Apache-2.0
// The completer: acknowledgements, negative ones, READ responses, timers.
#include <algorithm>
#include <utility>

#include "model/transport/requester/requester.h"
#include "model/transport/rnr_timer.h"

namespace rnic::transport {

namespace {

constexpr sim::time_ps rnr_unit_ps = 10 * sim::ps_per_us;
constexpr unsigned diag_rnr = 0x6c / 4, diag_out_of_sequence = 0x104 / 4, diag_timeout = 0x134 / 4;
constexpr std::uint8_t vendor_retry = 0x81, vendor_rnr = 0x87, vendor_access = 0x88;  // adapter data plane C.8.2
constexpr std::uint8_t most_retries = 7;
constexpr std::uint8_t unlimited_rnr_retries = 7;
constexpr std::uint32_t half_window = 1u << 23;

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
icm::service service_of(wire::transport t) { return t == wire::transport::xrc ? icm::service::xrc : icm::service::rc; }
response_kind kind_of(std::uint8_t syndrome) { return static_cast<response_kind>(syndrome >> 5 & 3); }

}  // namespace

void requester::take_responses() {
  // One response per edge.
  if (!rx_in.can_pop()) return;
  const sim::span_id span = rx_in.front()->span;
  if (!handle_response(rx_in.front())) return;
  if (span != 0) {
    // The channel from the ICRC check is the pipeline; what is left is a wait for the context or for room.
    const sim::cycle_t entered = domain().edge_at_or_after(spans_[span].end());
    response_pipeline_.mark(spans_, span, *this, std::min(entered, now() - response_pipeline_.cycles()));
    spans_.leave(span, name(), "complete", now_ps());
  }
  rx_in.pop();
}

// False: has to wait for the context or for room.
bool requester::handle_response(payload::frame_ptr& f) {
  const wire::packet& p = f->packet;
  const std::uint32_t qpn = p.bth.dest_qp;
  const auto op = wire::operation_of(p.bth.opcode);
  const bool read = op >= wire::operation::read_response_first && op <= wire::operation::read_response_only;
  const bool atomic = op == wire::operation::atomic_acknowledge;
  const auto carrier = wire::transport_of(p.bth.opcode);
  if ((carrier != wire::transport::rc && carrier != wire::transport::xrc) ||
      (!read && !atomic && op != wire::operation::acknowledge)) {
    if (p.bth.opcode == wire::opcode_cnp) return handle_cnp(*f);
    ++not_a_response_;
    return true;
  }
  if (!qps_.known(qpn) || qps_[qpn].head == no_index) {  // nothing under way
    ++stray_responses_;
    return true;
  }
  qp_runtime& r = qps_[qpn];
  if (r.halted || r.halting) {
    ++drop_halted_;
    return true;
  }
  if ((read || atomic) && !scatter_out.claim()) return false;
  context* c = nullptr;
  const auto found = contexts_.lookup(qpn, c);
  if (found == decltype(contexts_)::result::pending) return false;
  if (found != decltype(contexts_)::result::hit || c->qpn != qpn || c->type != service_of(carrier) ||
      (c->state != icm::qp_state::rts && c->state != icm::qp_state::sq_draining)) {
    ++stray_responses_;
    return true;
  }
  if (!from_peer(*c, *f)) {
    ++foreign_responses_;
    return true;
  }
  if (notification_point::marked(p)) note_marked(*c, *f);
  const std::uint32_t psn = p.bth.psn.value();
  if (distance(c->unacked_psn, psn) >= half_window) {
    const bool says_more = op == wire::operation::acknowledge && kind_of(p.aeth.syndrome) == response_kind::ack &&
                           ((psn + 1) & 0xffffff) == c->unacked_psn;
    if (says_more) take_receives(*c, r, psn, p.aeth);
    ++duplicate_responses_;
    return true;
  }
  if (distance(c->unacked_psn, psn) >= distance(c->unacked_psn, c->next_psn)) {
    handle_early_response(*c, r, p);
    contexts_.mark_dirty(qpn);
    return true;
  }
  if (read)
    handle_read_response(*c, r, f);
  else if (atomic)
    handle_atomic_response(*c, r, f);
  else
    handle_acknowledge(*c, r, p);
  contexts_.mark_dirty(qpn);
  return true;
}

// The checks that every packet of a connection has to pass, requests and answers alike (IBA 9.6.1; adapter data plane
// A.9.1, steps 8 and 9): else anybody could acknowledge or refuse what he has not received.
bool requester::from_peer(const context& c, const payload::frame& f) const {
  const wire::packet& p = f.packet;
  const bool v2 = (c.dest.flags & icm::path_flag_roce_v2) != 0;
  const gid::entry& own = (*gids_[c.dest.port % ports])[c.dest.gid_index];
  return f.port == c.dest.port && std::equal(p.sgid.begin(), p.sgid.end(), std::begin(c.dest.remote_gid)) &&
         own.valid && v2 == (own.type == gid::roce_type::v2) && p.dgid == own.id &&
         v2 == (p.encap != wire::encapsulation::roce_v1) && (p.bth.pkey & 0x7fff) == 0x7fff;
}

// To a packet that was not sent, or not again since the requester went back. The messages behind next_psn are not known
// any more; the responder answers again when it sees their packets again. But it has all that is before them.
void requester::handle_early_response(context& c, qp_runtime& r, const wire::packet& p) {
  const bool acknowledges = wire::operation_of(p.bth.opcode) == wire::operation::acknowledge &&
                            kind_of(p.aeth.syndrome) == response_kind::ack;
  const bool was_sent =
      r.resends && distance(c.unacked_psn, p.bth.psn.value()) < distance(c.unacked_psn, r.sent_before);
  if (was_sent && !acknowledges) still_answering(c, r, p.bth.psn.value());
  if (!acknowledges || !was_sent || c.next_psn == c.unacked_psn) {
    ++ghost_responses_;
    return;
  }
  take_receives(c, r, p.bth.psn.value(), p.aeth);
  acknowledge_before(c, r, c.next_psn);
}

void requester::handle_acknowledge(context& c, qp_runtime& r, const wire::packet& p) {
  const std::uint32_t psn = p.bth.psn.value();
  switch (kind_of(p.aeth.syndrome)) {
    case response_kind::ack: {
      take_receives(c, r, psn, p.aeth);
      // A READ is complete by its data only: an acknowledgement inside it says nothing.
      if (c.rd_outstanding != 0) {
        const std::uint32_t i = find_message(r, psn);
        if (i != no_index && messages_[i].read && messages_[i].got != messages_[i].packets()) {
          acknowledge_before(c, r, messages_[i].first_psn);
          return;
        }
      }
      acknowledge_before(c, r, (psn + 1) & 0xffffff);
      return;
    }
    case response_kind::rnr: {
      ++rnr_naks_;
      ++diagnostics_[diag_rnr];
      c.receives_told = 0;
      if (r.rnr_wait || !acknowledge_before(c, r, psn)) return;
      if (c.rnr_retry_limit != unlimited_rnr_retries) {
        if (c.rnr_retries_left == 0) {
          const std::uint32_t i = find_message(r, psn);
          if (i != no_index) fail(c, r, i, syndrome::rnr_retry_exceeded, vendor_rnr, psn);
          return;
        }
        --c.rnr_retries_left;
      }
      r.rnr_wait = true;
      rewind(c, r, psn);
      // What is on its way behind that packet may be answered with sequence NAKs, which can come after the wait. It is
      // sent again from there on: such a NAK is no new loss. One that is gets noticed by the timer.
      r.retrying = distance(psn, r.sent_before) > 1;
      timers_.start(qps_, r, now(), domain().cycles(rnr_unit_ps * rnr_timer_10us[p.aeth.syndrome & 0x1f]));
      return;
    }
    case response_kind::nak:
      ++naks_;
      return handle_nak(c, r, psn, p.aeth.syndrome);
    default:
      ++not_a_response_;
      return;
  }
}

void requester::handle_nak(context& c, qp_runtime& r, std::uint32_t psn, std::uint8_t code) {
  if (code == sequence_error) {
    ++diagnostics_[diag_out_of_sequence];
    if (!acknowledge_before(c, r, psn)) return;
    if (!r.rnr_wait) retry(c, r, psn);  // else of packets behind the one that was not ready: the timer decides
    return;
  }
  if (!acknowledge_before(c, r, psn)) return;
  const std::uint32_t i = find_message(r, psn);
  if (i == no_index) return;
  for (const refusal& x : refusals)
    if (x.code == code) return fail(c, r, i, x.completion, x.vendor, psn);
  fail(c, r, i, syndrome::bad_response, 0, psn);
}

// All packets before `psn` have arrived. False: there is a READ among them whose data has not, so responses are lost
// and the READ is asked for again.
bool requester::acknowledge_before(context& c, qp_runtime& r, std::uint32_t psn) {
  if (c.rd_outstanding != 0) {
    for (std::uint32_t i = r.head; i != no_index; i = messages_[i].next) {
      const message& m = messages_[i];
      if (m.local) continue;
      if (distance(m.first_psn, psn) - 1 >= half_window) break;  // begins at psn or later
      if (!m.read || m.got == m.packets()) continue;
      const std::uint32_t missing = (m.first_psn + m.got) & 0xffffff;
      if (distance(missing, psn) - 1 >= half_window) break;
      progress(c, r, missing);
      if (!r.rnr_wait) {
        r.reads.lost(config_.reads_after_loss);
        retry(c, r, missing);
      }
      return false;
    }
  }
  progress(c, r, psn);
  return true;
}

// Moves the oldest unacknowledged PSN forward.
void requester::progress(context& c, qp_runtime& r, std::uint32_t unacked) {
  if (unacked == c.unacked_psn || distance(c.unacked_psn, unacked) >= half_window) return;
  c.unacked_psn = unacked;
  if (r.resends && distance(unacked, r.sent_before) - 1 >= half_window - 1) r.resends = false;
  c.retries_left = c.retry_limit;
  c.rnr_retries_left = c.rnr_retry_limit;
  r.retrying = false;
  r.extra_retries = 0;
  if (!r.rnr_wait) {
    timers_.stop(qps_, r, now());
    start_timer(c, r);
  }
  if (complete(c, messages_[r.head])) drain_.push(qps_, r);
  wake_stalled(r);
}

// Answers to what was asked for before the requester went back are on their way, and that to the repeated request comes
// behind them: to ask once more would only make the peer later. Each of them counts once, so that this has an end.
void requester::still_answering(context& c, qp_runtime& r, std::uint32_t psn) {
  if (!r.retrying || r.rnr_wait || r.failing || distance(r.heard_psn, psn) - 1 >= half_window) return;
  r.heard_psn = psn;
  timers_.stop(qps_, r, now());
  start_timer(c, r);
}

// Sends again from `psn` on, once until something new is acknowledged or the timer expires.
void requester::retry(context& c, qp_runtime& r, std::uint32_t psn) {
  if (r.retrying) return;
  const bool extra = c.retry_limit == most_retries && r.extra_retries < config_.extra_retries;
  if (c.retries_left == 0 && !extra) {
    const std::uint32_t i = find_message(r, psn);
    if (i != no_index) fail(c, r, i, syndrome::retry_exceeded, vendor_retry, psn);
    return;
  }
  if (c.retries_left != 0)
    --c.retries_left;
  else
    ++r.extra_retries;
  r.retrying = true;
  rewind(c, r, psn);
  timers_.stop(qps_, r, now());
  start_timer(c, r);
  resume(r);
}

void requester::start_timer(context& c, qp_runtime& r) {
  if (qp_timers::is_on(r) || !icm::is_reliable(c.type) || c.ack_timeout == 0) return;
  if (c.unacked_psn == c.next_psn && !r.retrying) return;
  if (limiter_.any() && nothing_asked(c, r)) return;
  timers_.start(qps_, r, now(), timeout_unit_ << std::min<unsigned>(c.ack_timeout, 31));
}

// One that has ended at a time.
void requester::run_timers() {
  if (timers_.earliest() > now()) return;
  if (!timers_engine_.is_free()) return timers_engine_.await();
  const std::uint32_t qpn = timers_.expired(qps_, now());
  if (qpn == no_index) return;
  qp_runtime& r = qps_[qpn];
  context* c = nullptr;
  const bool stopped = r.halted || r.halting;
  const auto found = stopped ? decltype(contexts_)::result::refused : contexts_.lookup(qpn, c);
  if (found == decltype(contexts_)::result::pending) return;  // and looks again at the next edge
  timers_.stop(qps_, r, now());
  if (found == decltype(contexts_)::result::hit && c->qpn == qpn) {
    time_out(*c, r);
    contexts_.mark_dirty(qpn);
  }
  timers_engine_.start(config_.timers.expiry_cycles);
}

void requester::time_out(context& c, qp_runtime& r) {
  if (r.rnr_wait) {
    r.rnr_wait = false;
    if (c.ack_timeout == 0) r.retrying = false;  // only a NAK could tell of a loss
    resume(r);
    return;
  }
  if (r.head == no_index || c.state == icm::qp_state::error) return;
  const std::uint32_t i = find_message(r, c.unacked_psn);
  if (i == no_index || messages_[i].syndrome != 0) return;
  ++timeouts_;
  ++diagnostics_[diag_timeout];
  r.retrying = false;
  r.reads.lost(config_.reads_after_loss);
  retry(c, r, c.unacked_psn);
}

bool requester::handle_read_response(context& c, qp_runtime& r, payload::frame_ptr& f) {
  const wire::packet& p = f->packet;
  const std::uint32_t psn = p.bth.psn.value();
  const std::uint32_t i = find_message(r, psn);
  if (i == no_index) {
    ++stray_responses_;
    return true;
  }
  if (!messages_[i].read || messages_[i].atomic) {
    fail(c, r, i, syndrome::bad_response, 0, psn);
    return true;
  }
  message& m = messages_[i];
  const std::uint32_t place = distance(m.first_psn, psn);
  if (place < m.got) {
    ++duplicate_responses_;
    return true;
  }
  // Lost responses, of this READ or of an earlier one: ask again.
  if (!acknowledge_before(c, r, psn)) {
    still_answering(c, r, psn);
    return true;
  }
  const wire::opcode_traits& t = wire::traits(p.bth.opcode);
  const std::uint32_t mtu = mtu_of(c);
  const bool last = psn == m.last_psn;
  const std::uint32_t offset = place * mtu;
  const std::uint32_t expected = last ? m.length - offset : mtu;
  // An answer begins with FIRST or ONLY, at the packet that was asked for last, and nowhere else. That to a repeated
  // request of the rest may also go on with MIDDLE or LAST (adapter data plane C.7.3).
  const bool out_of_order = t.first ? place != m.asked_from : place == 0;
  const bool bad = out_of_order || p.payload_length != expected || t.last != last ||
                   (t.aeth && kind_of(p.aeth.syndrome) != response_kind::ack);
  if (bad) {
    fail(c, r, i, syndrome::bad_response, 0, psn);
    return true;
  }
  if (t.aeth) take_receives(c, r, psn, p.aeth);
  ++m.got;
  if (last) r.reads.came(most_reads(c));
  if (p.payload_length != 0) scatter_payload(c, m, i, f, offset);
  progress(c, r, (psn + 1) & 0xffffff);
  return true;
}

// The original value goes to the scatter list in the byte order of the host (adapter data plane C.6): little-endian.
void requester::handle_atomic_response(context& c, qp_runtime& r, payload::frame_ptr& f) {
  wire::packet& p = f->packet;
  const std::uint32_t psn = p.bth.psn.value();
  const std::uint32_t i = find_message(r, psn);
  if (i == no_index) {
    ++stray_responses_;
    return;
  }
  if (!messages_[i].atomic) return fail(c, r, i, syndrome::bad_response, 0, psn);
  message& m = messages_[i];
  if (m.got != 0) {
    ++duplicate_responses_;
    return;
  }
  if (!acknowledge_before(c, r, psn)) return still_answering(c, r, psn);
  if (kind_of(p.aeth.syndrome) != response_kind::ack) return fail(c, r, i, syndrome::bad_response, 0, psn);
  take_receives(c, r, psn, p.aeth);
  // The answer's last header becomes its payload.
  p.payload_offset = static_cast<std::uint16_t>(p.payload_offset - atomic_bytes);
  p.payload_length = atomic_bytes;
  std::uint8_t* value = f->data() + p.payload_offset;
  for (unsigned b = 0; b < atomic_bytes; ++b) value[b] = static_cast<std::uint8_t>(p.atomic_original >> (8 * b));
  ++m.got;
  r.reads.came(most_reads(c));
  scatter_payload(c, m, i, f, 0);
  progress(c, r, (psn + 1) & 0xffffff);
}

// A response packet with payload that begins at byte `offset` of its message.
void requester::scatter_payload(const context& c, message& m, std::uint32_t index, payload::frame_ptr f,
                                std::uint32_t offset) {
  scatter_job j;
  j.frame = std::move(f);
  j.qpn = c.qpn;
  j.pd = c.pd;
  j.message = index;
  j.generation = m.generation;
  j.list = m.scatter;
  j.offset = offset;
  j.reserved_lkey = reserved_lkey_;
  j.function = c.function;
  j.reserved_key = (c.flags & icm::requester_flag_reserved_lkey) != 0;
  scatters_.add_user(m.scatter);
  ++m.writes;
  ++qps_[c.qpn].jobs;
  scatter_out.push(std::move(j));
}

// One report per edge.
void requester::take_scattered() {
  if (!scatter_in.can_pop()) return;
  const scatter_done d = scatter_in.pop();
  qp_runtime& r = qps_[d.qpn];
  --r.jobs;
  if (scatters_.remove_user(d.list) && !room_.empty()) resume(room_.pop(qps_));
  message& m = messages_[d.message];
  if (m.generation != d.generation) return;  // given up meanwhile
  --m.writes;
  if (d.failed && m.syndrome == 0) {
    m.syndrome = syndrome::local_protection;
    r.failing = true;
  }
  drain_.push(qps_, r);
}

}  // namespace rnic::transport
