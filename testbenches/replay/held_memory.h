// SPDX-License-Identifier: Apache-2.0
// Memory of the held host that its peers read and write.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>

#include "host_driver/device.h"
#include "testbenches/replay/plan.h"

namespace rnic::replay {

/// The plan's regions, each with the key that the capture has, for as long as it has it. All calls from one process of
/// the simulation.
class held_memory {
 public:
  held_memory(const plan& p, host_driver::device& device) : plan_(p), device_(device) {}

  /// Registers what is there at the beginning. `remarks`: what could not be had, and how often.
  void set_up(host_driver::protection_domain* pd, std::map<std::string, std::uint64_t>& remarks);
  /// Gives the memory the content that the peer's READ (frame of the capture) found.
  void fill(std::size_t frame);
  /// Ends the region that has this key, if there is one.
  void revoke(std::uint32_t rkey);
  /// Region `index` of the plan takes its key's place, where another one may be.
  void install(std::size_t index);

 private:
  /// Where keys of one place in the table lead, one region at a time.
  struct key_place {
    host_driver::bus_if::dma_memory shared{};  ///< of the regions that do not return
    std::size_t region = 0;                    ///< that is there, index in the plan
    std::uint8_t* first = nullptr;             ///< of its begin
    host_driver::memory_region* registered = nullptr;
  };
  void allocate();
  bool add(key_place& place, std::size_t region);
  bool let_invalidate(const host_driver::memory_region& r);

  const plan& plan_;
  host_driver::device& device_;
  host_driver::protection_domain* pd_ = nullptr;
  std::unordered_map<std::uint32_t, key_place> places_;         // by place_of_key()
  std::map<std::size_t, host_driver::bus_if::dma_memory> own_;  // by region: of those that return
};

}  // namespace rnic::replay
