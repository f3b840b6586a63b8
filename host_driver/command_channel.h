// SPDX-License-Identifier: Apache-2.0
// Firmware commands through the host command register, in polling and in event mode.
#pragma once

#include <cstdint>
#include <vector>

#include "host_driver/bus_if.h"
#include "host_driver/config.h"
#include "model/abi/command_set.h"

namespace rnic::host_driver {

class virtual_channel;

/// Who gets completions of commands out of the asynchronous event queue.
class event_pump_if {
 public:
  virtual ~event_pump_if() = default;
  /// Handles the asynchronous events that have arrived; waits up to `timeout_ps` for the interrupt when there are none.
  virtual void pump(std::uint64_t timeout_ps) = 0;
};

/// Results are 0 or a negative errno, as the kernel makes them of the status byte (adapter control plane 2.5);
/// -EIO when the command was not accepted, -ETIMEDOUT when it was never finished.
///
/// Approximation: the commands of several callers go one after the other also in event mode (the kernel has up to
/// max_cmds under way).
class command_channel {
 public:
  explicit command_channel(bus_if& bus, const config& cfg) : bus_(bus), cfg_(cfg) {}
  ~command_channel();
  command_channel(const command_channel&) = delete;
  command_channel& operator=(const command_channel&) = delete;

  /// A 4 KiB buffer, zeroed, back to the pool at the end of its life.
  class mailbox {
   public:
    explicit mailbox(command_channel& owner);
    ~mailbox();
    mailbox(const mailbox&) = delete;
    mailbox& operator=(const mailbox&) = delete;
    std::uint8_t* data() const { return memory_.pointer; }
    std::uint64_t address() const { return memory_.bus_address; }

   private:
    command_channel& owner_;
    bus_if::dma_memory memory_;
  };

  struct arguments {
    abi::opcode op = abi::opcode::nop;
    std::uint32_t modifier = 0;
    std::uint8_t op_modifier = 0;
    std::uint64_t in = 0;                ///< mailbox address or immediate
    std::uint64_t out = 0;               ///< mailbox address
    std::uint64_t* immediate = nullptr;  ///< where an immediate result goes
  };
  int execute(const arguments& args);

  int command(abi::opcode op, std::uint32_t modifier = 0, std::uint8_t op_modifier = 0, std::uint64_t in = 0) {
    return execute({op, modifier, op_modifier, in, 0, nullptr});
  }
  int write(const mailbox& in, abi::opcode op, std::uint32_t modifier = 0, std::uint8_t op_modifier = 0) {
    return execute({op, modifier, op_modifier, in.address(), 0, nullptr});
  }
  int read(const mailbox& out, abi::opcode op, std::uint32_t modifier = 0, std::uint8_t op_modifier = 0) {
    return execute({op, modifier, op_modifier, 0, out.address(), nullptr});
  }

  /// From now on commands go to the physical function's driver.
  void use_virtual(virtual_channel& channel) { virtual_ = &channel; }
  /// After a reset: the toggle bit starts anew, polling mode.
  void reset();
  /// The device was reset under the driver's feet: until reset() nothing is asked of it. Commands that take something
  /// back succeed, all others give -EIO (net/cmd.c: mlx4_internal_err_ret_value).
  void lose_device();
  bool is_lost() const { return lost_; }
  void use_events(event_pump_if& pump, unsigned log_max_commands);
  void use_polling() { pump_ = nullptr; }
  bool event_mode() const { return pump_ != nullptr; }
  /// From the event queue: a command is finished. Stale tokens are ignored.
  void complete(std::uint16_t token, std::uint8_t status, std::uint64_t out);

  static int errno_of(std::uint8_t status);
  std::uint8_t last_status() const { return last_status_; }  ///< status byte of the last finished command

 private:
  bool pending();
  int post(const arguments& args, std::uint16_t token, bool event);
  int wait_polling(const arguments& args);
  int execute_alone(const arguments& args);
  int wait_event(const arguments& args);

  bus_if& bus_;
  const config& cfg_;
  event_pump_if* pump_ = nullptr;
  virtual_channel* virtual_ = nullptr;
  std::vector<bus_if::dma_memory> pool_;
  std::uint32_t toggle_ = 1;
  std::uint32_t last_ticket_ = 0, serving_ = 0;  // equal: no command is under way
  bool lost_ = false;
  std::uint16_t token_ = 0, token_step_ = 1;
  bool done_ = false;
  std::uint8_t status_ = 0, last_status_ = 0;
  std::uint64_t out_ = 0;
};

}  // namespace rnic::host_driver
