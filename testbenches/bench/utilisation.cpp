// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/utilisation.h"

#include "testbenches/bench/two_nodes.h"

namespace rnic::bench {

namespace {

struct resource {
  const char* name;
  const char* node;
  const char* counter;  // picoseconds in use
};

constexpr unsigned wire_resources = 2;
constexpr std::array<resource, utilisation::resources - wire_resources> links{{
    {"PCIe, adapter a to host", "a", ".adapter.pcie.link.busy_ps"},
    {"PCIe, host a to adapter", "a", ".root_complex.link.busy_ps"},
    {"PCIe, adapter b to host", "b", ".adapter.pcie.link.busy_ps"},
    {"PCIe, host b to adapter", "b", ".root_complex.link.busy_ps"},
    {"processor a", "a", "_bus.busy_ps"},
    {"processor b", "b", "_bus.busy_ps"},
}};
constexpr std::uint64_t wire_overhead_bytes = 20;  // preamble and gap (IEEE 802.3, 4.2.3.2 and 4.4.2)

std::uint64_t wire_ps(node& n, std::uint32_t rate_mbps) {
  const mac::port::counters& c = n.nic().port(0).count();
  return (c.tx_bytes + wire_overhead_bytes * c.tx_frames) * 8'000'000 / rate_mbps;
}

const char* name_of(unsigned index) {
  if (index == 0) return "wire, a to b";
  if (index == 1) return "wire, b to a";
  return links[index - wire_resources].name;
}

}  // namespace

utilisation measure_utilisation(two_nodes& system) {
  utilisation u;
  u.at = system.now_ps();
  const std::uint32_t rate = system.config().node.adapter.port.rate_mbps;
  u.busy_ps[0] = wire_ps(system.node_a(), rate);
  u.busy_ps[1] = wire_ps(system.node_b(), rate);
  for (unsigned i = 0; i < links.size(); ++i)
    u.busy_ps[wire_resources + i] = system.statistics().value(std::string(links[i].node) + links[i].counter);
  return u;
}

std::string limited_by(two_nodes& system, const utilisation& before, const utilisation& after, double messages_per_qp,
                       bool reads) {
  constexpr double saturated = 0.92;
  const auto elapsed = static_cast<double>(after.at - before.at);
  unsigned busiest = 0;
  for (unsigned i = 1; i < utilisation::resources; ++i)
    if (after.busy_ps[i] - before.busy_ps[i] > after.busy_ps[busiest] - before.busy_ps[busiest]) busiest = i;
  if (static_cast<double>(after.busy_ps[busiest] - before.busy_ps[busiest]) >= saturated * elapsed)
    return name_of(busiest);
  const adapter::config& a = system.config().node.adapter;
  const double cycles = elapsed * a.clock_khz / 1e9;
  const unsigned service = reads ? a.requester.read_wqe_cycles : a.requester.wqe_cycles;
  if (messages_per_qp * service >= saturated * cycles) return "queue pair service (adapter.requester.wqe_cycles)";
  return "window (depth and latency)";
}

}  // namespace rnic::bench
