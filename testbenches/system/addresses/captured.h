// SPDX-License-Identifier: Apache-2.0
// What was on the cable, as tshark reads it.
#pragma once

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "testbenches/system/verbs/pair.h"

namespace rnic::system_test {

inline bool has_tshark() { return std::system("command -v tshark > /dev/null") == 0; }

/// Into a file of this name in the tests' folder; to be read when the system is gone.
inline void capture_into(hosts::two_nodes_config& c, const std::string& name) {
  c.capture = testing::TempDir() + name;
  c.capture_options.overwrite = true;
}

/// A line for each frame with the values of these fields, tabs in between.
inline std::vector<std::string> frames_of(const std::string& capture, const std::vector<std::string>& fields) {
  std::string command = "tshark -r '" + capture + "' -T fields";
  for (const std::string& f : fields) command += " -e " + f;
  std::FILE* const out = popen((command + " 2> /dev/null").c_str(), "r");
  std::vector<std::string> lines;
  std::string line;
  for (int c = std::fgetc(out); c != EOF; c = std::fgetc(out)) {
    if (c != '\n') {
      line += static_cast<char>(c);
      continue;
    }
    lines.push_back(line);
    line.clear();
  }
  pclose(out);
  return lines;
}

}  // namespace rnic::system_test
