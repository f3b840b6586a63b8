// SPDX-License-Identifier: Apache-2.0
// Any file as a capture to replay: a plan that the replay can follow, or one line that says why not.
#include <set>
#include <string>

#include "model/wire/ethernet.h"
#include "testbenches/bench/usage_error.h"
#include "testbenches/fuzz/file_in_memory.h"
#include "testbenches/fuzz/property.h"
#include "testbenches/replay/plan.h"

namespace rnic::fuzz {
namespace {

void check(const replay::plan& p) {
  const auto connections = static_cast<int>(p.connections.size());
  sim::time_ps before = 0;
  for (const replay::captured_frame& f : p.frames) {
    demand(f.connection < connections, "a frame's connection is one of the plan's");
    demand(f.connection < 0 || f.roce, "only RoCE is replayed");
    demand(f.at >= before, "time goes on");
    before = f.at;
  }
  for (const replay::connection& c : p.connections) {
    demand(c.held_qpn <= 0xffffff && c.peer_qpn <= 0xffffff, "24 bits");
    std::size_t last = 0;
    for (const replay::held_message& m : c.messages) {
      demand(m.first_frame < p.frames.size() && m.first_frame >= last, "messages are in the capture's order");
      last = m.first_frame;
    }
  }
  for (const auto& [frame, contents] : p.contents) {
    demand(frame < p.frames.size() + p.made_up.size(), "content is for a request");
    for (const replay::memory_content& c : contents)
      demand(c.is_counter || c.answer < p.frames.size(), "content came from the capture");
  }
  for (const auto& [frame, begins] : p.installed) {
    demand(begins.region < p.regions.size(), "what is installed is one of the regions");
    demand(begins.settled == replay::no_frame || begins.settled < p.frames.size(), "an answer of the capture");
  }
}

void plan_of(const std::string& path, const std::string& hold) {
  try {
    check(replay::make_plan(path, hold));
  } catch (const usage_error& e) {
    demand_one_line(e.what());
  }
}

}  // namespace
}  // namespace rnic::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const rnic::fuzz::file_in_memory file(data, size);
  rnic::fuzz::plan_of(file.path(), "");
  rnic::fuzz::plan_of(file.path(), "10.0.0.2");
  return 0;
}
