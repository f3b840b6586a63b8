// SPDX-License-Identifier: Apache-2.0
// Reads the blocks of a pcapng file (draft-ietf-opsawg-pcapng).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tlm/capture_source.h"

namespace rnic::tlm {

/// Packets of all interfaces in the order of the file, each with the link type, time unit, time offset and FCS of its
/// own interface, over any number of sections of either byte order. libpcap reads no file whose interfaces differ in
/// link type or snapshot length, and knows nothing of FCS and time offset; Debian's other reader, Wireshark's
/// libwiretap, has no stable interface and a licence of its own (GPL).
///
/// Trusts nothing: a block is at most 16 MiB long, and what does not fit its block ends the file as damaged.
class pcapng_source final : public capture_source_if {
 public:
  struct closer {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  using file_ptr = std::unique_ptr<std::FILE, closer>;
  static constexpr std::uint32_t section_block = 0x0a0d0d0a;  ///< how every file begins, in either byte order

  /// `file` is at its first byte, and may be a stream.
  explicit pcapng_source(file_ptr file) : file_(std::move(file)) {}

  result next(stored_packet& out) override;
  std::string reason() const override { return reason_; }

 private:
  struct interface {
    int link_type = 0;
    std::uint32_t snapshot = 0;
    std::uint8_t resolution = 6;  // if_tsresol
    std::int64_t offset_s = 0;    // if_tsoffset
    unsigned fcs_bytes = 0;
  };
  struct option {
    const std::uint8_t* value;
    std::size_t length;
  };

  bool read_block();
  bool read_section_header();
  bool take(void* to, std::size_t bytes);
  bool fail(const std::string& why);
  bool add_interface();
  bool take_packet(stored_packet& out, std::size_t header);
  bool take_simple(stored_packet& out);
  bool find_option(std::size_t from, unsigned code, std::size_t least, option& out) const;
  std::uint16_t u16(std::size_t at) const;
  std::uint32_t u32(std::size_t at) const;
  static std::uint64_t nanoseconds(const interface& i, std::uint64_t units);

  file_ptr file_;
  std::string reason_;
  bool swapped_ = false;
  std::uint32_t type_ = 0;
  std::vector<std::uint8_t> body_;  // of the block, without type and lengths
  std::vector<interface> interfaces_;
  std::uint32_t earlier_interfaces_ = 0;  // of sections before this one
  std::uint64_t offset_ = 0, block_at_ = 0, last_ns_ = 0;
};

}  // namespace rnic::tlm
