// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/trace/trace_file.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "testbenches/bench/usage_error.h"

namespace rnic::bench {

trace_file::trace_file(const std::string& name) : name_(name), text_(capacity) {
  const bool compress = name.size() > 3 && name.compare(name.size() - 3, 3, ".gz") == 0;
  if (compress)
    compressed_ = gzopen(name.c_str(), "wb1");
  else
    plain_ = std::fopen(name.c_str(), "wb");
  if (plain_ == nullptr && compressed_ == nullptr) throw usage_error(name + ": cannot be written");
  to_write_ = std::make_unique<record_queue>([this](const record_queue::batch& text) { write(text); });
}

trace_file::~trace_file() {
  if (to_write_) to_write_->finish();
  if (plain_ != nullptr) std::fclose(plain_);
  if (compressed_ != nullptr) gzclose(compressed_);
}

void trace_file::add(const std::string& text) {
  for (std::size_t at = 0; at < text.size(); at += most_bytes) {
    const std::size_t n = std::min(most_bytes, text.size() - at);
    char* const to = room();
    std::memcpy(to, text.data() + at, n);
    advance(to + n);
  }
}

void trace_file::pass_on() {
  text_.resize(used_);
  text_ = to_write_->pass(std::move(text_));
  text_.resize(capacity);
  used_ = 0;
}

void trace_file::write(const record_queue::batch& text) {
  const std::size_t n = text.size();
  if (plain_ != nullptr) failed_ |= std::fwrite(text.data(), 1, n, plain_) != n;
  if (compressed_ != nullptr)
    failed_ |= gzwrite(compressed_, text.data(), static_cast<unsigned>(n)) != static_cast<int>(n);
}

void trace_file::close() {
  pass_on();
  to_write_->finish();
  if (plain_ != nullptr) failed_ |= std::fclose(plain_) != 0;
  if (compressed_ != nullptr) failed_ |= gzclose(compressed_) != Z_OK;
  plain_ = nullptr;
  compressed_ = nullptr;
  if (failed_) throw usage_error(name_ + ": writing failed");
}

}  // namespace rnic::bench
