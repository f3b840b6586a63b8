// SPDX-License-Identifier: Apache-2.0
// Registers of the PCIe endpoint on the internal bus.
#pragma once

#include <cstdint>

namespace rnic::pcie::cr {

inline constexpr std::uint32_t bus_device_function = 0x00;  ///< as the last configuration write told it
inline constexpr std::uint32_t function_state = 0x04;       ///< bit 0 memory enabled, bit 1 bus master
inline constexpr std::uint32_t enabled_vfs = 0x08;
inline constexpr std::uint32_t max_payload = 0x0c;       ///< bytes
inline constexpr std::uint32_t max_read_request = 0x10;  ///< bytes
inline constexpr std::uint32_t bar0_low = 0x14, bar0_high = 0x18, bar2_low = 0x1c, bar2_high = 0x20;
inline constexpr std::uint32_t msix_state = 0x24;  ///< bit 0 enabled, bit 1 function masked
inline constexpr std::uint32_t msix_vectors = 0x28;
inline constexpr std::uint32_t link_state = 0x2c;  ///< generation | width << 4
inline constexpr std::uint32_t bar2_log_bytes = 0x30;
/// Since a device reset no request of a block goes out: reads and notified writes are refused, interrupts dropped.
/// Write 1: firmware has brought the blocks to rest, DMA works again. Read bit 0: it works.
inline constexpr std::uint32_t dma_enable = 0x34;
inline constexpr std::uint32_t msix_drop_pending = 0x40;  ///< write: device reset drops pending interrupts
/// SR-IOV: virtual functions that the capability announces; `enabled_vfs` of them exist. From its function-level reset
/// on, or since firmware has written its number to hold_function, a virtual function sends nothing and takes nothing
/// but what goes to its registers of the communication channel, until firmware writes its number to release_function
/// (adapter control plane 8.1).
inline constexpr std::uint32_t total_vfs = 0x44, hold_function = 0x48, release_function = 0x4c;

}  // namespace rnic::pcie::cr
