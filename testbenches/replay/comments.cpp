// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/comments.h"

#include <fmt/format.h>

#include "testbenches/replay/packets.h"

namespace rnic::replay {

namespace {

std::string text_of(const difference& d) {
  std::string s = to_string(d.kind);
  if (!d.expected.empty()) s += "; expected " + d.expected;
  if (d.frame != 0) s += fmt::format(" (frame {} of the capture)", d.frame);
  if (!d.obtained.empty()) s += "; obtained " + d.obtained;
  return s + "; " + d.explanation;
}

void append(std::string& to, const std::string& line) {
  if (!to.empty()) to += "\n";
  to += line;
}

}  // namespace

comments comment_on(const plan& p, const comparison& c, const replay_result& run,
                    const std::vector<std::size_t>& questions) {
  // The last frame before each one of the capture that its connection was given.
  std::vector<std::size_t> last(p.connections.size(), 0), before(p.frames.size(), 0);
  for (std::size_t i = 0; i < p.frames.size(); ++i) {
    const captured_frame& f = p.frames[i];
    if (f.connection < 0) continue;
    std::size_t& l = last[static_cast<std::size_t>(f.connection)];
    if (!f.from_held && run.injected_at[i] != never) l = i + 1;
    before[i] = l;
  }
  comments out;
  for (const difference& d : c.differences()) {
    if (d.answer != 0) {
      append(out.of_frames[{from_adapter, c.answers()[d.answer - 1].first_bit}], text_of(d));
      continue;
    }
    std::size_t at = 0;
    if (d.frame != 0 && questions[d.frame - 1] != no_frame) at = questions[d.frame - 1] + 1;
    if (at == 0 || run.injected_at[at - 1] == never) at = d.frame == 0 ? 0 : before[d.frame - 1];
    if (at == 0)
      append(out.about, text_of(d));
    else
      append(out.of_frames[{to_adapter, run.injected_at[at - 1]}], text_of(d));
  }
  return out;
}

}  // namespace rnic::replay
