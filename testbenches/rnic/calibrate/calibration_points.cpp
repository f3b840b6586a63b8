// SPDX-License-Identifier: Apache-2.0
// The calibration set (calibration 6.1) and how each of its points is measured here.
#include "testbenches/rnic/calibrate/calibration.h"

namespace rnic::program {

namespace {

point_list make_published_points() {
  point_list p;
  using o = const common_options&;

  const std::pair<std::uint32_t, double> writes[] = {{128, 42.41}, {256, 50.55}, {512, 54.45}, {2048, 54.45}};
  for (const auto& [bytes, gbps] : writes)
    p.add("C01", p.bytes(bytes), "DMA write bandwidth, Gen3 x8", "Gb/s", gbps, 5, "pcie-bench, SIGCOMM'18",
          [bytes = bytes](o c) { return dma_write(c, bytes); });
  const std::pair<std::uint32_t, double> reads[] = {{64, 560}, {512, 706}, {2048, 1146}};
  for (const auto& [bytes, ns] : reads)
    p.add("C02", p.bytes(bytes), "DMA read latency, 250 ns of it the measuring card's", "ns", ns, 10,
          "pcie-bench, SIGCOMM'18", [bytes = bytes](o c) { return dma_read(c, bytes); });
  p.add("C03", "65536 B", "WRITE goodput, 40GbE", "Gb/s", 38.21, 2, "perftest, MT4103",
        [](o c) { return write_goodput(c, 40'000); });
  p.add("C04", "2 B", "WRITE latency, 40GbE", "us", 0.85, 10, "perftest, MT4103",
        [](o c) { return typical_latency(c, "write", 2, network::direct_40g); });
  const std::pair<std::uint32_t, double> latencies[] = {{2, 0.98}, {64, 1.09}, {128, 1.22}, {256, 1.84}, {2048, 3.18}};
  for (const auto& [bytes, us] : latencies)
    p.add("C05", p.bytes(bytes), "WRITE latency, 32 Gb/s and a switch", "us", us, 12, "perftest, MT4099",
          [bytes = bytes](o c) { return typical_latency(c, "write", bytes, network::switched_qdr); });
  const std::pair<std::uint32_t, double> in[] = {{32, 35.3}, {128, 31.0}, {256, 19.8}, {512, 11.5}};
  for (const auto& [bytes, mops] : in)
    p.add("C06a", p.bytes(bytes), "inbound WRITE rate, 56GbE", "M/s", mops, 10, "HERD, SIGCOMM'14, fig. 3b",
          p.rate(inbound(IBV_WR_RDMA_WRITE, bytes)));
  p.add("C06b", "16 B", "inbound READ rate, 56GbE", "M/s", 26, 10, "HERD, SIGCOMM'14, 3.2",
        p.rate(inbound(IBV_WR_RDMA_READ, 16)));
  p.add("C06c", "32 B", "outbound READ rate, 56GbE", "M/s", 22, 10, "HERD, SIGCOMM'14, 3.2", p.rate(outbound_read(32)));
  const std::pair<std::uint32_t, double> out[] = {{28, 38}, {64, 26.3}, {128, 17.8}, {200, 13.3}};
  for (const auto& [bytes, mops] : out)
    p.add("C06d", p.bytes(bytes), "outbound UC WRITE rate, inline, 56GbE", "M/s", mops, 10, "HERD, SIGCOMM'14, fig. 4b",
          p.rate(outbound_write(bytes, true)));
  const std::pair<unsigned, double> many[] = {{48, 10.8}, {88, 6.82}, {176, 2.34}, {792, 1.16}};
  for (const auto& [qps, mops] : many)
    p.add("C07", p.qps(qps), "READ rate of each of two that read from each other", "M/s", mops, 15,
          "FaSST, OSDI'16, raw data", p.rate(symmetric_read(qps)));
  p.add("C08", "16 QPs", "fetch and add rate", "M/s", 2.7, 10, "ATC'16, 5", p.rate(atomics()));
  p.add("C09a", "64 B", "WRITE rate of one queue pair, 32 Gb/s and a switch", "M/s", 5.47, 15, "perftest, MT4099",
        [](o c) { return one_queue_pair(c, "write"); });
  p.add("C09b", "64 B", "READ rate of one queue pair, 32 Gb/s and a switch", "M/s", 4.76, 15, "perftest, MT4099",
        [](o c) { return one_queue_pair(c, "read"); });
  const std::pair<std::uint64_t, double> sizes[] = {{4, 5.8}, {64, 1.72}, {1024, 1.55}};
  for (const auto& [megabytes, mops] : sizes)
    p.add("C10", p.megabytes(megabytes), "64 B WRITE rate to random places of a region", "M/s", mops, 15,
          "LITE, SOSP'17, fig. 5", p.rate(registered(64, megabytes)));
  // One piece more than V16's 232 B at both ends.
  p.add("C11", "264 B", "READ rate of each of two that read from each other, 48 queue pairs", "M/s", 6.99, 15,
        "FaSST, OSDI'16, raw data", p.rate(symmetric_read(48, 264)));
  return p;
}

}  // namespace

const std::vector<calibration_point>& calibration_points() {
  static const point_list list = make_published_points();
  return list.points();
}

}  // namespace rnic::program
