// SPDX-License-Identifier: Apache-2.0
// Virtual functions as firmware sees them: their channel, their resets, the shares of the GID and event queue tables.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "firmware/chip.h"
#include "firmware/firmware_config.h"

namespace rnic::firmware {

/// Adapter control plane 8. Commands of virtual functions are the host driver's business: firmware tells it that they
/// are there (COMM_CHANNEL), and of functions that were reset (FLR).
class functions {
 public:
  functions(chip& hardware, const firmware_config& config) : chip_(hardware), config_(config) {}

  /// After a device reset, and when the host's driver has closed the device: nobody listens.
  void restart();
  /// Reports one thing that has happened. False: nothing has.
  bool serve();

  /// ARM_COMM_CHANNEL: the next command of a virtual function, or those that have come already, are reported once.
  void arm();
  /// How many have port 1 alone, port 2 alone, and both, in this order; else all have both. False: they are not those
  /// that are enabled.
  bool set_ports(std::uint32_t port_1, std::uint32_t port_2, std::uint32_t both);
  /// Of the ports' GID tables: entries have owners.
  bool has_windows() const { return enabled_ != 0; }

  /// INFORM_FLR_DONE: the function works again. False: there is no such function.
  bool release(std::uint32_t function);

  /// Functions 0 to count() - 1 may exist.
  std::uint32_t count() const { return config_.total_vfs + 1u; }
  bool exists(std::uint32_t function);
  /// Event queues: of the physical function, of each virtual one, of all.
  std::uint32_t physical_eqs() const { return config_.total_vfs == 0 ? all_eqs : first_virtual_eq; }
  std::uint32_t virtual_eqs() const;
  static constexpr std::uint32_t first_virtual_eq = 256, all_eqs = 1024;
  /// The number by which a function knows its EQ that has this place in the table of contexts.
  std::uint32_t own_number(std::uint32_t function, std::uint32_t index) const {
    return function == 0 ? index : (index - first_virtual_eq) % virtual_eqs();
  }
  /// Number in the table of contexts of an EQ that a function knows by its own number; nothing: it has none of that.
  std::optional<std::uint32_t> eq_index(std::uint32_t function, std::uint32_t eqn) const;

  /// A protection domain as a command names it, made the function's own: bits 23:17 are its number plus one, or 0 for
  /// the physical function (adapter control plane 6.4, 6.5). Nothing: it names another function's.
  static std::optional<std::uint32_t> domain_of(std::uint32_t pd, std::uint32_t function);

 private:
  using vector = std::array<std::uint32_t, 4>;  // a bit for each function
  unsigned words() const { return config_.total_vfs / 32u + 1; }
  bool follow_enabled();
  void write_windows();
  bool report_resets();
  bool report_commands();
  void set_offline(std::uint32_t function, bool on);

  chip& chip_;
  const firmware_config& config_;
  std::uint32_t enabled_ = 0;
  std::array<std::uint32_t, 2> alone_{};  // functions with one port, by port
  bool listened_to_ = false, armed_ = false;
  vector commands_{}, resets_{}, asked_{};  // to be reported; asked for through the channel, and not done yet
};

}  // namespace rnic::firmware
