// SPDX-License-Identifier: Apache-2.0
// The port on the internal bus, and its counters by name.
#include "model/mac/mac_cr.h"
#include "model/mac/port.h"
#include "model/wire/ethernet.h"

namespace rnic::mac {

std::uint32_t port::read_flow_stats(std::uint32_t offset) {
  flow_.settle(now_ps());
  const flow_control::counters& c = flow_.of(offset / 64);
  const std::uint64_t values[8] = {c.rx_frames,
                                   c.rx_duration_ps / sim::ps_per_us,
                                   c.rx_transitions,
                                   c.tx_frames,
                                   c.tx_duration_ps / sim::ps_per_us,
                                   c.tx_transitions,
                                   0,
                                   0};
  const std::uint64_t v = values[offset % 64 / 8];
  return static_cast<std::uint32_t>(offset % 8 == 0 ? v >> 32 : v);
}

std::uint32_t port::cr_read(std::uint32_t offset) {
  if (offset >= cr::eth_stats && offset < cr::eth_stats + cr::eth_stats_bytes)
    return stats_.word((offset - cr::eth_stats) & ~3u);
  if (offset >= cr::flow_stats && offset < cr::flow_stats + cr::flow_stats_bytes)
    return read_flow_stats((offset - cr::flow_stats) & ~3u);
  if (offset >= cr::scheduler && offset < cr::scheduler + 32) {
    const egress::share& s = transmit_.queues().classes[(offset - cr::scheduler) / 4];
    return static_cast<std::uint32_t>(s.group) << 16 | s.bandwidth;
  }
  if (offset >= cr::max_rate && offset < cr::max_rate + 32)
    return transmit_.queues().classes[(offset - cr::max_rate) / 4].max_mbps;
  switch (offset) {
    case cr::port_control:
      return set_.up ? 1 : 0;
    case cr::port_status:
      return (link_up() ? 1u : 0u) | (line_.attached() && carrier_.there() ? 2u : 0u);
    case cr::link_rate:
      return config_.rate_mbps;
    case cr::link_speed_code:
      return cr::speed_code(config_.rate_mbps);
    case cr::link_medium:
      if (!line_.attached() || !carrier_.there()) return cr::medium_none;
      return config_.metres <= cr::longest_copper_metres ? cr::medium_copper : cr::medium_fibre;
    case cr::mtu:
      return set_.mtu;
    case cr::default_priority:
      return set_.default_priority;
    case cr::ignore_fcs:
      return set_.ignore_fcs ? 1 : 0;
    case cr::mac_high:
      return static_cast<std::uint32_t>(wire::to_u64(set_.mac) >> 32);
    case cr::mac_low:
      return static_cast<std::uint32_t>(wire::to_u64(set_.mac));
    case cr::pptx:
      return flow_.send_pause ? 1 : 0;
    case cr::pprx:
      return flow_.obey_pause ? 1 : 0;
    case cr::pfctx:
      return flow_.send_pfc;
    case cr::pfcrx:
      return flow_.obey_pfc;
    case cr::paused:
      return flow_.paused(now_ps());
    case cr::arbitration:
      return static_cast<std::uint32_t>(transmit_.queues().mode);
    case cr::prio2tc:
      return transmit_.queues().prio2tc;
    case cr::takes_cnms:
      return set_.takes_cnms ? 1 : 0;
    case cr::dropped_cnms:
      return static_cast<std::uint32_t>(counters_.drop_cnm);
    default:
      return 0;
  }
}

void port::cr_write(std::uint32_t offset, std::uint32_t value) {
  if (offset >= cr::scheduler && offset < cr::scheduler + 32) {
    return transmit_.queues().set_share((offset - cr::scheduler) / 4, static_cast<std::uint16_t>(value >> 16),
                                        static_cast<std::uint16_t>(value));
  }
  if (offset >= cr::max_rate && offset < cr::max_rate + 32) {
    transmit_.queues().limit((offset - cr::max_rate) / 4, value < config_.rate_mbps ? value : 0);
    return wake_next();
  }
  const bool bit0 = (value & 1) != 0;
  switch (offset) {
    case cr::port_control:
      set_up(bit0);
      break;
    case cr::mtu:
      set_.mtu = static_cast<std::uint16_t>(value);
      break;
    case cr::default_priority:
      set_.default_priority = value & 7;
      break;
    case cr::ignore_fcs:
      set_.ignore_fcs = bit0;
      break;
    case cr::takes_cnms:
      set_.takes_cnms = bit0;
      break;
    case cr::mac_high:
      set_.mac = wire::mac_from_u64((std::uint64_t{value} & 0xffff) << 32 | (wire::to_u64(set_.mac) & 0xffffffff));
      break;
    case cr::mac_low:
      set_.mac = wire::mac_from_u64((wire::to_u64(set_.mac) & ~std::uint64_t{0xffffffff}) | value);
      break;
    case cr::pptx:
      flow_.send_pause = bit0;
      break;
    case cr::pprx:
      flow_.obey_pause = bit0;
      break;
    case cr::pfctx:
      flow_.send_pfc = static_cast<std::uint8_t>(value);
      break;
    case cr::pfcrx:
      flow_.obey_pfc = static_cast<std::uint8_t>(value);
      break;
    case cr::arbitration:
      if (value <= 2) transmit_.queues().mode = static_cast<mac::arbitration>(value);
      break;
    case cr::prio2tc:
      transmit_.queues().prio2tc = value & 0x77777777;
      break;
    case cr::reset_counters:
      stats_.clear();
      flow_.clear_counters(now_ps());
      break;
    default:
      break;
  }
  wake_next();  // what has been set may let something begin
}

void port::set_up(bool up) {
  if (set_.up && !up) flow_.reset(now_ps());
  set_.up = up;
}

void port::device_reset() {
  set_up(false);
  flow_.send_pause = flow_.obey_pause = false;
  flow_.send_pfc = flow_.obey_pfc = 0;
  flow_.clear_counters(now_ps());
  stats_.clear();
  set_ = port_settings(config_);
  transmit_.queues().mode = config_.egress_arbitration;
  transmit_.queues().prio2tc = egress::own_class_each;
  for (unsigned tc = 0; tc < 8; ++tc) {  // with what the classes have had, which counts in their groups of before
    const egress::share by_default;
    transmit_.queues().set_share(tc, by_default.group, by_default.bandwidth);
  }
  for (unsigned tc = 0; tc < 8; ++tc) transmit_.queues().limit(tc, 0);
  wake_next();
}

void port::announce(sim::statistics& to) {
  const counters& c = counters_;
  const std::pair<const char*, const std::uint64_t*> all[] = {{"tx_frames", &c.tx_frames},
                                                              {"tx_bytes", &c.tx_bytes},
                                                              {"rx_frames", &c.rx_frames},
                                                              {"rx_bytes", &c.rx_bytes},
                                                              {"tx_pause", &c.tx_pause},
                                                              {"rx_pause", &c.rx_pause},
                                                              {"looped", &c.looped},
                                                              {"blocked_by_pause", &c.blocked_by_pause},
                                                              {"drop_fcs", &c.drop_fcs},
                                                              {"drop_runt", &c.drop_runt},
                                                              {"drop_too_long", &c.drop_too_long},
                                                              {"drop_overflow", &c.drop_overflow},
                                                              {"drop_control", &c.drop_control},
                                                              {"rx_cnm", &c.rx_cnm},
                                                              {"drop_cnm", &c.drop_cnm},
                                                              {"drop_link_down", &c.drop_link_down},
                                                              {"drop_tx_link_down", &c.drop_tx_link_down},
                                                              {"link_losses", &c.link_losses}};
  for (const auto& [counter, value] : all) to.add(name() + "." + counter, *value);
  flow_.announce(name() + ".pause", to, [this] { return now_ps(); });
  to.add(name() + " egress frames", egress_frames_);
  for (unsigned p = 0; p < 8; ++p)
    to.add(name() + " priority " + std::to_string(p) + " ingress bytes", ingress_bytes_[p]);
  pauses_.announce(name(), to);
}

}  // namespace rnic::mac
