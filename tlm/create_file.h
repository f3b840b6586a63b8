// SPDX-License-Identifier: Apache-2.0
// New files that overwrite nothing unasked.
#pragma once

#include <cstdio>
#include <string>

namespace rnic::tlm {

/// A new file to write. Throws capture_error when it exists, unless `overwrite`, or cannot be made; null without
/// memory.
std::FILE* create_file(const std::string& path, bool overwrite);

}  // namespace rnic::tlm
