// SPDX-License-Identifier: Apache-2.0
#include "model/transport/responder/admission.h"

#include <algorithm>
#include <utility>

#include "model/payload/frame_stream.h"
#include "model/sim/beats.h"
#include "model/transport/responder/rules.h"
#include "model/transport/transport_cr.h"
#include "model/wire/groups.h"

namespace rnic::transport {

namespace {
bool fetches(const payload::frame& f) {
  const wire::operation op = wire::operation_of(f.packet.bth.opcode);
  return !f.plain && (op == wire::operation::read_request || is_atomic(op));
}
}  // namespace

admission::admission(sim::clocked_block& owner, const responder_config& cfg, const responder_registers& registers,
                     const streams& in, flow_table& flows, const slot_table& slots, const place_lookup& places,
                     const receive_descriptors& receives, request_check& requests, ethernet_check& plain,
                     marked_packets& marked, read_engine_port& read_engine, drop_counters& drops,
                     sim::span_recorder& spans)
    : owner_(owner),
      config_(cfg),
      registers_(registers),
      in_(in),
      flows_(flows),
      slots_(slots),
      places_(places),
      receives_(receives),
      requests_(requests),
      plain_(plain),
      marked_(marked),
      read_engine_(read_engine),
      drops_(drops),
      spans_(spans),
      check_(owner, "check") {
  waiting_.reserve(cfg.flows);
}

void admission::announce(sim::statistics& to, const std::string& name) const {
  to.add(name + ".packets", counts_.packets);
  to.add(name + ".check_busy_cycles", counts_.check_cycles);
  to.add(name + ".read_stall_cycles", read_engine_.missing_cycles());
}

void admission::work() {
  if (waiting_.empty() && !comes()) return check_.idle();
  began_to_wait_ = taken_ = looked_ = false;
  if (check_.is_free())
    choose();
  else
    check_.await();
  if (read_waits()) read_engine_.ask(config_.read_cycles);
}

bool admission::comes() const { return in_.requests.can_pop() || in_.plain.can_pop() || in_.copies.can_pop(); }

void admission::choose() {
  if (!take_waiting()) {
    if (in_.plain.can_pop() || in_.copies.can_pop())
      take_in_turn();
    else if (in_.requests.can_pop())
      take_request();
  }
  // A packet that has begun to wait has freed nothing for the others that do: all are ticked by what they wait for.
  const bool comes_more = comes(), waits = !waiting_.empty();
  if (!check_.is_free() && (comes_more || (!began_to_wait_ && waits))) return check_.await();
  if (comes_more || waits)
    check_.blocked(held_up_by());
  else
    check_.idle();
}

/// What the packet that has waited for longest cannot go on without.
const char* admission::held_up_by() const {
  if (slots_.full()) return "slots";
  if (waiting_.empty()) return "queue pairs";
  const responder_flow& f = std::as_const(flows_)[waiting_.front()];
  if (f.ctx == nullptr) return "contexts";
  if (f.waits.head != no_link && fetches(*flows_.front(f)))
    return places_.full_of_reads() ? "translation" : read_engine_.granted() ? "ports" : "read engine";
  return f.waits.receive ? "receive descriptors" : "ports";
}

/// A READ or an atomic is in front of the requests, or of a queue pair's packets that wait. What comes in front when a
/// request is taken is seen in the next cycle.
bool admission::read_waits() {
  if (!taken_ && in_.requests.can_pop() && fetches(*in_.requests.front())) return true;
  return std::any_of(waiting_.begin(), waiting_.end(), [this](std::uint16_t f) {
    const responder_flow& flow = std::as_const(flows_)[f];
    return flow.waits.head != no_link && fetches(*flows_.front(flow));
  });
}

bool admission::take_waiting() {
  for (std::size_t k = 0; k < waiting_.size(); ++k) {
    responder_flow& f = flows_[waiting_[k]];
    const auto leave = [&] {
      f.waits.listed = f.waits.grant = f.waits.receive = false;
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(k));
    };
    const bool known = flows_.resolve(f, context_user::check) == flow_table::found::known;
    if (f.waits.head == no_link) {  // its frames were dropped: no such QP, or it is in the error state
      leave();
      flows_.leave(f.number);
      owner_.wake_next();
      return true;
    }
    if (!known) continue;
    if (run(f, flows_.front(f)) == verdict::wait) {
      if (!looked_) continue;
      owner_.wake_next();  // for the others
      return true;
    }
    flows_.pop(f);
    if (f.waits.head == no_link) leave();
    start(f);
    return true;
  }
  return false;
}

