// SPDX-License-Identifier: Apache-2.0
// Published figures (calibration 2.3) for connectx5_100g. None of a ConnectX-5 is known well enough: these are of the
// two generations before, ConnectX-4 and Connect-IB, from which the profile's rates come as well.
#include "testbenches/rnic/calibrate/calibration.h"

namespace rnic::program {

namespace {

rate_test at_100g(rate_test t) {
  t.rate_mbps = 100'000;
  return t;
}

point_list make_connectx5_points() {
  point_list p;
  using o = const common_options&;
  using point = std::pair<std::uint32_t, double>;

  p.add("K01", "65536 B", "WRITE goodput, 100GbE, MTU 1024", "Gb/s", 92.48, 2, "perftest, 100GbE RoCE v2",
        [](o c) { return write_goodput(c, 100'000, 1024); });
  for (const auto& [bytes, us] : {point{32, 0.82}, {1024, 1.565}, {4096, 2.265}, {32768, 4.57}})
    p.add("K02", p.bytes(bytes), "SEND latency, 97 Gb/s", "us", us, 15, "perftest, MT27700",
          [bytes = bytes](o c) { return typical_latency(c, "send", bytes, network::direct_edr); });
  p.add("K03a", "16 B", "inbound READ rate, 100GbE", "M/s", 121.6, 10, "ATC'16, Connect-IB",
        p.rate(at_100g(inbound(IBV_WR_RDMA_READ, 16))));
  p.add("K03b", "32 B", "outbound READ rate, 100GbE", "M/s", 88, 10, "ATC'16, Connect-IB",
        p.rate(at_100g(outbound_read(32))));
  p.add("K04a", "1 counter", "fetch and add rate", "M/s", 2.24, 25, "ATC'16, Connect-IB", p.rate(spread_atomics(1)));
  p.add("K04b", "4096", "fetch and add rate, any of so many counters", "M/s", 52, 25, "ATC'16, Connect-IB",
        p.rate(spread_atomics(4096)));
  for (const auto& [qps, mops] : {point{84, 50.3}, {154, 47.7}, {252, 46.3}})
    p.add("K05", p.qps(qps), "READ rate of each of two that read from each other", "M/s", mops, 15,
          "FaSST, OSDI'16, raw data, Connect-IB", p.rate(at_100g(symmetric_read(qps))));
  return p;
}

}  // namespace

const std::vector<calibration_point>& connectx5_points() {
  static const point_list list = make_connectx5_points();
  return list.points();
}

}  // namespace rnic::program
