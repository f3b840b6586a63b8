// SPDX-License-Identifier: Apache-2.0
#include "model/sim/span.h"

#include <unordered_set>

namespace rnic::sim {

const char* span_recorder::kept(const std::string& block) {
  static std::unordered_set<std::string> names;
  return names.insert(block).first->c_str();
}

const char* to_string(wait w) {
  switch (w) {
    case wait::none:
      return "none";
    case wait::descriptor_fetch:
      return "descriptor fetch";
    case wait::context_miss:
      return "context miss";
    case wait::translation_miss:
      return "translation miss";
    case wait::payload_fetch:
      return "payload fetch";
    case wait::pcie:
      return "pcie";
    case wait::pcie_credit:
      return "pcie credit";
    case wait::arbitration:
      return "arbitration";
    case wait::pause:
      return "pause";
    case wait::rate_limit:
      return "rate limit";
    case wait::bytes:
      return "bytes";
    case wait::wire:
      return "wire";
    case wait::peer:
      return "peer";
    case wait::software:
      return "software";
  }
  return "unknown";
}

}  // namespace rnic::sim
