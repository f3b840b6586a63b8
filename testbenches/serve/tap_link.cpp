// SPDX-License-Identifier: Apache-2.0
// A TAP device: the kernel of this machine at the other end of the cable.
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>

#include "testbenches/serve/frame_link.h"

namespace rnic::serve {

namespace {

namespace asio = boost::asio;
using error_code = boost::system::error_code;

constexpr std::chrono::milliseconds retry_after{100};

class tap_link final : public frame_link {
 public:
  tap_link(asio::io_context& io, const link_spec& spec, frame_receiver_if& receiver);
  void send(const std::uint8_t* frame, std::size_t length) override;

 private:
  void receive();

  asio::posix::stream_descriptor device_;
  asio::steady_timer again_;
  std::array<std::uint8_t, 65536> input_{};
};

int open_tap(const link_spec& spec) {
  const int fd = ::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) throw std::runtime_error("--link " + spec.text + ": /dev/net/tun: " + std::strerror(errno));
  ifreq request{};
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  std::memcpy(request.ifr_name, spec.local.data(), std::min(spec.local.size(), sizeof request.ifr_name - 1));
  if (::ioctl(fd, TUNSETIFF, &request) < 0) {
    const int error = errno;
    ::close(fd);
    throw std::runtime_error("--link " + spec.text + ": " + std::strerror(error));
  }
  return fd;
}

tap_link::tap_link(asio::io_context& io, const link_spec& spec, frame_receiver_if& receiver)
    : frame_link(receiver), device_(io, open_tap(spec)), again_(io) {
  device_.non_blocking(true);
  ++counters_.connections;
  receive();
}

/// One read is one frame. Errors pass: an interface that is down says so at every read.
void tap_link::receive() {
  device_.async_read_some(asio::buffer(input_), [this](const error_code& error, std::size_t got) {
    if (error == asio::error::operation_aborted) return;
    if (!error) {
      arrived(input_.data(), got);
      return receive();
    }
    ++counters_.errors;
    again_.expires_after(retry_after);
    again_.async_wait([this](const error_code& aborted) {
      if (!aborted) receive();
    });
  });
}

void tap_link::send(const std::uint8_t* frame, std::size_t length) {
  error_code error;
  device_.write_some(asio::buffer(frame, length), error);
  if (!error)
    count_out(length);
  else if (error == asio::error::would_block)
    ++counters_.drop_queue_full;
  else
    ++counters_.drop_no_peer;  // the interface is down
}

}  // namespace

std::unique_ptr<frame_link> make_tap_link(asio::io_context& io, const link_spec& spec, frame_receiver_if& receiver) {
  return std::make_unique<tap_link>(io, spec, receiver);
}

}  // namespace rnic::serve
