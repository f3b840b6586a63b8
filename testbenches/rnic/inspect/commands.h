// SPDX-License-Identifier: Apache-2.0
// What the commands about host a's device have in common.
#pragma once

#include "testbenches/rnic/command_line.h"
#include "testbenches/rnic/inspect/inspect.h"

namespace rnic::program {

/// Adds a command with addresses, RoCE mode and bond of host a, and the options of all commands.
CLI::App& add_device_command(command_line& line, const char* name, const char* what, inspect_options& o);

}  // namespace rnic::program
