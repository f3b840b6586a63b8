// SPDX-License-Identifier: Apache-2.0
// A file for code that wants a path.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace rnic::fuzz {

/// Lives in memory, as long as the object does.
class file_in_memory {
 public:
  file_in_memory(const std::uint8_t* data, std::size_t size) : file_(::memfd_create("input", MFD_CLOEXEC)) {
    if (file_ < 0 || ::write(file_, data, size) != static_cast<ssize_t>(size))
      throw std::runtime_error("no memory for the input as a file");
  }
  ~file_in_memory() { ::close(file_); }
  file_in_memory(const file_in_memory&) = delete;
  file_in_memory& operator=(const file_in_memory&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

}  // namespace rnic::fuzz
