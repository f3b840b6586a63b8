// SPDX-License-Identifier: Apache-2.0
// Where a file is that a name leads to.
#pragma once

#include <filesystem>
#include <system_error>

namespace rnic::bench {

/// The file itself, behind links, also where it is not there yet. A link that leads nowhere, such as to itself, stays.
inline std::filesystem::path link_target(std::filesystem::path file) {
  constexpr unsigned most_links = 40;
  std::error_code ignored;
  for (unsigned i = 0; i < most_links && std::filesystem::is_symlink(file, ignored); ++i)
    file = file.parent_path() / std::filesystem::read_symlink(file, ignored);
  return file;
}

}  // namespace rnic::bench
