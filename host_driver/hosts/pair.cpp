// SPDX-License-Identifier: Apache-2.0
#include "host_driver/hosts/pair_if.h"

namespace rnic::hosts {

std::vector<endpoint> make_ends(node& n, const std::vector<unsigned>& ports) {
  const bool bonded = n.bond() != nullptr && n.functions() == 0;  // one port to programs
  std::vector<unsigned> own = n.own_ports(ports);
  if (own.empty()) own = {1};  // it has another one, without a cable
  std::vector<endpoint> ends(bonded ? 1 : own.size());
  for (std::size_t i = 0; i < ends.size(); ++i) {
    ends[i].of = &n;
    ends[i].device = &n.device();
    ends[i].bus = &n.bus();
    ends[i].port = bonded ? 1 : own[i];
    if (ends.size() == 2) ends[i].other = &ends[1 - i];
  }
  return ends;
}

std::uint64_t line_busy_ps(std::uint64_t frames, std::uint64_t bytes, std::uint64_t pauses, std::uint32_t rate_mbps) {
  constexpr std::uint64_t overhead_bytes = 20;  // preamble and gap (IEEE 802.3, 4.2.3.2 and 4.4.2)
  constexpr std::uint64_t pause_bytes = 64;     // with FCS (802.3, 31.4.1: the least that there is)
  return (bytes + pause_bytes * pauses + overhead_bytes * (frames + pauses)) * 8 * sim::ps_per_us / rate_mbps;
}

std::uint64_t line_busy_ps(const sim::statistics& counted, const std::string& host, unsigned port, line_end end,
                           std::uint32_t rate_mbps) {
  const std::string of = host + ".adapter.port" + std::to_string(port) + (end == line_end::sent ? ".tx_" : ".rx_");
  return line_busy_ps(counted.value(of + "frames"), counted.value(of + "bytes"), counted.value(of + "pause"),
                      rate_mbps);
}

}  // namespace rnic::hosts
