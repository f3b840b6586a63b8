// SPDX-License-Identifier: Apache-2.0
// Host memory given to the device: firmware area, auxiliary area, and context tables mapped chunk by chunk.
#pragma once

#include <cstdint>
#include <vector>

#include "host_driver/bus_if.h"
#include "host_driver/command_channel.h"

namespace rnic::host_driver {

inline constexpr std::uint64_t icm_chunk_bytes = 256 * 1024;  ///< MLX4_TABLE_CHUNK_SIZE, MLX4_ICM_ALLOC_SIZE

/// Memory named to the device by MAP_FA or MAP_ICM_AUX: consecutive pages of the device's own use.
class icm_area {
 public:
  /// Allocates and maps. 0 pages: nothing, no command.
  int map(bus_if& bus, command_channel& channel, abi::opcode map_op, std::uint64_t pages);
  int unmap(command_channel& channel, abi::opcode unmap_op);
  void release(bus_if& bus);
  bool mapped() const { return !memory_.empty(); }

 private:
  std::vector<bus_if::dma_memory> memory_;
};

/// One table of contexts in ICM (net/icm.c). Chunks are mapped when the first object in them is taken and unmapped
/// when the last one is given back; those of reserved objects stay.
class icm_table {
 public:
  int init(bus_if& bus, command_channel& channel, std::uint64_t base, std::uint32_t object_bytes, std::uint64_t objects,
           std::uint64_t reserved);
  int get(std::uint64_t object);
  void put(std::uint64_t object);
  int get_range(std::uint64_t first, std::uint64_t last);
  void put_range(std::uint64_t first, std::uint64_t last);
  /// Where the processor finds an object; nullptr when not mapped. Only MTT and dMPT entries are the driver's to touch.
  std::uint8_t* find(std::uint64_t object) const;
  /// Unmaps and releases everything that is left.
  void clean_up();
  std::uint64_t base() const { return base_; }
  unsigned mapped_chunks() const;

 private:
  struct chunk {
    bus_if::dma_memory memory{};
    unsigned users = 0;
  };
  int map(std::uint64_t index);
  void unmap(std::uint64_t index);

  bus_if* bus_ = nullptr;
  command_channel* channel_ = nullptr;
  std::uint64_t base_ = 0, bytes_ = 0, objects_ = 0;
  std::uint32_t object_bytes_ = 0;
  std::vector<chunk> chunks_;
};

}  // namespace rnic::host_driver
