// SPDX-License-Identifier: Apache-2.0
// What kinds of capture files have in common: packets, one after the other.
#pragma once

#include <cstdint>
#include <string>

namespace rnic::tlm {

/// A packet as its file has it. The bytes are valid until the next call to next().
struct stored_packet {
  const std::uint8_t* data = nullptr;  ///< from the link type's first header
  std::uint32_t length = 0;            ///< bytes in the file
  std::uint32_t wire_length = 0;       ///< bytes that it had, never less than `length`
  std::uint64_t time_ns = 0;           ///< since 1970; of a packet without a time that of the one before
  std::uint32_t interface = 0;         ///< counted from 0 over the whole file
  int link_type = 0;                   ///< LINKTYPE_ of the tcpdump group, or libpcap's DLT_
  unsigned fcs_bytes = 0;              ///< at its end, in `wire_length`
};

class capture_source_if {
 public:
  virtual ~capture_source_if() = default;
  enum class result : std::uint8_t { packet, end, damaged };
  /// `damaged`: the file cannot be read any further, reason() says why.
  virtual result next(stored_packet& out) = 0;
  virtual std::string reason() const = 0;
};

}  // namespace rnic::tlm
