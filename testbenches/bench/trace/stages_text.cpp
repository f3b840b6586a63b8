// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/trace/stages_text.h"

#include <fmt/format.h>

#include <iterator>

#include "testbenches/bench/trace/message_note.h"

namespace rnic::bench {

void put_message(const named_message& m, sim::time_ps posted, sim::time_ps at, std::string& to) {
  const message_note note = message_note::unpacked(m.what);
  const sim::time_ps ago = at - posted;
  fmt::format_to(std::back_inserter(to), "message {} of {}, {} {} B, qpn {} index {} of {}, posted {}.{:06} us before",
                 m.number, m.flow, note.verb_name(), note.bytes, m.qpn, m.index, m.host, ago / sim::ps_per_us,
                 ago % sim::ps_per_us);
}

void put_stages(const sim::followed_request::way& way, sim::time_ps first_bit, sim::time_ps cable, std::string& to) {
  const char* block = nullptr;
  const auto put = [&](const char* of, const char* stage, sim::time_ps lasts, sim::wait waited) {
    if (lasts == 0) return;
    to += block == nullptr ? ": " : block == of ? ", " : "; ";
    if (block != of) (to += of) += ' ';
    block = of;
    fmt::format_to(std::back_inserter(to), "{} {}.{:03} ns", stage, lasts / sim::ps_per_ns, lasts % sim::ps_per_ns);
    if (waited != sim::wait::none) fmt::format_to(std::back_inserter(to), " ({})", sim::to_string(waited));
  };
  sim::time_ps since = way.start;
  for (const sim::span::mark& m : way.marks) {
    if (m.at > first_bit) break;
    put(m.block, m.stage, m.at - std::min(since, m.at), m.waited);
    since = std::max(since, m.at);
  }
  static constexpr const char* line = "line";
  if (first_bit > since) put(line, "elsewhere", first_bit - since, sim::wait::none);
  put(line, "cable", cable, sim::wait::none);
}

}  // namespace rnic::bench
