// SPDX-License-Identifier: Apache-2.0
// What a neighbour has seen of the responder.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "model/sim/types.h"

namespace rnic::transport::random_test {

/// FNV-1a.
inline std::uint64_t digest(const std::uint8_t* data, std::size_t bytes) {
  std::uint64_t h = 0xcbf2'9ce4'8422'2325u;
  for (std::size_t i = 0; i < bytes; ++i) h = (h ^ data[i]) * 0x100'0000'01b3u;
  return h;
}

struct observation {
  sim::cycle_t at = 0;
  std::string_view what;
  std::array<std::uint64_t, 8> values{};
  friend bool operator==(const observation& a, const observation& b) {
    return a.at == b.at && a.what == b.what && a.values == b.values;
  }
};

class journal {
 public:
  void note(sim::cycle_t now, std::string_view what, std::initializer_list<std::uint64_t> values) {
    observation o{now, what, {}};
    std::copy(values.begin(), values.end(), o.values.begin());
    all_.push_back(o);
    active(now);
  }
  /// The same of what goes on for ever: looks at the doorbell records of queue pairs in error.
  void note_poll(sim::cycle_t now, std::string_view what, std::initializer_list<std::uint64_t> values) {
    const sim::cycle_t last = last_active_;
    note(now, what, values);
    last_active_ = last;
  }
  void active(sim::cycle_t now) { last_active_ = now; }
  /// What the contract does not allow, whatever the traffic is.
  void fault(std::string sentence) { faults_.push_back(std::move(sentence)); }

  const std::vector<observation>& all() const { return all_; }
  const std::vector<std::string>& faults() const { return faults_; }
  sim::cycle_t last_active() const { return last_active_; }

 private:
  std::vector<observation> all_;
  std::vector<std::string> faults_;
  sim::cycle_t last_active_ = 0;
};

}  // namespace rnic::transport::random_test
