// SPDX-License-Identifier: Apache-2.0
// Transmit engine: packets from WQEs, payload from host memory, frames in order.
#include <algorithm>
#include <cstring>
#include <utility>

#include "model/transport/message_packets.h"
#include "model/transport/requester/mlx_wqe.h"
#include "model/transport/requester/packet.h"
#include "model/transport/requester/requester.h"
#include "model/transport/requester/rules.h"

namespace rnic::transport {

void requester::start_packets() {
  if (units_.sendable() == 0) return engine_.idle();
  if (!engine_.is_free()) return engine_.await();
  units_.release_due();
  const std::uint32_t up_to_last = static_cast<std::uint32_t>((std::uint64_t{2} << last_sent_) - 1);
  for (const std::uint32_t turn : {~up_to_last, up_to_last}) {
    for (std::uint32_t rest = units_.asking() & turn; rest != 0; rest &= rest - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(rest));
      if (!start_packet(units_[i])) continue;
      last_sent_ = i;
      return note_hold_up();
    }
  }
  note_hold_up();
}

// Why nothing can start when the engine is free: what the first unit waits for that would, if all wait.
void requester::note_hold_up() {
  if (units_.sendable() == 0) return engine_.idle();
  const std::uint32_t asking = units_.asking();
  if (asking != 0 && !engine_.is_free()) return;  // the engine will look at it
  const std::uint32_t of = asking != 0 ? asking : units_.sendable();
  engine_.blocked(units_[static_cast<unsigned>(__builtin_ctz(of))].held_up_by);
}

// Room in an egress queue: the units that wait for it may try again, and one of the QPs that gave up.
void requester::return_credit(unsigned port, unsigned priority) {
  egress_pool& pool = egress_[port][priority];
  ++pool.credits;
  pool.moved = now();
  units_.release(pool.awaited_by);
  resume_parked(pool);
}

// The first of the QPs that gave up, unless it has been stopped since.
void requester::resume_parked(egress_pool& pool) {
  while (!pool.parked.empty()) {
    qp_runtime& r = pool.parked.pop(qps_);
    if (r.halting || r.halted) continue;
    return resumes_.resume(r);
  }
}

// The last credit is gone: those that wait for one need not try.
void requester::use_credit(send_unit& u, unsigned port, unsigned priority) {
  egress_pool& pool = egress_[port][priority];
  units_.forget_credit(u);
  if (--pool.credits != 0 || pool.awaited_by == 0) return;
  units_.hold(pool.awaited_by, now() + config_.credit_wait_cycles);
}

