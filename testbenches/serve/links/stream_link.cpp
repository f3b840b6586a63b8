// SPDX-License-Identifier: Apache-2.0
// TCP and UNIX streams with QEMU's framing.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/wire/bytes.h"
#include "testbenches/serve/links/frame_link.h"

namespace rnic::serve {

namespace {

namespace asio = boost::asio;
using protocol = asio::generic::stream_protocol;
using error_code = boost::system::error_code;

constexpr std::size_t header_bytes = 4;
constexpr std::size_t longest_claim = 4096 + 65536;  // the largest frame that QEMU knows (NET_BUFSIZE)
constexpr std::size_t most_queued = 1 << 20;         // bytes on their way out
constexpr int socket_buffer = 128 << 10;             // bytes; left alone, TCP's grow to megabytes when the peer is slow
constexpr std::chrono::milliseconds retry_after{100};
constexpr std::chrono::milliseconds longest_wait{500};    // of a second peer, for the place of the first
constexpr std::chrono::milliseconds longest_retry{1600};  // at a peer that hangs up at once
// Of TCP, seconds: after so long without a word a peer is asked whether it lives, and given up after a few questions.
constexpr int silent_before_asking = 15, between_questions = 5, questions = 3;

class stream_link final : public frame_link {
 public:
  stream_link(asio::io_context& io, const link_spec& spec, frame_receiver_if& receiver);
  ~stream_link() override;
  void send(const std::uint8_t* frame, std::size_t length) override;
  bool has_peer() const override { return connected_; }
  std::size_t queued() const override { return waiting_.size() + writing_.size() - written_; }

 private:
  void listen();
  void accept();
  void welcome(protocol::socket peer);
  void await_place();
  void turn_away(protocol::socket peer);
  bool hung_up();
  void connect();
  void connect_later();
  void open();
  void close(const std::string& why);
  void read_on() override;
  void parse();
  bool take_header();
  void write();
  void account(const std::vector<std::uint8_t>& frames, std::size_t written);

  link_spec spec_;
  std::optional<protocol::endpoint> endpoint_;
  std::optional<asio::basic_socket_acceptor<protocol>> acceptor_;
  protocol::socket socket_;
  std::optional<protocol::socket> next_;  // came while there was a peer
  asio::steady_timer next_gives_up_;
  asio::steady_timer again_;
  std::chrono::milliseconds pause_ = retry_after;
  bool connected_ = false;
  bool told_ = false;              // that nobody listens
  bool deaf_ = false;              // the peer takes nothing any more, but what it said before may still be here
  std::uint64_t frames_then_ = 0;  // counters_.frames_in when it was connected
  std::uint64_t round_ = 0;        // of connections: handlers of an earlier one have nothing to say

