// SPDX-License-Identifier: Apache-2.0
// Published figures (calibration 2.1 and 2.2 without the calibration set) that nobody looked at while the mechanisms
// were built. V03, V09, V11 and V12 have since shown faults that were mended: the receive pipeline of responses, the
// room of UC contexts and what a miss of one holds up, and the size of the translation cache within its published
// range. V13 to V15 came with the card's fetch and the host's cache, which were fitted to other points of the same
// curves.
#include "testbenches/rnic/calibrate/calibration.h"

namespace rnic::program {

namespace {

point_list make_held_out_points() {
  point_list p;
  using o = const common_options&;
  using point = std::pair<std::uint32_t, double>;

  for (const auto& [bytes, ns] : {point{128, 586}, {256, 626}, {1024, 853}})
    p.add("V01", p.bytes(bytes), "DMA read latency, 250 ns of it the measuring card's", "ns", ns, 10,
          "pcie-bench, SIGCOMM'18", [bytes = bytes](o c) { return dma_read(c, bytes); });
  for (const auto& [bytes, us] :
       {point{32, 1.04}, {512, 2.04}, {1024, 2.42}, {4096, 3.74}, {8192, 4.82}, {16384, 7.08}, {65536, 19.97}})
    p.add("V02", p.bytes(bytes), "WRITE latency, 32 Gb/s and a switch", "us", us, 12, "perftest, MT4099",
          [bytes = bytes](o c) { return typical_latency(c, "write", bytes, network::switched_qdr); });
  for (const auto& [bytes, us] : {point{2, 2.34}, {64, 2.35}, {1024, 2.95}, {4096, 4.13}})
    p.add("V03", p.bytes(bytes), "READ latency, 56GbE and a switch", "us", us, 12, "perftest, ConnectX-3 FDR",
          [bytes = bytes](o c) { return typical_latency(c, "read", bytes, network::switched_fdr); });
  p.add("V04", "65536 B", "WRITE goodput, 56GbE", "Gb/s", 50.61, 5, "perftest, ConnectX-3 FDR",
        [](o c) { return write_goodput(c, 56'000); });
  for (const auto& [bytes, mops] : {point{64, 34.5}, {192, 24.1}, {1024, 6.2}})
    p.add("V05", p.bytes(bytes), "inbound WRITE rate, 56GbE", "M/s", mops, 10, "HERD, SIGCOMM'14, fig. 3b",
          p.rate(inbound(IBV_WR_RDMA_WRITE, bytes)));
  for (const auto& [bytes, mops] : {point{128, 21.6}, {256, 18}})
    p.add("V06", p.bytes(bytes), "outbound READ rate, 56GbE", "M/s", mops, 15, "HERD, SIGCOMM'14, fig. 4b",
          p.rate(outbound_read(bytes)));
  // The stairs as read off the figure end at 92 bytes, by four; requests of 89 bytes take a third line of 64.
  for (const auto& [bytes, mops] : {point{80, 26.3}, {148, 17.8}, {256, 10}})
    p.add("V07", p.bytes(bytes), "outbound UC WRITE rate, inline, 56GbE", "M/s", mops, 15, "HERD, SIGCOMM'14, fig. 4b",
          p.rate(outbound_write(bytes, true)));
  for (const auto& [bytes, mops] : {point{4, 21.5}, {32, 20.5}, {64, 17.8}, {128, 16.2}, {192, 15.8}, {256, 12.4}})
    p.add("V08", p.bytes(bytes), "outbound UC WRITE rate, not inline, 56GbE", "M/s", mops, 15,
          "HERD, SIGCOMM'14, fig. 4b", p.rate(outbound_write(bytes, false)));
  p.add("V09", "256 QPs", "outbound UC WRITE rate over many queue pairs, 56GbE", "M/s", 0.21 * 35, 15,
        "HERD, SIGCOMM'14, 3.3", p.rate(outbound_spread(256)));
  // The vectors of fig. 6 have these, and for 256 queue pairs 5.35: 21 % of what the same messages of 32 bytes reach
  // over few. What makes 64 and 100 queue pairs 17.9 and 15.5 in the figure, where their contexts have room, is not
  // known, and it is what 196 is off by: calibration 7.4.
  for (const auto& [qps, mops] : {point{144, 14.8}, {196, 8.9}})
    p.add("V09", p.qps(qps), "outbound UC WRITE rate over many queue pairs, 56GbE", "M/s", mops, 20,
          "HERD, SIGCOMM'14, fig. 6", p.rate(outbound_spread(qps)));
  for (const auto& [qps, mops] : {point{264, 1.84}, {336, 1.64}})
    p.add("V10", p.qps(qps), "READ rate of each of two that read from each other", "M/s", mops, 15,
          "FaSST, OSDI'16, raw data", p.rate(symmetric_read(qps)));
  for (const auto& [megabytes, mops] : {point{1, 5.8}, {16, 3.1}, {256, 1.62}})
    p.add("V11", p.megabytes(megabytes), "64 B WRITE rate to random places of a region", "M/s", mops, 15,
          "LITE, SOSP'17, fig. 5", p.rate(registered(64, megabytes)));
  // 129 and 257 bytes are those that the card's fetch was fitted to; the rest, and all that does not begin at a line of
  // host memory, is held out. 64 and 65 bytes are the fetch alone, 128 and 256 behind a line the card's packets.
  for (const auto& [bytes, gbps] : {point{16, 6.09},
                                    {64, 24.27},
                                    {65, 24.61},
                                    {192, 40.42},
                                    {320, 46.55},
                                    {513, 46.11},
                                    {640, 51.53},
                                    {1025, 51.35}})
    p.add("V13", p.bytes(bytes), "DMA write bandwidth, Gen3 x8", "Gb/s", gbps, 5, "pcie-bench, SIGCOMM'18, data",
          [bytes = bytes](o c) { return dma_write(c, bytes); });
  struct place {
    std::uint32_t bytes, offset;
    double gbps;
  };
  for (const auto& [bytes, offset, gbps] :
       {place{128, 1, 36.95}, {128, 4, 39.22}, {128, 48, 39.66}, {256, 4, 45.66}, {256, 16, 46.68}, {1024, 4, 51.31}})
    p.add("V14", p.bytes(bytes) + " at " + std::to_string(offset),
          "DMA write bandwidth, so far behind a line of memory", "Gb/s", gbps, 5, "pcie-bench, SIGCOMM'18, data",
          [bytes = bytes, offset = offset](o c) { return dma_write(c, bytes, offset); });
  // The least and the largest window are those that the allocation was fitted to.
  for (const auto& [megabytes, ns] : {point{2, 24.2}, {3, 46.8}, {4, 58.2}, {8, 75.3}, {16, 83.8}})
    p.add("V15", p.megabytes(megabytes), "read behind its write, beyond that of 4 KiB, memory not in the cache", "ns",
          ns, 15, "pcie-bench, SIGCOMM'18, data",
          [megabytes = megabytes](o c) { return write_and_read(c, 8, std::uint64_t{megabytes} << 20); });
  // 29.1 Gb/s of payload at 1 MB say that the 40 Gb/s of this cluster were 32 after coding.
  const auto at_qdr = [](rate_test t) {
    t.rate_mbps = 32'000;
    return t;
  };
  for (const auto& [megabytes, mops] : {point{1, 3.55}, {4, 3.45}, {16, 2.8}, {64, 1.4}, {256, 1.27}, {1024, 1.23}})
    p.add("V12", p.megabytes(megabytes), "1 KiB WRITE rate to random places of a region", "M/s", mops, 15,
          "LITE, SOSP'17, fig. 5", p.rate(at_qdr(registered(1024, megabytes))));
  // C11 is of the same curve. Only what 264 B take longer than 232 B was fitted; where the curve lies is C07's, and
  // HERD's outbound READs (V06) say what 256 B take of it.
  for (const auto& [bytes, mops] : {point{136, 10.39}, {232, 9.61}, {296, 6.84}, {392, 6.49}})
    p.add("V16", p.bytes(bytes), "READ rate of each of two that read from each other, 48 queue pairs", "M/s", mops, 15,
          "FaSST, OSDI'16, raw data", p.rate(symmetric_read(48, bytes)));
  return p;
}

}  // namespace

const std::vector<calibration_point>& held_out_points() {
  static const point_list list = make_held_out_points();
  return list.points();
}

}  // namespace rnic::program
