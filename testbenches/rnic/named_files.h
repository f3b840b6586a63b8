// SPDX-License-Identifier: Apache-2.0
// The files that a command reads and writes.
#pragma once

#include <string>

namespace rnic::program {

/// A command begins: nothing is named yet.
void forget_named_files();
/// It reads this file. Throws usage_error for a folder, and for one that was named for a result: --overwrite is not
/// meant for what a command is made from.
void name_input(const std::string& file);
/// It writes this file. Throws usage_error for one that is read, or named for another result.
void name_result(const std::string& file);

}  // namespace rnic::program
