// SPDX-License-Identifier: Apache-2.0
// Memory on chip: receive descriptors and doorbell records as they were read from host memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/transport/responder/types.h"

namespace rnic::transport {

/// Where in the receive memory something is.
struct receive_place {
  enum class part : std::uint8_t {
    own,            ///< descriptors of own queues: two batches a line (receive_wqe.h),
    shared,         ///< of shared ones: a line (shared_receive.h),
    taken,          ///< of shared ones: entries that were taken and are needed once more
    own_record,     ///< doorbell record of a line of own queues,
    shared_record,  ///< of a line of shared ones,
    error_record,   ///< of a queue pair in error (error_state.h)
    count
  };
  part in = part::own;
  std::uint32_t number = 0;
};
constexpr bool is_record(const receive_place& p) { return p.in >= receive_place::part::own_record; }

/// A part for each owner of lines. One write port, receive fetch's: the DMA engine writes what memory answers. Read
/// ports: of the check, to the descriptors and the record of its question; of the limits, to the record of a shared
/// queue; of error_state, to its own record. Each reads what receive fetch has told the responder of, and no place that
/// it has asked for since.
class receive_memory {
 public:
  static constexpr std::uint32_t record_bytes = 4;

  explicit receive_memory(const responder_config& cfg) {
    std::size_t end = 0;
    for (std::size_t i = 0; i != parts_.size(); ++i) {
      const auto in = static_cast<receive_place::part>(i);
      parts_[i] = {end, is_record({in, 0}) ? record_bytes : cfg.receive_line_bytes};
      end += std::size_t{parts_[i].bytes} * places(cfg, in);
    }
    bytes_.resize(end);
  }

  /// How many places the part has.
  static std::uint32_t places(const responder_config& cfg, receive_place::part in) {
    switch (in) {
      case receive_place::part::own:
        return 2 * cfg.receive_lines;
      case receive_place::part::own_record:
        return cfg.receive_lines;
      case receive_place::part::taken:
        return cfg.shared_kept;
      case receive_place::part::shared:
      case receive_place::part::shared_record:
        return cfg.shared_lines;
      default:
        return 1;
    }
  }
  static std::uint32_t places(const responder_config& cfg) {
    std::uint32_t all = 0;
    for (unsigned i = 0; i != parts; ++i) all += places(cfg, static_cast<receive_place::part>(i));
    return all;
  }
  std::uint32_t bytes_of(const receive_place& p) const { return parts_[static_cast<std::size_t>(p.in)].bytes; }

  // ---- receive fetch's port
  std::uint8_t* write(const receive_place& p) { return bytes_.data() + at(p); }

  // ---- the responder's ports
  const std::uint8_t* read(const receive_place& p) const { return bytes_.data() + at(p); }

 private:
  static constexpr unsigned parts = static_cast<unsigned>(receive_place::part::count);
  struct part_of_memory {
    std::size_t first = 0;
    std::uint32_t bytes = 0;  // of a place
  };
  std::size_t at(const receive_place& p) const {
    const part_of_memory& part = parts_[static_cast<std::size_t>(p.in)];
    return part.first + std::size_t{p.number} * part.bytes;
  }

  std::array<part_of_memory, parts> parts_;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace rnic::transport
