// SPDX-License-Identifier: Apache-2.0
// The embedded processor: runs the firmware in simulated time.
#pragma once

#include <string>
#include <systemc>

#include "firmware/bus/hardware_bus.h"
#include "firmware/firmware.h"

namespace rnic::firmware {

/// One SC_THREAD that executes commands while there are any and sleeps without cost until the next interrupt. After a
/// reset of the device it starts from the beginning.
class firmware_runner {
 public:
  /// `port` is the processor's bus interface; the runner becomes its processor.
  /// `name`: of its process.
  firmware_runner(const std::string& name, command::firmware_port& port, const firmware_config& config);
  firmware_runner(const firmware_runner&) = delete;
  firmware_runner& operator=(const firmware_runner&) = delete;

 private:
  void run();

  hardware_bus bus_;
  firmware firmware_;
};

}  // namespace rnic::firmware
