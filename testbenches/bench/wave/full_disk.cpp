// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/wave/full_disk.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>

namespace rnic::bench {

namespace {

// A handler of signals may use neither memory that is allocated nor a stream.
std::array<char, 4352> said;  // a path of the longest kind, and the words
std::size_t said_bytes = 0;
std::array<char, 4104> scopes;  // where the writer keeps the names of signals meanwhile
unsigned guards = 0;
struct sigaction before {};

void disk_is_full(int) {
  constexpr int usage_error_status = 2;
  unlink(scopes.data());
  if (write(STDERR_FILENO, said.data(), said_bytes) < 0) _exit(usage_error_status);
  _exit(usage_error_status);
}

}  // namespace

full_disk_guard::full_disk_guard(const std::string& name) {
  const std::string text = "rnic: " + name.substr(0, 4096) + ": writing failed, the disk is full\n";
  said_bytes = text.copy(said.data(), said.size());
  scopes[(name.substr(0, 4096) + ".hier").copy(scopes.data(), scopes.size() - 1)] = '\0';
  if (guards++ != 0) return;
  struct sigaction handler {};
  handler.sa_handler = disk_is_full;
  sigaction(SIGBUS, &handler, &before);
}

full_disk_guard::~full_disk_guard() {
  if (--guards == 0) sigaction(SIGBUS, &before, nullptr);
}

}  // namespace rnic::bench
