// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/frames.h"

#include <algorithm>
#include <utility>

#include "model/wire/icrc.h"
#include "model/wire/pause.h"
#include "testbenches/bench/usage_error.h"
#include "tlm/capture.h"

namespace rnic::replay {

namespace {

constexpr std::uint64_t longest_gap_ns = 3'600'000'000'000;          // between two frames: an hour
constexpr sim::time_ps longest_capture = 8 * 3'600 * sim::ps_per_s;  // more than clocks of odd rates count exactly

/// All frames of the file; a file that breaks off gives what it had.
void read_file(const std::string& capture, plan& out) try {
  tlm::capture_reader reader(capture);
  tlm::captured_frame f;
  std::uint64_t last_ns = 0;
  sim::time_ps at = 0;
  for (;;) {
    const tlm::capture_reader::result r = reader.next(f);
    if (r == tlm::capture_reader::result::end) return;
    if (r == tlm::capture_reader::result::damaged) {
      ++out.rejected["file damaged"];
      return;
    }
    if (out.frames.empty()) last_ns = f.time_ns;
    // Clocks that step back do not make time run back, and those that leap do not make it run for years.
    if (f.time_ns > last_ns) {
      const std::uint64_t gap = std::min(f.time_ns - last_ns, longest_gap_ns);
      out.shortened = out.shortened || gap != f.time_ns - last_ns || at + gap * sim::ps_per_ns > longest_capture;
      at = std::min(longest_capture, at + gap * sim::ps_per_ns);
    } else if (f.time_ns < last_ns) {
      out.stepped_back = true;
    }
    last_ns = f.time_ns;
    captured_frame kept;
    kept.at = at;
    kept.bytes.assign(f.data, f.data + f.length);
    kept.wire_length = f.wire_length;
    kept.cut = f.length < f.wire_length;
    kept.wrong_fcs = f.wrong_fcs;
    out.frames.push_back(std::move(kept));
  }
} catch (const tlm::capture_error& e) {
  throw usage_error(e.what());
}

/// The headers of a frame whose end the file lacks, when it has all of them.
bool decode_cut(captured_frame& f) {
  std::vector<std::uint8_t> whole = f.bytes;
  whole.resize(f.wire_length);
  wire::packet p;
  if (wire::decode(whole.data(), whole.size(), p) != wire::decode_error::none) return false;
  if (p.payload_offset > f.bytes.size()) return false;
  f.packet = p;
  return f.roce = f.new_icrc = true;
}

void classify(captured_frame& f, plan& out) {
  if (f.wrong_fcs) {
    ++out.rejected["wrong FCS"];
    return;
  }
  if (std::max<std::size_t>(f.bytes.size(), f.wire_length) > tlm::frame::capacity) {
    ++out.rejected["longer than a port takes"];
    return;
  }
  if (f.cut) {
    if (decode_cut(f)) {
      ++out.roce_frames;
      ++out.notes["cut by the capture: the rest of the payload is taken as zeros, with an ICRC of its own"];
    } else {
      ++out.rejected["cut by the capture"];
    }
    return;
  }
  const wire::decode_error error = wire::decode(f.bytes.data(), f.bytes.size(), f.packet);
  if (error != wire::decode_error::none) {
    wire::pause_frame pause;
    const bool control = wire::decode_pause(f.bytes.data(), f.bytes.size(), pause) != wire::pause_kind::none;
    ++out.rejected[control ? "flow control" : wire::to_string(error)];
    return;
  }
  if (wire::icrc(f.bytes.data(), f.packet) != f.packet.icrc) {
    ++out.rejected["bad icrc"];
    return;
  }
  f.roce = true;
  ++out.roce_frames;
}

}  // namespace

void read_frames(const std::string& capture, plan& out) {
  read_file(capture, out);
  if (out.frames.empty()) throw usage_error(capture + ": holds no frame");
  for (captured_frame& f : out.frames) classify(f, out);
}

}  // namespace rnic::replay
