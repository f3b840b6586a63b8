// SPDX-License-Identifier: Apache-2.0
// What must hold for any input.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace rnic::fuzz {

/// Ends the run as a finding, with the input kept: `what` says what was promised.
[[noreturn]] inline void broken(const std::string& what) {
  std::fprintf(stderr, "fuzz: broken: %s\n", what.c_str());
  std::abort();
}

inline void demand(bool holds, const char* what) {
  if (!holds) broken(what);
}

/// Messages for users are one line.
inline void demand_one_line(const std::string& text) {
  if (text.empty() || text.find('\n') != std::string::npos) broken("not one line: \"" + text + "\"");
}

}  // namespace rnic::fuzz
