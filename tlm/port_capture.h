// SPDX-License-Identifier: Apache-2.0
// A capture of many ports in one file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tlm/capture.h"
#include "tlm/frame_notes.h"
#include "tlm/frame_sorter.h"
#include "tlm/pcapng_blocks.h"

namespace rnic::tlm {

/// A pcapng file with an interface for each port, which has the frames that the port sends (outbound, at the moment at
/// which the first bit of the preamble leaves) and those that it receives (inbound, at the moment at which that bit is
/// there), rounded down to nanoseconds, in order of time, and at the same time in the order of ports. Without FCS,
/// frames whose FCS is wrong where they are captured are not in it.
class port_capture {
 public:
  /// Throws capture_error when the file exists, unless it may be overwritten, or cannot be made.
  port_capture(const std::string& path, const capture_writer::config& cfg);
  ~port_capture();
  port_capture(const port_capture&) = delete;
  port_capture& operator=(const port_capture&) = delete;

  /// Number of a new port, from 0; before the first frame.
  unsigned add_port(const std::string& name);
  /// Frames have comments from now on; nullptr: no more. It outlives the frames.
  void set_notes(frame_notes_if* notes) { notes_ = notes; }

  void sent(unsigned port, const payload::frame& f, sim::time_ps first_bit);
  /// The frame will be there `cable` after `first_bit`, when it was sent.
  void received(unsigned port, const payload::frame& f, sim::time_ps first_bit, sim::time_ps cable);
  /// Writes what is pending and closes the file. Throws capture_error when anything could not be written. Later frames
  /// are ignored.
  void close();

  const std::uint64_t& frames() const { return sorter_.frames(); }
  /// Frames that are not in the file because their FCS was wrong.
  const std::uint64_t& wrong_fcs() const { return wrong_fcs_; }

 private:
  void add(unsigned port, bool inbound, const payload::frame& f, sim::time_ps first_bit, sim::time_ps cable);
  void write(const frame_sorter::record& r);
  void write_interfaces();

  std::string path_;
  capture_writer::config config_;
  std::unique_ptr<pcapng_blocks> blocks_;  // nullptr: closed
  std::vector<std::string> ports_;
  bool began_ = false;
  frame_sorter sorter_;
  frame_notes_if* notes_ = nullptr;
  std::uint64_t wrong_fcs_ = 0;
};

}  // namespace rnic::tlm
