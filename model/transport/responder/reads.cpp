// SPDX-License-Identifier: Apache-2.0
// Generator of READ and atomic responses.
#include "model/transport/responder/reads.h"

#include <algorithm>

#include "model/transport/congestion/rates.h"
#include "model/transport/message_packets.h"
#include "model/transport/responder/read_backlog.h"
#include "model/transport/responder/rules.h"

namespace rnic::transport {

namespace {

/// An ACK or NAK of what came before READ number `sequence` goes first: responses are in the order of their requests.
bool answer_goes_first(const responder_flow& f, std::uint32_t sequence) {
  const auto before = [sequence](std::uint32_t after) { return static_cast<std::int32_t>(sequence - after) >= 0; };
  return (f.ack_pending && before(f.ack_after)) || (f.nak_pending && before(f.nak_after));
}

}  // namespace

responder_reads::responder_reads(sim::clocked_block& owner, const responder_config& cfg,
                                 std::vector<responder_flow>& flows, icm::translate_port& translate,
                                 pcie::dma_port& dma, atomic_unit& atomics,
                                 icm::context_cache<icm::rdma_resources>& histories, answer_port& answers,
                                 payload::frame_pool& frames, rate_limiter& limiter, sim::span_recorder& spans,
                                 std::uint64_t translate_tag, std::uint64_t dma_tag)
    : owner_(owner),
      config_(cfg),
      flows_(flows),
      translate_(translate),
      dma_(dma),
      atomics_(atomics),
      histories_(histories),
      answers_(answers),
      frames_(frames),
      limiter_(limiter),
      spans_(spans),
      translate_tag_(translate_tag),
      dma_tag_(dma_tag),
      jobs_(cfg.read_queue),
      gathers_(cfg.read_gathers),
      most_flows_(std::max(1u, cfg.flows / 2)),
      generator_(owner, "read_generator") {
  if (cfg.read_queue == 0 || cfg.read_gathers == 0)
    throw sim::config_error(owner.name() + ".read_queue, .read_gathers: must be 1 or more");
  for (unsigned i = cfg.read_queue; i-- != 0;) free_jobs_.push_back(static_cast<std::uint16_t>(i));
  for (unsigned i = cfg.read_gathers; i-- != 0;) free_gathers_.push_back(static_cast<std::uint16_t>(i));
  active_.reserve(cfg.read_queue);
}

void responder_reads::take(const request& r, bool held) {
  const std::uint16_t j = free_jobs_.back();
  free_jobs_.pop_back();
  job& x = jobs_[j];
  x = job{};
  x.r = r;
  x.used = true;
  responder_flow& f = flows_[r.flow];
  if (held) {
    x.sequence = f.reads_accepted - f.reads_held - 1;
  } else {
    x.sequence = r.again ? go_back(r) : f.reads_accepted;
    ++f.reads_accepted;
  }
  if (f.reads_on_chip() == 1) ++reading_flows_;
  if (r.again) ++f.reads_again;
  // Those of a flow stand in their order: what one that ends has held up is looked at behind it.
  const auto behind = [&](std::uint16_t i) {
    return jobs_[i].r.flow == r.flow && static_cast<std::int32_t>(jobs_[i].sequence - x.sequence) > 0;
  };
  active_.insert(r.again ? std::find_if(active_.begin(), active_.end(), behind) : active_.end(), j);
  const std::uint8_t code = f.ctx->dest.static_rate;
  if (code != 0 || limiter_.any()) limiter_.limit(r.qpn, static_rate_kbps(code));
}

bool responder_reads::work(std::uint64_t writes_done, fault& out) {
  writes_done_ = writes_done;
  if (active_.empty()) return false;
  if (to_read_ != 0)
    for (std::size_t g = 0; g < gathers_.size(); ++g)
      if (gathers_[g].to_read) read_memory(static_cast<std::uint16_t>(g));
  const bool failed = emit(out);
  ask();
  return failed;
}

void responder_reads::ask() {
  for (unsigned n = 0; n < active_.size(); ++n) {
    const unsigned k = (turn_ + n) % static_cast<unsigned>(active_.size());
    job& x = jobs_[active_[k]];
    if (x.all_asked && x.sequence == flows_[x.r.flow].reads_gathered) {  // executed before the requester went back
      ++flows_[x.r.flow].reads_gathered;
      owner_.wake_next();  // for the one behind it
    }
    if (x.all_asked || x.given_up || x.sequence != flows_[x.r.flow].reads_gathered) continue;
    if (x.r.writes_before > writes_done_) continue;  // the answer to those writes wakes us
    if (x.r.what != kind::read) {
      begin_atomic(active_[k]);
      continue;
    }
    if (free_gathers_.empty()) continue;  // one comes free by an answer of memory or a frame that leaves
    if (!generator_.is_free()) return generator_.await();
    const bool translated = x.r.length == 0 || (x.gathered == 0 && x.r.first.count != 0);
    if (!translated && !translate_.request.claim()) return;
    ask_packet(active_[k]);
    turn_ = k + 1;
    owner_.wake_next();
    return;
  }
}

void responder_reads::ask_packet(std::uint16_t j) {
  job& x = jobs_[j];
  responder_flow& f = flows_[x.r.flow];
  const std::uint32_t mtu = path_mtu(*f.ctx);
  const std::uint16_t g = free_gathers_.back();
  free_gathers_.pop_back();
  gather& a = gathers_[g];
  a.frame = frames_.get();
  a.offset = x.gathered;
  a.length = std::min(mtu, x.r.length - x.gathered);
  a.job = j;
  a.next = no_link;
  a.open = 0;
  a.next_segment = 0;
  a.flow = x.r.flow;
  a.function = f.ctx->function;
  a.key = x.r.key;
  a.to_read = false;
  a.nak = a.event = 0;
  a.where = icm::translate_response{};
  (x.tail == no_link ? x.head : gathers_[x.tail].next) = g;
  x.tail = g;
  x.gathered += a.length;
  if (x.gathered == x.r.length) {
    x.all_asked = true;
    ++f.reads_gathered;
  }
  const unsigned beats = (a.length + config_.bytes_per_cycle - 1) / config_.bytes_per_cycle;
  generator_.start(std::max({1u, config_.read_packet_cycles, beats}));
  if (a.length == 0) return;
  if (x.refused) {
    a.nak = access_violation.nak;
    a.event = access_violation.event;
    return;
  }
  if (a.offset == 0 && x.r.first.count != 0) {
    a.where = x.r.first;
    a.to_read = true;
    ++to_read_;
    read_memory(g);
    return;
  }
  icm::translate_request t;
  t.access = icm::access::remote_read;
  t.key = x.r.key;
  t.pd = x.r.pd;
  t.qpn = x.r.qpn;
  t.va = x.r.va + a.offset;
  t.length = a.length;
  t.tag = translate_tag_ | g;
  translate_.request.push(t);
  a.open = 1;
}

void responder_reads::read_memory(std::uint16_t g) {
  gather& a = gathers_[g];
  while (a.next_segment < a.where.count) {
    if (!dma_.request.claim()) return;
    const icm::translate_response::segment& s = a.where.segments[a.next_segment];
    pcie::dma_request r;
    r.function = a.function;
    r.address = s.address;
    r.length = s.length;
    r.destination =
        a.frame->buffer.data() + payload::frame::payload_start + (a.next_segment == 0 ? 0 : a.where.segments[0].length);
    r.tag = dma_tag_ | g;
    r.span = a.offset + a.length == jobs_[a.job].r.length ? jobs_[a.job].r.span : 0;
    dma_.request.push(std::move(r));
    ++a.open;
    ++a.next_segment;
  }
  a.to_read = false;
  --to_read_;
}

void responder_reads::translated(std::uint32_t tag, const icm::translate_response& r) {
  const auto g = static_cast<std::uint16_t>(tag);
  gather& a = gathers_[g];
  --a.open;
  if (was_abandoned(g)) return;
  if (r.status != icm::translate_status::ok || r.count == 0) {
    a.nak = access_violation.nak;
    a.event = access_violation.event;
  } else if (!jobs_[a.job].given_up) {
    a.where = r;
    a.to_read = true;
    ++to_read_;
    read_memory(g);
    return;
  }
  reap(a.job);
}

void responder_reads::read_done(std::uint32_t tag, pcie::dma_status status) {
  gather& a = gathers_[tag];
  --a.open;
  if (was_abandoned(static_cast<std::uint16_t>(tag))) return;
  if (status != pcie::dma_status::ok) {
    a.nak = memory_unreachable.nak;
    a.event = memory_unreachable.event;
  }
  reap(a.job);
}

/// An atomic whose turn it is. Later requests of its QP begin when it has changed memory.
void responder_reads::begin_atomic(std::uint16_t j) {
  job& x = jobs_[j];
  if (x.executing) return;
  if (x.r.what == kind::replay) {
    x.all_asked = true;
    ++flows_[x.r.flow].reads_gathered;
    owner_.wake_next();
    return;
  }
  if (x.refused) {
    x.nak = access_violation.nak;
    x.event = access_violation.event;
    x.all_asked = true;
    ++flows_[x.r.flow].reads_gathered;
    owner_.wake_next();
    return;
  }
  x.executing = atomics_.start(j, flows_[x.r.flow].ctx->function, x.r.first.segments[0].address, x.r.operation);
}

void responder_reads::executed(const atomic_unit::outcome& o) {
  job& x = jobs_[o.job];
  x.executing = false;
  icm::rdma_resources* ring = o.ok ? histories_.peek(x.r.qpn) : nullptr;
  if (icm::rdma_resources::entry* e = ring != nullptr ? ring->take() : nullptr; e != nullptr) {
    e->psn = x.r.psn & 0xffffff;
    e->what = static_cast<std::uint32_t>(icm::rdma_resources::kind::atomic);
    e->value = o.original;
    histories_.mark_dirty(x.r.qpn);
  }
  if (x.given_up) return reap(o.job);
  x.r.original = o.original;
  if (!o.ok) {
    x.nak = memory_unreachable.nak;
    x.event = memory_unreachable.event;
  }
  x.all_asked = true;
  if (x.sequence == flows_[x.r.flow].reads_gathered) ++flows_[x.r.flow].reads_gathered;
}

bool responder_reads::emit_atomic(std::uint16_t j, fault& out) {
  const job& x = jobs_[j];
  if (!x.all_asked) return false;
  if (x.nak != 0) {
    out = {x.r.flow, x.r.psn, x.r.msn, x.nak, x.event};
    return true;
  }
  const responder_flow& f = flows_[x.r.flow];
  if (answer_goes_first(f, x.sequence) || !answers_.claim(f.ctx->dest)) return false;
  payload::frame_ptr frame = frames_.get();
  frame->span = x.r.span;
  spans_.leave(x.r.span, owner_.name(), "atomic", owner_.now_ps(), sim::wait::payload_fetch);
  answers_.push(make_answer(*f.ctx, std::move(frame), answer_opcode(*f.ctx, wire::operation::atomic_acknowledge),
                            x.r.psn, acknowledgement(*f.ctx), x.r.msn, 0, x.r.original));
  ++packets_;
  finish(j);
  return false;
}

bool responder_reads::emit(fault& out) {
  // A frame of each QP that is ready; jobs end while we walk, so the list is walked by index.
  for (unsigned k = 0; k < active_.size();) {
    const std::uint16_t j = active_[k];
    const job& x = jobs_[j];
    if (!x.given_up && x.sequence == flows_[x.r.flow].reads_finished && emit_head(j, out)) return true;
    if (k < active_.size() && active_[k] == j) ++k;
  }
  return false;
}

bool responder_reads::in_time(std::uint32_t qpn) const {
  const sim::cycle_t due = limiter_.due(qpn);
  if (due <= owner_.now()) return true;
  owner_.wake_at(due);
  return false;
}

bool responder_reads::emit_head(std::uint16_t j, fault& out) {
  job& x = jobs_[j];
  if (x.r.what != kind::read) return emit_atomic(j, out);
  responder_flow& f = flows_[x.r.flow];
  while (x.head != no_link) {
    gather& a = gathers_[x.head];
    if (a.open != 0 || a.to_read) return false;
    const std::uint32_t mtu = path_mtu(*f.ctx);
    const std::uint32_t psn = (x.r.psn + a.offset / mtu) & 0xffffff;
    if (a.nak != 0) {
      out = {x.r.flow, psn, x.r.msn, a.nak, a.event};
      return true;
    }
    if (limiter_.any() && !in_time(f.qpn)) return false;
    const bool first = a.offset == 0;
    if (first && answer_goes_first(f, x.sequence)) return false;
    if (!answers_.claim(f.ctx->dest)) return false;
    const bool last = a.offset + a.length == x.r.length;
    const wire::operation op = first && last ? wire::operation::read_response_only
                               : first       ? wire::operation::read_response_first
                               : last        ? wire::operation::read_response_last
                                             : wire::operation::read_response_middle;
    if (last) {
      a.frame->span = x.r.span;
      spans_.leave(x.r.span, owner_.name(), "gather", owner_.now_ps(), sim::wait::payload_fetch);
    }
    answer_job response = make_answer(*f.ctx, std::move(a.frame), answer_opcode(*f.ctx, op), psn,
                                      acknowledgement(*f.ctx), x.r.msn, a.length);
    if (limiter_.any()) limiter_.sent(f.qpn, answer_length(response));
    answers_.push(std::move(response));
    ++packets_;
    const std::uint16_t g = x.head;
    x.head = a.next;
    if (x.head == no_link) x.tail = no_link;
    free_gather(g);
    if (last) {
      finish(j);
      return false;
    }
  }
  return false;
}

void responder_reads::free_gather(std::uint16_t g) {
  gathers_[g].frame.reset();
  gathers_[g].job = no_link;
  free_gathers_.push_back(g);
}

wire::psn_t responder_reads::end_psn(const request& r) const {
  const std::uint32_t mtu = path_mtu(*flows_[r.flow].ctx);
  return wire::psn_t(r.psn) + packets_of(r.length, mtu);
}

bool responder_reads::will_send(std::uint16_t flow, std::uint32_t psn) const {
  return std::any_of(active_.begin(), active_.end(), [&](std::uint16_t j) {
    const job& x = jobs_[j];
    if (x.r.flow != flow || x.given_up) return false;
    const std::uint32_t sent = x.head != no_link ? gathers_[x.head].offset : x.gathered;
    const wire::psn_t next(x.r.psn + sent / path_mtu(*flows_[flow].ctx));
    return !wire::psn_t(psn).before(next) && wire::psn_t(psn).before(end_psn(x.r));
  });
}

void responder_reads::finish(std::uint16_t j) {
  responder_flow& f = flows_[jobs_[j].r.flow];
  ++f.reads_finished;
  if (f.reads_on_chip() == 0) --reading_flows_;
  // An atomic that was executed before the requester went back may leave before ask() has come past it again.
  if (static_cast<std::int32_t>(f.reads_gathered - f.reads_finished) < 0) f.reads_gathered = f.reads_finished;
  remove(j);
}

void responder_reads::remove(std::uint16_t j) {
  job& x = jobs_[j];
  responder_flow& f = flows_[x.r.flow];
  --(x.r.again ? f.reads_again : f.reads_new);
  if (x.r.what == kind::atomic) histories_.unpin(x.r.qpn);
  x.used = false;
  // A checked request may wait for the place, or for a bound of can_take_new() or idle() that was just left:
  // commit comes before us.
  if (free_jobs_.size() <= jobs_.size() / 8 || reading_flows_ == 0 || reading_flows_ + 1 == most_flows_)
    owner_.wake_next();
  active_.erase(std::find(active_.begin(), active_.end(), j));
  free_jobs_.push_back(j);
}

void responder_reads::discard(std::uint16_t flow) {
  read_backlog::forget(flows_[flow]);
  flows_[flow].reads_gathered = flows_[flow].reads_accepted;
  for (unsigned k = 0; k < active_.size();) {
    const std::uint16_t j = active_[k];
    job& x = jobs_[j];
    if (x.r.flow == flow && !x.given_up) {
      x.given_up = true;
      if (x.executing) atomics_.abandon(j);
      x.all_asked = true;
      for (std::uint16_t g = x.head; g != no_link; g = gathers_[g].next)
        if (gathers_[g].to_read) {
          gathers_[g].to_read = false;
          --to_read_;
        }
    }
    reap(j);
    if (k < active_.size() && active_[k] == j) ++k;
  }
}

void responder_reads::reap(std::uint16_t j) {
  job& x = jobs_[j];
  if (!x.given_up) return;
  while (x.head != no_link && gathers_[x.head].open == 0) {
    const std::uint16_t g = x.head;
    x.head = gathers_[g].next;
    free_gather(g);
  }
  if (x.head == no_link && !x.executing) finish(j);
}

void responder_reads::refuse_key(std::uint32_t key) {
  for (const std::uint16_t j : active_) {
    job& x = jobs_[j];
    if (x.r.key != key || x.r.what == kind::replay) continue;
    // What of a READ was gathered already is sent, unless it has to begin once more.
    if (x.r.what == kind::read || (!x.executing && !x.all_asked)) x.refused = true;
  }
}

bool responder_reads::uses_key(std::uint32_t key) const {
  const auto reads = [&](const gather& g) { return (g.open != 0 || g.to_read) && g.key == key; };
  const auto executes = [&](std::uint16_t j) { return jobs_[j].executing && jobs_[j].r.key == key; };
  return std::any_of(gathers_.begin(), gathers_.end(), reads) || std::any_of(active_.begin(), active_.end(), executes);
}

}  // namespace rnic::transport
