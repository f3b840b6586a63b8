// SPDX-License-Identifier: Apache-2.0
// Blocks of a pcapng file, which libpcap cannot write.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace rnic::tlm {

struct file_closer {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using file_ptr = std::unique_ptr<std::FILE, file_closer>;

/// Blocks in the order of the calls (draft-ietf-opsawg-pcapng): one section, then Ethernet interfaces whose times are
/// nanoseconds, then frames. A comment longer than an option can be is cut.
class pcapng_blocks {
 public:
  /// `fcs`: frames end with their FCS.
  pcapng_blocks(file_ptr file, bool fcs) : file_(std::move(file)), fcs_(fcs) {}

  /// `about`: comment of the file, may be empty.
  void section(const std::string& about);
  void interface(const std::string& name);
  struct frame {
    std::uint32_t interface = 0;  ///< from 0, in the order of the calls of interface()
    bool inbound = false;
    std::uint64_t ns = 0;
    const std::string& comment;  ///< may be empty
  };
  void add(const frame& f, const std::vector<std::uint8_t>& bytes);
  /// False when anything could not be written: errno says why. The file is closed.
  bool close();

 private:
  void block(std::uint32_t type);
  void write(const void* from, std::size_t bytes);
  void note(bool ok);

  file_ptr file_;
  bool fcs_, failed_ = false;
  int why_ = 0;  // errno of the first failure
  std::vector<std::uint8_t> body_;
};

}  // namespace rnic::tlm
