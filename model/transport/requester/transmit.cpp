// SPDX-License-Identifier: Apache-2.0
// Which packet starts next, what it is, and what follows it.
#include "model/transport/requester/transmit.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "model/sim/beats.h"
#include "model/transport/message_packets.h"
#include "model/transport/requester/ethernet_send.h"
#include "model/transport/requester/message_entry.h"
#include "model/transport/requester/mlx_wqe.h"
#include "model/transport/requester/rules.h"

namespace rnic::transport {

namespace {
constexpr std::uint32_t translation_bytes = 4096;  // what one translation covers

unsigned priority_of(const icm::requester_context& c, const datagram_address& a) {
  if (c.type != icm::service::ud && c.type != icm::service::mlx) return c.dest.priority & 7u;
  const bool tagged = c.type == icm::service::ud && a.vlan_present;
  return tagged ? a.vlan_tci >> 13 : a.priority & 7u;
}
}  // namespace

void transmit::announce(sim::statistics& to) const {
  to.add(owner_.name() + ".packets", packets_);
  to.add(owner_.name() + ".wqes", units_.wqes());
  to.add(owner_.name() + ".receive_waits", receive_waits_);
  to.add(owner_.name() + ".context_stall_cycles", miss_cycles_);
  to.add(owner_.name() + ".read_stall_cycles", ports_.read_engine.missing_cycles());
  units_.still().announce(to, owner_.name(), [this] { return owner_.now(); });
}

void transmit::work() {
  choose();
  if (units_.reading() != 0) ports_.read_engine.ask(config_.read_request_cycles);
}

void transmit::choose() {
  if (units_.sendable() == 0) return engine_.idle();
  if (!engine_.is_free()) return engine_.await();
  units_.release_due();
  const std::uint32_t up_to_last = static_cast<std::uint32_t>((std::uint64_t{2} << last_sent_) - 1);
  for (const std::uint32_t turn : {~up_to_last, up_to_last}) {
    for (std::uint32_t rest = units_.asking() & turn; rest != 0; rest &= rest - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(rest));
      if (!start(units_[i])) continue;
      last_sent_ = i;
      return note_hold_up();
    }
  }
  note_hold_up();
}

// Why nothing can start when the engine is free: what the first unit waits for that would, if all wait.
void transmit::note_hold_up() {
  if (units_.sendable() == 0) return engine_.idle();
  const std::uint32_t asking = units_.asking();
  if (asking != 0 && !engine_.is_free()) return;  // the engine will look at it
  const std::uint32_t of = asking != 0 ? asking : units_.sendable();
  engine_.blocked(units_[static_cast<unsigned>(__builtin_ctz(of))].held_up_by);
}

// What keeps the unit's packet from starting, before anything of it is looked at.
bool transmit::blocked(send_unit& u, unsigned priority) {
  const unsigned port = settings_.ports.port_of(u.ctx->dest);
  u.held_up_by = "gather";
  if (!ports_.packets.claim()) return true;
  if (ports_.pieces.free_slots() < gather_job::most_pieces) {
    owner_.wake_next();
    return true;
  }
  u.held_up_by = "rate limit";
  if (!pacing_.in_time(u)) return true;
  u.held_up_by = "egress credits";
  if (!credits_.available(port, priority)) {
    if (!credits_.await(u, port, priority)) give_up(u, standstill::egress);
    return true;
  }
  u.held_up_by = "read engine";
  if (u.wqe.fetches() && !ports_.read_engine.granted()) {
    if (u.at_wqe.awaits_grant == sim::never) u.at_wqe.awaits_grant = owner_.edge();
    return true;
  }
  u.held_up_by = "context memory";
  return !contexts_.claim(context_memory::transmit);
}

// False, for those who say that nothing has started.
bool transmit::give_up(send_unit& u, standstill why) {
  units_.give_up(u, why);
  return false;
}

