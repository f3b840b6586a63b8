// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/report/packed_file.h"

#include <zlib.h>

#include <utility>

#include "testbenches/bench/usage_error.h"

namespace rnic::program {

namespace {
constexpr std::size_t piece_bytes = 1u << 18;
}

packed_file::packed_file(std::string name)
    : name_(std::move(name)), piece_(piece_bytes, '\0'), file_(gzopen(name_.c_str(), "rb")) {
  if (file_ == nullptr) throw usage_error(name_ + ": cannot be read");
  gzbuffer(file_, piece_bytes);
}

packed_file::~packed_file() { gzclose(file_); }

std::string_view packed_file::next() {
  const int got = gzread(file_, piece_.data(), static_cast<unsigned>(piece_.size()));
  // The end of a file that was cut off is told by gzerror() alone.
  int status = Z_OK;
  if (got <= 0) gzerror(file_, &status);
  if (got < 0 || (status != Z_OK && status != Z_STREAM_END)) throw usage_error(name_ + ": cannot be unpacked");
  return {piece_.data(), static_cast<std::size_t>(got)};
}

void packed_file::rewind() { gzrewind(file_); }

}  // namespace rnic::program
