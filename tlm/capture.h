// SPDX-License-Identifier: Apache-2.0
// Capture files: what went over a cable, and frames to be replayed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "tlm/frame_port.h"

struct pcap;
struct pcap_dumper;

namespace rnic::tlm {

/// A capture file that cannot be opened, read or written. what() is one line that names the file and the reason.
class capture_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Writes the frames of a cable, both directions, to a classic pcap file with nanoseconds (magic a1b23c4d), Ethernet
/// link type. The time of a frame is the moment at which the first bit of its preamble leaves its sender,
/// rounded down to a nanosecond; time 0 of the simulation is time 0 of the file.
///
/// The two sides tell their frames a little out of order, in an order that depends on nothing real, so records wait
/// until they are older than `reorder_ps` and are written by time, and at the same time by direction.
///
/// Without FCS a capture shows what a host's network interface would: frames that arrive with a wrong FCS are not in
/// it.
class capture_writer : public frame_observer_if {
 public:
  struct config {
    bool overwrite = false;  ///< otherwise an existing file is an error
    bool fcs = false;        ///< frames end with their FCS, right or wrong; the file's link type says so
    sim::time_ps reorder_ps = 2 * sim::ps_per_us;  ///< longer than the difference of two ports' transmit latencies
  };
  explicit capture_writer(const std::string& path) : capture_writer(path, config{}) {}
  capture_writer(const std::string& path, const config& cfg);
  ~capture_writer() override;
  capture_writer(const capture_writer&) = delete;
  capture_writer& operator=(const capture_writer&) = delete;

  void observe(unsigned from, const frame& f, sim::time_ps first_bit, sim::time_ps last_bit) override;
  /// Writes what is pending and closes the file. Throws capture_error when anything could not be written. Later frames
  /// are ignored.
  void close();
  const std::uint64_t& frames() const { return frames_; }
  /// Frames that are not in the file because their FCS was wrong.
  const std::uint64_t& wrong_fcs() const { return wrong_fcs_; }

 private:
  struct record {
    sim::time_ps at = 0;
    unsigned from = 0;
    std::uint64_t number = 0;  // order of arrival, the last tie-break
    std::vector<std::uint8_t> bytes;
  };
  static bool later(const record* a, const record* b);
  void write(const record& r);
  void flush_before(sim::time_ps limit);

  std::string path_;
  config config_;
  pcap* handle_ = nullptr;
  pcap_dumper* dumper_ = nullptr;
  std::vector<record*> pending_;  // heap, the earliest on top
  std::vector<record*> free_;
  std::uint64_t frames_ = 0, wrong_fcs_ = 0;
};

/// A frame of a capture file. The bytes are valid until the next call to next().
struct captured_frame {
  const std::uint8_t* data = nullptr;  ///< from DMAC, without FCS
  std::uint32_t length = 0;            ///< bytes in the file
  std::uint32_t wire_length = 0;       ///< bytes that the frame had; more than `length` if it was cut when captured
  std::uint64_t time_ns = 0;           ///< as in the file (usually since 1970)
  bool wrong_fcs = false;              ///< the file has the FCS of its frames, and this one's is wrong
};

/// Reads classic pcap and pcapng, with microseconds or nanoseconds, Ethernet link type, packed by gzip or not. A
/// classic file can say that its frames end with their FCS.
class capture_reader {
 public:
  /// Throws capture_error when the file cannot be opened, is no capture, or is not of Ethernet.
  explicit capture_reader(const std::string& path);
  ~capture_reader();
  capture_reader(const capture_reader&) = delete;
  capture_reader& operator=(const capture_reader&) = delete;

  enum class result : std::uint8_t { frame, end, damaged };
  /// The next frame, the end of the file, or a place from which the file cannot be read any further: reason() says why.
  result next(captured_frame& out);
  /// One line: file, number of frames that could be read, reason.
  const std::string& reason() const { return reason_; }
  std::uint64_t frames() const { return frames_; }

 private:
  std::string path_;
  pcap* handle_ = nullptr;
  bool fcs_ = false;
  std::string reason_;
  std::uint64_t frames_ = 0;
};

}  // namespace rnic::tlm
