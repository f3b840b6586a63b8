// SPDX-License-Identifier: Apache-2.0
// Configuration space of the physical function: 4 KiB of registers with their access rules.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "model/pcie/config_registers.h"
#include "model/sim/parameter.h"

namespace rnic::pcie {

/// Registers of the physical function; what depends on the values is kept decoded in `state`.
class config_space : public config_registers {
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
    /// Number that the SR-IOV capability announces; 0: the function has none.
    sim::parameter<std::uint16_t> total_vfs{
        0, {0, 126, "virtual functions", "adapter control plane 1.1, 8.7; --functions sets it"}};
    sim::parameter<std::uint16_t> vf_msix_vectors{4, {2, 32, "vectors", "design: of each virtual function"}};
    std::uint32_t vf_msix_table_offset = 0x2000;  ///< in VF BAR2, a page that has no doorbells (design)
    std::uint32_t vf_msix_pba_offset = 0x3000;    ///< in VF BAR2
    /// Supported; a power of two.
    sim::parameter<std::uint32_t> max_payload_bytes{512, {128, 4096, "bytes", "calibration 5: host sets 256"}};
    std::uint64_t serial_number = 0x0002'c903'0000'0001;  ///< device serial number capability
    unsigned link_generation = 3;
    unsigned link_width = 8;
    std::string product_name = "ConnectX-3 Pro class adapter model";  ///< vital product data

    void list(sim::fields& are) {
      are("msix_vectors", msix_vectors);
      are("max_payload_bytes", max_payload_bytes);
      are("total_vfs", total_vfs);
      are("vf_msix_vectors", vf_msix_vectors);
    }
  };
  /// Decoded registers, valid until the next write.
  struct state {
    bool memory_enabled = false;
    bool bus_master = false;
    bool msix_enabled = false;
    bool msix_masked = false;
    bool line_disabled = false;  ///< Interrupt Disable
    std::uint64_t bar0 = 0;
    std::uint64_t bar2 = 0;
    std::uint32_t max_payload = 128;       ///< bytes
    std::uint32_t max_read_request = 512;  ///< bytes
    bool vf_enabled = false;
    std::uint16_t enabled_vfs = 0;  ///< those that there are
    bool vf_memory_enabled = false;
    std::uint64_t vf_bar2 = 0;  ///< of the first virtual function; those of the others follow
  };

  /// Register of the PCI Express capability that is the same in all functions: extended tags, role-based error
  /// reporting, function-level reset.
  static std::uint32_t device_capabilities(const config& c);
  /// Throws sim::config_error for a size that cannot be.
  explicit config_space(const config& c);

  /// Writes the bytes whose bit is set in byte_enables (bit 0: lowest address). Read-only bits stay, and so does the
  /// number of virtual functions while they are enabled (SR-IOV specification 1.1, 3.3.7).
  config_effect write32(std::uint16_t offset, std::uint32_t value, unsigned byte_enables);
  /// All registers as after power-on, but for what survives a function-level reset by its definition (nothing here).
  void reset();
  /// Sets the status bits of an error that this function detected.
  void report(error e);
  /// Status bits of a requester that got such a completion: UR = received master abort, CA = received target abort.
  void received_abort(bool target_abort);

  const state& now() const { return state_; }
  const config& configuration() const { return config_; }

 private:
  void build_header();
  void build_power_and_vpd();
  void build_express();
  void build_msix();
  void build_extended();
  void build_sriov(std::uint16_t next);
  void vpd_access();
  void decode();

  config config_;
  std::array<std::uint8_t, 256> vpd_{};
  state state_;
};

}  // namespace rnic::pcie
