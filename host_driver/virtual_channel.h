// SPDX-License-Identifier: Apache-2.0
// Commands of a virtual function, which the physical function's driver executes.
#pragma once

#include <cstdint>

#include "host_driver/bus_if.h"
#include "host_driver/config.h"
#include "model/abi/bar_layout.h"
#include "model/abi/command_set.h"

namespace rnic::host_driver {

/// The communication channel in BAR2, and the structure in memory by which a command goes over it (adapter control
/// plane 8.2 to 8.4; net/cmd.c: mlx4_comm_cmd_poll, mlx4_slave_cmd). One command at a time.
class virtual_channel {
 public:
  explicit virtual_channel(bus_if& bus, const config& cfg) : bus_(bus), cfg_(cfg) {}
  ~virtual_channel();
  virtual_channel(const virtual_channel&) = delete;
  virtual_channel& operator=(const virtual_channel&) = delete;

  /// Waits until the physical function's driver is there, and makes itself known to it. -ETIMEDOUT, -ENODEV: nobody
  /// answers, or in another version.
  int open();
  /// Says that the function is not used any more.
  void close();
  /// The device was reset: nobody knows of the function any more.
  void abandon() { open_ = false; }

  /// Results as command_channel::execute; `status`: the status byte. `immediate` may be nullptr.
  int execute(abi::opcode op, std::uint8_t op_modifier, std::uint32_t modifier, std::uint64_t in, std::uint64_t out,
              std::uint64_t* immediate, std::uint8_t* status);

 private:
  int send(abi::comm::command what, std::uint16_t parameter, std::uint64_t timeout_us, std::uint32_t* answer);

  bus_if& bus_;
  const config& cfg_;
  bus_if::dma_memory vhcr_{};
  std::uint32_t toggle_ = 0;
  bool open_ = false;
};

}  // namespace rnic::host_driver
