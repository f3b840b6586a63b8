// SPDX-License-Identifier: Apache-2.0
// Any file as a capture: frames, or one line that says why not.
#include <numeric>

#include "testbenches/fuzz/file_in_memory.h"
#include "testbenches/fuzz/property.h"
#include "tlm/capture.h"

namespace rnic::fuzz {
namespace {

std::uint8_t volatile seen;  // every byte of a frame is read

void read_all(const std::string& path) {
  tlm::capture_reader reader(path);
  tlm::captured_frame f;
  std::uint64_t frames = 0;
  for (;;) {
    const auto result = reader.next(f);
    if (result == tlm::capture_reader::result::end) break;
    if (result == tlm::capture_reader::result::damaged) {
      demand_one_line(reader.reason());
      break;
    }
    ++frames;
    demand(f.length <= f.wire_length, "a file has no more of a frame than there was");
    seen = std::accumulate(f.data, f.data + f.length, std::uint8_t{0});
  }
  demand(reader.frames() == frames, "every frame is counted");
}

}  // namespace
}  // namespace rnic::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const rnic::fuzz::file_in_memory file(data, size);
  try {
    rnic::fuzz::read_all(file.path());
  } catch (const rnic::tlm::capture_error& e) {
    rnic::fuzz::demand_one_line(e.what());
  }
  return 0;
}
