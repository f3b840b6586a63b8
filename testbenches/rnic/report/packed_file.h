// SPDX-License-Identifier: Apache-2.0
// A file that may be packed by gzip, piece by piece.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

struct gzFile_s;

namespace rnic::program {

class packed_file {
 public:
  /// Throws usage_error when it cannot be opened.
  explicit packed_file(std::string name);
  ~packed_file();
  packed_file(const packed_file&) = delete;
  packed_file& operator=(const packed_file&) = delete;

  /// The next piece, valid until the next call; empty at the end. Throws usage_error for a file that is damaged.
  std::string_view next();
  void rewind();

 private:
  std::string name_;
  std::string piece_;
  gzFile_s* file_;
};

}  // namespace rnic::program
