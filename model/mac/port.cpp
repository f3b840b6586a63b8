// SPDX-License-Identifier: Apache-2.0
// The port's two pipelines.
#include "model/mac/port.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "model/sim/check.h"
#include "model/wire/bytes.h"
#include "model/wire/icrc.h"
#include "model/wire/pause.h"

namespace rnic::mac {

namespace {

constexpr std::uint32_t shortest_frame = 64;  // FCS included
constexpr std::uint32_t preamble_bytes = 8;   // with the start frame delimiter
constexpr std::uint32_t gap_bytes = 12;
constexpr std::uint64_t mbps_ps_per_byte = 8 * sim::ps_per_us;  // a byte lasts this many ps at 1 Mb/s

void require(bool ok, const std::string& what) {
  if (!ok) throw sim::config_error(what);
}

/// Ends of shortest frames that a line can bring within a cycle: one, unless the clock is slow for it. The receive path
/// is as wide.
unsigned line_frames_a_cycle(const sim::clock_domain& domain, std::uint32_t rate_mbps) {
  return static_cast<unsigned>(1 + domain.longest_cycle() * rate_mbps /
                                       ((preamble_bytes + shortest_frame + gap_bytes) * mbps_ps_per_byte));
}

/// In its longest cycle.
bool is_as_fast_as_line(const sim::clock_domain& domain, const port::config& cfg) {
  return domain.longest_cycle() * cfg.rate_mbps <= cfg.datapath_bytes * mbps_ps_per_byte;
}

bool is_tagged(const payload::frame& f) {
  return f.length >= 16 && wire::load_be16(f.data() + 12) == static_cast<std::uint16_t>(wire::ether_type::vlan);
}

/// Column of the statistics: PCP, or untagged.
unsigned column_of(const payload::frame& f) {
  return is_tagged(f) ? static_cast<unsigned>(f.data()[14] >> 5) : eth_stats::untagged;
}

/// Padding with zeros to the shortest frame (IEEE 802.3, 4.2.3.3).
void pad(payload::frame& f) {
  constexpr std::uint32_t shortest = shortest_frame - fcs_bytes;
  if (f.length >= shortest) return;
  RNIC_ASSERT(f.begin + shortest <= payload::frame::capacity, "no room behind a short frame");
  std::memset(f.data() + f.length, 0, shortest - f.length);
  f.length = shortest;
}

}  // namespace

port::port(std::string name, sim::clock_domain& domain, const config& cfg, payload::frame_pool& pool,
           sim::span_recorder& spans)
    : clocked_block(name, domain),
      tx_in(*this),
      rx_out(*this),
      credits_out{sim::fifo_out<transport::egress_credit>(*this), sim::fifo_out<transport::egress_credit>(*this)},
      departures{sim::fifo_in<payload::departure>(*this), sim::fifo_in<payload::departure>(*this),
                 sim::fifo_in<payload::departure>(*this)},
      config_(sim::checked(cfg, this->name())),
      receive_ps_(fec_ps() + cfg.mac_rx_ns * sim::ps_per_ns),
      receive_width_(line_frames_a_cycle(domain, cfg.rate_mbps)),
      by_rate_(cfg.rate_mbps),
      never_late_(is_as_fast_as_line(domain, cfg)),
      pool_(pool),
      spans_(spans),
      carrier_changes_(this->name() + ".carrier", *this, 4),
      from_line_(this->name() + ".from_line", *this),
      looped_(this->name() + ".looped", *this),
      egress_(std::size_t{cfg.egress_frames} * credits_out.size()),
      ingress_(cfg.ingress_bytes, cfg.xoff_bytes, cfg.xon_bytes, cfg.datapath_bytes),
      flow_(cfg.rate_mbps),
      read_(*this, "ingress_read"),
      mtu_(cfg.mtu),
      default_priority_(cfg.default_priority) {
  for (unsigned i = 0; i < departures.size(); ++i) departures[i].show_in(departed_, i);
  const std::string& n = this->name();
  require(cfg.datapath_bytes >= 1, n + ".datapath_bytes: must be at least 1");
  require(cfg.xoff_bytes <= cfg.ingress_bytes, n + ".xoff_bytes: must not be above ingress_bytes");
  require(cfg.xon_bytes <= cfg.xoff_bytes, n + ".xon_bytes: must not be above xoff_bytes");
  egress_.mode = cfg.egress_arbitration;
}

/// A code word has 5140 bits of 257, each of which carries 256 of the MAC's (IEEE 802.3, 91.5.2).
sim::time_ps port::fec_ps() const {
  constexpr std::uint64_t bits = 5140 / 257 * 256;
  if (config_.fec == config::line_code::none) return 0;
  return (bits * sim::ps_per_us + config_.rate_mbps - 1) / config_.rate_mbps + config_.fec_decode_ns * sim::ps_per_ns;
}

void port::tick() {
  if (!carrier_changes_.empty()) take_carrier();
  if (open_.frame && now() >= open_.complete) send_away(std::move(open_.frame), open_.last_bit);
  take_departures();
  receive();
  hand_out();
  const bool took = accept();
  if (transmit() && !took) accept();
  ask_for_wake();
}

// ---------------------------------------------------------------- transmit

/// One frame a cycle.
bool port::accept() {
  if (!tx_in.can_pop() || egress_.full(tx_in.front()->priority & 7u)) return false;
  egress_.push(tx_in.pop(), now_ps());
  return true;
}

/// At most one frame; true when a queue got shorter.
bool port::transmit() {
  if (!link_up()) {
    const std::uint8_t ready = with_credit_room(egress_.waiting());
    if (ready != 0) drop_for_link_down(ready);
    return ready != 0;
  }
  const bool must_tell = flow_.must_tell(ingress_.above(), now_ps());
  if ((egress_.waiting() == 0 && !must_tell) || now() < choice_edge_) return false;
  if (must_tell) {
    transmit_pause();
    return false;
  }
  const auto free = static_cast<std::uint8_t>(egress_.waiting() & ~flow_.paused(now_ps()) & ~egress_.held(now_ps()));
  const std::uint8_t ready = with_credit_room(free);
  if (ready == 0) return false;
  transmit_frame(egress_.pick(ready));
  return true;
}

/// Those of `priorities` whose first frame's credit can be given back now; asking books a wake-up for the others.
std::uint8_t port::with_credit_room(std::uint8_t priorities) {
  unsigned ready = 0;
  for (unsigned left = priorities; left != 0; left &= left - 1) {
    const auto p = static_cast<unsigned>(__builtin_ctz(left));
    const std::uint8_t source = egress_.head(p).frame->source;
    const bool room = source >= credits_out.size() || !credits_out[source].bound() || credits_out[source].claim();
    if (room) ready |= 1u << p;
  }
  return static_cast<std::uint8_t>(ready);
}

void port::return_credit(const payload::frame& f) {
  if (f.source < credits_out.size() && credits_out[f.source].bound())
    credits_out[f.source].push({config_.index, static_cast<std::uint8_t>(f.priority & 7u)});
}

/// One of `ready`, whose credit can be given back.
void port::drop_for_link_down(std::uint8_t ready) {
  const egress::entry e = egress_.pop(egress_.pick(ready));
  return_credit(*e.frame);
  ++counters_.drop_tx_link_down;
  stats_.transmit_drop();
}

void port::transmit_pause() {
  const wire::pause_frame p =
      flow_.tell(ingress_.above(), now_ps(), config_.pause_quanta, config_.pause_refresh_percent);
  payload::frame_ptr f = pool_.get();
  f->begin = payload::frame::payload_start;
  f->length = wire::pause_frame_length;
  f->control = true;
  wire::encode_pause(p, mac_, f->data());
  ++counters_.tx_pause;
  put_on_line(std::move(f), now_ps());
}

/// First start on the line at which each byte of the frame is there when the line wants it: those of a beat at once, so
/// it is the first beat or the last one that decides.
sim::time_ps port::no_byte_late(const payload::frame& f) const {
  if (never_late_) return now_ps();
  const sim::cycle_t complete = payload::last_byte_at(f, config_.datapath_bytes);
  if (complete <= now()) return now_ps();
  const std::uint64_t before = preamble_bytes + (complete - f.first_byte) * config_.datapath_bytes;  // the last beat
  const sim::time_ps there = domain().edge_time(complete);
  const sim::time_ps wanted = by_rate_(before * mbps_ps_per_byte);
  return std::max(now_ps(), there - std::min(there, wanted));
}

void port::transmit_frame(unsigned priority) {
  egress::entry e = egress_.pop(priority);
  return_credit(*e.frame);
  pad(*e.frame);
  const sim::time_ps not_before = no_byte_late(*e.frame), start = std::max(not_before, line_free_);
  const bool was_paused = flow_.paused_until(priority) > e.since;
  if (was_paused) ++counters_.blocked_by_pause;
  const sim::wait why = was_paused ? sim::wait::pause : start > e.since ? sim::wait::arbitration : sim::wait::none;
  spans_.leave(e.frame->span, name(), "egress queue", start, why);
  spans_.leave(e.frame->span, name(), "mac tx", start + config_.mac_tx_ns * sim::ps_per_ns);

  const std::uint32_t size = e.frame->length + fcs_bytes;
  ++counters_.tx_frames;
  counters_.tx_bytes += size;
  const bool looped = e.frame->loopback == payload::frame::loopback_only;
  stats_.transmit(looped ? eth_stats::looped : column_of(*e.frame), size, mtu_, e.frame->data(), is_tagged(*e.frame));
  egress_.started(priority, preamble_bytes + size + gap_bytes, start, config_.class_catch_up_ns * sim::ps_per_ns);
  put_on_line(std::move(e.frame), not_before);
}

/// Occupies the line for preamble, frame and gap, and sends the frame away.
void port::put_on_line(payload::frame_ptr frame, sim::time_ps not_before) {
  if (not_before >= line_free_) {
    line_free_ = not_before;
    line_fraction_ = 0;
  }
  const std::uint64_t frame_bytes = preamble_bytes + frame->length + fcs_bytes;
  const std::uint64_t to_last_bit = line_fraction_ + frame_bytes * mbps_ps_per_byte;
  const std::uint64_t to_next = to_last_bit + gap_bytes * mbps_ps_per_byte;
  const sim::time_ps first_bit = line_free_ + config_.mac_tx_ns * sim::ps_per_ns;
  const sim::time_ps line_time = by_rate_(to_next);
  line_free_ += line_time;
  line_fraction_ = to_next - line_time * config_.rate_mbps;
  const sim::cycle_t free = domain().edge_at_or_after(line_free_ + 1);
  choice_edge_ = free == 0 ? 0 : free - 1;

  frame->stamp = first_bit;
  const sim::time_ps last_bit = first_bit + by_rate_(to_last_bit);
  if (!frame->open) return send_away(std::move(frame), last_bit);
  const sim::cycle_t complete = payload::last_byte_at(*frame, config_.datapath_bytes);
  open_ = {std::move(frame), last_bit, complete};
  wake_at(std::max(complete, now() + 1));
}

/// All of its bytes are there, or known.
void port::send_away(payload::frame_ptr frame, sim::time_ps last_bit) {
  RNIC_ASSERT(!frame->open, name() + ": a frame without its last bytes");
  frame->fcs = wire::ethernet_fcs(frame->data(), frame->length);
  if (frame->loopback == payload::frame::loopback_none) {
    line_->deliver(std::move(frame), last_bit);
    return;
  }
  if (frame->loopback == payload::frame::loopback_too) {
    payload::frame_ptr out = pool_.get();
    *out = *frame;
    out->loopback = payload::frame::loopback_none;
    line_->deliver(std::move(out), last_bit);
  }
  // Approximation: a frame for the own port takes the time of the line, as if it went through a plug; a real adapter
  // turns it around in its internal switch at the speed of the datapath.
  ++counters_.looped;
  looped_.push(std::move(frame), last_bit + receive_ps_);
}

/// All that time alone will make possible.
void port::ask_for_wake() {
  watch_departures();
  if (!link_up()) {
    if (egress_.waiting() != 0 && with_credit_room(egress_.waiting()) != 0) wake_next();
    return;
  }
  const bool must_tell = flow_.must_tell(ingress_.above(), now_ps());
  if (egress_.waiting() == 0 && !must_tell && flow_.refresh_at() == ~sim::time_ps{0}) return;
  const std::uint8_t paused = flow_.paused(now_ps());
  const auto free = static_cast<std::uint8_t>(egress_.waiting() & ~paused & ~egress_.held(now_ps()));
  if (must_tell || (free != 0 && with_credit_room(free) != 0)) wake_at(std::max(now() + 1, choice_edge_));
  sim::time_ps resume = egress_.held_until(now_ps());
  for (unsigned held = egress_.waiting() & paused; held != 0; held &= held - 1)
    resume = std::min(resume, flow_.paused_until(static_cast<unsigned>(__builtin_ctz(held))));
  const sim::time_ps refresh = flow_.refresh_at();
  if (refresh > now_ps()) resume = std::min(resume, refresh);
  if (resume != ~sim::time_ps{0}) wake_at(std::max(now() + 1, domain().edge_at_or_after(resume)));
}

// ---------------------------------------------------------------- receive

void port::deliver(payload::frame_ptr frame, sim::time_ps arrival) {
  from_line_.push(std::move(frame), arrival + receive_ps_);
}

/// Those of the line first: it cannot wait.
void port::receive() {
  unsigned room = receive_width_;
  for (; room != 0 && from_line_.can_pop(); --room) receive_from(from_line_);
  for (; room != 0 && looped_.can_pop(); --room) receive_from(looped_);
  if (looped_.can_pop()) wake_next();
}

void port::receive_from(sim::timed_inbox<payload::frame_ptr>& inbox) {
  const sim::time_ps arrival = inbox.front_arrival() - receive_ps_;
  payload::frame_ptr f = inbox.pop();
  if (&inbox == &from_line_) f->loopback = payload::frame::loopback_none;
  take_frame(std::move(f), arrival);
}

void port::take_frame(payload::frame_ptr frame, sim::time_ps arrival) {
  payload::frame& f = *frame;
  spans_.leave(f.span, name(), "wire", arrival, sim::wait::wire);
  if (config_.fec != config::line_code::none) spans_.leave(f.span, name(), "rs-fec", arrival + fec_ps());
  spans_.leave(f.span, name(), "mac rx", now_ps());
  const bool cut = f.stamp < carrier_back_at_ && carrier_lost_at_ < arrival;
  // What the sender's blocks noted in the frame does not travel on a cable.
  f.port = config_.index;
  f.source = 0;
  f.control = f.insert_icrc = false;
  f.icrc_ok = true;
  f.gid_index = 0;
  f.stamp = arrival;
  const unsigned column = column_of(f);
  f.priority = column == eth_stats::untagged ? default_priority_ : static_cast<std::uint8_t>(column);
  const std::uint32_t size = f.length + fcs_bytes;
  if (!link_up() || cut) {
    ++counters_.drop_link_down;
    return;
  }
  if (!passes_checks(f, size, column) || consume_control(f)) return;
  ++counters_.rx_frames;
  counters_.rx_bytes += size;
  if (!ingress_.admit(std::move(frame), size, now())) {
    ++counters_.drop_overflow;
    stats_.receive_overflow();
  }
}

/// FCS and size; counts what fails.
bool port::passes_checks(payload::frame& f, std::uint32_t size, unsigned column) {
  f.fcs_ok = wire::ethernet_fcs(f.data(), f.length) == f.fcs;
  const bool runt = size < shortest_frame || f.length < 14;
  if (!f.fcs_ok) {
    stats_.receive_bad(column, size, mtu_);
    if (runt || !ignore_fcs_) {
      ++(runt ? counters_.drop_runt : counters_.drop_fcs);
      return false;
    }
  } else if (runt) {
    stats_.undersize();
    ++counters_.drop_runt;
    return false;
  } else {
    stats_.receive(column, size, mtu_, f.data());
  }
  if (size <= mtu_) return true;
  stats_.too_long();
  ++counters_.drop_too_long;
  return false;
}

/// MAC control frames end here.
bool port::consume_control(const payload::frame& f) {
  wire::pause_frame p;
  switch (wire::decode_pause(f.data(), f.length, p)) {
    case wire::pause_kind::none:
      return false;
    case wire::pause_kind::unsupported:
      ++counters_.drop_control;
      break;
    case wire::pause_kind::pause:
      ++counters_.rx_pause;
      flow_.receive(p, now_ps());
      break;
  }
  stats_.control_frame();
  return true;
}

/// One change a cycle.
void port::take_carrier() {
  if (!carrier_changes_.can_pop()) return;
  const sim::time_ps at = carrier_changes_.front_arrival();
  const bool up = carrier_changes_.pop();
  if (up == carrier_) return;
  carrier_ = up;
  if (up) {
    carrier_back_at_ = at;
  } else {
    carrier_lost_at_ = at;
    carrier_back_at_ = ~sim::time_ps{0};
    ++counters_.link_losses;
    flow_.reset(now_ps());
  }
  if (firmware_ != nullptr) firmware_->push(register_bus::notice::link, now_ps() + notice_ps_);
}

void port::take_departures() {
  for (std::uint64_t left = departed_; left != 0; left &= left - 1) {
    const auto i = static_cast<unsigned>(__builtin_ctzll(left));
    departures[i].take_due([&](payload::departure&& d) { ingress_.depart(i, d); });
  }
  if (ingress_.above() != 0) ingress_.settle(now());
}

/// Whoever has paused the peer must know when there is room again.
void port::watch_departures() {
  const bool watches = flow_.wanted(ingress_.above()) != 0;
  if (watches != watches_)
    for (auto& d : departures) d.set_quiet(!watches);
  watches_ = watches;
  if (!watches) return;
  const sim::cycle_t falls = ingress_.falls_at();
  if (falls != sim::never) wake_at(std::max(falls, now() + 1));
}

void port::hand_out() {
  if (ingress_.empty()) return;
  if (!read_.is_free()) return read_.await();
  if (!rx_out.claim()) return;
  payload::frame_ptr f = ingress_.take();
  const sim::time_ps checked = domain().edge_time(domain().edge_at_or_after(f->stamp + receive_ps_));
  if (now_ps() > checked) spans_.leave(f->span, name(), "ingress buffer", now_ps(), sim::wait::arbitration);
  const sim::cycle_t beats = payload::beats_of(f->length, config_.datapath_bytes);
  f->first_byte = now() + 1;
  read_.start(beats);
  if (!departures[0].bound()) ingress_.depart(0, {now(), f->length, f->priority});
  rx_out.push(std::move(f));
  if (!ingress_.empty()) read_.await();
}

}  // namespace rnic::mac