  std::array<std::uint8_t, 65536> input_{};
  std::size_t input_at_ = 0, input_end_ = 0;  // what of it is still to be parsed
  std::array<std::uint8_t, header_bytes> header_{};
  std::size_t header_have_ = 0;
  std::size_t wanted_ = 0;  // bytes of the frame under way that are still to come
  bool skipping_ = false;   // it is too long to be kept
  std::vector<std::uint8_t> frame_;
  std::vector<std::uint8_t> waiting_, writing_;
  std::size_t written_ = 0;  // of writing_
};

protocol::endpoint endpoint_of(asio::io_context& io, const link_spec& s, const std::string& host,
                               const std::string& port) {
  if (s.unix_path) return asio::local::stream_protocol::endpoint(host);
  asio::ip::tcp::resolver resolver(io);
  return resolver.resolve(host, port).begin()->endpoint();
}

stream_link::stream_link(asio::io_context& io, const link_spec& spec, frame_receiver_if& receiver)
    : frame_link(receiver), spec_(spec), socket_(io), next_gives_up_(io), again_(io) {
  frame_.reserve(max_frame);
  const bool listens = spec.how == link_spec::kind::listen;
  endpoint_ = listens ? endpoint_of(io, spec, spec.local, spec.local_port)
                      : endpoint_of(io, spec, spec.remote, spec.remote_port);
  if (listens) {
    acceptor_.emplace(io);
    listen();
  } else {
    connect();
  }
}

stream_link::~stream_link() {
  if (!acceptor_) return;
  error_code ignored;
  acceptor_->close(ignored);
  if (spec_.unix_path) remove_stale_socket(spec_.local);
}

void stream_link::listen() {
  if (spec_.unix_path) remove_stale_socket(spec_.local);
  acceptor_->open(endpoint_->protocol());
  if (!spec_.unix_path) acceptor_->set_option(asio::socket_base::reuse_address(true));
  acceptor_->bind(*endpoint_);
  acceptor_->listen();
  accept();
}

/// Whoever comes is accepted, to be told by the end of its connection that there is another one: a backlog says
/// nothing.
void stream_link::accept() {
  acceptor_->async_accept([this](const error_code& error, protocol::socket peer) {
    if (error == asio::error::operation_aborted) return;
    if (!error) {
      welcome(std::move(peer));
      return accept();
    }
    ++counters_.errors;
    again_.expires_after(retry_after);
    again_.async_wait([this](const error_code& aborted) {
      if (!aborted) accept();
    });
  });
}

/// One peer at a time.
void stream_link::welcome(protocol::socket peer) {
  if (finished()) return;
  if (!connected_) {
    socket_ = std::move(peer);
    return open();
  }
  if (next_) return turn_away(std::move(peer));
  next_.emplace(std::move(peer));
  await_place();
}

/// A peer that comes right after the last one has gone may be seen before all of that one's frames are read, and its
/// end with them.
void stream_link::await_place() {
  next_gives_up_.expires_after(longest_wait);
  next_gives_up_.async_wait([this](const error_code& aborted) {
    if (aborted || !next_) return;
    if (hung_up()) return await_place();
    protocol::socket peer = std::move(*next_);
    next_.reset();
    turn_away(std::move(peer));
  });
}

void stream_link::turn_away(protocol::socket /*closed*/) {
  ++counters_.turned_away;
  receiver().link_event("a second peer was turned away: one is connected");
}

bool stream_link::hung_up() {
  pollfd asked{socket_.native_handle(), POLLRDHUP, 0};
  return ::poll(&asked, 1, 0) == 1 && (asked.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void stream_link::connect() {
  error_code ignored;
  socket_.close(ignored);
  socket_.async_connect(*endpoint_, [this](const error_code& error) {
    if (error == asio::error::operation_aborted) return;
    if (!error) return open();
    if (!std::exchange(told_, true))
      receiver().link_event("no peer yet (" + error.message() + "), it is tried again until there is one");
    connect_later();
  });
}

void stream_link::connect_later() {
  again_.expires_after(pause_);
  again_.async_wait([this](const error_code& aborted) {
    if (!aborted && !finished()) connect();
  });
}

void stream_link::open() {
  error_code ignored;
  socket_.set_option(asio::socket_base::send_buffer_size(socket_buffer), ignored);
  socket_.set_option(asio::socket_base::receive_buffer_size(socket_buffer), ignored);
  if (!spec_.unix_path) {
    const auto set = [this](int level, int option, int value) {
      ::setsockopt(socket_.native_handle(), level, option, &value, sizeof value);
    };
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, silent_before_asking);
    set(IPPROTO_TCP, TCP_KEEPINTVL, between_questions);
    set(IPPROTO_TCP, TCP_KEEPCNT, questions);
  }
  ++counters_.connections;
  connected_ = true;
  told_ = deaf_ = false;
  frames_then_ = counters_.frames_in;
  ++round_;
  header_have_ = wanted_ = 0;
  input_at_ = input_end_ = 0;
  skipping_ = false;
  frame_.clear();
  receiver().link_event("a peer has come");
  receiver().peer_came();
  read_on();
}

/// The peer is gone, or what it says makes no sense: wait for the next one.
void stream_link::close(const std::string& why) {
  if (!connected_) return;
  connected_ = false;
  ++round_;
  ++counters_.disconnections;
  if (header_have_ != 0) ++counters_.half_frames;
  error_code ignored;
  socket_.close(ignored);
  account(waiting_, 0);
  waiting_.clear();
  receiver().link_event(why);
  receiver().relieved();
  if (next_) {
    socket_ = std::move(*next_);
    next_.reset();
    next_gives_up_.cancel();
    return open();
  }
  if (acceptor_) return;
  pause_ = counters_.frames_in != frames_then_ ? retry_after : std::min(2 * pause_, longest_retry);
  connect_later();
}

/// What has been read already, as far as the receiver takes it, then more.
void stream_link::read_on() {
  const std::uint64_t round = round_;
  while (connected_ && input_at_ != input_end_) {
    if (!may_read()) return;
    parse();
    if (round != round_) return;
  }
  if (!connected_ || !may_read()) return;
  socket_.async_read_some(asio::buffer(input_), [this, round](const error_code& error, std::size_t got) {
    if (round != round_ || finished()) return;
    if (error == asio::error::eof) return close("the peer has gone");
    if (error) return close("the peer has gone (" + error.message() + ")");
    input_at_ = 0;
    input_end_ = got;
    read_on();
  });
}

/// header_ is complete. False when it cannot be true.
bool stream_link::take_header() {
  wanted_ = wire::load_be32(header_.data());
  if (wanted_ == 0 || wanted_ > longest_claim) {
    ++counters_.bad_length;
    header_have_ = 0;
    return false;
  }
  skipping_ = wanted_ > max_frame;
  frame_.clear();
  return true;
}

/// To the end of a header or of a frame, if it is there.
void stream_link::parse() {
  const std::uint8_t* const data = input_.data() + input_at_;
  const bool in_header = header_have_ < header_bytes;
  const std::size_t n = std::min(in_header ? header_bytes - header_have_ : wanted_, input_end_ - input_at_);
  input_at_ += n;
  if (in_header) {
    std::memcpy(header_.data() + header_have_, data, n);
    header_have_ += n;
    if (header_have_ == header_bytes && !take_header())
      close("the peer was cut off: a frame of " + std::to_string(wanted_) + " bytes cannot be");
    return;
  }
  if (!skipping_) frame_.insert(frame_.end(), data, data + n);
  wanted_ -= n;
  if (wanted_ != 0) return;
  header_have_ = 0;
  if (skipping_)
    ++counters_.drop_oversized;
  else
    arrived(frame_.data(), frame_.size());
}

void stream_link::send(const std::uint8_t* frame, std::size_t length) {
  if (!connected_ || deaf_) {
    ++counters_.drop_no_peer;
    return;
  }
  if (queued() + header_bytes + length > most_queued) {
    ++counters_.drop_queue_full;
    return;
  }
  const std::size_t at = waiting_.size();
  waiting_.resize(at + header_bytes);
  wire::store_be32(&waiting_[at], static_cast<std::uint32_t>(length));
  waiting_.insert(waiting_.end(), frame, frame + length);
  if (writing_.empty()) write();
}

/// Counts frames with their headers, of which the kernel took so many bytes.
void stream_link::account(const std::vector<std::uint8_t>& frames, std::size_t written) {
  for (std::size_t at = 0; at < frames.size();) {
    const std::size_t length = wire::load_be32(&frames[at]);
    at += header_bytes + length;
    if (at <= written)
      count_out(length);
    else
      ++counters_.drop_no_peer;
  }
}

/// A peer that takes nothing any more is not gone yet: what it said before has to be read.
void stream_link::write() {
  if (writing_.empty()) {
    if (waiting_.empty()) return;
    writing_.swap(waiting_);
  }
  const auto rest = asio::buffer(writing_) + written_;
  socket_.async_write_some(rest, [this, round = round_](const error_code& error, std::size_t n) {
    written_ += n;
    const bool over = error || round != round_;
    if (over || written_ == writing_.size()) {
      account(writing_, written_);
      writing_.clear();
      written_ = 0;
    }
    if (round == round_ && error) {
      deaf_ = true;
      account(waiting_, 0);
      waiting_.clear();
    }
    receiver().relieved();
    if (connected_) write();
  });
}

}  // namespace

std::unique_ptr<frame_link> make_stream_link(asio::io_context& io, const link_spec& spec, frame_receiver_if& receiver) {
  return std::make_unique<stream_link>(io, spec, receiver);
}

}  // namespace rnic::serve
