// SPDX-License-Identifier: Apache-2.0
// Any file as a capture, replayed: the run comes to an end, and what happened fits the capture.
#include <memory>
#include <string>

#include "testbenches/bench/usage_error.h"
#include "testbenches/fuzz/file_in_memory.h"
#include "testbenches/fuzz/property.h"
#include "testbenches/fuzz/snapshot.h"
#include "testbenches/replay/compare.h"
#include "testbenches/replay/packets.h"
#include "testbenches/replay/plan.h"
#include "testbenches/replay/run.h"

namespace rnic::fuzz {
namespace {

constexpr std::size_t most_frames = 400;
constexpr std::uint64_t most_read_bytes = 64 << 20;  // one READ may ask for 2 GiB: 956 MB took more than a minute

std::uint64_t read_bytes(const replay::plan& p) {
  std::uint64_t bytes = 0;
  for (const replay::captured_frame& f : p.frames)
    bytes += replay::is_read_request(f.packet) ? f.packet.reth.length : 0;
  return bytes;
}

void run(const std::string& path) {
  try {
    replay::plan p = replay::make_plan(path, "");
    // What a run of rnic replay leaves out as well, or what would only take long.
    if (p.connections.empty() || p.frames.size() > most_frames || read_bytes(p) > most_read_bytes) return;
    replay::replay_settings s;
    s.system.node = hosts::make_node_config("connectx3pro_40g");
    s.captured_timing = false;
    std::unique_ptr<replay::comparison> compared;
    const replay::replay_result r = replay::run_plan(p, s, compared, [](std::uint64_t) {});
    demand(r.injected <= p.frames.size(), "no frame is injected twice");
    demand(compared != nullptr, "the run has been compared");
  } catch (const usage_error& e) {
    demand_one_line(e.what());
  }
}

}  // namespace
}  // namespace rnic::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  rnic::fuzz::take_snapshot();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const rnic::fuzz::file_in_memory file(data, size);
  rnic::fuzz::in_copy([&] { rnic::fuzz::run(file.path()); });
  return 0;
}
