// SPDX-License-Identifier: Apache-2.0
// A way for Ethernet frames out of the simulation: socket, TAP device, or another rnic serve at the other end.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "model/payload/frame.h"

namespace rnic::serve {

/// The end of a link at which the simulation is.
class frame_receiver_if {
 public:
  virtual ~frame_receiver_if() = default;
  /// A whole frame from outside, from the DMAC to before the FCS, of 14 bytes to frame_link::max_frame.
  virtual void frame_arrived(const std::uint8_t* frame, std::size_t length) = 0;
  /// There is room for one more. Where there is none, the link leaves it to the peer's and the kernel's queues until
  /// frame_link::resume() is called.
  virtual bool ready() const { return true; }
  /// frame_link::queued() has become less. Never called inside frame_link::send().
  virtual void relieved() {}
  /// There is a peer, where there was none.
  virtual void peer_came() {}
  /// The link's peer came, went, or was turned away: words for whoever watches, without an end of line.
  virtual void link_event(const std::string& /*what*/) {}
};

/// What to connect to.
struct link_spec {
  enum class kind : std::uint8_t { listen, connect, datagram, tap };
  kind how = kind::listen;
  bool unix_path = false;           ///< else TCP or UDP
  std::string local, local_port;    ///< host (or path) to bind; datagram and listen
  std::string remote, remote_port;  ///< host (or path) to send to; datagram and connect
  std::string text;                 ///< as the user wrote it
};

/// `listen:tcp:HOST:PORT`, `listen:unix:PATH`, `connect:...` likewise: a stream with QEMU's framing, which is a length
/// of 4 bytes, big-endian, in front of each frame (-netdev stream and -netdev socket).
/// `datagram:udp:HOST:PORT,HOST:PORT`, `datagram:unix:PATH,PATH`: own address, peer's address; one frame a datagram
/// (-netdev dgram). `tap:NAME`: a TAP device of this machine. An IPv6 address stands in brackets. Throws
/// std::invalid_argument with a line for the user.
link_spec parse_link(const std::string& text);

struct link_counters {
  std::uint64_t frames_in = 0, bytes_in = 0, frames_out = 0, bytes_out = 0;
  std::uint64_t drop_runt = 0;        ///< shorter than an Ethernet header
  std::uint64_t drop_oversized = 0;   ///< longer than max_frame
  std::uint64_t drop_queue_full = 0;  ///< going out: the peer does not read fast enough
  std::uint64_t drop_no_peer = 0;     ///< going out: nobody is connected, or has bound the peer's address, or it left
  std::uint64_t drop_kernel = 0;      ///< coming in: the kernel's queue was full before the frame could be read
  std::uint64_t bad_length = 0;       ///< of a stream's framing: nothing can be believed any more, it was closed
  std::uint64_t half_frames = 0;      ///< the peer of a stream went away in the middle of a frame
  std::uint64_t connections = 0, disconnections = 0, errors = 0;
  std::uint64_t turned_away = 0;  ///< peers that came while there was one
};

/// Nothing here waits: calls return at once, the io_context's handlers do the work, and none of them asks to be called
/// again at once because the peer takes nothing. Whatever the peer does, the link stays usable: a listener accepts the
/// next peer, a connector tries again. Streams and UNIX datagrams lose nothing on the way in: they are not read faster
/// than the receiver takes frames.
class frame_link {
 public:
  /// The longest frame that the adapter's buffers take.
  static constexpr std::size_t max_frame = payload::frame::capacity;
  static constexpr std::size_t min_frame = 14;

  explicit frame_link(frame_receiver_if& receiver) : receiver_(receiver) {}
  virtual ~frame_link() = default;
  frame_link(const frame_link&) = delete;
  frame_link& operator=(const frame_link&) = delete;

  /// Sends or drops.
  virtual void send(const std::uint8_t* frame, std::size_t length) = 0;
  /// False: a frame would be lost, as nobody is there. True where that cannot be known.
  virtual bool has_peer() const { return true; }
  /// Bytes that wait for the peer.
  virtual std::size_t queued() const { return 0; }
  /// The receiver is ready() again, after it was not.
  void resume();
  /// It was not ready when there may have been something to read.
  bool stalled() const { return stalled_; }
  /// Reads nothing more; what waits for the peer still leaves.
  void stop_reading() { finished_ = true; }
  link_counters counters() const;

 protected:
  /// Whether to read one more frame; if not, read_on() is called as soon as it is.
  bool may_read();
  bool finished() const { return finished_; }
  virtual void read_on() = 0;
  virtual std::uint64_t lost_in_kernel() const { return 0; }
  frame_receiver_if& receiver() { return receiver_; }
  void arrived(const std::uint8_t* frame, std::size_t length);
  void count_out(std::size_t length) {
    ++counters_.frames_out;
    counters_.bytes_out += length;
  }
  link_counters counters_;

 private:
  frame_receiver_if& receiver_;
  bool stalled_ = false, finished_ = false;
};

/// Opens it. Throws std::runtime_error with a line for the user when the local end cannot be had; a peer that is not
/// there yet is no error.
std::unique_ptr<frame_link> make_link(boost::asio::io_context& io, const link_spec& spec, frame_receiver_if& receiver);

// One of each kind, for make_link.
std::unique_ptr<frame_link> make_stream_link(boost::asio::io_context& io, const link_spec& spec,
                                             frame_receiver_if& receiver);
std::unique_ptr<frame_link> make_datagram_link(boost::asio::io_context& io, const link_spec& spec,
                                               frame_receiver_if& receiver);
std::unique_ptr<frame_link> make_tap_link(boost::asio::io_context& io, const link_spec& spec,
                                          frame_receiver_if& receiver);

/// A socket that a process left behind when it was killed is in the way of bind(); anything else at `path` stays, a
/// socket that somebody has open as well.
void remove_stale_socket(const std::string& path);

}  // namespace rnic::serve
