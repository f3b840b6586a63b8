// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/trace/trace_file.h"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "testbenches/bench/usage_error.h"

namespace rnic::bench {

/// A gzip file by ISA-L, which compresses as zlib's level 1 does in a fraction of its time.
class trace_file::packer {
 public:
  packer() : level_(ISAL_DEF_LVL1_DEFAULT) {
    isal_deflate_init(&stream_);
    stream_.gzip_flag = IGZIP_GZIP;
    stream_.level = 1;
    stream_.level_buf = level_.data();
    stream_.level_buf_size = static_cast<std::uint32_t>(level_.size());
  }
  /// False when it could not be written.
  bool write(const record_queue::batch& text, bool is_last, std::FILE* to) {
    stream_.next_in = reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));  // is only read
    stream_.avail_in = static_cast<std::uint32_t>(text.size());
    stream_.end_of_stream = is_last ? 1 : 0;
    do {
      stream_.next_out = packed_.data();
      stream_.avail_out = static_cast<std::uint32_t>(packed_.size());
      if (isal_deflate(&stream_) != COMP_OK) return false;
      const std::size_t n = packed_.size() - stream_.avail_out;
      if (std::fwrite(packed_.data(), 1, n, to) != n) return false;
    } while (stream_.avail_out == 0);
    return true;
  }

 private:
  isal_zstream stream_;
  std::vector<std::uint8_t> level_;
  std::array<std::uint8_t, record_queue::batch_bytes> packed_;
};

trace_file::trace_file(const std::string& name) : name_(name), file_(std::fopen(name.c_str(), "wb")), text_(capacity) {
  if (file_ == nullptr) throw usage_error(name + ": cannot be written");
  const bool compress = name.size() > 3 && name.compare(name.size() - 3, 3, ".gz") == 0;
  if (compress) packer_ = std::make_unique<packer>();
  to_write_ = std::make_unique<record_queue>([this](const record_queue::batch& text) { write(text); });
}

trace_file::~trace_file() {
  if (to_write_) to_write_->finish();
  if (file_ != nullptr) std::fclose(file_);
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
  const bool done =
      packer_ ? packer_->write(text, false, file_) : std::fwrite(text.data(), 1, text.size(), file_) == text.size();
  failed_ |= !done;
}

void trace_file::close() {
  pass_on();
  to_write_->finish();
  if (packer_) failed_ |= !packer_->write({}, true, file_);
  failed_ |= std::fclose(file_) != 0;
  file_ = nullptr;
  if (failed_) throw usage_error(name_ + ": writing failed");
}

}  // namespace rnic::bench
