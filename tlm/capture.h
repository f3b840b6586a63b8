// SPDX-License-Identifier: Apache-2.0
// Capture files: what went over a cable, and frames to be replayed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/payload/frame_port.h"
#include "tlm/capture_source.h"
#include "tlm/frame_sorter.h"

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
/// rounded down to a nanosecond; time 0 of the simulation is time 0 of the file, unless set_clock says otherwise.
/// Frames are in order of time, as frame_sorter puts them.
///
/// Without FCS a capture shows what a host's network interface would: frames that arrive with a wrong FCS are not in
/// it.
class capture_writer : public payload::frame_observer_if {
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

  void observe(unsigned from, const payload::frame& f, sim::time_ps first_bit, sim::time_ps last_bit) override;
  void set_clock(const file_clock& clock) { clock_ = clock; }
  /// Writes what is pending and closes the file. Throws capture_error when anything could not be written. Later frames
  /// are ignored.
  void close();
  const std::uint64_t& frames() const { return sorter_.frames(); }
  /// Frames that are not in the file because their FCS was wrong.
  const std::uint64_t& wrong_fcs() const { return wrong_fcs_; }

 private:
  void write(const frame_sorter::record& r);

  std::string path_;
  config config_;
  pcap* handle_ = nullptr;
  pcap_dumper* dumper_ = nullptr;
  frame_sorter sorter_;
  file_clock clock_;
  std::uint64_t wrong_fcs_ = 0;
};

enum class frame_link : std::uint8_t { ethernet, cooked, ip, other };
/// As the capturing host's kernel said it of a cooked frame.
enum class frame_way : std::uint8_t { unknown, to_host, from_host };

/// A frame of a capture file. The bytes are valid until the next call to next().
struct captured_frame {
  const std::uint8_t* data = nullptr;      ///< from DMAC, without FCS
  std::uint32_t length = 0;                ///< bytes in the file
  std::uint32_t wire_length = 0;           ///< bytes that the frame had; more than `length` if it was cut when captured
  std::uint64_t time_ns = 0;               ///< as in the file (usually since 1970)
  bool wrong_fcs = false;                  ///< the file has the FCS of its frames, and this one's is wrong
  std::uint32_t interface = 0;             ///< counted from 0 over the file
  int link_type = 0;                       ///< LINKTYPE_ in the file
  frame_link link = frame_link::ethernet;  ///< `other`: a link type that is not read, without bytes
  bool no_source = false, no_destination = false;  ///< zeros, because the link type has no such address
  frame_way way = frame_way::unknown;
};

/// Reads classic pcap and pcapng, packed by gzip or not, with any time unit, in either byte order, from files and
/// streams. Link types: Ethernet, Linux cooked (SLL and SLL2) and raw IP; in a pcapng file each interface has its own,
/// and frames of interfaces of other types are given as such. A file can say that its frames end with their FCS.
class capture_reader {
 public:
  /// `path`: a file, a FIFO, or "-" for standard input. Throws capture_error when it cannot be opened, is no capture,
  /// or is a classic file of another link type.
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
  std::string name_;
  std::unique_ptr<capture_source_if> source_;
  std::vector<std::uint8_t> room_;  // of a frame whose Ethernet header is ours
  std::string reason_;
  std::uint64_t frames_ = 0;
};

}  // namespace rnic::tlm
