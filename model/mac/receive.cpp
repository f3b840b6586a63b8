// SPDX-License-Identifier: Apache-2.0
#include "model/mac/receive.h"

#include <algorithm>
#include <utility>

#include "model/sim/seldom.h"
#include "model/wire/cnm.h"
#include "model/wire/icrc.h"
#include "model/wire/pause.h"

namespace rnic::mac {

namespace {
/// Ends of shortest frames that a line can bring within a cycle: one, unless the clock is slow for it. The receive path
/// is as wide.
unsigned line_frames_a_cycle(const sim::clock_domain& domain, std::uint32_t rate_mbps) {
  return static_cast<unsigned>(1 + domain.longest_cycle() * rate_mbps /
                                       ((preamble_bytes + shortest_frame + gap_bytes) * mbps_ps_per_byte));
}
}  // namespace

receive_side::receive_side(sim::clocked_block& owner, const port_common& common,
                           const sim::fifo_out<payload::frame_ptr>& out,
                           const sim::fifo_out<payload::frame_ptr>& cnm_out, departure_ports& departures,
                           const carrier_sense& carrier)
    : owner_(owner),
      to_(common),
      out_(out),
      cnm_out_(cnm_out),
      departures_(departures),
      carrier_(carrier),
      path_(common.config),
      width_(line_frames_a_cycle(owner.domain(), common.config.rate_mbps)),
      from_line_(owner.name() + ".from_line", owner),
      looped_(owner.name() + ".looped", owner),
      ingress_(common.config.ingress_bytes, ingress_thresholds(common.config).xoff,
               ingress_thresholds(common.config).xon, common.config.datapath_bytes),
      read_(owner, "ingress_read") {
  for (unsigned i = 0; i < departures_.size(); ++i) departures_[i].show_in(departed_, i);
}

/// Those of the line first: it cannot wait.
void receive_side::receive(bool link_up) {
  unsigned room = width_;
  for (; room != 0 && from_line_.can_pop(); --room) take_from_line(link_up);
  for (; room != 0 && looped_.can_pop(); --room) take_looped(link_up);
  if (looped_.can_pop()) owner_.wake_next();
}

void receive_side::take_from_line(bool link_up) {
  const sim::time_ps arrival = from_line_.front_arrival() - path_.mac;
  payload::frame_ptr frame = from_line_.pop();
  payload::frame& f = *frame;
  note_path(f.span, arrival);
  const bool cut = carrier_.cut(f.stamp, arrival);
  f.loopback = payload::frame::loopback_none;
  const unsigned column = note_arrival(f, arrival);
  if (!link_up || cut) {
    ++to_.counters.drop_link_down;
    return;
  }
  if (!passes_fcs(f, column) || !is_short_enough(f)) return;
  // What has a wrong FCS is nobody's order to stop (802.3, 31.5), though it may be delivered.
  if (f.fcs_ok && consume_control(f)) return;
  if (!consume_cnm(frame)) admit(std::move(frame));
}

/// What has not been on a line has no FCS, and is no less than the shortest frame.
void receive_side::take_looped(bool link_up) {
  payload::frame_ptr frame = looped_.pop();
  payload::frame& f = *frame;
  const kept room = kept_.front();
  kept_.pop_front();
  to_.spans.leave(f.span, owner_.name(), "loopback", owner_.now_ps());
  f.fcs_ok = true;
  const unsigned column = note_arrival(f, owner_.now_ps());
  if (!link_up) {
    ++to_.counters.drop_link_down;
    return ingress_.unkeep(room.priority, room.bytes, true);
  }
  to_.stats.receive(column, f.length + fcs_bytes, to_.set.mtu, f.data());
  const bool ends = !is_short_enough(f) || consume_control(f);
  ingress_.unkeep(room.priority, room.bytes, ends || f.priority != room.priority);
  if (!ends) admit(std::move(frame));
}

/// What the sender's blocks noted in the frame does not travel. Returns the column of its priority.
unsigned receive_side::note_arrival(payload::frame& f, sim::time_ps arrival) const {
  f.port = to_.config.index;
  f.source = 0;
  f.control = f.insert_icrc = false;
  f.icrc_ok = true;
  f.gid_index = 0;
  f.function = payload::frame::any_function;
  f.stamp = arrival;
  const unsigned column = column_of(f);
  f.priority = column == eth_stats::untagged ? to_.set.default_priority : static_cast<std::uint8_t>(column);
  return column;
}

void receive_side::admit(payload::frame_ptr frame) {
  const std::uint32_t size = frame->length + fcs_bytes;
  ++to_.counters.rx_frames;
  to_.counters.rx_bytes += size;
  if (ingress_.admit(std::move(frame), size, owner_.now())) return;
  ++to_.counters.drop_overflow;
  to_.stats.receive_overflow();
}

/// The way of a frame whose last bit came at `arrival`.
void receive_side::note_path(sim::span_id span, sim::time_ps arrival) {
  if (sim::mostly(span == 0)) return;
  const auto leave = [&](const char* stage, sim::time_ps after, sim::wait why = sim::wait::none) {
    to_.spans.leave(span, owner_.name(), stage, arrival + after, why);
  };
  leave("wire", 0, sim::wait::wire);
  leave("pma rx", path_.pma);
  if (to_.config.fec != port_config::line_code::none) {
    leave("rs-fec word", path_.word, sim::wait::wire);
    leave("rs-fec locate", path_.located);
    leave("rs-fec correct", path_.corrected);
  }
  leave("pcs rx", path_.pcs);
  leave("mac rx", owner_.now_ps() - arrival);
}

/// FCS and shortest size; counts what fails.
bool receive_side::passes_fcs(payload::frame& f, unsigned column) {
  const std::uint32_t size = f.length + fcs_bytes;
  f.fcs_ok = wire::ethernet_fcs(f.data(), f.length) == f.fcs;
  const bool runt = size < shortest_frame || f.length < 14;
  if (!f.fcs_ok) {
    to_.stats.receive_bad(column, size, to_.set.mtu);
    if (runt || !to_.set.ignore_fcs) {
      ++(runt ? to_.counters.drop_runt : to_.counters.drop_fcs);
      return false;
    }
  } else if (runt) {
    to_.stats.undersize();
    ++to_.counters.drop_runt;
    return false;
  } else {
    to_.stats.receive(column, size, to_.set.mtu, f.data());
  }
  return true;
}

bool receive_side::is_short_enough(const payload::frame& f) {
  if (sim::mostly(f.length + fcs_bytes <= to_.set.mtu)) return true;
  to_.stats.too_long();
  ++to_.counters.drop_too_long;
  return false;
}

/// MAC control frames end here.
bool receive_side::consume_control(const payload::frame& f) {
  wire::pause_frame p;
  switch (wire::decode_pause(f.data(), f.length, p)) {
    case wire::pause_kind::none:
      return false;
    case wire::pause_kind::unsupported:
      ++to_.counters.drop_control;
      break;
    case wire::pause_kind::pause:
      ++to_.counters.rx_pause;
      to_.flow.receive(p, owner_.now_ps());
      break;
  }
  to_.stats.control_frame();
  return true;
}

/// Congestion notification messages go to their receiver, where firmware has told so.
bool receive_side::consume_cnm(payload::frame_ptr& frame) {
  if (!to_.set.takes_cnms || !wire::is_cnm(frame->data(), frame->length)) return false;
  ++to_.counters.rx_cnm;
  if (!frame->fcs_ok || !cnm_out_.bound() || !cnm_out_.can_push())
    ++to_.counters.drop_cnm;
  else
    cnm_out_.push(std::move(frame));
  return true;
}

void receive_side::take_departures() {
  for (std::uint64_t left = departed_; left != 0; left &= left - 1) {
    const auto i = static_cast<unsigned>(__builtin_ctzll(left));
    departures_[i].take_due([&](payload::departure&& d) { ingress_.depart(i, d); });
  }
  if (sim::seldom(ingress_.above() != 0)) ingress_.settle(owner_.now());
}

/// Whoever has paused the peer, or waits, must know when there is room again.
void receive_side::watch_departures(bool turnaround_waits) {
  const bool watches = turnaround_waits || to_.flow.wanted(ingress_.above()) != 0;
  if (sim::seldom(watches != watches_))
    for (auto& d : departures_) d.set_quiet(!watches);
  watches_ = watches;
  if (sim::mostly(!watches)) return;
  if (turnaround_waits) owner_.wake_next();  // for room, beat by beat
  const sim::cycle_t falls = ingress_.falls_at();
  if (falls != sim::never) owner_.wake_at(std::max(falls, owner_.now() + 1));
}

/// The frame has waited in its buffer if it was not handed on at the edge of its check.
void receive_side::note_buffer(const payload::frame& f) {
  const sim::time_ps on_way = f.loopback == payload::frame::loopback_none ? path_.mac : 0;
  const sim::time_ps checked = owner_.domain().edge_time(owner_.domain().edge_at_or_after(f.stamp + on_way));
  if (owner_.now_ps() > checked)
    to_.spans.leave(f.span, owner_.name(), "ingress buffer", owner_.now_ps(), sim::wait::arbitration);
}

void receive_side::hand_out() {
  if (ingress_.empty()) return;
  if (!read_.is_free()) return read_.await();
  if (!out_.claim()) return;
  payload::frame_ptr f = ingress_.take();
  if (f->span != 0) note_buffer(*f);
  const sim::cycle_t beats = payload::beats_of(f->length, to_.config.datapath_bytes);
  f->first_byte = owner_.now() + 1;
  read_.start(beats);
  if (!departures_[0].bound()) ingress_.depart(0, {owner_.now(), f->length, f->priority});
  out_.push(std::move(f));
  if (!ingress_.empty()) read_.await();
}

}  // namespace rnic::mac
