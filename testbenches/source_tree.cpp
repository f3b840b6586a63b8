// SPDX-License-Identifier: Apache-2.0
#include "testbenches/source_tree.h"

namespace rnic {

std::string in_source_tree(const std::string& relative) { return RNIC_SOURCE_DIR "/" + relative; }

}  // namespace rnic
