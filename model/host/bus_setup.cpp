// SPDX-License-Identifier: Apache-2.0
#include "model/host/bus_setup.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "model/sim/check.h"

namespace rnic::host {

namespace {

std::uint32_t size_code(std::uint32_t bytes) { return static_cast<std::uint32_t>(__builtin_ctz(bytes)) - 7; }

const bus_setup::config& checked(const bus_setup::config& c) {
  for (const auto& [name, bytes] : {std::pair<const char*, std::uint32_t>{"max_payload_bytes", c.max_payload},
                                    {"max_read_request_bytes", c.max_read_request}})
    if ((bytes & (bytes - 1)) != 0) throw sim::config_error(std::string("host.") + name + ": must be a power of two");
  return c;
}

}  // namespace

bus_setup::bus_setup(processor_port& port, const config& c) : port_(port), config_(checked(c)) {}

void bus_setup::start(listener* to) {
  listener_ = to;
  next_address_ = config_.window;
  read(step::identity, 0x00);
}

void bus_setup::read(step next, std::uint16_t offset) {
  step_ = next;
  const bool taken = port_.start_config_read(0, offset, 4, *this, 0);
  RNIC_ASSERT(taken, "bus setup has the bus for itself");
}

void bus_setup::write(step next, std::uint16_t offset, std::uint32_t value, std::uint32_t bytes) {
  step_ = next;
  const bool taken = port_.start_config_write(0, offset, &value, bytes, *this, 0);
  RNIC_ASSERT(taken, "bus setup has the bus for itself");
}

void bus_setup::next_bar(unsigned bar) {
  bar_ = bar;
  if (bar_ >= 6)
    read(step::capability_pointer, 0x34);
  else
    write(step::size_low, bar_offset(), 0xffff'ffff);
}

void bus_setup::read_completed(std::uint64_t, payload::tlp_status, const std::uint8_t* data, std::uint32_t bytes) {
  std::uint32_t value = 0;
  std::memcpy(&value, data, std::min<std::uint32_t>(bytes, 4));
  const auto high = static_cast<std::uint16_t>(bar_offset() + 4);
  switch (step_) {
    case step::identity:
      if (value == 0xffff'ffff) return finish();
      result_.present = true;
      result_.vendor = static_cast<std::uint16_t>(value);
      result_.device = static_cast<std::uint16_t>(value >> 16);
      return next_bar(0);
    case step::size_low:
      return read(step::read_low, bar_offset());
    case step::read_low:
      low_ = value;
      if ((low_ & 0x7) != 0x4) return next_bar(bar_ + 1);  // only 64-bit memory BARs are placed
      return write(step::size_high, high, 0xffff'ffff);
    case step::size_high:
      return read(step::read_high, high);
    case step::read_high:
      result_.bar_bytes[bar_] = ~(static_cast<std::uint64_t>(value) << 32 | (low_ & ~0xfu)) + 1;
      return place_bar();
    case step::place_low:
      return write(step::place_high, high, static_cast<std::uint32_t>(result_.bar_address[bar_] >> 32));
    case step::place_high:
      return next_bar(bar_ + 2);
    case step::capability_pointer:
      capability_ = static_cast<std::uint16_t>(value & 0xfc);
      return walk(0);
    case step::capability:
      return walk(value);
    case step::express_capability:
      payload_code_ = std::min(value & 7, size_code(config_.max_payload));
      return read(step::device_control, static_cast<std::uint16_t>(result_.express + 8));
    case step::device_control:
      value = (value & 0x8f1f) | payload_code_ << 5 | size_code(config_.max_read_request) << 12;
      return write(step::set_device_control, static_cast<std::uint16_t>(result_.express + 8), value, 2);
    case step::set_device_control:
      return enable();
    default:
      return finish();
  }
}

void bus_setup::place_bar() {
  const std::uint64_t bytes = result_.bar_bytes[bar_];
  next_address_ = (next_address_ + bytes - 1) / bytes * bytes;
  result_.bar_address[bar_] = next_address_;
  next_address_ += bytes;
  write(step::place_low, bar_offset(), static_cast<std::uint32_t>(result_.bar_address[bar_]));
}

/// `value` is the first dword of the capability at capability_, or 0 before the first one was read.
void bus_setup::walk(std::uint32_t value) {
  if (step_ == step::capability) {
    if ((value & 0xff) == 0x10) result_.express = capability_;
    if ((value & 0xff) == 0x11) result_.msix = capability_;
    capability_ = static_cast<std::uint16_t>(value >> 8 & 0xfc);
  }
  if (capability_ != 0 && hops_++ < 48) return read(step::capability, capability_);
  if (result_.express != 0) return read(step::express_capability, static_cast<std::uint16_t>(result_.express + 4));
  enable();
}

void bus_setup::enable() {
  if (!config_.enable) return finish();
  write(step::enable, 0x04, 0x0006, 2);
}

void bus_setup::finish() {
  step_ = step::done;
  if (listener_ != nullptr) listener_->bus_ready(result_);
}

}  // namespace rnic::host
