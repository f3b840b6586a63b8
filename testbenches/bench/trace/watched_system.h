// SPDX-License-Identifier: Apache-2.0
// What a trace and a waveform look at, whatever lies between the hosts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host_driver/device.h"
#include "host_driver/hosts/network.h"
#include "host_driver/hosts/two_nodes.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/sim/timebase.h"
#include "tlm/port_capture.h"

namespace rnic::bench {

/// Everything in it outlives who looks.
struct watched_system {
  struct host {
    std::string name;
    host_driver::device* device = nullptr;  ///< that programs send with
    const std::vector<hosts::rtl_block>* rtl = nullptr;
  };
  std::vector<host> hosts;
  std::vector<std::string> switches;
  std::uint32_t clock_khz = 0;  ///< of the first host's adapter
  sim::time_ps ahead = 0;       ///< by which hosts are simulated ahead of each other at most
  sim::timebase* base = nullptr;
  sim::span_recorder* spans = nullptr;
  sim::statistics* statistics = nullptr;
  tlm::port_capture* capture = nullptr;  ///< whose frames have comments; nullptr: none

  sim::time_ps now_ps() const { return base->now_ps(); }
};

watched_system watched(hosts::network& n);
watched_system watched(hosts::two_nodes& n);

}  // namespace rnic::bench