bool admission::take_request() {
  payload::frame_ptr& front = in_.requests.front();
  if (!admit(front, destination(*front))) return false;
  in_.requests.pop();
  taken_ = true;
  return true;
}

/// Of a datagram to a group, for the queue pair that multicast has put into it.
bool admission::take_copy() {
  payload::frame_ptr& front = in_.copies.front();
  if (!admit(front, front->packet.bth.dest_qp)) return false;
  in_.copies.pop();
  return true;
}

bool admission::take_plain() {
  payload::frame_ptr& front = in_.plain.front();
  if (!spread_ && !plain_.spread(*front)) return false;
  spread_ = true;
  if (!admit(front, front->packet.bth.dest_qp)) return false;
  in_.plain.pop();
  spread_ = false;
  return true;
}

/// One that cannot be taken now does not hold up the others.
bool admission::take_in_turn() {
  const bool waits[] = {in_.requests.can_pop(), in_.copies.can_pop(), in_.plain.can_pop()};
  for (unsigned k = 0; k != 3; ++k) {
    const unsigned kind = (turn_ + k) % 3;
    if (!waits[kind]) continue;
    if (kind == 0 ? take_request() : kind == 1 ? take_copy() : take_plain()) {
      turn_ = (kind + 1) % 3;
      return true;
    }
    if (looked_) {
      owner_.wake_next();  // for the others
      return true;
    }
  }
  return false;
}

/// Checks a frame for a QP, lets it wait, or drops it. False: no place for it now.
bool admission::admit(payload::frame_ptr& frame, std::uint32_t qpn) {
  if (frame->plain)
    payload::expect_byte(*frame, std::max(frame->length, 1u) - 1, config_.bytes_per_cycle, owner_.edge(), owner_);
  else
    payload::expect_packet(*frame, config_.bytes_per_cycle, owner_.edge(), owner_);
  std::uint16_t i = flows_.find(qpn);
  if (qpn == 0 || flows_.refuses(qpn, i)) {
    ++(qpn == 0 ? drops_.no_qp : drops_.halted);
    check_.start(1);
    return true;
  }
  if (i == no_link) i = flows_.open(qpn);
  if (i == no_link) return false;  // some QP must leave first: that happens in our tick
  responder_flow& f = flows_[i];
  using found = flow_table::found;
  const found context = flows_.find_context(f, context_user::check);
  if (context == found::no_port) return false;
  if ((context == found::known || context == found::read) && f.waits.head == no_link) {
    if (!flows_.may_access(f, context_user::check)) return false;
    if (run(f, frame) == verdict::done) {
      start(f);
      return true;
    }
  }
  if (context == found::unknown) {
    ++drops_.no_qp;
    check_.start(1);
    flows_.leave(i);
    return true;
  }
  if (!flows_.has_room_to_wait()) return false;  // one of the frames that wait goes on in our tick
  if (context == found::read && flows_.may_access(f, context_user::check)) flows_.access(f, context_user::check);
  wait(f, std::move(frame));
  check_.start(1);
  return true;
}

void admission::wait(responder_flow& f, payload::frame_ptr frame) {
  began_to_wait_ = true;
  flows_.wait(f, std::move(frame));
  if (f.waits.listed) return;
  f.waits.listed = true;
  waiting_.push_back(f.number);
}

/// A packet was checked.
void admission::start(responder_flow& f) {
  check_.start(cost_);
  counts_.check_cycles += cost_;
  flows_.leave(f.number);
}