bool requester::start_packet(send_unit& u) {
  context& c = *u.ctx;
  if (must_stop(u) || !u.at_wqe.current || u.at_wqe.index != c.next_wqe || icm::flushes(c.state)) {
    units_.give_back(u);
    return false;
  }
  u.held_up_by = "gather";
  if (!packet_out.claim()) return false;
  if (piece_out.free_slots() < gather_job::most_pieces) {
    wake_next();
    return false;
  }
  u.held_up_by = "rate limit";
  if (limiter_.any() && !in_time(u)) return false;
  const std::uint8_t port = c.dest.port % ports;
  const bool special = c.type == icm::service::mlx;
  const bool tagged = c.type == icm::service::ud && u.wqe.address.vlan_present;
  const unsigned priority = c.type != icm::service::ud && !special ? c.dest.priority & 7u
                            : tagged                               ? u.wqe.address.vlan_tci >> 13
                                                                   : u.wqe.address.priority & 7u;
  u.held_up_by = "egress credits";
  if (egress_[port][priority].credits == 0) {
    wait_for_credit(u, port, static_cast<std::uint8_t>(priority));
    return false;
  }
  u.held_up_by = "read engine";
  if (u.wqe.fetches() && !read_engine.is_free()) {
    units_.hold(units_.mask_of(u), read_engine.free_at());
    return false;
  }
  if (!source_is_ours(c)) return refuse_source(u);
  u.held_up_by = "messages and scatters under way";
  if (u.at_wqe.message == no_index && !open_message(u)) return false;

  const std::uint32_t mtu = packet_bytes(c, u.wqe);
  const std::uint32_t left = u.wqe.length - c.message_offset;
  const bool read = u.wqe.fetches();
  const std::uint32_t packets = read ? packets_of(left, mtu) : 1;
  u.held_up_by = "packets under way";
  if (!window_open(u, packets)) return false;
  const bool waited = u.credit_since != sim::never;
  use_credit(u, port, priority);

  packet_place place;
  place.psn = next_psn(c).value();
  place.offset = c.message_offset;
  place.length = read ? left : std::min(left, mtu);
  place.first = c.message_offset == 0 || read;
  place.last = read || left <= mtu;
  const bool asks = icm::is_reliable(c.type);
  const std::uint32_t interval_mask = (1u << std::min<unsigned>(c.ack_request_log, 23)) - 1;
  const bool window_ends = next_psn(c).since(unacked_psn(c)) + packets >= config_.max_unacked_packets;
  place.ack_request = asks && (place.last || (place.psn & interval_mask) == interval_mask || window_ends);

  gather_job job;
  qp_runtime& r = qps_[u.grant.qpn];
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
  job.unit = static_cast<std::uint8_t>(units_.number_of(u));
  job.frame->span = place.last ? u.span : 0;
  job.plain = c.type == icm::service::ethernet;
  if (job.plain)
    begin_ethernet(u, job, place);
  else if (!special)
    build_request(*job.frame, c, u.wqe, place, *gids_[port],
                  {settings_.udp_port, config_.congestion.reaction.priorities});
  if (limiter_.any()) pace(u, job.frame->length);
  spans_.leave(job.frame->span, name(), "transmit", now_ps(), waited ? sim::wait::arbitration : sim::wait::none);
  job.frame->priority = static_cast<std::uint8_t>(priority);
  job.frame->port = port;
  const std::uint32_t headers = job.plain ? u.wqe.ethernet.header_bytes : 0;
  if (!read) hand_pieces(u, job, headers, headers + place.length);
  if (special && !open_special_frame(*job.frame, c, u.wqe, *gids_[port], settings_.udp_port))
    job.syndrome = syndrome::local_qp_operation;
  const unsigned pieces = job.pieces;
  hand_packet(u, r, std::move(job));

  const unsigned stream = place.length / config_.datapath_bytes + (place.length % config_.datapath_bytes != 0 ? 1 : 0);
  unsigned interval = config_.read_request_cycles;
  if (!read && u.wqe.all_inline)
    interval =
        std::max(place.length == 0 ? config_.empty_cycles : config_.inline_cycles, place.first ? u.at_wqe.taking : 0);
  else if (!read)
    interval = (place.first ? config_.gather_cycles : config_.continue_cycles) + stream;
  // The engines stand still for what was missing of the context: nothing goes on under a miss.
  if (read)
    read_engine.use(config_.read_request_cycles + u.stall);
  else
    interval += u.stall;
  u.stall = 0;
  engine_.start(std::max({1u, interval, pieces}));
  if (u.at_wqe.started == sim::never) u.at_wqe.started = now();
  after_packet(u, place.length, packets);
  if (place.ack_request) r.asked_psn = c.next_psn;
  timers_.start(c, r);
  if (units_.sendable() != 0) engine_.await();
  return true;
}

// The unit keeps its QP as long as the egress queue moves: others of that priority would fare no better. When it stands
// still, because it is paused for example, a QP of another priority may have the unit.
void requester::wait_for_credit(send_unit& u, std::uint8_t port, std::uint8_t priority) {
  egress_pool& pool = egress_[port][priority];
  if (u.credit_since == sim::never) {
    u.credit_since = now();
    u.awaits = &pool;
    pool.awaited_by |= units_.mask_of(u);
    ++credit_stalls_;
  }
  awaits_credit_[port] = true;
  credit_in[port].set_quiet(false);
  const sim::cycle_t limit = std::max(u.credit_since, pool.moved) + config_.credit_wait_cycles;
  if (now() < limit) {
    return units_.hold(units_.mask_of(u), limit);
  }
  pool.parked.push(qps_, qps_[u.grant.qpn]);
  units_.end_turn(u, report_kind::stalled);
  wake_next();
}

// The entry of the GID table that a connected QP's path names, looked at for each packet: it may change under traffic.
bool requester::source_is_ours(const context& c) const {
  if (!icm::is_reliable(c.type) && c.type != icm::service::uc) return true;
  const auto type = (c.dest.flags & icm::path_flag_roce_v2) != 0 ? gid::roce_type::v2 : gid::roce_type::v1;
  return gids_[c.dest.port % ports]->may_send(c.dest.gid_index, type, c.dest.remote_gid, c.function);
}

// That of an address vector, which is of the entry's version.
bool requester::source_is_ours(const context& c, const datagram_address& a) const {
  const gid::gid_table& gids = *gids_[c.dest.port % ports];
  return gids.may_send(a.gid_index, gids[a.gid_index].type, a.gid.data(), c.function);
}

// The message cannot be sent, or not to its end: a local error, as of an address vector without a source.
bool requester::refuse_source(send_unit& u) {
  context& c = *u.ctx;
  qp_runtime& r = qps_[u.grant.qpn];
  if (r.tail != no_index && messages_[r.tail].wqe_index == c.next_wqe)
    go_back_.fail(c, r, r.tail, syndrome::local_qp_operation, 0, next_psn(c));
  else
    u.wqe.error = syndrome::local_qp_operation;
  units_.give_back(u);
  return false;
}

