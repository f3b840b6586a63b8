// SPDX-License-Identifier: Apache-2.0
// The rules between root complex and device: room, and what no request may do.
#pragma once

#include <cstdint>

#include "model/payload/tlp.h"
#include "model/pcie/link.h"
#include "model/pcie/tlp_link_if.h"
#include "model/sim/types.h"

namespace rnic::host {

/// Room goes back to the device when a request of it is done. Requests that break the rules are counted.
class device_credits {
 public:
  /// `latency_ps`: of a credit update (link_config::credit_latency_ps).
  explicit device_credits(sim::time_ps latency_ps) : latency_ps_(latency_ps) {}
  void connect(pcie::tlp_link_if& device) { device_ = &device; }
  /// The room of `t` is free from `at` on.
  void give(const payload::tlp& t, sim::time_ps at) const { device_->credit(pcie::credits_of(t), at + latency_ps_); }
  /// One beyond the room that was given, or across a page: it is thrown away.
  void broken() { ++malformed_; }
  const std::uint64_t& malformed() const { return malformed_; }

 private:
  sim::time_ps latency_ps_;
  pcie::tlp_link_if* device_ = nullptr;
  std::uint64_t malformed_ = 0;
};

/// No request may cross a page (Base Specification 3.0, 2.2.7).
inline bool crosses_page(const payload::tlp& t) {
  constexpr std::uint32_t page = 4096;
  return t.address % page + t.length > page;
}

}  // namespace rnic::host
