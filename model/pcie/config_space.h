// SPDX-License-Identifier: Apache-2.0
// Configuration space of the physical function: 4 KiB of registers with their access rules.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "model/sim/parameter.h"

namespace rnic::pcie {

/// Offsets of the capabilities (adapter control plane 1.1).
namespace cfg {
inline constexpr std::uint16_t command = 0x04, status = 0x06, bar0 = 0x10, bar2 = 0x18;
inline constexpr std::uint16_t power = 0x40, vpd = 0x48, express = 0x60, msix = 0x9c;
inline constexpr std::uint16_t ari = 0x100, sriov = 0x108, serial = 0x148, aer = 0x154;
inline constexpr std::uint16_t device_control = express + 0x08, device_status = express + 0x0a;
inline constexpr std::uint16_t link_status = express + 0x12;
inline constexpr std::uint16_t msix_control = msix + 0x02;
inline constexpr std::uint16_t command_memory = 0x0002, command_bus_master = 0x0004;
}  // namespace cfg

/// Errors that the function detects; bits of AER's uncorrectable status (Base Specification 3.0, 7.10.2).
enum class error : std::uint32_t {
  poisoned = 1u << 12,
  completion_timeout = 1u << 14,
  completer_abort = 1u << 15,
  unexpected_completion = 1u << 16,
  malformed = 1u << 18,
  unsupported_request = 1u << 20,
};

/// Little-endian registers, each byte with a mask of writable bits and one of bits that a written 1 clears; what
/// depends on the values is kept decoded in `state`.
class config_space {
 public:
  struct config {
    std::uint16_t vendor_id = 0x15b3;        ///< adapter control plane 1.1
    std::uint16_t device_id = 0x1007;        ///< ConnectX-3 Pro
    std::uint16_t vf_device_id = 0x1004;     ///< virtual functions of ConnectX-3 and -3 Pro
    std::uint32_t class_code = 0x020000;     ///< Ethernet controller
    std::uint8_t revision = 0;               ///< must not be 0xa0 (adapter control plane 1.1)
    std::uint16_t subsystem_id = 0x0055;     ///< board (design)
    std::uint64_t bar0_bytes = 1u << 20;     ///< 1 MiB, power of two
    std::uint64_t bar2_bytes = 8u << 20;     ///< 8 MiB, power of two
    std::uint64_t vf_bar2_bytes = 8u << 20;  ///< one virtual function's
    sim::parameter<std::uint16_t> msix_vectors{128, {1, 256, "vectors", "adapter control plane 1.2"}};
    std::uint32_t msix_table_offset = 0x7c000;  ///< in BAR0
    std::uint32_t msix_pba_offset = 0x7d000;    ///< in BAR0
    std::uint16_t total_vfs = 0;                ///< 0: no SR-IOV capability; at most 126
    /// Supported; a power of two.
    sim::parameter<std::uint32_t> max_payload_bytes{512, {128, 4096, "bytes", "calibration 5: host sets 256"}};
    std::uint64_t serial_number = 0x0002'c903'0000'0001;  ///< device serial number capability
    unsigned link_generation = 3;
    unsigned link_width = 8;
    std::string product_name = "ConnectX-3 Pro class adapter model";  ///< vital product data

    void list(sim::fields& are) {
      are("msix_vectors", msix_vectors);
      are("max_payload_bytes", max_payload_bytes);
    }
  };
  /// Decoded registers, valid until the next write.
  struct state {
    bool memory_enabled = false;
    bool bus_master = false;
    bool msix_enabled = false;
    bool msix_masked = false;
    std::uint64_t bar0 = 0;
    std::uint64_t bar2 = 0;
    std::uint32_t max_payload = 128;       ///< bytes
    std::uint32_t max_read_request = 512;  ///< bytes
    std::uint16_t enabled_vfs = 0;
  };
  /// What a write asks for beyond its own register.
  struct effect {
    bool function_level_reset = false;
    bool msix_changed = false;
  };

  /// Throws sim::config_error for a size that cannot be.
  explicit config_space(const config& c);

  /// Dword at `offset` (0..4092, low bits ignored).
  std::uint32_t read32(std::uint16_t offset) const;
  /// Writes the bytes whose bit is set in byte_enables (bit 0: lowest address). Read-only bits stay.
  effect write32(std::uint16_t offset, std::uint32_t value, unsigned byte_enables);
  /// All registers as after power-on, but for what survives a function-level reset by its definition (nothing here).
  void reset();
  /// Sets the status bits of an error that this function detected.
  void report(error e);
  /// Status bits of a requester that got such a completion: UR = received master abort, CA = received target abort.
  void received_abort(bool target_abort);

  const state& now() const { return state_; }
  const config& configuration() const { return config_; }

 private:
  std::uint16_t get16(std::uint16_t offset) const;
  void set16(std::uint16_t offset, std::uint16_t value);
  void set32(std::uint16_t offset, std::uint32_t value);
  void writable16(std::uint16_t offset, std::uint16_t mask);
  void writable32(std::uint16_t offset, std::uint32_t mask);
  void clearable16(std::uint16_t offset, std::uint16_t mask);
  void clearable32(std::uint16_t offset, std::uint32_t mask);
  void build_header();
  void build_power_and_vpd();
  void build_express();
  void build_msix();
  void build_extended();
  void build_sriov(std::uint16_t next);
  void vpd_access();
  void decode();

  config config_;
  std::array<std::uint8_t, 4096> value_{};
  std::array<std::uint8_t, 4096> writable_{};
  std::array<std::uint8_t, 4096> clearable_{};
  std::array<std::uint8_t, 256> vpd_{};
  state state_;
};

}  // namespace rnic::pcie