// Counts of PSNs are bounded so that old and new ones can be told apart.
bool requester::window_open(send_unit& u, std::uint32_t packets) {
  const context& c = *u.ctx;
  if (!icm::is_reliable(c.type)) return true;
  const std::uint32_t under_way = next_psn(c).since(unacked_psn(c));
  if (under_way == 0 || under_way + packets <= config_.max_unacked_packets) return true;
  units_.end_turn(u, report_kind::stalled);
  wake_next();
  return false;
}

// First packet of a WQE in this turn: enters the message in the table, unless it was there before a retransmission.
bool requester::open_message(send_unit& u) {
  context& c = *u.ctx;
  qp_runtime& r = qps_[u.grant.qpn];
  const std::uint32_t mtu = packet_bytes(c, u.wqe);
  if (c.message_offset > u.wqe.length || (c.message_offset == u.wqe.length && u.wqe.length != 0))
    u.wqe.error = syndrome::local_qp_operation;  // software changed a WQE under execution
  if (c.type == icm::service::ud && u.wqe.length > mtu) u.wqe.error = syndrome::local_length;
  if (c.type == icm::service::ud && !source_is_ours(c, u.wqe.address)) u.wqe.error = syndrome::local_qp_operation;
  if (c.type == icm::service::ethernet && u.wqe.error == 0) u.wqe.error = ethernet_fault(u);
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
  if ((u.wqe.fence && c.rd_outstanding != 0) || read_blocked) {
    units_.end_turn(u, report_kind::stalled);
    wake_next();
    return false;
  }
  if (u.wqe.fetches() ? !messages_.available_for_read() : !messages_.available()) {
    messages_.await_room(r);
    units_.end_turn(u, report_kind::stalled);
    wake_next();
    return false;
  }
  if (icm::is_reliable(c.type) && !may_use_receive(c, u.wqe)) {
    r.needs_receive = true;
    ++receive_waits_;
    units_.end_turn(u, report_kind::stalled);
    wake_next();
    return false;
  }
  u.at_wqe.message = append_message(c, r, u, packets_of(u.wqe.length, mtu));
  return true;
}

// Finds the segment that holds byte `offset` of the message.
void requester::seek(send_unit& u, std::uint32_t offset) {
  u.at_wqe.segment = 0;
  while (u.at_wqe.segment < u.wqe.count && offset >= u.wqe.segments[u.at_wqe.segment].length)
    offset -= u.wqe.segments[u.at_wqe.segment++].length;
  u.at_wqe.segment_offset = offset;
}

