// SPDX-License-Identifier: Apache-2.0
#include "model/transport/requester/gather.h"

#include <algorithm>
#include <utility>

#include "model/transport/requester/packet.h"

namespace rnic::transport {

namespace {
constexpr unsigned place_bits = 16;

sim::pipeline transmit_pipeline(unsigned source, const requester_config::transmit_stages& t, unsigned offload) {
  return {{"source gid", source}, {"path", t.path},     {"headers", t.headers},
          {"align", t.align},     {"offload", offload}, {"hand-over", t.hand_over}};
}
}  // namespace

gather::gather(std::string name, sim::clock_domain& domain, const requester_config& cfg,
               const gid::source_access& sources, withdrawals& withdrawn, sim::span_recorder& spans,
               sim::statistics& stats)
    : clocked_block(name, domain),
      translation_blocks_(cfg.translation_blocks),
      ect_priorities_(cfg.congestion.reaction.priorities),
      sources_(*this, sources, stats),
      withdrawn_(withdrawn),
      spans_(spans),
      pipeline_(transmit_pipeline(sources_.cycles(), cfg.transmit, 0)),
      plain_pipeline_(transmit_pipeline(sources_.cycles(), cfg.transmit, cfg.ethernet_offload_cycles)),
      slots_(cfg.gather_depth) {
  withdrawn_.bind_reader(*this);
  const std::pair<const char*, const std::uint64_t*> all[] = {{"packets", &packets_},
                                                              {"pieces", &pieces_},
                                                              {"bytes", &bytes_},
                                                              {"failed", &failed_},
                                                              {"withdrawn", &withdrawn_packets_},
                                                              {"translation_misses", &translation_misses_},
                                                              {"ethernet_frames", &ethernet_frames_}};
  for (const auto& [n, counter] : all) stats.add(this->name() + "." + n, *counter);
}

void gather::tick() {
  take_memory();
  leave();
  take_address();
  accept();
  ask();
  if (revoking_ || keys.revoke.can_pop()) revoke();
  ask_.waits_for(ask_held_up_by());
  read_.waits_for(read_held_up_by());
  leave_.waits_for(leave_held_up_by());
}

void gather::take_memory() {
  if (!dma.response.can_pop()) return;
  const pcie::dma_response d = dma.response.pop();
  slot& s = at(static_cast<std::uint32_t>(d.tag));
  --s.pending;
  if (d.status != pcie::dma_status::ok && s.syndrome == 0) s.syndrome = syndrome::local_protection;
}

bool gather::withdrawn(slot& s) {
  if (!s.dropped) s.dropped = withdrawn_.read(s.job.qpn, s.job.number, now());
  return s.dropped;
}

// In order: a packet leaves when its payload and that of all before it is there.
void gather::leave() {
  if (asking_ == first_slot_) return;
  slot& s = slots_.front();
  if (s.pending != 0 || stands(s)) return;
  if (s.dropped) {
    if (!tell(s, gather_event::kind::withdrawn)) return;
    ++withdrawn_packets_;
    return drop_slot();
  }
  if (!s.blocked) {
    if (!tx_out.claim() || !left_out.claim() || !look_up_source(s)) return;
    if (!s.blocked) leave_pipeline(s);
  }
  if (!s.blocked || tell(s, gather_event::kind::blocked)) drop_slot();
}

// False: not in this cycle, or it has none.
bool gather::look_up_source(slot& s) {
  payload::frame& f = *s.job.frame;
  const unsigned port = f.port % ports;
  if (!sources_.open(port)) {
    wake_next();
    return false;
  }
  const gid::source found = sources_.look_up(port, s.job.source);
  if (found.why != gid::refusal::none) {
    s.syndrome = syndrome::local_qp_operation;
    s.failed_at = now() + sources_.cycles();
    wake_at(s.failed_at);
    return false;
  }
  if (found.own_destination) f.loopback = payload::frame::loopback_only;
  if (s.job.source.checked)
    finish_request(f, s.job.source, found, ect_priorities_);
  else if (s.job.plain)
    s.blocked = !finish_ethernet(s, found);
  return true;
}

// True: it has failed, and the transmit engine does not know it yet. One that was withdrawn fails for nobody.
bool gather::stands(slot& s) {
  if (judging_) {
    if (!verdict_in.can_pop()) return true;
    verdict_in.drop();
    judging_ = false;
    s.dropped = true;
    return false;
  }
  if (withdrawn(s) || s.syndrome == 0) return false;
  if (now() < s.failed_at) return true;
  if (!tell(s, gather_event::kind::failed)) return true;
  ++failed_;
  judging_ = true;
  return true;
}

bool gather::tell(const slot& s, gather_event::kind what) {
  if (!event_out.claim()) return false;
  const gather_job& j = s.job;
  event_out.push(
      {what, s.syndrome, j.frame->port, j.frame->priority, j.last_local, j.qpn, j.message, j.generation, j.psn});
  return true;
}

void gather::leave_pipeline(slot& s) {
  gather_job& j = s.job;
  const sim::pipeline& stages = j.plain ? plain_pipeline_ : pipeline_;
  const sim::cycle_t cycles = stages.cycles();
  spans_.leave(j.frame->span, name(), "gather", now_ps(), j.pieces != 0 ? sim::wait::payload_fetch : sim::wait::none);
  stages.mark(spans_, j.frame->span, *this, now());
  left_out.push_after(gather_left{j.qpn, j.message, j.generation, j.last_local}, cycles);
  tx_out.push_after(std::move(j.frame), cycles);
  ++packets_;
}

const char* gather::leave_held_up_by() const {
  if (asking_ == first_slot_) return nullptr;
  const slot& s = slots_.front();
  if (s.pending != 0) return "payload";
  if (judging_) return verdict_in.can_pop() ? nullptr : "requester";
  if (s.syndrome != 0 && !s.dropped && now() < s.failed_at) return nullptr;  // the look-up is under way
  if (s.dropped || s.blocked || s.syndrome != 0) return event_out.can_push() ? nullptr : "requester";
  if (!tx_out.can_push()) return "icrc insert";
  if (!left_out.can_push()) return "requester";
  return sources_.open(s.job.frame->port % ports) ? nullptr : "gid table";
}

void gather::drop_slot() {
  leave_.start(1);
  slots_.front().job.frame.reset();
  slots_.drop();
  ++first_slot_;
  if (asking_ != first_slot_ && slots_.front().pending == 0) wake_next();
}

// The answer in front, which may be that of any piece: one read a cycle.
void gather::take_address() {
  if (!translate.response.can_pop()) return;
  const icm::translate_response& r = translate.response.front();
  slot& s = at(static_cast<std::uint32_t>(r.tag >> place_bits));
  const bool ok = r.status == icm::translate_status::ok;
  const unsigned reads = ok ? r.count : 0;
  const bool last = parts_ + 1 >= reads;
  if (last && translation_blocks_ && !address_out.claim()) return;
  if (parts_ != reads && !dma.request.claim()) return;
  read_.start(1);
  if (parts_ != reads) {
    const auto& part = r.segments[parts_];
    const std::uint32_t place = static_cast<std::uint16_t>(r.tag) + (parts_ == 0 ? 0 : r.segments[0].length);
    pcie::dma_request d;
    d.length = part.length;
    d.address = part.address;
    d.tag = r.tag >> place_bits;
    d.destination = s.job.frame->buffer.data() + payload::frame::payload_start + place;
    d.function = s.job.function;
    d.span = s.job.frame->span;
    dma.request.push(std::move(d));
    bytes_ += part.length;
    if (++parts_ != reads) return wake_next();
  }
  parts_ = 0;
  if (r.missed) ++translation_misses_;
  if (translation_blocks_) address_out.push({s.job.unit, r.missed ? now() - s.asked_at : 0});
  s.pending = static_cast<std::uint16_t>(s.pending + reads - 1);
  if (!ok && s.syndrome == 0) s.syndrome = syndrome::local_protection;
  if (s.pending == 0) wake_next();
  translate.response.drop();
}

const char* gather::read_held_up_by() const {
  if (!translate.response.can_pop()) return nullptr;
  const icm::translate_response& r = translate.response.front();
  const unsigned reads = r.status == icm::translate_status::ok ? r.count : 0;
  if (parts_ + 1 >= reads && translation_blocks_ && !address_out.can_push()) return "requester";
  return parts_ != reads && !dma.request.can_push() ? "dma" : nullptr;
}

void gather::accept() {
  if (slots_.full() || !job_in.can_pop()) return;
  slot s;
  s.job = job_in.pop();
  s.syndrome = s.job.syndrome;
  slots_.push(std::move(s));
}

// A step of the first packet that has not asked for all of its payload.
void gather::ask() {
  if (asking_ - first_slot_ == slots_.size()) return;
  slot& s = at(asking_);
  if (s.asked != s.job.pieces) {
    if (!piece_in.can_pop()) return;
    const bool needs = !withdrawn(s);
    if (needs ? !translate.request.claim() : translation_blocks_ && !address_out.claim()) return;
    ask_.start(1);
    const gather_piece p = piece_in.pop();
    if (needs) {
      icm::translate_request t;
      if (s.job.reserved_key && p.lkey == s.job.reserved_lkey) t.what = icm::translate_request::kind::reserved_key;
      t.access = icm::access::local_read;
      t.key = p.lkey;
      t.pd = s.job.pd;
      t.qpn = s.job.qpn;
      t.va = p.address;
      t.length = p.length;
      t.tag = std::uint64_t{asking_} << place_bits | p.place;
      t.span = s.job.frame->span;
      translate.request.push(t);
      s.asked_at = now();
      ++s.pending;
      ++pieces_;
    } else if (translation_blocks_) {
      address_out.push({s.job.unit, 0});
    }
    if (++s.asked != s.job.pieces) return;
  }
  ++asking_;
  if (s.pending == 0 || asking_ - first_slot_ != slots_.size()) wake_next();
}

const char* gather::ask_held_up_by() const {
  if (asking_ - first_slot_ == slots_.size()) return nullptr;
  const slot& s = slots_[asking_ - first_slot_];
  if (s.asked == s.job.pieces || !piece_in.can_pop()) return nullptr;
  if (!s.dropped) return translate.request.can_push() ? nullptr : "translation";
  return translation_blocks_ && !address_out.can_push() ? "requester" : nullptr;
}

// What was asked for under the key is in its frame; what was not will be refused by translation.
void gather::revoke() {
  if (!revoking_) drain_to_ = asking_ + (asking_ - first_slot_ != slots_.size() ? 1 : 0);
  revoking_ = true;
  for (std::uint32_t n = first_slot_; static_cast<std::int32_t>(drain_to_ - n) > 0; ++n)
    if (at(n).pending != 0) return;  // answers of memory tick us
  if (!keys.revoked.claim()) return;
  keys.revoked.push(keys.revoke.pop());
  revoking_ = false;
  if (keys.revoke.can_pop()) wake_next();
}

}  // namespace rnic::transport
