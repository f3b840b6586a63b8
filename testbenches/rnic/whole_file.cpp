// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/whole_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "testbenches/bench/link_target.h"
#include "testbenches/bench/usage_error.h"

namespace rnic::program {

namespace {

/// Beside the file that it takes the place of, which stays as it is until this one is whole; not of what is no file
/// (a pipe), or is open already (/dev/stdout).
std::string part_of(const std::string& file) {
  std::error_code none;
  for (const char* begin : {"/dev/", "/proc/"})
    if (file.rfind(begin, 0) == 0) return {};
  const std::filesystem::path target = bench::link_target(file);
  return std::filesystem::is_regular_file(target, none) || !std::filesystem::exists(target, none)
             ? target.string() + fmt::format(".{}.part", getpid())
             : std::string();
}

}  // namespace

void write_whole(const std::string& file, const std::function<void(std::ostream&)>& write) {
  const std::string part = part_of(file);
  std::ofstream out(part.empty() ? file : part);
  if (!part.empty() && !out) out.open(file);  // a folder that takes no new file
  const bool beside = !part.empty() && std::filesystem::exists(part);
  write(out);
  const bool is_whole = static_cast<bool>(out.flush());
  out.close();
  std::error_code failed, ignored;
  if (beside && is_whole) {
    const std::filesystem::path target = bench::link_target(file);
    if (const auto old = std::filesystem::status(target, ignored); std::filesystem::exists(old))
      std::filesystem::permissions(part, old.permissions(), ignored);
    std::filesystem::rename(part, target, failed);
  }
  if (beside && (!is_whole || failed)) std::filesystem::remove(part);
  if (!is_whole || failed) throw usage_error(file + ": writing failed");
}

}  // namespace rnic::program
