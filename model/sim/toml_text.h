// SPDX-License-Identifier: Apache-2.0
// TOML of users: the library, and what it makes of text that is none.
#pragma once

#include <string>

#include "model/sim/check.h"

namespace rnic::sim {
/// The library takes some text for impossible that users can write (toml++ 3.3: "[[["), and would end the program.
struct impossible_toml {};
}  // namespace rnic::sim

#define TOML_ASSERT(condition)                              \
  do {                                                      \
    if (!(condition)) throw ::rnic::sim::impossible_toml(); \
  } while (false)
#ifdef NDEBUG
#error "without its assertions the library has undefined behaviour on some text"
#endif
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wterminate"  // some of its assertions are in functions that may not throw
#endif
#include <toml++/toml.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

namespace rnic::sim {

/// The table that `parse()` gives. Throws config_error, one line with `name` and the place, when the text is no TOML.
template <class Parse>
toml::table read_toml(const std::string& name, Parse parse) {
  try {
    return parse();
  } catch (const toml::parse_error& e) {
    throw config_error(name + ":" + std::to_string(e.source().begin.line) + ": " + std::string(e.description()));
  } catch (const impossible_toml&) {
    throw config_error(name + ": cannot be read as TOML");
  }
}

}  // namespace rnic::sim
