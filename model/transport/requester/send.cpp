// SPDX-License-Identifier: Apache-2.0
// Transmit engine: packets from WQEs, payload from host memory, frames in order.
#include <algorithm>
#include <cstring>
#include <utility>

#include "model/transport/requester/mlx_wqe.h"
#include "model/transport/requester/packet.h"
#include "model/transport/requester/requester.h"

namespace rnic::transport {

namespace {
std::uint32_t packets_of(std::uint32_t bytes, std::uint32_t mtu) {
  return bytes == 0 ? 1 : static_cast<std::uint32_t>((std::uint64_t{bytes} + mtu - 1) / mtu);
}
}  // namespace

void requester::start_packets() {
  if (sendable_ == 0) return;
  if (!engine_.is_free()) return engine_.await();
  if (uncredited_ != 0 && now() >= uncredited_until_) look_for_credit();
  const std::uint32_t up_to_last = static_cast<std::uint32_t>((std::uint64_t{2} << last_sent_) - 1);
  for (const std::uint32_t turn : {~up_to_last, up_to_last}) {
    for (std::uint32_t rest = sendable_ & ~uncredited_ & turn; rest != 0; rest &= rest - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(rest));
      if (!start_packet(units_[i])) continue;
      last_sent_ = i;
      return;
    }
  }
}

void requester::look_for_credit() {
  uncredited_ = 0;
  uncredited_until_ = sim::never;
}

// Room in an egress queue: the units that wait for it may try again, and one of the QPs that gave up.
void requester::return_credit(unsigned port, unsigned priority) {
  egress_pool& pool = egress_[port][priority];
  ++pool.credits;
  pool.moved = now();
  uncredited_ &= ~pool.awaited_by;
  if (!pool.parked.empty()) resume(pool.parked.pop(qps_));
}

// The last credit is gone: those that wait for one need not try.
void requester::use_credit(unit& u, unsigned port, unsigned priority) {
  egress_pool& pool = egress_[port][priority];
  forget_credit(u);
  if (--pool.credits != 0 || pool.awaited_by == 0) return;
  uncredited_ |= pool.awaited_by;
  uncredited_until_ = std::min(uncredited_until_, now() + config_.credit_wait_cycles);
  wake_at(now() + config_.credit_wait_cycles);
}

void requester::forget_credit(unit& u) {
  if (u.credit_since == sim::never) return;
  u.credit_since = sim::never;
  u.awaits->awaited_by &= ~mask_of(u);
}

// The unit looks at its QP again instead of sending.
void requester::give_back_to_unit(unit& u) {
  forget_credit(u);
  sendable_ &= ~mask_of(u);
  wake_next();
}

