// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/serve/serve_links.h"

#include <fmt/format.h>

#include <stdexcept>

#include "testbenches/bench/usage_error.h"

namespace rnic::program {

serve::link_spec link_from(const std::string& text) {
  try {
    return serve::parse_link(text);
  } catch (const std::invalid_argument& e) {
    throw usage_error(e.what());
  }
}

nlohmann::json link_json(const serve::link_port& link) {
  const serve::link_counters c = link.link().counters();
  const serve::bridge_counters b = link.bridge();
  return {{"frames_in", c.frames_in},
          {"bytes_in", c.bytes_in},
          {"frames_out", c.frames_out},
          {"bytes_out", c.bytes_out},
          {"connections", c.connections},
          {"disconnections", c.disconnections},
          {"drop",
           {{"runt", c.drop_runt},
            {"oversized", c.drop_oversized},
            {"queue_full", c.drop_queue_full},
            {"no_peer", c.drop_no_peer},
            {"kernel", c.drop_kernel},
            {"bridge", b.drop_queue_full}}},
          {"waiting", {{"frames_in", b.waiting_frames}, {"bytes_out", b.waiting_bytes}}},
          {"turned_away", c.turned_away},
          {"bad_length", c.bad_length},
          {"half_frames", c.half_frames},
          {"errors", c.errors}};
}

std::string link_text(const serve::link_port& link) {
  const serve::link_counters c = link.link().counters();
  const nlohmann::json lost = link_json(link)["drop"];
  std::uint64_t all = 0;
  std::string reasons;
  for (const auto& [name, count] : lost.items()) {
    if (count == 0) continue;
    all += count.get<std::uint64_t>();
    reasons += fmt::format("{}{} {}", reasons.empty() ? " (" : ", ", name, count.get<std::uint64_t>());
  }
  return fmt::format("{} frames in, {} out, {} dropped at the link{}{}", c.frames_in, c.frames_out, all, reasons,
                     reasons.empty() ? "" : ")");
}

}  // namespace rnic::program
