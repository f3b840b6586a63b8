// SPDX-License-Identifier: Apache-2.0
// A chip of plain memory: registers that keep what is written, host memory in pages, ICM mapping by its registers.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "firmware/hardware_if.h"
#include "model/register_bus/cr_space.h"

namespace rnic {

class fake_hardware : public firmware::hardware_if {
 public:
  std::uint32_t cr_read(std::uint32_t address) override;
  void cr_write(std::uint32_t address, std::uint32_t value) override;
  bool dma_read(std::uint16_t function, std::uint64_t address, void* to, std::size_t bytes) override;
  bool dma_write(std::uint16_t function, std::uint64_t address, const void* from, std::size_t bytes) override;
  bool icm_read(std::uint64_t icm_address, void* to, std::size_t bytes) override;
  bool icm_write(std::uint64_t icm_address, const void* from, std::size_t bytes) override;
  void spend(std::uint64_t cycles) override { spent += cycles; }

  /// New host memory, filled with garbage as the kernel's pages may be.
  std::uint64_t allocate(std::uint64_t bytes);
  std::uint8_t* host(std::uint64_t address);
  std::uint32_t& reg(register_bus::cr_base base, std::uint32_t offset, unsigned port = 0) {
    return registers[static_cast<std::uint32_t>(base) + port * register_bus::cr_port_stride + offset];
  }

  struct event {
    std::uint8_t type, subtype;
    std::array<std::uint32_t, 6> data;
  };
  std::unordered_map<std::uint32_t, std::uint32_t> registers;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> writes;  // all register writes in order
  std::vector<event> events;
  std::unordered_map<std::uint64_t, std::uint64_t> icm;  // page -> bus address
  std::uint64_t spent = 0;

 private:
  std::uint64_t translate(std::uint64_t icm_address) const;
  void change_qp(std::uint32_t half);
  std::vector<std::uint8_t> memory_;
  std::uint64_t qpc_ = 0;
  std::uint32_t qpc_entry_ = 0;
};

}  // namespace rnic
