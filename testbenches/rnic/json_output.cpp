// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/json_output.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <iomanip>
#include <iostream>
#include <system_error>

#include "testbenches/bench/usage_error.h"
#include "testbenches/rnic/whole_file.h"

namespace rnic::program {

namespace {

int kept_output = -1;  // where standard output went before it was kept for JSON

void flush_both() {
  std::cout.flush();
  static_cast<void>(std::fflush(stdout));
}

void write_to_standard_output(const nlohmann::json& results) {
  flush_both();
  const int text = dup(STDOUT_FILENO);
  if (kept_output >= 0) dup2(kept_output, STDOUT_FILENO);
  std::cout << std::setw(2) << results << '\n';
  std::cout.flush();
  const bool is_whole = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout;
  if (text >= 0) dup2(text, STDOUT_FILENO);
  if (text >= 0) close(text);
  if (!is_whole) throw usage_error("standard output: writing failed");
}

}  // namespace

bool is_standard_output(const std::string& file) {
  return file == "-" || file == "/dev/stdout" || file == "/dev/fd/1" || file == "/proc/self/fd/1";
}

void keep_output_for_json() {
  flush_both();
  if (kept_output < 0) kept_output = dup(STDOUT_FILENO);
  if (kept_output < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
    throw usage_error("standard output: " + std::generic_category().message(errno));
}

void write_json(const std::string& file, const nlohmann::json& results) {
  if (is_standard_output(file)) return write_to_standard_output(results);
  // In pieces: the text of a long replay is larger than the results in memory.
  write_whole(file, [&results](std::ostream& out) { out << std::setw(2) << results << '\n'; });
}

}  // namespace rnic::program
