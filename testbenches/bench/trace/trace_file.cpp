// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/trace/trace_file.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "testbenches/bench/usage_error.h"

namespace rnic::bench {

trace_file::trace_file(const std::string& name) : name_(name), buffer_(new char[capacity]) {
  const bool compress = name.size() > 3 && name.compare(name.size() - 3, 3, ".gz") == 0;
  if (compress)
    compressed_ = gzopen(name.c_str(), "wb1");
  else
    plain_ = std::fopen(name.c_str(), "wb");
  if (plain_ != nullptr || compressed_ != nullptr) return;
  delete[] buffer_;
  throw usage_error(name + ": cannot be written");
}

trace_file::~trace_file() {
  if (plain_ != nullptr) std::fclose(plain_);
  if (compressed_ != nullptr) gzclose(compressed_);
  delete[] buffer_;
}

void trace_file::add(const std::string& text) {
  for (std::size_t at = 0; at < text.size(); at += most_bytes) {
    const std::size_t n = std::min(most_bytes, text.size() - at);
    char* const to = room();
    std::memcpy(to, text.data() + at, n);
    advance(to + n);
  }
}

void trace_file::write_out() {
  if (plain_ != nullptr) failed_ |= std::fwrite(buffer_, 1, used_, plain_) != used_;
  if (compressed_ != nullptr && used_ != 0)
    failed_ |= gzwrite(compressed_, buffer_, static_cast<unsigned>(used_)) != static_cast<int>(used_);
  used_ = 0;
}

void trace_file::close() {
  write_out();
  if (plain_ != nullptr) failed_ |= std::fclose(plain_) != 0;
  if (compressed_ != nullptr) failed_ |= gzclose(compressed_) != Z_OK;
  plain_ = nullptr;
  compressed_ = nullptr;
  if (failed_) throw usage_error(name_ + ": writing failed");
}

}  // namespace rnic::bench
