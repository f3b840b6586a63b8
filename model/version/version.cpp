// SPDX-License-Identifier: Apache-2.0
#include "model/version/version.h"

#include <rnic_commit.h>  // made when it is built (scripts/cmake/commit.cmake)

#include <string>

namespace rnic {

const char* version_number() { return RNIC_VERSION; }
const char* commit() { return RNIC_COMMIT; }
bool modified() { return RNIC_MODIFIED; }

const char* version() {
  static const std::string text = [] {
    const std::string of = commit();
    return version_number() + (of.empty() ? "" : " (" + of + (modified() ? ", modified" : "") + ")");
  }();
  return text.c_str();
}

}  // namespace rnic
