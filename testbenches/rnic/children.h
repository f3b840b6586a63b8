// SPDX-License-Identifier: Apache-2.0
// This program again, in processes of its own.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace rnic::program {

struct own_run {
  std::vector<std::string> arguments;  ///< behind the program's name
  std::string out, errors;             ///< files of what it says, which are replaced
};

/// Begins one. Throws usage_error when there is no process to be had.
pid_t begin(const own_run& run);
/// Waits for one. Its status as of waitpid().
int wait_for(pid_t process);

/// Runs `count` of them, `jobs` at a time (0: one for each processor), where that is several with one thread each.
/// `run_of` gives each when it is its turn, and may say that there is nothing to do by an empty list of arguments;
/// `ended` is told when each has.
void run_all(std::size_t count, unsigned jobs, const std::function<own_run(std::size_t)>& run_of,
             const std::function<void(std::size_t, int)>& ended);

/// "ok", "failed" (status 1), "refused" (2), "crashed"; and the last line of what it said on standard error.
std::string verdict_of(int status);
std::string last_line(const std::string& file);

}  // namespace rnic::program
