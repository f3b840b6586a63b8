// SPDX-License-Identifier: Apache-2.0
// Broken invariants of our own code, and bad configurations. Never for input (law 11).
#pragma once

#include <stdexcept>
#include <string>

namespace rnic::sim {

/// The text with '?' for characters that would end its line or move the cursor: it may repeat what a user's file holds.
inline std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  return text;
}

/// A parameter or a binding that cannot work. what() is one line that names the parameter and its legal range.
class config_error : public std::runtime_error {
 public:
  explicit config_error(const std::string& what) : std::runtime_error(one_line(what)) {}
};

/// Our own code broke a promise: always on, because a wrong model is worth less than none.
class invariant_error : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void fail_invariant(const char* condition, const char* file, int line, const std::string& what);

}  // namespace rnic::sim

/// The text is made in a function of its own: where it is checked there is a comparison and a branch, and no room for
/// strings on the stack.
#define RNIC_ASSERT(condition, what)                                         \
  do {                                                                       \
    if (!(condition)) [&]() __attribute__((noinline, cold, noreturn)) {      \
        ::rnic::sim::fail_invariant(#condition, __FILE__, __LINE__, (what)); \
      }                                                                      \
    ();                                                                      \
  } while (false)