bool transmit::start(send_unit& u) {
  context& c = *u.ctx;
  qp_runtime& r = qps_[u.grant.qpn];
  if (r.must_stop() || !u.at_wqe.current || u.at_wqe.index != c.next_wqe || icm::flushes(c.state)) {
    units_.give_back(u);
    return false;
  }
  const unsigned priority = priority_of(c, u.wqe.address);
  if (blocked(u, priority)) return false;
  u.held_up_by = "messages and scatters under way";
  if (u.at_wqe.message == no_index && !open_message(u)) return false;
  const bool read = u.wqe.fetches();
  const std::uint32_t packets = read ? packets_of(u.wqe.length - c.message_offset, packet_bytes(c, u.wqe)) : 1;
  u.held_up_by = "packets under way";
  if (!window_open(c, packets)) return give_up(u, standstill::packets);
  const bool waited = u.credit_since != sim::never;
  contexts_.access_pinned(context_memory::transmit);
  credits_.use(u, settings_.ports.port_of(c.dest), priority);

  const packet_place place = place_of_next(c, u.wqe, packets);
  unsigned pieces = 0;
  ports_.packets.push_made([&](gather_job& job) {
    describe(u, place, job);
    build(u, job, place, priority);
    mark(u, place, job.frame->span, waited);
    departures_.started(r, job.last_local);
    pieces = job.pieces;
  });
  if (config_.translation_blocks) u.translating += pieces;
  ++packets_;

  engine_.start(std::max({1u, interval_of(u, place), pieces}));
  // What a unit does for a READ goes on while that waits for its turn at the READ engine.
  const sim::cycle_t grant_since = std::exchange(u.at_wqe.awaits_grant, sim::never);
  if (u.at_wqe.started == sim::never) u.at_wqe.started = std::min(owner_.edge(), grant_since);
  after_packet(u, place.length, packets);
  timers_.sent(c, r, place.psn, place.ack_request);
  if (units_.sendable() != 0) engine_.await();
  return true;
}

packet_place transmit::place_of_next(const context& c, const send_wqe& wqe, std::uint32_t packets) const {
  const std::uint32_t left = wqe.length - c.message_offset, mtu = packet_bytes(c, wqe);
  const bool read = wqe.fetches();
  packet_place place;
  place.psn = next_psn(c);
  place.offset = c.message_offset;
  place.length = read ? left : std::min(left, mtu);
  place.first = c.message_offset == 0 || read;
  place.last = read || left <= mtu;
  const std::uint32_t interval_mask = (1u << std::min<unsigned>(c.ack_request_log, 23)) - 1;
  const bool window_ends = next_psn(c).since(unacked_psn(c)) + packets >= config_.max_unacked_packets;
  place.ack_request =
      icm::is_reliable(c.type) && (place.last || (place.psn.value() & interval_mask) == interval_mask || window_ends);
  return place;
}

// Of a message that is followed: its first packet starts now, or this one behind others of it.
void transmit::mark(send_unit& u, const packet_place& place, sim::span_id span, bool waited) {
  if (u.at_wqe.awaits_grant != sim::never)
    spans_.leave(span, owner_.name(), "read engine", owner_.now_ps(), sim::wait::arbitration);
  if (span == 0) return;
  const bool behind = !place.first && u.at_wqe.started != sim::never;  // packets of its message
  const sim::time_ps first = behind ? owner_.domain().edge_time(u.at_wqe.started) : owner_.now_ps();
  const sim::wait why = waited ? sim::wait::arbitration : sim::wait::none;
  spans_.leave(span, owner_.name(), "transmit", first, behind ? sim::wait::none : why);
  if (behind) spans_.leave(span, owner_.name(), "packets", owner_.now_ps(), waited ? why : sim::wait::bytes);
}

