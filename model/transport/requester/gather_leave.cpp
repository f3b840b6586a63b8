// SPDX-License-Identifier: Apache-2.0
#include "model/transport/requester/gather_leave.h"

#include <utility>

#include "model/transport/requester/packet.h"

namespace rnic::transport {

namespace {
sim::pipeline transmit_pipeline(const sim::clocked_block& owner, const char* leaf, unsigned source,
                                const requester_config::transmit_stages& t, unsigned offload) {
  return {owner,
          leaf,
          {{"source gid", source},
           {"path", t.path},
           {"headers", t.headers},
           {"align", t.align},
           {"offload", offload},
           {"hand-over", t.hand_over}}};
}
}  // namespace

gather_leave::gather_leave(sim::clocked_block& owner, const ports& to, gather_queue& queue, const requester_config& cfg,
                           const gid::source_access& sources, sim::span_recorder& spans, gather_counters& counters,
                           sim::statistics& stats)
    : owner_(owner),
      to_(to),
      queue_(queue),
      ect_priorities_(cfg.congestion.reaction.priorities),
      sources_(owner, sources, stats),
      spans_(spans),
      pipeline_(transmit_pipeline(owner, "packets", sources_.cycles(), cfg.transmit, 0)),
      plain_pipeline_(
          transmit_pipeline(owner, "plain_frames", sources_.cycles(), cfg.transmit, cfg.ethernet_offload_cycles)),
      leave_(owner, "leave"),
      counters_(counters) {}

// In order: a packet leaves when its payload and that of all before it is there.
void gather_leave::work() {
  if (!queue_.may_leave()) return;
  gather_slot& s = queue_.oldest();
  if (s.pending != 0 || stands(s)) return;
  if (s.dropped) {
    if (!tell(s, gather_event::kind::withdrawn)) return;
    ++counters_.withdrawn;
    return drop();
  }
  if (!s.blocked) {
    if (!to_.frames.claim() || !to_.left.claim() || !look_up_source(s)) return;
    if (!s.blocked) enter_pipeline(s);
  }
  if (!s.blocked || tell(s, gather_event::kind::blocked)) drop();
}

// False: not in this cycle, or it has none.
bool gather_leave::look_up_source(gather_slot& s) {
  payload::frame& f = *s.job.frame;
  const unsigned tables = s.job.tables % gid_ports;
  if (!sources_.open(tables)) {
    owner_.wake_next();
    return false;
  }
  const gid::source found = sources_.look_up(tables, s.job.source);
  if (found.why != gid::refusal::none) {
    s.syndrome = syndrome::local_qp_operation;
    s.failed_at = owner_.edge() + sources_.cycles();
    owner_.wake_at(s.failed_at);
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
bool gather_leave::stands(gather_slot& s) {
  if (judging_) {
    if (!to_.verdicts.can_pop()) return true;
    to_.verdicts.drop();
    judging_ = false;
    s.dropped = true;
    return false;
  }
  if (queue_.withdrawn(s) || s.syndrome == 0) return false;
  if (owner_.edge() < s.failed_at) return true;
  if (!tell(s, gather_event::kind::failed)) return true;
  ++counters_.failed;
  judging_ = true;
  return true;
}

bool gather_leave::tell(const gather_slot& s, gather_event::kind what) {
  if (!to_.events.claim()) return false;
  const gather_job& j = s.job;
  to_.events.push(
      {what, s.syndrome, j.frame->port, j.frame->priority, j.last_local, j.qpn, j.message, j.generation, j.psn});
  return true;
}

void gather_leave::enter_pipeline(gather_slot& s) {
  gather_job& j = s.job;
  sim::pipeline& stages = j.plain ? plain_pipeline_ : pipeline_;
  const sim::cycle_t cycles = stages.enter();
  spans_.leave(j.frame->span, owner_.name(), "gather", owner_.now_ps(),
               j.pieces != 0 ? sim::wait::payload_fetch : sim::wait::none);
  stages.mark(spans_, j.frame->span, owner_.edge());
  if (traffic_ != nullptr) traffic_->add(j.counter, j.frame->length);
  to_.left.push_after(gather_left{j.qpn, j.message, j.generation, j.last_local}, cycles);
  to_.frames.push_after(std::move(j.frame), cycles);
  ++counters_.packets;
}

const char* gather_leave::held_up_by() const {
  if (!queue_.may_leave()) return nullptr;
  const gather_slot& s = queue_.oldest();
  if (s.pending != 0) return "payload";
  if (judging_) return to_.verdicts.can_pop() ? nullptr : "requester";
  if (s.syndrome != 0 && !s.dropped && owner_.edge() < s.failed_at) return nullptr;  // the look-up is under way
  if (s.dropped || s.blocked || s.syndrome != 0) return to_.events.can_push() ? nullptr : "requester";
  if (!to_.frames.can_push()) return "icrc insert";
  if (!to_.left.can_push()) return "requester";
  return sources_.open(s.job.tables % gid_ports) ? nullptr : "gid table";
}

void gather_leave::drop() {
  leave_.start(1);
  queue_.drop_oldest();
  if (queue_.may_leave() && queue_.oldest().pending == 0) owner_.wake_next();
}

}  // namespace rnic::transport
