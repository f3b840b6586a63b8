// SPDX-License-Identifier: Apache-2.0
// Writes a cable's frames as pcapng, with comments that become known later.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tlm/capture.h"
#include "tlm/frame_sorter.h"
#include "tlm/pcapng_blocks.h"

namespace rnic::tlm {

/// By direction and first bit of the frame.
using frame_comments = std::map<std::pair<unsigned, sim::time_ps>, std::string>;

/// A pcapng file (draft-ietf-opsawg-pcapng) with one interface for each direction of the cable and nanoseconds, which
/// libpcap cannot write. Frames wait in an unnamed file until close() knows their comments, so that memory stays small
/// and the result may be a stream.
class pcapng_writer : public payload::frame_observer_if {
 public:
  struct config {
    capture_writer::config capture;
    std::string names[2];             ///< of the interfaces, by direction
    bool inbound[2] = {false, true};  ///< as the flags of a frame of that direction say
  };
  /// Throws capture_error when the file exists, unless it may be overwritten, or cannot be written.
  pcapng_writer(const std::string& path, const config& cfg);
  ~pcapng_writer() override;
  pcapng_writer(const pcapng_writer&) = delete;
  pcapng_writer& operator=(const pcapng_writer&) = delete;

  void observe(unsigned from, const payload::frame& f, sim::time_ps first_bit, sim::time_ps last_bit) override;
  void set_clock(const file_clock& clock) { clock_ = clock; }
  /// Writes everything and closes the file. `about`: comment of the file, may be empty. A comment longer than an
  /// option can be is cut. Throws capture_error when anything could not be written. Later frames are ignored.
  void close(const frame_comments& comments, const std::string& about);

 private:
  struct stored {  // in front of a frame's bytes in the unnamed file
    sim::time_ps at;
    std::uint32_t from, length;
  };
  void store(const frame_sorter::record& r);
  [[noreturn]] void fail(const char* what) const;

  std::string path_;
  config config_;
  std::unique_ptr<pcapng_blocks> blocks_;
  file_ptr stage_;
  frame_sorter sorter_;
  file_clock clock_;
  bool failed_ = false;
};

}  // namespace rnic::tlm