// What gather is told of the packet, without its headers: all of the job, which is one of before.
void transmit::describe(const send_unit& u, const packet_place& place, gather_job& job) {
  const context& c = *u.ctx;
  job.frame = frames_.get();
  job.number = next_packet_++;
  job.qpn = u.grant.qpn;
  job.pd = c.pd;
  job.message = u.at_wqe.message;
  job.generation = messages_[u.at_wqe.message].generation;
  job.psn = place.psn;
  job.last_local = place.last && !icm::is_reliable(c.type);
  job.reserved_lkey = settings_.reserved_lkey;
  job.reserved_key = (c.flags & icm::requester_flag_reserved_lkey) != 0;
  job.function = c.function;
  job.counter = c.dest.counter_index;
  job.unit = static_cast<std::uint8_t>(units_.number_of(u));
  (place.last ? job.frame->span : job.frame->part_of) = u.span;
  job.plain = c.type == icm::service::ethernet;
  job.pieces = 0;
  job.tables = job.syndrome = 0;
}

// What its headers will say, and its payload or where that is.
void transmit::build(send_unit& u, gather_job& job, const packet_place& place, unsigned priority) {
  const context& c = *u.ctx;
  const unsigned port = settings_.ports.port_of(c.dest);
  const bool special = c.type == icm::service::mlx;
  if (job.plain) {
    job.source = {};
    begin_ethernet(u, job, place, settings_.udp_port);
  } else if (!special) {
    begin_request(*job.frame, c, u.wqe, place, settings_.udp_port);
  }
  pacing_.started(u, job.frame->length);
  job.frame->priority = static_cast<std::uint8_t>(priority);
  job.frame->port = static_cast<std::uint8_t>(port);
  job.tables = static_cast<std::uint8_t>(settings_.ports.tables_of(c.dest));
  if (!job.plain && !special) pacing_.note_flow(u.grant.qpn, *job.frame);
  const std::uint32_t headers = job.plain ? u.wqe.ethernet.header_bytes : 0;
  if (!u.wqe.fetches()) hand_pieces(u, job, headers, headers + place.length);
  if (special && !open_special_frame(*job.frame, c, u.wqe, settings_.udp_port))
    job.syndrome = syndrome::local_qp_operation;
  if (!job.plain) job.source = special ? source_of_special(*job.frame) : source_of(c, u.wqe);
}

// For how long the packet has the engine.
unsigned transmit::interval_of(send_unit& u, const packet_place& place) {
  const unsigned stall =
      std::exchange(u.stall, 0);  // for what was missing of the context: nothing goes on under a miss
  miss_cycles_ += stall;
  if (u.wqe.fetches()) {
    ports_.read_engine.use(stall);
    return config_.read_request_cycles;
  }
  if (u.wqe.all_inline)
    return stall + std::max<unsigned>(place.length == 0 ? config_.empty_cycles : config_.inline_cycles,
                                      place.first ? u.at_wqe.taking : 0);
  const auto stream = static_cast<unsigned>(sim::beats_of(place.length, config_.datapath_bytes));
  return stall + (place.first ? config_.gather_cycles : config_.continue_cycles) + stream;
}

// Counts of PSNs are bounded so that old and new ones can be told apart.
bool transmit::window_open(const context& c, std::uint32_t packets) const {
  if (!icm::is_reliable(c.type)) return true;
  const std::uint32_t under_way = next_psn(c).since(unacked_psn(c));
  return under_way == 0 || under_way + packets <= config_.max_unacked_packets;
}

