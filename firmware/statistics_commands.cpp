// SPDX-License-Identifier: Apache-2.0
// Statistics (adapter control plane 4.20, 10).
#include "firmware/firmware.h"
#include "model/mac/mac_cr.h"
#include "model/transport/transport_cr.h"

namespace rnic::firmware {

using register_bus::cr_base;
namespace stats = abi::eth_stats;

/// Good frames and bytes of a port since its counters were cleared, over all priorities and untagged frames.
firmware::traffic firmware::port_traffic(unsigned port) {
  const auto word = [this, port](std::size_t offset) {
    return chip_.read_port(cr_base::mac, port, mac::cr::eth_stats + static_cast<std::uint32_t>(offset));
  };
  const auto counter = [&word](std::size_t offset) { return std::uint64_t{word(offset)} << 32 | word(offset + 4); };
  traffic t;
  for (std::size_t priority = 0; priority < 9; ++priority) {
    t.rx_frames += counter(stats::rx_frames + 24 * priority);
    t.rx_bytes += counter(stats::rx_good_octets + 24 * priority);
    t.tx_frames += counter(stats::tx_frames + 24 * priority);
    t.tx_bytes += counter(stats::tx_good_octets + 24 * priority);
  }
  return t;
}

/// Approximation: the transport has no counters by index. Counter n is the default counter of port n + 1, which is
/// the order in which the driver allocates them, and shows all of the port's traffic; the others read zero.
abi::status firmware::query_if_stat(command_request& r) {
  namespace f = abi::if_stat;
  const std::uint32_t index = r.modifier & ~f::reset;
  if (index > f::index_mask) return status::bad_index;
  out_.fill(0);
  put(f::interfaces, 1);
  if (index < config_.num_ports) {
    const traffic now = port_traffic(index);
    traffic& base = traffic_base_[index];
    put(f::rx_frames, now.rx_frames - base.rx_frames);
    put(f::rx_bytes, now.rx_bytes - base.rx_bytes);
    put(f::tx_frames, now.tx_frames - base.tx_frames);
    put(f::tx_bytes, now.tx_bytes - base.tx_bytes);
    if ((r.modifier & f::reset) != 0) base = now;
  }
  return write_mailbox(r, 0x100);
}

abi::status firmware::dump_eth_stats(command_request& r) {
  const std::uint32_t port = r.modifier & 0xff;
  if (!valid_port(port)) return status::bad_param;
  const bool flow = (r.modifier & stats::flow_control) != 0;
  const std::uint32_t base = flow ? mac::cr::flow_stats : mac::cr::eth_stats;
  const std::uint32_t bytes = flow ? mac::cr::flow_stats_bytes : mac::cr::eth_stats_bytes;
  out_.fill(0);
  for (std::uint32_t at = 0; at < bytes; at += 4)
    abi::store32(out_.data(), at, chip_.read_port(cr_base::mac, port - 1, base + at));
  if ((r.modifier & stats::reset) != 0) {
    // What QUERY_IF_STAT counts goes on across the clearing of the registers: the base moves below zero.
    const traffic now = port_traffic(port - 1);
    traffic& t = traffic_base_[port - 1];
    t = {t.rx_frames - now.rx_frames, t.rx_bytes - now.rx_bytes, t.tx_frames - now.tx_frames,
         t.tx_bytes - now.tx_bytes};
    chip_.write_port(cr_base::mac, port - 1, mac::cr::reset_counters, 1);
  }
  return write_mailbox(r, bytes);
}

/// Counters are kept for the device; each half of the transport counts its own and reads zero for the other's.
abi::status firmware::diag_rprt(command_request& r) {
  if (r.modifier > config_.num_ports) return status::bad_param;
  constexpr std::uint32_t bytes = 0x200;
  out_.fill(0);
  for (std::uint32_t at = 0; at < bytes; at += 4) {
    const std::uint32_t requester = chip_.read(cr_base::transport, transport::cr::diagnostics + at);
    const std::uint32_t responder =
        chip_.read(cr_base::transport, transport::cr::responder_offset + transport::cr::diagnostics + at);
    abi::store32(out_.data(), at, requester + responder);
  }
  return write_mailbox(r, bytes);
}

}  // namespace rnic::firmware
