// SPDX-License-Identifier: Apache-2.0
// Files of the source tree that tests read.
#pragma once

#include <string>

namespace rnic {

/// Absolute path of `relative` (for example "traces/rc_read.pcap") in the tree that the tests were built from.
std::string in_source_tree(const std::string& relative);

}  // namespace rnic
