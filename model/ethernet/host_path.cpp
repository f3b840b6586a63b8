// SPDX-License-Identifier: Apache-2.0
#include "model/ethernet/host_path.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "model/sim/timebase.h"

namespace rnic::ethernet {

namespace {

constexpr std::uint32_t shortest = 14;  // addresses and type

}  // namespace

host_path::host_path(std::string name, sim::clock_domain& domain, const config& cfg,
                     const std::array<const gid::gid_table*, ports>& gids, tlm::frame_pool& pool,
                     sim::statistics& stats)
    : clocked_block(std::move(name), domain),
      rx_in{sim::fifo_in<tlm::frame_ptr>(*this), sim::fifo_in<tlm::frame_ptr>(*this)},
      credit_in{sim::fifo_in<transport::egress_credit>(*this), sim::fifo_in<transport::egress_credit>(*this)},
      tx_out(*this),
      config_(cfg),
      gids_(gids),
      pool_(pool),
      from_host_(this->name() + ".from_host", *this, cfg.send_frames),
      to_host_(cfg.receive_frames),
      to_host_cycles_(
          std::max<sim::cycle_t>(1, domain.edge_at_or_after(sim::time_ps{cfg.to_host_ns} * sim::ps_per_ns))) {
  if (cfg.receive_frames == 0 || cfg.send_frames == 0 || cfg.egress_frames == 0)
    throw sim::config_error(this->name() + ": rings must have room for a frame");
  for (auto& port : credits_) port.fill(cfg.egress_frames);
  const std::pair<const char*, const std::uint64_t*> announced[] = {
      {"received", &counters_.received},
      {"sent", &counters_.sent},
      {"drop.not_our_mac", &counters_.drop_not_our_mac},
      {"drop.no_client", &counters_.drop_no_client},
      {"drop.receive_full", &counters_.drop_receive_full},
      {"drop.send_full", &counters_.drop_send_full},
  };
  for (const auto& [counter, value] : announced) stats.add(this->name() + "." + counter, *value);
}

bool host_path::send(unsigned port, unsigned priority, const std::uint8_t* frame, std::size_t length) {
  if (length < shortest || length > tlm::frame::capacity || from_host_.size() >= config_.send_frames) {
    ++counters_.drop_send_full;
    return false;
  }
  tlm::frame_ptr f = pool_.get();
  f->begin = 0;
  f->length = static_cast<std::uint32_t>(length);
  f->port = static_cast<std::uint8_t>(port);
  f->priority = static_cast<std::uint8_t>(priority & 7u);
  f->source = static_cast<std::uint8_t>(transport::egress_source::ethernet);
  std::memcpy(f->data(), frame, length);
  from_host_.push(std::move(f), domain().base().now_ps() + sim::time_ps{config_.from_host_ns} * sim::ps_per_ns);
  return true;
}

void host_path::tick() {
  for (unsigned i = 0; i < ports; ++i)
    while (credit_in[i].can_pop()) {
      const transport::egress_credit c = credit_in[i].pop();
      ++credits_[i][c.priority & 7u];
    }
  hand_over();
  take();
  transmit();
}

/// At most one frame from each port in a cycle.
void host_path::take() {
  for (unsigned i = 0; i < ports; ++i) {
    if (!rx_in[i].can_pop()) continue;
    tlm::frame_ptr f = rx_in[i].pop();
    wire::mac_address dmac;
    std::copy_n(f->data(), dmac.size(), dmac.begin());
    if (!gids_[i]->accepts(dmac)) {
      ++counters_.drop_not_our_mac;
    } else if (client_ == nullptr) {
      ++counters_.drop_no_client;
    } else if (count_ == to_host_.size()) {
      ++counters_.drop_receive_full;
    } else {
      waiting& w = to_host_[(head_ + count_++) % to_host_.size()];
      w = {std::move(f), now() + to_host_cycles_};
      wake_at(w.due);
    }
  }
}

void host_path::hand_over() {
  while (count_ != 0) {
    waiting& w = to_host_[head_];
    if (w.due > now()) return wake_at(w.due);
    head_ = (head_ + 1) % to_host_.size();
    --count_;
    ++counters_.received;
    const unsigned port = w.frame->port;
    client_->frame_received(port, std::move(w.frame));
  }
}

/// The frame in front goes when its port has room; software's frames keep their order.
void host_path::transmit() {
  if (!from_host_.can_pop()) return;
  const tlm::frame& f = *from_host_.front();
  std::uint32_t& credits = credits_[f.port % ports][f.priority];
  if (credits == 0 || !tx_out.can_push()) return;  // the credit or the channel wakes us
  --credits;
  ++counters_.sent;
  tx_out.push(from_host_.pop());
}

}  // namespace rnic::ethernet
