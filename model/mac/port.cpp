// SPDX-License-Identifier: Apache-2.0
#include "model/mac/port.h"

namespace rnic::mac {

namespace {
void require(bool ok, const std::string& what) {
  if (!ok) throw sim::config_error(what);
}
}  // namespace

port::port(std::string name, sim::clock_domain& domain, const config& cfg, payload::frame_pool& pool,
           sim::span_recorder& spans)
    : clocked_block(name, domain),
      tx_in(*this),
      rx_out(*this),
      credits_out{sim::fifo_out<transport::egress_credit>(*this), sim::fifo_out<transport::egress_credit>(*this)},
      cnm_out(*this),
      departures{sim::fifo_in<payload::departure>(*this), sim::fifo_in<payload::departure>(*this),
                 sim::fifo_in<payload::departure>(*this)},
      config_(sim::checked(cfg, this->name())),
      set_(cfg),
      flow_(cfg.rate_mbps),
      carrier_(*this),
      credit_returns_(credits_out, config_.index),
      receive_(*this, {config_, set_, flow_, stats_, counters_, pool, spans}, rx_out, cnm_out, departures, carrier_),
      turnaround_(*this, {config_, set_, flow_, stats_, counters_, pool, spans}, credit_returns_, receive_),
      line_(*this, config_, pool, turnaround_, counters_),
      transmit_(*this, {config_, set_, flow_, stats_, counters_, pool, spans}, tx_in, credit_returns_, receive_,
                turnaround_, line_) {
  const std::string& n = this->name();
  require(cfg.datapath_bytes >= 1, n + ".datapath_bytes: must be at least 1");
  require(cfg.xoff_bytes <= cfg.ingress_bytes, n + ".xoff_bytes: must not be above ingress_bytes");
  require(cfg.xon_bytes <= ingress_thresholds(cfg).xoff, n + ".xon_bytes: must not be above xoff_bytes");
}

void port::tick() {
  carrier_.work([this] {
    ++counters_.link_losses;
    flow_.reset(now_ps());
  });
  line_.finish_open();
  turnaround_.finish();
  receive_.work(link_up());
  transmit_.work(link_up());
  receive_.watch_departures(turnaround_.waits_for_buffer());
  if (pauses_.watched()) tell_gauges();
}

void port::tell_gauges() {
  std::size_t frames = 0;
  for (unsigned p = 0; p < 8; ++p) {
    frames += transmit_.queues().depth(p);
    ingress_bytes_[p].tell(receive_.buffers().occupancy(p), now_ps());
  }
  egress_frames_.tell(frames, now_ps());
  pauses_.look(flow_, now_ps());
}

}  // namespace rnic::mac