// First packet of a WQE in this turn: enters the message in the table, unless it was there before a retransmission.
bool transmit::open_message(send_unit& u) {
  context& c = *u.ctx;
  qp_runtime& r = qps_[u.grant.qpn];
  const std::uint32_t mtu = packet_bytes(c, u.wqe);
  if (c.message_offset > u.wqe.length || (c.message_offset == u.wqe.length && u.wqe.length != 0))
    u.wqe.error = syndrome::local_qp_operation;  // software changed a WQE under execution
  if (c.type == icm::service::ud && u.wqe.length > mtu) u.wqe.error = syndrome::local_length;
  if (c.type == icm::service::ethernet && u.wqe.error == 0)
    u.wqe.error = ethernet_fault(u, settings_.port_mtu[settings_.ports.port_of(c.dest)]);
  if (u.wqe.error != 0) {
    units_.give_back(u);
    return false;
  }
  u.at_wqe.started = sim::never;
  if (r.tail != no_index && messages_[r.tail].wqe_index == c.next_wqe) {
    u.at_wqe.message = r.tail;
    return true;
  }
  const bool read_blocked = u.wqe.fetches() && c.rd_outstanding >= r.reads.limit(most_reads(c));
  if ((u.wqe.fence && c.rd_outstanding != 0) || read_blocked) return give_up(u, standstill::reads);
  if (!messages_.has_room(r, u.wqe.fetches())) return give_up(u, standstill::messages);
  if (icm::is_reliable(c.type) && !may_use_receive(c, u.wqe)) {
    r.needs_receive = true;
    ++receive_waits_;
    return give_up(u, standstill::receives);
  }
  u.held_up_by = "message table";
  if (!messages_.may_append(message_table::by_transmit)) return false;
  u.at_wqe.message = enter_message(messages_, r, u, packets_of(u.wqe.length, mtu), next_packet_);
  return true;
}

// The packet's part of the scatter/gather list, to bytes `at` to `end` of its payload: a piece a cycle. Inline bytes
// are copied at once.
void transmit::hand_pieces(send_unit& u, gather_job& job, std::uint32_t at, std::uint32_t end) {
  std::uint8_t* payload = job.frame->buffer.data() + payload::frame::payload_start;
  while (at < end && u.at_wqe.segment < u.wqe.count) {
    const wqe_segment& s = u.wqe.segments[u.at_wqe.segment];
    const std::uint32_t n = std::min({end - at, s.length - u.at_wqe.segment_offset, translation_bytes});
    if (s.is_inline) {
      std::memcpy(payload + at, u.bytes.data() + s.address + u.at_wqe.segment_offset, n);
    } else {
      const auto place = static_cast<std::uint16_t>(at);
      ports_.pieces.push_after(gather_piece{s.address + u.at_wqe.segment_offset, n, s.lkey, place}, 0);
      ++job.pieces;
    }
    at += n;
    u.at_wqe.segment_offset += n;
    if (u.at_wqe.segment_offset == s.length) {
      ++u.at_wqe.segment;
      u.at_wqe.segment_offset = 0;
    }
  }
}

void transmit::after_packet(send_unit& u, std::uint32_t length, std::uint32_t packets) {
  context& c = *u.ctx;
  c.next_psn = (next_psn(c) + packets).value();
  u.turn_bytes += u.wqe.fetches() ? 0 : length;
  const bool ends = c.message_offset + length == u.wqe.length;
  if (!ends) {
    c.message_offset += length;
    if (u.turn_bytes >= config_.turn_bytes) {
      units_.end_turn(u, scheduler::report::kind::more);
      owner_.wake_next();
    }
    return;
  }
  c.message_offset = 0;
  c.next_wqe += u.at_wqe.strides;
  u.busy_until = u.at_wqe.started + (u.wqe.fetches() ? config_.read_wqe_cycles : config_.wqe_cycles);
  units_.executed(u);
  units_.give_back(u);
}

/// Without a credit one message may go all the same, to find out: its answer brings the next credits, and if there is
/// no receive for it, the answer is receiver-not-ready. So it is when nothing is under way: no answer would come any
/// more. Messages whose completion is not reported yet count as under way.
bool transmit::may_use_receive(const context& c, const send_wqe& wqe) const {
  if ((c.flags & icm::requester_flag_unlimited) != 0 || !config_.end_to_end_credits || !wqe.takes_receive())
    return true;
  return c.receives_used <= c.receives_told || c.unacked_psn == c.next_psn;
}

}  // namespace rnic::transport
