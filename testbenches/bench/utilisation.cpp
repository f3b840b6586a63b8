// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/utilisation.h"

#include <algorithm>

#include "testbenches/bench/two_nodes.h"

namespace rnic::bench {

namespace {

enum class unit : std::uint8_t { ps, cycles };

struct resource {
  const char* name;
  const char* counter;  // time in use
  unit in;
};

constexpr unsigned wire_resources = 2;
constexpr std::array<resource, utilisation::resources - wire_resources> counted{{
    {"PCIe, adapter a to host", "a.adapter.pcie.link.busy_ps", unit::ps},
    {"PCIe, host a to adapter", "a.root_complex.link.busy_ps", unit::ps},
    {"PCIe, adapter b to host", "b.adapter.pcie.link.busy_ps", unit::ps},
    {"PCIe, host b to adapter", "b.root_complex.link.busy_ps", unit::ps},
    {"processor a", "a_bus.busy_ps", unit::ps},
    {"processor b", "b_bus.busy_ps", unit::ps},
    {"DMA interface of adapter a", "a.adapter.pcie.dma.interface_busy_ps", unit::ps},
    {"DMA interface of adapter b", "b.adapter.pcie.dma.interface_busy_ps", unit::ps},
    {"responder of adapter a", "a.adapter.responder.check_busy_cycles", unit::cycles},
    {"responder of adapter b", "b.adapter.responder.check_busy_cycles", unit::cycles},
}};
constexpr std::uint64_t wire_overhead_bytes = 20;  // preamble and gap (IEEE 802.3, 4.2.3.2 and 4.4.2)

std::uint64_t wire_ps(node& n, std::uint32_t rate_mbps) {
  const mac::port::counters& c = n.nic().port(0).count();
  return (c.tx_bytes + wire_overhead_bytes * c.tx_frames) * 8'000'000 / rate_mbps;
}

const char* name_of(unsigned index) {
  if (index == 0) return "wire, a to b";
  if (index == 1) return "wire, b to a";
  return counted[index - wire_resources].name;
}

}  // namespace

utilisation measure_utilisation(two_nodes& system) {
  utilisation u;
  u.at = system.now_ps();
  const adapter::config& nic = system.config().node.adapter;
  const auto from_cycles = [&](std::uint64_t cycles) { return cycles * 1'000'000 / nic.clock_khz * 1000; };
  u.busy_ps[0] = wire_ps(system.node_a(), nic.port.rate_mbps);
  u.busy_ps[1] = wire_ps(system.node_b(), nic.port.rate_mbps);
  for (unsigned i = 0; i < counted.size(); ++i) {
    const std::uint64_t value = system.statistics().value(counted[i].counter);
    u.busy_ps[wire_resources + i] = counted[i].in == unit::ps ? value : from_cycles(value);
  }
  u.units_ps[0] = from_cycles(system.statistics().value("a.adapter.requester.unit_busy_cycles"));
  u.units_ps[1] = from_cycles(system.statistics().value("b.adapter.requester.unit_busy_cycles"));
  return u;
}

std::string limited_by(two_nodes& system, const utilisation& before, const utilisation& after, unsigned qps) {
  constexpr double saturated = 0.92;
  const auto elapsed = static_cast<double>(after.at - before.at);
  const auto in_use = [&](unsigned i) { return after.busy_ps[i] - before.busy_ps[i]; };
  unsigned busiest = 0;
  for (unsigned i = 1; i < utilisation::resources; ++i)
    if (in_use(i) > in_use(busiest)) busiest = i;
  if (static_cast<double>(in_use(busiest)) >= saturated * elapsed) return name_of(busiest);
  const unsigned units = std::min(qps, system.config().node.adapter.requester.processing_units);
  for (unsigned i = 0; i < 2; ++i)
    if (static_cast<double>(after.units_ps[i] - before.units_ps[i]) >= saturated * elapsed * units)
      return i == 0 ? "processing units of adapter a" : "processing units of adapter b";
  return "window (depth and latency)";
}

}  // namespace rnic::bench
