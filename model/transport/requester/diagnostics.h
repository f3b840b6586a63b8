// SPDX-License-Identifier: Apache-2.0
// Diagnostic counters that software reads (adapter control plane 10.3).
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "model/transport/port_count.h"
#include "model/transport/requester/send_wqe.h"
#include "model/transport/transport_cr.h"

namespace rnic::transport {

/// A register file: each counter by its offset, in bytes. Each of its users counts one event a cycle, of the port that
/// the path of the queue pair names, from 0.
class diagnostic_counters {
 public:
  static constexpr unsigned rnr = 0x6c, out_of_sequence = 0x104, timeout = 0x134;

  void count(unsigned offset, unsigned port) { words_[offset / 4].count(port); }
  /// A completion in error.
  void count_error(std::uint8_t syn, unsigned port) {
    constexpr std::pair<std::uint8_t, std::uint8_t> counters[] = {
        {syndrome::local_length, std::uint8_t{0x04}},
        {syndrome::local_qp_operation, std::uint8_t{0x0c}},
        {syndrome::local_protection, std::uint8_t{0x1c}},
        {syndrome::flush, std::uint8_t{0x24}},
        {syndrome::window_bind, std::uint8_t{0x2c}},
        {syndrome::bad_response, std::uint8_t{0x34}},
        {syndrome::remote_invalid_request, std::uint8_t{0x44}},
        {syndrome::remote_access, std::uint8_t{0x4c}},
        {syndrome::remote_operation, std::uint8_t{0x54}},
        {syndrome::retry_exceeded, std::uint8_t{0x5c}},
        {syndrome::rnr_retry_exceeded, std::uint8_t{0x64}},
    };
    for (const auto& [completion, offset] : counters)
      if (completion == syn) count(offset, port);
  }
  /// As the registers lie: what is of the device, then what is of each port.
  std::uint32_t read(std::uint32_t offset) const {
    const std::uint32_t word = offset % cr::diagnostics_stride / 4;
    return word < words_.size() ? cr::diagnostic_of(words_[word], offset / cr::diagnostics_stride) : 0;
  }
  void clear() { words_.fill({}); }

 private:
  std::array<port_count, 0x1a4 / 4> words_{};
};

}  // namespace rnic::transport
