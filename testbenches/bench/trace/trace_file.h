// SPDX-License-Identifier: Apache-2.0
// Where a trace is written.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

struct gzFile_s;

namespace rnic::bench {

/// Text to a file, compressed (gzip, level 1) when its name ends in .gz. Nothing but a buffer is kept in memory.
class trace_file {
 public:
  /// Throws usage_error when it cannot be made.
  explicit trace_file(const std::string& name);
  ~trace_file();
  trace_file(const trace_file&) = delete;
  trace_file& operator=(const trace_file&) = delete;

  /// Room for so many bytes, at most most_bytes, which advance() then makes part of the text.
  static constexpr std::size_t most_bytes = 4096;
  char* room() {
    if (used_ + most_bytes > capacity) write_out();
    return buffer_ + used_;
  }
  void advance(char* end) { used_ = static_cast<std::size_t>(end - buffer_); }
  void add(const std::string& text);
  /// Throws usage_error when the text could not be written: the disk is full.
  void close();
  const std::string& name() const { return name_; }

 private:
  static constexpr std::size_t capacity = std::size_t{1} << 20;
  void write_out();

  std::string name_;
  std::FILE* plain_ = nullptr;
  gzFile_s* compressed_ = nullptr;
  bool failed_ = false;
  char* buffer_;
  std::size_t used_ = 0;
};

}  // namespace rnic::bench