bool requester::start_packet(unit& u) {
  context& c = *u.ctx;
  if (must_stop(u) || !u.current || u.current_index != c.next_wqe || icm::flushes(c.state)) {
    give_back_to_unit(u);
    return false;
  }
  if (slot_count_ == slots_.size()) return false;
  if (limiter_.any() && !in_time(u)) return false;
  const std::uint8_t port = c.dest.port % ports;
  const bool special = c.type == icm::service::mlx;
  const bool tagged = c.type == icm::service::ud && u.wqe.address.vlan_present;
  const unsigned priority = c.type != icm::service::ud && !special ? c.dest.priority & 7u
                            : tagged                               ? u.wqe.address.vlan_tci >> 13
                                                                   : u.wqe.address.priority & 7u;
  if (egress_[port][priority].credits == 0) {
    wait_for_credit(u, port, static_cast<std::uint8_t>(priority));
    return false;
  }
  if (u.wqe.fetches() && !read_engine.is_free()) {
    uncredited_ |= mask_of(u);
    uncredited_until_ = std::min(uncredited_until_, read_engine.free_at());
    wake_at(read_engine.free_at());
    return false;
  }
  if (!source_is_ours(c)) return refuse_source(u);
  if (u.message_index == no_index && !open_message(u)) return false;

  const std::uint32_t mtu = packet_bytes(c, u.wqe);
  const std::uint32_t left = u.wqe.length - c.message_offset;
  const bool read = u.wqe.fetches();
  const std::uint32_t packets = read ? packets_of(left, mtu) : 1;
  if (!window_open(u, packets)) return false;
  use_credit(u, port, priority);

  packet_place place;
  place.psn = c.next_psn & 0xffffff;
  place.offset = c.message_offset;
  place.length = read ? left : std::min(left, mtu);
  place.first = c.message_offset == 0 || read;
  place.last = read || left <= mtu;
  const bool asks = icm::is_reliable(c.type);
  const std::uint32_t interval_mask = (1u << std::min<unsigned>(c.ack_request_log, 23)) - 1;
  const bool window_ends = distance(c.unacked_psn, c.next_psn) + packets >= config_.max_unacked_packets;
  place.ack_request = asks && (place.last || (place.psn & interval_mask) == interval_mask || window_ends);

  packet_slot& slot = slots_[(slot_head_ + slot_count_++) % slots_.size()];
  qp_runtime& r = qps_[u.grant.qpn];
  slot.frame = frames_.get();
  slot.qpn = u.grant.qpn;
  slot.pd = c.pd;
  slot.message_index = u.message_index;
  slot.generation = messages_[u.message_index].generation;
  slot.psn = place.psn;
  slot.last = place.last;
  slot.local = !icm::is_reliable(c.type);
  slot.reserved_key = (c.flags & icm::requester_flag_reserved_lkey) != 0;
  slot.cancelled = false;
  slot.failed = 0;
  slot.pieces = slot.asked = slot.pending = 0;
  slot.unit = static_cast<std::uint8_t>(&u - units_.data());
  slot.frame->span = place.last ? u.span : 0;
  slot.plain = c.type == icm::service::ethernet;
  if (slot.plain)
    begin_ethernet(u, slot, place);
  else if (!special)
    build_request(*slot.frame, c, u.wqe, place, *gids_[port], {udp_port_, config_.congestion.reaction.priorities});
  if (limiter_.any()) pace(u, slot.frame->length);
  slot.frame->priority = static_cast<std::uint8_t>(priority);
  slot.frame->port = port;
  const std::uint32_t headers = slot.plain ? u.wqe.ethernet.header_bytes : 0;
  if (!read) fill_slot(u, slot, headers, headers + place.length);
  if (special && !open_special_frame(*slot.frame, c, u.wqe, *gids_[port], udp_port_))
    slot.failed = syndrome::local_qp_operation;
  ++r.packets;
  ++packets_;

  const unsigned stream = place.length / config_.datapath_bytes + (place.length % config_.datapath_bytes != 0 ? 1 : 0);
  unsigned interval = config_.read_request_cycles;
  if (!read && u.wqe.all_inline)
    interval = config_.inline_cycles;
  else if (!read)
    interval = (place.first ? config_.gather_cycles : config_.continue_cycles) + stream;
  if (read) {
    read_engine.use(config_.read_request_cycles + (u.miss_uncharged ? config_.read_miss_cycles : 0));
    u.miss_uncharged = false;
  }
  engine_.start(std::max(1u, interval));
  if (u.wqe_start == sim::never) u.wqe_start = now();
  after_packet(u, place.length, packets);
  if (place.ack_request) r.asked_psn = c.next_psn;
  start_timer(c, r);
  if (sendable_ != 0) engine_.await();
  return true;
}

