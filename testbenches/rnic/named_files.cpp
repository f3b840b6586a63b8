// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/named_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "testbenches/bench/link_target.h"
#include "testbenches/bench/usage_error.h"

namespace rnic::program {

namespace {

namespace fs = std::filesystem;

struct {
  std::vector<fs::path> read, written;
} named;

/// Of a file that need not be there: its folder's own name is found out only where the name begins with one.
fs::path whole_name(const fs::path& file) {
  std::error_code ignored;
  return fs::weakly_canonical(fs::absolute(bench::link_target(file), ignored), ignored);
}
/// As they are named, or by other names or links.
bool is_one(const fs::path& a, const fs::path& b) {
  std::error_code ignored;
  return fs::equivalent(a, b, ignored) || whole_name(a) == whole_name(b);
}
bool has(const std::vector<fs::path>& all, const fs::path& one) {
  return std::any_of(all.begin(), all.end(), [&one](const fs::path& p) { return is_one(p, one); });
}
/// What may be written twice: a device, a terminal, a pipe.
bool keeps_nothing(const fs::path& file) {
  std::error_code ignored;
  return fs::exists(file, ignored) && fs::is_other(file, ignored);
}

}  // namespace

void forget_named_files() { named = {}; }

void name_input(const std::string& file) {
  std::error_code ignored;
  if (fs::is_directory(file, ignored)) throw usage_error(file + ": is a directory");
  if (has(named.written, file)) throw usage_error(file + ": is named for a result, and read");
  named.read.emplace_back(file);
}

void name_result(const std::string& file) {
  if (keeps_nothing(file)) return;
  if (has(named.read, file)) throw usage_error(file + ": is named for a result, and read");
  if (has(named.written, file)) throw usage_error(file + ": is named for two results");
  named.written.emplace_back(file);
}

}  // namespace rnic::program
