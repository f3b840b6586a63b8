// SPDX-License-Identifier: Apache-2.0
// The embedded processor.
#include "firmware/bus/firmware_runner.h"

namespace rnic::firmware {

firmware_runner::firmware_runner(const std::string& name, command::firmware_port& port, const firmware_config& config)
    : bus_(port), firmware_(bus_, config) {
  sc_core::sc_spawn([this] { run(); }, sc_core::sc_gen_unique_name(name.c_str(), true));
}

void firmware_runner::run() {
  for (;;) {
    try {
      bus_.acknowledge_reset();
      firmware_.restart();
      for (;;) {
        while (firmware_.serve()) {
        }
        bus_.wait_for_interrupt();
      }
    } catch (const device_was_reset&) {
      continue;
    }
  }
}

}  // namespace rnic::firmware
