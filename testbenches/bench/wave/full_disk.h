// SPDX-License-Identifier: Apache-2.0
// A full disk under a waveform.
#pragma once

#include <string>

namespace rnic::bench {

/// GTKWave's writer keeps parts of a waveform in files that it maps: a disk without room for one shows as SIGBUS, not
/// as a write that fails. While one of these exists that ends the program with "rnic: NAME: writing failed, the disk
/// is full" and status 2. What is told is the name of the last one made.
class full_disk_guard {
 public:
  explicit full_disk_guard(const std::string& name);
  ~full_disk_guard();
  full_disk_guard(const full_disk_guard&) = delete;
  full_disk_guard& operator=(const full_disk_guard&) = delete;
};

}  // namespace rnic::bench
