// SPDX-License-Identifier: Apache-2.0
// Runs a simulation in a process of its own and brings back a number: one SystemC kernel lives in one process.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <stdexcept>

namespace rnic::bench {

template <class F>
std::uint64_t in_child(F f) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("pipe");
  const pid_t child = fork();
  if (child == 0) {
    const std::uint64_t value = f();
    _exit(write(ends[1], &value, sizeof value) == sizeof value ? 0 : 1);
  }
  close(ends[1]);
  std::uint64_t value = 0;
  const bool ok = read(ends[0], &value, sizeof value) == sizeof value;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!ok || status != 0) throw std::runtime_error("the child process failed");
  return value;
}

}  // namespace rnic::bench
