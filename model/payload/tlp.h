// SPDX-License-Identifier: Apache-2.0
// A PCI Express transaction-layer packet, the payload of the PCIe sockets.
#pragma once

#include <array>
#include <cstdint>

#include "model/payload/pool.h"
#include "model/sim/span.h"

namespace rnic::payload {

/// message: one without data that ends at the receiver.
enum class tlp_type : std::uint8_t { mem_read, mem_write, cfg_read, cfg_write, completion, message };
/// Table 2-16 of the specification.
enum class message_code : std::uint8_t { assert_inta = 0x20, deassert_inta = 0x24 };
enum class tlp_status : std::uint8_t { success = 0, unsupported_request = 1, completer_abort = 4 };

/// Fields as in the PCI Express Base Specification 3.0, chapter 2.2. Data is in address order (byte 0 first).
struct tlp {
  static constexpr std::uint32_t max_data = 4096;

  tlp_type type = tlp_type::mem_read;
  tlp_status status = tlp_status::success;        ///< completions
  message_code code = message_code::assert_inta;  ///< messages
  std::uint16_t requester = 0;                    ///< bus/device/function of the requester
  std::uint16_t completer = 0;                    ///< completions; config requests: target function
  std::uint16_t tag = 0;
  std::uint8_t first_be = 0xf;  ///< byte enables of the first and the last dword
  std::uint8_t last_be = 0xf;
  bool poisoned = false;
  std::uint64_t address = 0;     ///< memory: byte address (first enabled byte); config: register offset
  std::uint32_t length = 0;      ///< bytes of data asked for or carried
  std::uint32_t byte_count = 0;  ///< completions: bytes still to come including this packet's
  sim::span_id span = 0;
  std::array<std::uint8_t, max_data> data;

  bool posted() const { return type == tlp_type::mem_write || type == tlp_type::message; }
  /// Bytes of data in the packet.
  std::uint32_t carried() const { return type == tlp_type::mem_read || type == tlp_type::cfg_read ? 0 : length; }
  struct byte_enables {
    std::uint8_t first, last;
  };
  /// Of all the `length` bytes from `address` on (Base Specification 3.0, 2.2.5).
  byte_enables without_holes() const {
    const unsigned first = static_cast<unsigned>(address & 3);
    const bool one_dword = first + std::uint64_t{length} <= 4;
    const unsigned from = 0xfu << first & 0xf;
    const unsigned to = 0xfu >> (-(first + length) & 3);
    return {static_cast<std::uint8_t>(one_dword ? from & to : from), static_cast<std::uint8_t>(one_dword ? 0 : to)};
  }
  void enable_bytes() {
    const byte_enables all = without_holes();
    first_be = all.first;
    last_be = all.last;
  }
  bool has_all_enabled() const {
    const byte_enables all = without_holes();
    return first_be == all.first && last_be == all.last;
  }
  void recycle() {
    type = tlp_type::mem_read;
    status = tlp_status::success;
    requester = completer = tag = 0;
    first_be = last_be = 0xf;
    poisoned = false;
    address = 0;
    length = byte_count = 0;
    span = 0;
  }
};

using tlp_ptr = handle<tlp>;
using tlp_pool = pool<tlp>;

}  // namespace rnic::payload