verdict admission::run(responder_flow& f, payload::frame_ptr& frame) {
  if (slots_.full() || !flows_.may_access(f, context_user::check)) return verdict::wait;
  const wire::opcode_traits& t = wire::traits(frame->packet.bth.opcode);
  const bool read = fetches(*frame);
  const sim::span_id span = t.last ? frame->span : 0;
  if (span != 0 && !f.waits.context && !f.waits.grant && !f.waits.receive)
    spans_.wait_until(span, owner_.name(), "check engine", owner_.domain().edge_time(check_.free_at()),
                      sim::wait::arbitration);
  if (read && places_.full_of_reads()) return verdict::wait;  // the address ticks us
  if (read && !read_engine_.granted()) {                      // and so does the grant
    if (!f.waits.grant) leave_context(f, span);
    f.waits.grant = true;
    return verdict::wait;
  }
  const unsigned interval = interval_of(*f.ctx, *frame, read);
  const bool plain = frame->plain, marked = marked_.answers(*frame);
  if (marked) kept_ = {frame->packet, frame->port, frame->gid_index};  // execution may take the frame away
  const std::uint32_t bytes = frame->length;
  const std::uint8_t counter = f.ctx->dest.counter_index;
  const std::uint64_t steps = receives_.steps(), refusals = receives_.refusals();
  if ((plain ? plain_.check(f, frame) : requests_.check(f, frame)) == verdict::wait) {
    looked_ = receives_.steps() != steps;
    if (looked_) flows_.access(f, context_user::check);
    if (receives_.refusals() != refusals && !f.waits.receive) {
      leave_context(f, span);
      f.waits.receive = true;
    }
    return verdict::wait;
  }
  if (marked && requests_.passed()) tell_marked(f);
  if (read) read_engine_.use(f.waits.context ? config_.read_miss_cycles : 0);
  if (traffic_ != nullptr && (plain ? plain_.passed() : requests_.passed())) traffic_->add(counter, bytes);
  ++counts_.packets;
  flows_.access(f, context_user::check);
  flows_.count_use(f);
  cost_ = interval;
  if (f.waits.grant)
    spans_.leave(span, owner_.name(), "read engine", owner_.now_ps(), sim::wait::arbitration);
  else if (f.waits.receive)
    spans_.leave(span, owner_.name(), "receive descriptor", owner_.now_ps(), sim::wait::descriptor_fetch);
  else
    leave_context(f, span);
  f.waits.context = f.waits.grant = f.waits.receive = false;
  return verdict::done;
}

/// The packet under check was marked, and one for this queue pair.
void admission::tell_marked(const responder_flow& f) {
  const wire::packet& p = kept_.packet;
  const bool datagram = wire::transport_of(p.bth.opcode) == wire::transport::ud;
  marked_.tell(f.qpn, p, kept_.port, kept_.gid_index, datagram ? p.deth.src_qp : f.ctx->remote_qpn);
}

void admission::leave_context(const responder_flow& f, sim::span_id span) {
  spans_.leave(span, owner_.name(), "context", owner_.now_ps(),
               f.waits.context ? sim::wait::context_miss : sim::wait::none);
}

unsigned admission::interval_of(const icm::responder_context& ctx, const payload::frame& frame, bool read) const {
  const unsigned payload = frame.packet.payload_length;
  const wire::operation op = wire::operation_of(frame.packet.bth.opcode);
  const auto beats = static_cast<unsigned>(sim::beats_of(payload, config_.bytes_per_cycle));
  const bool receives =
      is_send(op) || op == wire::operation::write_last_immediate || op == wire::operation::write_only_immediate;
  const unsigned with_list = config_.receive_cycles, without = config_.receive_header_cycles;
  const unsigned base = read                                             ? config_.read_cycles
                        : !receives                                      ? config_.write_cycles
                        : payload == 0                                   ? without
                        : !frame.plain && goes_inline(ctx, frame.packet) ? std::min(with_list, without + beats)
                                                                         : with_list;
  return std::max({1u, base, config_.beat_overhead_cycles + beats});
}

std::uint32_t admission::destination(const payload::frame& f) const {
  const std::uint32_t qpn = f.packet.bth.dest_qp, special = registers_.special_qp_base;
  // GSI packets of both encapsulations go to the port's main GSI QP (A.9.3). Of two ports that are one device to
  // software it is that of the first.
  const unsigned port = registers_.ports.checks_arrival() ? f.port : 0u;
  if (qpn == 1) return special == 0 ? 0 : special + cr::special_qp1 + port;
  // The wire does not know the numbers that special QPs have in the adapter. Number 0 has no place on Ethernet.
  const bool is_special = special != 0 && qpn - special < cr::special_qps;
  return qpn == wire::group_qpn || is_special ? 0 : qpn;
}

}  // namespace rnic::transport