// The unit keeps its QP as long as the egress queue moves: others of that priority would fare no better. When it stands
// still, because it is paused for example, a QP of another priority may have the unit.
void requester::wait_for_credit(unit& u, std::uint8_t port, std::uint8_t priority) {
  egress_pool& pool = egress_[port][priority];
  if (u.credit_since == sim::never) {
    u.credit_since = now();
    u.awaits = &pool;
    pool.awaited_by |= mask_of(u);
    ++credit_stalls_;
  }
  awaits_credit_[port] = true;
  credit_in[port].set_quiet(false);
  const sim::cycle_t limit = std::max(u.credit_since, pool.moved) + config_.credit_wait_cycles;
  if (now() < limit) {
    uncredited_ |= mask_of(u);
    uncredited_until_ = std::min(uncredited_until_, limit);
    return wake_at(limit);
  }
  pool.parked.push(qps_, qps_[u.grant.qpn]);
  end_turn(u, report_kind::stalled);
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
bool requester::refuse_source(unit& u) {
  context& c = *u.ctx;
  qp_runtime& r = qps_[u.grant.qpn];
  if (r.tail != no_index && messages_[r.tail].wqe_index == c.next_wqe)
    fail(c, r, r.tail, syndrome::local_qp_operation, 0, c.next_psn);
  else
    u.wqe.error = syndrome::local_qp_operation;
  give_back_to_unit(u);
  return false;
}

// Counts of PSNs are bounded so that old and new ones can be told apart.
bool requester::window_open(unit& u, std::uint32_t packets) {
  const context& c = *u.ctx;
  if (!icm::is_reliable(c.type)) return true;
  const std::uint32_t under_way = distance(c.unacked_psn, c.next_psn);
  if (under_way == 0 || under_way + packets <= config_.max_unacked_packets) return true;
  end_turn(u, report_kind::stalled);
  wake_next();
  return false;
}

// First packet of a WQE in this turn: enters the message in the table, unless it was there before a retransmission.
bool requester::open_message(unit& u) {
  context& c = *u.ctx;
  qp_runtime& r = qps_[u.grant.qpn];
  const std::uint32_t mtu = packet_bytes(c, u.wqe);
  if (c.message_offset > u.wqe.length || (c.message_offset == u.wqe.length && u.wqe.length != 0))
    u.wqe.error = syndrome::local_qp_operation;  // software changed a WQE under execution
  if (c.type == icm::service::ud && u.wqe.length > mtu) u.wqe.error = syndrome::local_length;
  if (c.type == icm::service::ud && !source_is_ours(c, u.wqe.address)) u.wqe.error = syndrome::local_qp_operation;
  if (c.type == icm::service::ethernet && u.wqe.error == 0) u.wqe.error = ethernet_fault(u);
  if (u.wqe.error != 0) {
    give_back_to_unit(u);
    return false;
  }
  u.wqe_start = sim::never;
  if (r.tail != no_index && messages_[r.tail].wqe_index == c.next_wqe) {
    u.message_index = r.tail;
    return true;
  }
  const bool read_blocked = u.wqe.fetches() && c.rd_outstanding >= r.reads.limit(most_reads(c));
  if ((u.wqe.fence && c.rd_outstanding != 0) || read_blocked) {
    end_turn(u, report_kind::stalled);
    wake_next();
    return false;
  }
  if (!messages_.available() || (u.wqe.fetches() && !scatters_.available())) {
    room_.push(qps_, r);
    end_turn(u, report_kind::stalled);
    wake_next();
    return false;
  }
  if (icm::is_reliable(c.type) && !may_use_receive(c, u.wqe)) {
    r.needs_receive = true;
    ++receive_waits_;
    end_turn(u, report_kind::stalled);
    wake_next();
    return false;
  }
  u.message_index = append_message(c, r, u, packets_of(u.wqe.length, mtu));
  return true;
}

// Finds the segment that holds byte `offset` of the message.
void requester::seek(unit& u, std::uint32_t offset) {
  u.segment = 0;
  while (u.segment < u.wqe.count && offset >= u.wqe.segments[u.segment].length)
    offset -= u.wqe.segments[u.segment++].length;
  u.segment_offset = offset;
}

// The packet's part of the scatter/gather list, to bytes `at` to `end` of its payload; inline bytes are copied at once.
void requester::fill_slot(unit& u, packet_slot& slot, std::uint32_t at, std::uint32_t end) {
  slot.function = u.ctx->function;
  std::uint8_t* payload = slot.frame->buffer.data() + payload::frame::payload_start;
  while (at < end && u.segment < u.wqe.count) {
    const wqe_segment& s = u.wqe.segments[u.segment];
    const std::uint32_t n = std::min({end - at, s.length - u.segment_offset, translation_bytes});
    if (s.is_inline) {
      std::memcpy(payload + at, u.bytes.data() + s.address + u.segment_offset, n);
    } else {
      slot.place[slot.pieces] = static_cast<std::uint16_t>(at);
      slot.piece[slot.pieces++] = {s.address + u.segment_offset, n, s.lkey, false};
    }
    at += n;
    u.segment_offset += n;
    if (u.segment_offset == s.length) {
      ++u.segment;
      u.segment_offset = 0;
    }
  }
}

void requester::after_packet(unit& u, std::uint32_t length, std::uint32_t packets) {
  context& c = *u.ctx;
  c.next_psn = (c.next_psn + packets) & 0xffffff;
  u.turn_bytes += u.wqe.fetches() ? 0 : length;
  const bool ends = c.message_offset + length == u.wqe.length;
  if (!ends) {
    c.message_offset += length;
    if (u.turn_bytes >= config_.turn_bytes) {
      end_turn(u, report_kind::more);
      wake_next();
    }
    return;
  }
  c.message_offset = 0;
  c.next_wqe += u.strides;
  u.busy_until = u.wqe_start + (u.wqe.fetches() ? config_.read_wqe_cycles : config_.wqe_cycles);
  u.current = false;
  u.span = 0;
  ++u.turn_wqes;
  ++wqes_;
  give_back_to_unit(u);
}

void requester::ask_pieces() {
  while (slot_asking_ < slot_count_) {
    const unsigned index = (slot_head_ + slot_asking_) % static_cast<unsigned>(slots_.size());
    packet_slot& s = slots_[index];
    unsigned budget = config_.gather_pieces;
    for (; s.asked < s.pieces && !s.cancelled; ++s.asked) {
      if (budget-- == 0) return wake_next();
      if (!translate.request.claim()) return;
      const wqe_segment& piece = s.piece[s.asked];
      icm::translate_request t;
      if (s.reserved_key && piece.lkey == reserved_lkey_) t.what = icm::translate_request::kind::reserved_key;
      t.access = icm::access::local_read;
      t.key = piece.lkey;
      t.pd = s.pd;
      t.qpn = s.qpn;
      t.va = piece.address;
      t.length = piece.length;
      t.tag = make_tag(tag_kind::gather, index, s.place[s.asked]);
      t.span = s.frame->span;
      translate.request.push(t);
      s.asked_at = now();
      ++units_[s.unit].translating;
      ++s.pending;
    }
    ++slot_asking_;
    if (s.pending == 0) wake_next();
  }
}

// In order: a packet leaves the gather queue when its payload and that of all before it is complete.
void requester::finish_gather() {
  if (slot_asking_ == 0) return;
  packet_slot& s = slots_[slot_head_];
  if (s.pending != 0) return;
  if (s.cancelled) {
    ++cancelled_packets_;
    return_credit(s.frame->port, s.frame->priority);
    --qps_[s.qpn].packets;
    drop_slot();
    return;
  }
  if (s.failed != 0) {
    context* c = nullptr;
    const auto found = contexts_.lookup(s.qpn, c);
    if (found == decltype(contexts_)::result::pending) return;
    qp_runtime& r = qps_[s.qpn];
    const bool still_there = messages_[s.message_index].generation == s.generation;
    s.cancelled = true;  // of a message that was put back: it is executed again, and its new packets tell
    if (found == decltype(contexts_)::result::hit && still_there) {
      fail(*c, r, s.message_index, s.failed, 0, s.psn);
      contexts_.mark_dirty(s.qpn);
    }
    wake_next();
    return;
  }
  if (pipe_count_ == pipe_depth) return;
  if (s.plain && !finish_ethernet(s)) return block_ethernet(s);
  spans_.leave(s.frame->span, name(), "payload fetch", now_ps(),
               s.pieces != 0 ? sim::wait::payload_fetch : sim::wait::none);
  const bool local_end = s.last && s.local;
  if (pipe_count_ == 0 && !local_end && !s.plain && tx_out.can_push()) {
    spans_.leave(s.frame->span, name(), "requester", domain().edge_time(now() + config_.pipeline_cycles));
    --qps_[s.qpn].packets;
    tx_out.push_after(std::move(s.frame), config_.pipeline_cycles);
    drop_slot();
    return;
  }
  pipe_entry& p = pipe_[(pipe_head_ + pipe_count_++) % pipe_depth];
  p.ready = now() + config_.pipeline_cycles + (s.plain ? config_.ethernet_offload_cycles : 0);
  p.qpn = s.qpn;
  p.message_index = s.message_index;
  p.generation = s.generation;
  p.last_local = local_end;
  p.frame = std::move(s.frame);
  wake_at(std::max(p.ready, now() + 1));
  drop_slot();
}

void requester::drop_slot() {
  slots_[slot_head_].frame.reset();
  slot_head_ = (slot_head_ + 1) % static_cast<unsigned>(slots_.size());
  --slot_count_;
  --slot_asking_;
  if (slot_asking_ != 0) wake_next();
}

void requester::emit() {
  if (pipe_count_ == 0) return;
  pipe_entry& p = pipe_[pipe_head_];
  if (p.ready > now()) return wake_at(p.ready);
  if (!tx_out.claim()) return;
  qp_runtime& r = qps_[p.qpn];
  --r.packets;
  if (p.last_local && messages_[p.message_index].generation == p.generation) {
    messages_[p.message_index].sent = true;
    drain_.push(qps_, r);
  }
  spans_.leave(p.frame->span, name(), "requester", now_ps());
  tx_out.push(std::move(p.frame));
  pipe_head_ = (pipe_head_ + 1) % pipe_depth;
  --pipe_count_;
  if (pipe_count_ != 0) wake_at(std::max(pipe_[pipe_head_].ready, now() + 1));
  if (slot_asking_ != 0) wake_next();
}

// Packets of the QP whose frames are not complete yet will not leave.
void requester::cancel_packets(std::uint32_t qpn) {
  for (unsigned i = 0; i < slot_count_; ++i) {
    packet_slot& s = slots_[(slot_head_ + i) % slots_.size()];
    if (s.qpn == qpn) s.cancelled = true;
  }
}

// Those of message `from`, which fails, and of those that are forgotten. What is before it still leaves.
void requester::cancel_packets(std::uint32_t qpn, std::uint32_t from) {
  for (unsigned i = 0; i < slot_count_; ++i) {
    packet_slot& s = slots_[(slot_head_ + i) % slots_.size()];
    const bool stays = s.message_index != from && messages_[s.message_index].generation == s.generation;
    if (s.qpn == qpn && !stays) s.cancelled = true;
  }
}

}  // namespace rnic::transport
