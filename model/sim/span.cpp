// SPDX-License-Identifier: Apache-2.0
#include "model/sim/span.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_set>

#include "model/sim/followed_requests.h"

namespace rnic::sim {

namespace {

/// Names by the place of their text: those of blocks stay where they are, and a message leaves 50 stages.
struct known_name {
  const char* at = nullptr;
  const char* kept = nullptr;
  std::size_t length = 0;
};
constexpr std::size_t known_names = 256;

}  // namespace

const char* kept_name(const std::string& block) {
  static std::unordered_set<std::string> names;
  static std::array<known_name, known_names> known;
  known_name& k = known[(reinterpret_cast<std::uintptr_t>(block.data()) >> 4) % known_names];
  if (k.at == block.data() && k.length == block.size() && std::memcmp(k.kept, block.data(), k.length) == 0)
    return k.kept;
  k = {block.data(), names.insert(block).first->c_str(), block.size()};
  return k.kept;
}

void span_recorder::mark(span_id id, const std::string& block, const char* stage, time_ps at, wait waited) {
  if (followed_ != nullptr) return followed_->leave(id, {kept_name(block), stage, waited, at});
  spans_[id].leave(kept_name(block), stage, at, waited);
}

span_id span_recorder::fork_off(span_id id) {
  if (followed_ != nullptr) return followed_->fork(id);
  if (!enabled_) return 0;
  const span so_far = spans_[id];
  const span_id other = open(so_far.start());
  spans_[other] = so_far;
  return other;
}

time_ps span_recorder::end_of(span_id id) const {
  return followed_ != nullptr ? followed_->end_of(id) : spans_[id].end();
}

unsigned span_recorder::adapter_of(const std::string& block) {
  const std::string name = block.substr(0, block.rfind('.'));
  const auto at = std::find(adapters_.begin(), adapters_.end(), name);
  const auto number = static_cast<unsigned>(at - adapters_.begin());
  if (at == adapters_.end()) adapters_.push_back(name);
  return number;
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
