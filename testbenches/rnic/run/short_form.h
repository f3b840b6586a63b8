// SPDX-License-Identifier: Apache-2.0
// `rnic latency` and `rnic bandwidth` as files of `rnic run`: a table with their options.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

namespace rnic::program {

/// The file that does what the command does with the options that it was given; the others are there as comments with
/// their defaults. What says where results go is not part of it.
std::string file_of(const CLI::App& command);

/// The command line of a file that is the short form of one of the commands: [latency], [bandwidth]; nothing for
/// others. Throws sim::config_error for what is no option.
std::optional<std::vector<std::string>> arguments_in(const std::string& text, const std::string& name,
                                                     const CLI::App& all_commands);

/// Options of a command line as they were given, "--name=value".
std::vector<std::string> given_arguments(const CLI::App& command, const std::vector<std::string>& without);

}  // namespace rnic::program
