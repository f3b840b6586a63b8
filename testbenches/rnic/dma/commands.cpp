// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/dma_bench.h"
#include "testbenches/rnic/command_line.h"
#include "testbenches/rnic/option_groups.h"

namespace rnic::program {

namespace {

void add_dma_load(CLI::App& command, dma_options& o) {
  command
      .add_option("--test", o.tests,
                  "What is measured:\n"
                  "  lat_rd    one read at a time, from the request to its last byte\n"
                  "  lat_wrrd  a write and, behind it, a read of the same place, until the read's last byte\n"
                  "  bw_rd     as many reads as the DMA engine takes\n"
                  "  bw_wr     as many writes\n"
                  "  bw_rdwr   reads and writes in turn; each way counts by itself")
      ->delimiter(',')
      ->check(CLI::IsMember(bench::dma_test_names(), CLI::ignore_case))
      ->capture_default_str();
  command.add_option("--sizes", o.sizes, "Bytes of a transfer")
      ->delimiter(',')
      ->check(CLI::Range(1u, 1u << 20))
      ->capture_default_str();
  command.add_option("--offset", o.offset, "Of each transfer from a 64-byte line of host memory")
      ->check(CLI::Range(0u, 63u))
      ->capture_default_str();
  command
      .add_option("--count", o.count, "Transfers that count, behind a fourth of as many (0: 2000, bandwidths 20000)")
      ->check(CLI::Range(0u, 100'000'000u))
      ->capture_default_str();
  command.add_option("--jobs", o.jobs, "Measurements at a time, 0: one for each processor")
      ->check(CLI::Range(0u, 256u))
      ->capture_default_str();
}

void add_dma_buffer(CLI::App& command, dma_options& o) {
  command.add_option("--window", o.window, "Bytes of the host's buffer, e.g. 8192, 256K or 64M")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::uint64_t{64}, std::uint64_t{1} << 34))
      ->capture_default_str();
  command
      .add_option("--pattern", o.pattern, "Places in the window: by chance, or one behind the other, round and round")
      ->check(CLI::IsMember({"random", "sequential"}))
      ->capture_default_str();
  command
      .add_option(
          "--cache", o.cache,
          "What of the window is in the cache first: none of it, what the host has touched (pcie-bench's HWarm),\n"
          "or what the device has written (DWarm)")
      ->check(CLI::IsMember({"none", "host", "device"}))
      ->capture_default_str();
  command.add_option("--llc", o.llc, "Bytes of a window that stay cached when the host touches it (15M: E5-2620v2)")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::uint64_t{4096}, std::uint64_t{1} << 34))
      ->capture_default_str();
  command.add_option("--node", o.node, "Socket whose memory the buffer is in: the slot's or the other one")
      ->check(CLI::IsMember({"local", "remote"}))
      ->capture_default_str();
}

void add_dma_host(CLI::App& command, dma_options& o) {
  command
      .add_option(
          "--card", o.card,
          "What is in the slot: pcie-bench's card (its interface, the fetch of what it writes, and 217 ns of its\n"
          "engine for each transfer in a latency), or the profile's adapter")
      ->check(CLI::IsMember({"pcie-bench", "adapter"}))
      ->capture_default_str();
  const auto set = [&o](const char* path) {
    return [&o, path](const std::string& value) { o.common.assignments.push_back(path + ("=" + value)); };
  };
  command.add_flag_callback(
      "--iommu", [&o] { o.common.assignments.emplace_back("host.iommu.enable=true"); },
      "Addresses are translated (host.iommu.enable): a page that is not among the cached ones is walked for");
  command.add_option_function<std::string>("--pages", set("host.iommu.page"), "The IOMMU's pages (host.iommu.page)")
      ->check(CLI::IsMember({"4k", "2m", "1g"}));
  command
      .add_option_function<std::string>("--jitter", set("host.jitter.law"),
                                        "How long memory takes beyond its median (host.jitter.law): e5 and e3 as "
                                        "measured on\nXeons of these families")
      ->check(CLI::IsMember({"none", "exponential", "e5", "e3"}));
}

}  // namespace

void add_dma(command_line& line) {
  CLI::App& command =
      line.add("dma", "DMA reads and writes of host memory through a slot, as pcie-bench measures them");
  auto& o = line.keep(dma_options{});
  add_dma_load(command, o);
  add_dma_buffer(command, o);
  add_dma_host(command, o);
  add_common(command, o.common);
  command.footer(
      "Examples: what a socket away costs, where the IOMMU's translations end, what jitter does to tails:\n"
      "  rnic dma --test lat_rd --sizes 64 --cache none --node remote\n"
      "  rnic dma --test bw_rd --sizes 64 --iommu --window 1M\n"
      "  rnic dma --test lat_rd --sizes 64 --jitter e3 --count 100000");
  line.on(command, [&o] { return run_dma(o); });
}

}  // namespace rnic::program
