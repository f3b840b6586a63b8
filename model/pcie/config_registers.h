// SPDX-License-Identifier: Apache-2.0
// 4 KiB of configuration registers with their access rules.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

namespace rnic::pcie {

/// Offsets of the capabilities (adapter control plane 1.1).
namespace cfg {
inline constexpr std::uint16_t command = 0x04, status = 0x06, bar0 = 0x10, bar2 = 0x18;
inline constexpr std::uint16_t power = 0x40, vpd = 0x48, express = 0x60, msix = 0x9c;
inline constexpr std::uint16_t ari = 0x100, sriov = 0x108, serial = 0x148, aer = 0x154;
inline constexpr std::uint16_t device_control = express + 0x08, device_status = express + 0x0a;
inline constexpr std::uint16_t link_status = express + 0x12;
inline constexpr std::uint16_t msix_control = msix + 0x02;
inline constexpr std::uint16_t sriov_control = sriov + 0x08, sriov_num_vfs = sriov + 0x10, sriov_bar2 = sriov + 0x2c;
inline constexpr std::uint16_t command_memory = 0x0002, command_bus_master = 0x0004, command_line_disable = 0x0400;
inline constexpr std::uint16_t sriov_vf_enable = 0x0001, sriov_vf_memory = 0x0008;
}  // namespace cfg

/// Errors that a function detects; bits of AER's uncorrectable status (Base Specification 3.0, 7.10.2).
enum class error : std::uint32_t {
  poisoned = 1u << 12,
  completion_timeout = 1u << 14,
  completer_abort = 1u << 15,
  unexpected_completion = 1u << 16,
  malformed = 1u << 18,
  unsupported_request = 1u << 20,
};

/// What a write asks for beyond its own register.
struct config_effect {
  bool function_level_reset = false;
  bool msix_changed = false;
};

/// Little-endian registers, each byte with a mask of writable bits and one of bits that a written 1 clears.
class config_registers {
 public:
  /// Dword at `offset` (0..4092, low bits ignored).
  std::uint32_t read32(std::uint16_t offset) const {
    std::uint32_t v;
    std::memcpy(&v, &value_[offset & 0xffcu], 4);
    return v;
  }

 protected:
  void clear() {
    value_.fill(0);
    writable_.fill(0);
    clearable_.fill(0);
  }
  /// Writes the bytes whose bit is set in byte_enables (bit 0: lowest address). Read-only bits stay.
  void write(std::uint16_t offset, std::uint32_t value, unsigned byte_enables) {
    const unsigned at = offset & 0xffcu;
    for (unsigned i = 0; i < 4; ++i) {
      if ((byte_enables >> i & 1) == 0) continue;
      const auto byte = static_cast<std::uint8_t>(value >> (8 * i));
      const std::uint8_t w = writable_[at + i];
      value_[at + i] = static_cast<std::uint8_t>((value_[at + i] & ~w & ~(byte & clearable_[at + i])) | (byte & w));
    }
  }
  /// Whether such a write has byte `reg` in it.
  static bool touches(unsigned reg, std::uint16_t offset, unsigned byte_enables) {
    return reg / 4 == offset / 4u && (byte_enables >> (reg % 4) & 1) != 0;
  }
  /// A written 1 in "initiate function-level reset", which reads as 0.
  bool takes_reset(std::uint16_t offset, unsigned byte_enables) {
    std::uint8_t& control = value_[cfg::device_control + 1];
    if (!touches(cfg::device_control + 1, offset, byte_enables) || (control & 0x80) == 0) return false;
    control &= 0x7f;
    return true;
  }
  std::uint8_t byte(std::uint16_t offset) const { return value_[offset]; }
  std::uint16_t get16(std::uint16_t offset) const {
    return static_cast<std::uint16_t>(value_[offset] | value_[offset + 1u] << 8);
  }
  void set8(std::uint16_t offset, std::uint8_t value, std::uint8_t writable = 0) {
    value_[offset] = value;
    writable_[offset] = writable;
  }
  void set16(std::uint16_t offset, std::uint16_t value) { std::memcpy(&value_[offset], &value, 2); }
  void set32(std::uint16_t offset, std::uint32_t value) { std::memcpy(&value_[offset], &value, 4); }
  void writable16(std::uint16_t offset, std::uint16_t mask) { std::memcpy(&writable_[offset], &mask, 2); }
  void writable32(std::uint16_t offset, std::uint32_t mask) { std::memcpy(&writable_[offset], &mask, 4); }
  void clearable16(std::uint16_t offset, std::uint16_t mask) { std::memcpy(&clearable_[offset], &mask, 2); }
  void clearable32(std::uint16_t offset, std::uint32_t mask) { std::memcpy(&clearable_[offset], &mask, 4); }

 private:
  std::array<std::uint8_t, 4096> value_{};
  std::array<std::uint8_t, 4096> writable_{};
  std::array<std::uint8_t, 4096> clearable_{};
};

}  // namespace rnic::pcie
