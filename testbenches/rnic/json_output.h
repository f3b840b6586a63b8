// SPDX-License-Identifier: Apache-2.0
// Where the results of --json go.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace rnic::program {

/// "-", or a name that the system has for the standard output of a process.
bool is_standard_output(const std::string& file);

/// From now on what is for people goes to standard error, and what write_json() writes to "-" to standard output, which
/// has nothing else then.
void keep_output_for_json();

/// To a file (write_whole()), or to standard output.
void write_json(const std::string& file, const nlohmann::json& results);

}  // namespace rnic::program
