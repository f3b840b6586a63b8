// SPDX-License-Identifier: Apache-2.0
// Statistics (adapter control plane 4.20, 10).
#include "firmware/firmware.h"
#include "model/completion/completion_cr.h"
#include "model/mac/mac_cr.h"
#include "model/transport/transport_cr.h"

namespace rnic::firmware {

using register_bus::cr_base;
namespace stats = abi::eth_stats;

/// What queue pairs with this counter in their context have sent and received since it was cleared.
abi::status firmware::query_if_stat(command_request& r) {
  namespace f = abi::if_stat;
  const std::uint32_t index = r.modifier & ~f::reset;
  if (index > f::index_mask) return status::bad_index;
  const auto word = [this, index](std::uint32_t n) { return chip_.read(cr_base::traffic, 32 * index + 4 * n); };
  // The high word is read again where hardware may have carried into it meanwhile.
  const auto counter = [&word](std::uint32_t n) {
    std::uint32_t high = word(n), low = word(n + 1);
    for (std::uint32_t again = word(n); again != high; again = word(n)) {
      high = again;
      low = word(n + 1);
    }
    return std::uint64_t{high} << 32 | low;
  };
  const traffic now{counter(0), counter(2), counter(4), counter(6)};
  traffic& base = traffic_base_[index];
  out_.fill(0);
  put(f::interfaces, 1);
  put(f::rx_frames, now.rx_frames - base.rx_frames);
  put(f::rx_bytes, now.rx_bytes - base.rx_bytes);
  put(f::tx_frames, now.tx_frames - base.tx_frames);
  put(f::tx_bytes, now.tx_bytes - base.tx_bytes);
  if ((r.modifier & f::reset) != 0) base = now;
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
  if ((r.modifier & stats::reset) != 0) chip_.write_port(cr_base::mac, port - 1, mac::cr::reset_counters, 1);
  return write_mailbox(r, bytes);
}

/// Of the device or of one port; each half of the transport counts its own and reads zero for the other's. Completions
/// that found their queue full are the completion block's, which knows no ports.
abi::status firmware::diag_rprt(command_request& r) {
  if (r.modifier > config_.num_ports) return status::bad_param;
  constexpr std::uint32_t bytes = transport::cr::diagnostics_stride;
  const std::uint32_t first = transport::cr::diagnostics + r.modifier * bytes;
  out_.fill(0);
  for (std::uint32_t at = 0; at < bytes; at += 4) {
    const std::uint32_t requester = chip_.read(cr_base::transport, first + at);
    const std::uint32_t responder = chip_.read(cr_base::transport, transport::cr::responder_offset + first + at);
    abi::store32(out_.data(), at, requester + responder);
  }
  if (r.modifier == 0)
    abi::store32(out_.data(), abi::diag::cq_overflow,
                 chip_.read(cr_base::completion, completion::cr::count_cq_overflow));
  return write_mailbox(r, bytes);
}

}  // namespace rnic::firmware
