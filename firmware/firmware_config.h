// SPDX-License-Identifier: Apache-2.0
// Who this adapter is, and how fast its firmware runs.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace rnic::firmware {

struct firmware_config {
  unsigned num_ports = 2;                                            ///< 1 or 2
  std::array<std::uint64_t, 2> mac{0x0002c9000001, 0x0002c9000002};  ///< permanent unicast addresses, low 48 bits
  std::uint64_t node_guid = 0x0002c90300000010;
  std::uint64_t system_guid = 0x0002c90300000013;
  std::array<std::uint64_t, 2> port_guid{0x0002c90300000011, 0x0002c90300000012};
  std::string board_id = "MT_1090111019";       ///< up to 16 characters (control plane 4.8)
  std::string node_description = "rnic model";  ///< up to 64 characters
  std::uint16_t device_id = 0x1007;             ///< ConnectX-3 Pro (control plane 1.1)
  std::uint32_t revision = 0;
  std::array<std::uint16_t, 3> version{2, 42, 5000};  ///< QUERY_FW (calibration 2.2: that of the published runs)
  std::uint16_t core_clock_mhz = 427;                 ///< QUERY_HCA; no timestamps are offered, so informative
  std::uint8_t speed_code = 0x40;       ///< QUERY_PORT while the port tells no rate (control plane 4.7: 40 Gb/s)
  std::uint16_t firmware_pages = 16;    ///< 4 KiB pages that MAP_FA must provide (control plane 4.2)
  std::uint16_t aux_pages = 16;         ///< 4 KiB pages that MAP_ICM_AUX should provide (control plane 4.4)
  std::uint32_t reserved_lkey = 0x500;  ///< control plane 3.9
  bool roce_v2 = true;                  ///< offers ROCE_V1_V2; without, RoCE v1 alone (first generation)
  bool software_cq_init = true;         ///< offers SW_CQ_INIT (control plane 4.6.2)
  std::uint8_t rx_checksum_mode = 0;    ///< CONFIG_DEV: 1 gives a sum for IP packets that are neither TCP nor UDP, as a
                                        ///< driver needs it for CHECKSUM_COMPLETE (data plane A.8.4); 0: none
  std::uint16_t total_vfs = 0;          ///< of the SR-IOV capability; with any, SYS_EQS is offered (control plane 3.5)
  std::uint16_t msix_vectors = 128, vf_msix_vectors = 4;  ///< of a physical, of a virtual function (control plane 1.2)
  bool link_modes = true;          ///< offers ETH_PROT_CTRL: PTYS has a bit for the rate of each port
  unsigned dispatch_cycles = 400;  ///< firmware cycles of decoding and checking a command: chosen
  unsigned poll_cycles = 64;       ///< firmware cycles between two looks at a busy bit: chosen
  unsigned max_polls = 1u << 20;   ///< looks before the hardware counts as broken (INTERNAL_ERR): chosen
};

/// Whether the register PTYS of ACCESS_REG has a link mode of this rate.
bool has_link_mode(std::uint32_t mbps);

}  // namespace rnic::firmware
