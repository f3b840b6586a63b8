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
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>

#include "testbenches/serve/links/whole_frame_link.h"

namespace rnic::serve {

namespace {

namespace asio = boost::asio;
using error_code = boost::system::error_code;

constexpr std::chrono::milliseconds retry_after{100};

class tap_link final : public whole_frame_link {
 public:
  tap_link(asio::io_context& io, const link_spec& spec, frame_receiver_if& receiver);

 private:
  outcome attempt(const std::uint8_t* frame, std::size_t length) override;
  bool watch() override;
  void read_on() override;
  std::uint64_t lost_in_kernel() const override { return dropped_by_interface() - dropped_before_; }
  std::uint64_t dropped_by_interface() const;
  void interface_is(bool up, const error_code& why);

  std::string name_;
  asio::posix::stream_descriptor device_;
  asio::steady_timer after_error_;
  std::uint64_t watch_ = 0;  // handlers of an earlier one have nothing to say
  std::optional<bool> up_;   // when it was last written or read
  std::uint64_t dropped_before_ = 0;
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
    : whole_frame_link(io, receiver), name_(spec.local), device_(io, open_tap(spec)), after_error_(io) {
  device_.non_blocking(true);
  ++counters_.connections;
  dropped_before_ = dropped_by_interface();
  read_on();
}

/// One read is one frame. Errors pass: a user who takes the interface away may bring it back.
void tap_link::read_on() {
  if (!may_read()) return;
  device_.async_read_some(asio::buffer(input_), [this](const error_code& error, std::size_t got) {
    if (error == asio::error::operation_aborted || finished()) return;
    if (!error) {
      interface_is(true, error);
      arrived(input_.data(), got);
      return read_on();
    }
    ++counters_.errors;
    interface_is(false, error);
    after_error_.expires_after(retry_after);
    after_error_.async_wait([this](const error_code& aborted) {
      if (!aborted) read_on();
    });
  });
}

/// What the kernel had for us and did not get rid of.
std::uint64_t tap_link::dropped_by_interface() const {
  std::ifstream file("/sys/class/net/" + name_ + "/statistics/tx_dropped");
  std::uint64_t dropped = 0;
  return file >> dropped ? dropped : dropped_before_;
}

whole_frame_link::outcome tap_link::attempt(const std::uint8_t* frame, std::size_t length) {
  error_code error;
  device_.write_some(asio::buffer(frame, length), error);
  if (error == asio::error::would_block || error == asio::error::no_buffer_space || error == asio::error::no_memory)
    return outcome::no_room;
  interface_is(!error, error);
  return error ? outcome::no_peer : outcome::sent;
}

void tap_link::interface_is(bool up, const error_code& why) {
  if (up_ == up) return;
  up_ = up;
  receiver().link_event(up ? "the interface takes frames" : "the interface takes no frames (" + why.message() + ")");
}

bool tap_link::watch() {
  ++watch_;
  if (writable(device_.native_handle())) return false;
  device_.async_wait(asio::posix::stream_descriptor::wait_write, [this, watch = watch_](const error_code& error) {
    if (!error && watch == watch_) try_again();
  });
  return true;
}

}  // namespace

std::unique_ptr<frame_link> make_tap_link(asio::io_context& io, const link_spec& spec, frame_receiver_if& receiver) {
  return std::make_unique<tap_link>(io, spec, receiver);
}

}  // namespace rnic::serve
