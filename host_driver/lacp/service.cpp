// SPDX-License-Identifier: Apache-2.0
#include "host_driver/lacp/service.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace rnic::host_driver::lacp {

namespace {

constexpr std::uint64_t processing_ps = 20'000'000;  // of a frame, in the kernel's receive path

std::array<mac_address, 2> addresses_of(const std::array<member, 2>& members) {
  return {members[0].mac, members[1].mac};
}

}  // namespace

/// The bond has the address of its first member.
service::service(device& dev, bus_if& bus, const settings& s, const std::array<member, 2>& members)
    : dev_(dev),
      bus_(bus),
      members_(members),
      agent_(members[0].mac, addresses_of(members), s, *this),
      frames_(dev, bus, wire::slow_protocols_address, {1, 2}) {}

int service::start() {
  if (const int error = frames_.open()) return error;
  apply_links(dev_.links());
  return 0;
}

void service::transmit(unsigned port, const std::uint8_t* frame, std::size_t length) {
  frames_.queue(port, frame, length);
}

void service::take_received() {
  frames_.take_received(processing_ps, [this](unsigned port, const std::uint8_t* frame, std::size_t length) {
    if (agent_.receive(port, frame, length, bus_.now_ps()) && tell_) tell_();
  });
}

bool service::apply_links(unsigned links) {
  bool changed = false;
  for (unsigned port = 1; port <= ports; ++port) {
    const bool up = (links >> (port - 1) & 1) != 0;
    changed |= agent_.set_link(port, up, members_[port - 1].rate_mbps, bus_.now_ps());
  }
  return changed;
}

void service::set_links(unsigned links) {
  if (apply_links(links) && tell_) tell_();
  frames_.end_wait();  // who runs it may have something to send, or less time
}

/// What has come in, what is due, what is to be sent; then it waits: for ever, or until the agent has settled, until
/// `until_ps` at most.
void service::turn(std::uint64_t until_ps) {
  take_received();
  if (agent_.tick(bus_.now_ps()) && tell_) tell_();
  frames_.post_waiting();
  if (stopping_ || (until_ps != never && agent_.settled())) return;
  const std::uint64_t now = bus_.now_ps(), next = std::min(agent_.next_ps(), until_ps);
  if (next > now) frames_.wait(next - now);
}

void service::run() {
  runs_ = true;
  while (!stopping_) turn(never);
  runs_ = false;
  if (left_) finish();
}

void service::run_until_settled(std::uint64_t longest_ps) {
  const std::uint64_t end = bus_.now_ps() + longest_ps;
  runs_ = true;
  while (!stopping_ && !agent_.settled() && bus_.now_ps() < end) turn(end);
  runs_ = false;
  if (left_) finish();
}

void service::stop() {
  stopping_ = true;
  frames_.end_wait();
}

void service::leave(std::function<void()> left) {
  left_ = std::move(left);
  stop();
  if (!runs_) finish();
}

void service::finish() {
  frames_.close();
  has_left_ = true;
  left_();
}

}  // namespace rnic::host_driver::lacp