// The packet's part of the scatter/gather list, to bytes `at` to `end` of its payload: a piece a cycle. Inline bytes
// are copied at once.
void requester::hand_pieces(send_unit& u, gather_job& job, std::uint32_t at, std::uint32_t end) {
  std::uint8_t* payload = job.frame->buffer.data() + payload::frame::payload_start;
  while (at < end && u.at_wqe.segment < u.wqe.count) {
    const wqe_segment& s = u.wqe.segments[u.at_wqe.segment];
    const std::uint32_t n = std::min({end - at, s.length - u.at_wqe.segment_offset, translation_bytes});
    if (s.is_inline) {
      std::memcpy(payload + at, u.bytes.data() + s.address + u.at_wqe.segment_offset, n);
    } else {
      const auto place = static_cast<std::uint16_t>(at);
      piece_out.push_after(gather_piece{s.address + u.at_wqe.segment_offset, n, s.lkey, place}, 0);
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

void requester::hand_packet(send_unit& u, qp_runtime& r, gather_job job) {
  if (config_.translation_blocks) u.translating += job.pieces;
  if (job.last_local) ++leaving_local_;
  ++leaving_;
  ++r.packets;
  ++packets_;
  packet_out.push(std::move(job));
  listen_to_gather();
}

// What has left ticks the requester only while somebody waits for it.
void requester::listen_to_gather() {
  if (leaving_ == 0) awaits_leaving_ = false;
  left_in.set_quiet(leaving_local_ == 0 && !awaits_leaving_);
}

void requester::after_packet(send_unit& u, std::uint32_t length, std::uint32_t packets) {
  context& c = *u.ctx;
  c.next_psn = (next_psn(c) + packets).value();
  u.turn_bytes += u.wqe.fetches() ? 0 : length;
  const bool ends = c.message_offset + length == u.wqe.length;
  if (!ends) {
    c.message_offset += length;
    if (u.turn_bytes >= config_.turn_bytes) {
      units_.end_turn(u, report_kind::more);
      wake_next();
    }
    return;
  }
  c.message_offset = 0;
  c.next_wqe += u.at_wqe.strides;
  u.busy_until = u.at_wqe.started + (u.wqe.fetches() ? config_.read_wqe_cycles : config_.wqe_cycles);
  u.at_wqe.current = false;
  u.span = 0;
  ++u.turn_wqes;
  ++wqes_;
  units_.give_back(u);
}

// Packets that have gone through gather and the transmit pipeline.
void requester::take_left() {
  if (!left_in.can_pop()) return;
  left_in.take_due([this](const gather_left& l) {
    packet_gone(l.qpn, l.last_local);
    if (l.last_local) message_left(l.message, l.generation, l.qpn);
  });
  listen_to_gather();
}

void requester::packet_gone(std::uint32_t qpn, bool last_local) {
  --leaving_;
  if (last_local) --leaving_local_;
  --qps_[qpn].packets;
}

void requester::message_left(std::uint32_t index, std::uint32_t generation, std::uint32_t qpn) {
  if (messages_[index].generation != generation) return;
  messages_[index].sent = true;
  messages_.may_complete(qps_[qpn]);
}

// Packets that do not leave, one per edge.
void requester::take_gather_events() {
  if (!gather_event_in.can_pop()) return;
  const gather_event& e = gather_event_in.front();
  using kind = gather_event::kind;
  if (e.what == kind::failed) {
    if (!verdict_out.claim() || !packet_failed(e)) return;
    verdict_out.push({});
  } else {
    ++(e.what == kind::blocked ? ethernet_blocked_ : cancelled_packets_);
    return_credit(e.port, e.priority);
    packet_gone(e.qpn, e.last_local);
    if (e.what == kind::blocked && e.last_local)
      message_left(e.message, e.generation, e.qpn);  // for software it was sent
    listen_to_gather();
  }
  gather_event_in.drop();
}

// Of a message that was put back: it is executed again, and its new packets tell. False: not now.
bool requester::packet_failed(const gather_event& e) {
  if (go_back_.busy(qps_[e.qpn])) return false;
  context* c = nullptr;
  const auto found = contexts_.lookup(e.qpn, c);
  if (found == decltype(contexts_)::result::pending) return false;
  if (found != decltype(contexts_)::result::hit || messages_[e.message].generation != e.generation) return true;
  go_back_.fail(*c, qps_[e.qpn], e.message, e.syndrome, 0, wire::psn_t(e.psn));
  contexts_.mark_dirty(e.qpn);
  return true;
}

// A unit stands still while an address that it needs is fetched.
void requester::take_addresses() {
  if (!address_in.can_pop()) return;
  address_in.take_due([this](const gather_address& a) {
    send_unit& u = units_[a.unit];
    u.busy_until += a.missed_for;
    if (--u.translating == 0) translating_ &= ~units_.mask_of(u);
  });
  address_in.set_quiet(translating_ == 0);
}

std::uint32_t requester::append_message(context& c, qp_runtime& r, const send_unit& u, std::uint32_t packets) {
  std::uint32_t index = no_index;
  message& m = messages_.append(r, index);
  const std::uint32_t sent = c.message_offset / packet_bytes(c, u.wqe);
  m.wqe_index = c.next_wqe;
  m.strides = static_cast<std::uint16_t>(u.at_wqe.strides);
  m.first_psn = next_psn(c) - sent;
  m.last_psn = m.first_psn + (packets - 1);
  m.length = u.wqe.length;
  m.first_packet = next_packet_;
  m.opcode = static_cast<std::uint8_t>(u.wqe.opcode);
  m.signalled = u.wqe.signalled;
  m.local = !icm::is_reliable(c.type);
  if (u.wqe.fetches() && u.wqe.error == 0) {
    m.got = m.asked_from = sent;
    messages_.append_read(c, r, index, u.wqe);
  }
  ++c.outstanding;
  m.takes_receive = icm::is_reliable(c.type) && u.wqe.takes_receive() && u.wqe.error == 0;
  if (m.takes_receive) ++c.receives_used;
  return index;
}

/// Without a credit one message may go all the same, to find out: its answer brings the next credits, and if there is
/// no receive for it, the answer is receiver-not-ready. So it is when nothing is under way: no answer would come any
/// more. Messages whose completion is not reported yet count as under way.
bool requester::may_use_receive(const context& c, const send_wqe& wqe) const {
  if ((c.flags & icm::requester_flag_unlimited) != 0 || !config_.end_to_end_credits || !wqe.takes_receive())
    return true;
  return c.receives_used <= c.receives_told || c.unacked_psn == c.next_psn;
}

}  // namespace rnic::transport
