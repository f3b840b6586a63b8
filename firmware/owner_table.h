// SPDX-License-Identifier: Apache-2.0
// Which objects of a table belong to hardware, and to which function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rnic::firmware {

/// Index 0 to size - 1; all belong to software at first.
class owner_table {
 public:
  void resize(std::size_t objects) { owner_.assign(objects, software); }
  void clear() { owner_.clear(); }
  /// Hardware has it.
  bool has(std::uint32_t index) const { return index < owner_.size() && owner_[index] != software; }
  /// Hardware has it, for this function.
  bool has(std::uint32_t index, std::uint16_t function) const {
    return index < owner_.size() && owner_[index] == function;
  }
  void give(std::uint32_t index, std::uint16_t function) { owner_[index] = static_cast<std::uint8_t>(function); }
  void take_back(std::uint32_t index) { owner_[index] = software; }

 private:
  static constexpr std::uint8_t software = 0xff;
  std::vector<std::uint8_t> owner_;
};

}  // namespace rnic::firmware
