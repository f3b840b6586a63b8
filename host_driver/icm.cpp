// SPDX-License-Identifier: Apache-2.0
// Host memory given to the device (adapter control plane 4.3, 5.2; net/icm.c, net/fw.c:mlx4_map_cmd).
#include "host_driver/icm.h"

#include <algorithm>
#include <cerrno>

namespace rnic::host_driver {

namespace {

constexpr std::uint64_t page = 4096;
constexpr std::uint64_t no_address = ~std::uint64_t{0};

/// MAP_FA, MAP_ICM_AUX or MAP_ICM of some memory: entries as large as alignment and size allow.
int map_memory(command_channel& channel, abi::opcode op, const std::vector<bus_if::dma_memory>& memory,
               std::uint64_t icm) {
  command_channel::mailbox box(channel);
  unsigned entries = 0;
  for (const auto& m : memory) {
    std::uint64_t at = m.bus_address;
    std::uint64_t left = m.bytes;
    while (left != 0) {
      unsigned log = static_cast<unsigned>(__builtin_ctzll(at | left));
      log = std::min(log, 18u);
      if (log < 12) return -EINVAL;
      std::uint8_t* entry = box.data() + entries * abi::map_entry::bytes;
      abi::set(entry, abi::map_entry::icm_address, icm == no_address ? 0 : icm);
      abi::set(entry, abi::map_entry::bus_address, at | (log - 12));
      at += std::uint64_t{1} << log;
      left -= std::uint64_t{1} << log;
      if (icm != no_address) icm += std::uint64_t{1} << log;
      if (++entries == abi::map_entry::max_count) {
        if (const int error = channel.write(box, op, entries)) return error;
        entries = 0;
      }
    }
  }
  return entries == 0 ? 0 : channel.write(box, op, entries);
}

}  // namespace

int icm_area::map(bus_if& bus, command_channel& channel, abi::opcode map_op, std::uint64_t pages) {
  std::uint64_t left = pages * page;
  while (left != 0) {
    std::uint64_t bytes = icm_chunk_bytes;
    while (bytes > left) bytes /= 2;
    memory_.push_back(bus.allocate(bytes, bytes));
    left -= bytes;
  }
  return memory_.empty() ? 0 : map_memory(channel, map_op, memory_, no_address);
}

int icm_area::unmap(command_channel& channel, abi::opcode unmap_op) { return channel.command(unmap_op); }

void icm_area::release(bus_if& bus) {
  for (const auto& m : memory_) bus.release(m);
  memory_.clear();
}

int icm_table::init(bus_if& bus, command_channel& channel, std::uint64_t base, std::uint32_t object_bytes,
                    std::uint64_t objects, std::uint64_t reserved) {
  bus_ = &bus;
  channel_ = &channel;
  base_ = base;
  object_bytes_ = object_bytes;
  objects_ = objects;
  bytes_ = objects * object_bytes;
  chunks_.assign((bytes_ + icm_chunk_bytes - 1) / icm_chunk_bytes, chunk{});
  for (std::uint64_t i = 0; i * icm_chunk_bytes < reserved * object_bytes && i < chunks_.size(); ++i) {
    if (const int error = map(i)) return error;
    chunks_[i].users = 1;  // for ever: the device may use reserved objects at any time
  }
  return 0;
}

int icm_table::map(std::uint64_t index) {
  const std::uint64_t left = bytes_ - index * icm_chunk_bytes;
  const std::uint64_t bytes = std::min(icm_chunk_bytes, (left + page - 1) / page * page);
  const auto memory = bus_->allocate(bytes, bytes);
  if (memory.pointer == nullptr) return -ENOMEM;
  if (const int error = map_memory(*channel_, abi::opcode::map_icm, {memory}, base_ + index * icm_chunk_bytes)) {
    bus_->release(memory);
    return error;
  }
  chunks_[index].memory = memory;
  return 0;
}

void icm_table::unmap(std::uint64_t index) {
  channel_->command(abi::opcode::unmap_icm, abi::unmap_chunk_pages, 0, base_ + index * icm_chunk_bytes);
  bus_->release(chunks_[index].memory);
  chunks_[index] = chunk{};
}

int icm_table::get(std::uint64_t object) {
  const std::uint64_t index = (object & (objects_ - 1)) * object_bytes_ / icm_chunk_bytes;
  if (chunks_[index].memory.pointer == nullptr) {
    if (const int error = map(index)) return error;
  }
  ++chunks_[index].users;
  return 0;
}

void icm_table::put(std::uint64_t object) {
  const std::uint64_t index = (object & (objects_ - 1)) * object_bytes_ / icm_chunk_bytes;
  if (chunks_[index].users != 0 && --chunks_[index].users == 0) unmap(index);
}

int icm_table::get_range(std::uint64_t first, std::uint64_t last) {
  const std::uint64_t step = icm_chunk_bytes / object_bytes_;
  for (std::uint64_t i = first / step * step; i <= last; i += step) {
    if (const int error = get(i)) {
      for (std::uint64_t back = first / step * step; back < i; back += step) put(back);
      return error;
    }
  }
  return 0;
}

void icm_table::put_range(std::uint64_t first, std::uint64_t last) {
  const std::uint64_t step = icm_chunk_bytes / object_bytes_;
  for (std::uint64_t i = first / step * step; i <= last; i += step) put(i);
}

std::uint8_t* icm_table::find(std::uint64_t object) const {
  const std::uint64_t offset = (object & (objects_ - 1)) * object_bytes_;
  const auto& c = chunks_[offset / icm_chunk_bytes];
  return c.memory.pointer == nullptr ? nullptr : c.memory.pointer + offset % icm_chunk_bytes;
}

void icm_table::clean_up() {
  for (std::uint64_t i = 0; i < chunks_.size(); ++i) {
    if (chunks_[i].memory.pointer != nullptr) unmap(i);
  }
  chunks_.clear();
}

unsigned icm_table::mapped_chunks() const {
  unsigned n = 0;
  for (const auto& c : chunks_) n += c.memory.pointer != nullptr ? 1 : 0;
  return n;
}

}  // namespace rnic::host_driver
