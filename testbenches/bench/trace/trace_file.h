// SPDX-License-Identifier: Apache-2.0
// Where a trace is written.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "testbenches/bench/trace/record_queue.h"

namespace rnic::bench {

/// Text to a file, compressed (gzip) when its name ends in .gz. A thread of its own compresses and writes; who adds
/// text waits when that one is behind, so that memory is bounded.
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
    if (used_ + most_bytes > capacity) pass_on();
    return text_.data() + used_;
  }
  void advance(char* end) { used_ = static_cast<std::size_t>(end - text_.data()); }
  void add(const std::string& text);
  /// Throws usage_error when the text could not be written: the disk is full.
  void close();
  const std::string& name() const { return name_; }

 private:
  static constexpr std::size_t capacity = record_queue::batch_bytes + most_bytes;
  class packer;
  void pass_on();
  void write(const record_queue::batch& text);

  std::string name_;
  std::FILE* file_ = nullptr;
  std::unique_ptr<packer> packer_;  // nullptr: plain text
  bool failed_ = false;
  record_queue::batch text_;
  std::size_t used_ = 0;  // of text_
  /// Until it has finished the file_, packer_ and failed_ belong to its thread.
  std::unique_ptr<record_queue> to_write_;
};

}  // namespace rnic::bench
