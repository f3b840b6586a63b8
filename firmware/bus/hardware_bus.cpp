// SPDX-License-Identifier: Apache-2.0
// Firmware's bus.
#include "firmware/bus/hardware_bus.h"

#include "model/sim/timebase.h"

namespace rnic::firmware {

using kind = command::firmware_request::kind;

hardware_bus::hardware_bus(command::firmware_port& port) : port_(port) { port.bind_processor(*this); }

bool hardware_bus::call(const command::firmware_request& request) {
  if (reset_) throw device_was_reset{};
  done_ = false;
  port_.submit(request);
  while (!done_ && !reset_) sc_core::wait(changed_);
  if (reset_) throw device_was_reset{};
  return ok_;
}

void hardware_bus::request_done(bool ok, std::uint32_t value) {
  done_ = true;
  ok_ = ok;
  value_ = value;
  port_.domain().base().notify(changed_);
}

void hardware_bus::interrupt() {
  interrupted_ = true;
  port_.domain().base().notify(changed_);
}

void hardware_bus::reset() {
  reset_ = true;
  port_.domain().base().notify(changed_);
}

void hardware_bus::wait_for_interrupt() {
  while (!interrupted_ && !reset_) sc_core::wait(changed_);
  interrupted_ = false;
  if (reset_) throw device_was_reset{};
}

void hardware_bus::acknowledge_reset() { reset_ = false; }

std::uint32_t hardware_bus::cr_read(std::uint32_t address) {
  command::firmware_request r;
  r.what = kind::cr_read;
  r.address = address;
  call(r);
  return value_;
}

void hardware_bus::cr_write(std::uint32_t address, std::uint32_t value) {
  command::firmware_request r;
  r.what = kind::cr_write;
  r.address = address;
  r.value = value;
  call(r);
}

bool hardware_bus::dma_read(std::uint16_t function, std::uint64_t address, void* to, std::size_t bytes) {
  command::firmware_request r;
  r.what = kind::dma_read;
  r.function = function;
  r.memory = address;
  r.length = bytes;
  r.to = static_cast<std::uint8_t*>(to);
  return call(r);
}

bool hardware_bus::dma_write(std::uint16_t function, std::uint64_t address, const void* from, std::size_t bytes) {
  command::firmware_request r;
  r.what = kind::dma_write;
  r.function = function;
  r.memory = address;
  r.length = bytes;
  r.from = static_cast<const std::uint8_t*>(from);
  return call(r);
}

bool hardware_bus::icm_read(std::uint64_t icm_address, void* to, std::size_t bytes) {
  command::firmware_request r;
  r.what = kind::icm_read;
  r.memory = icm_address;
  r.length = bytes;
  r.to = static_cast<std::uint8_t*>(to);
  return call(r);
}

bool hardware_bus::icm_write(std::uint64_t icm_address, const void* from, std::size_t bytes) {
  command::firmware_request r;
  r.what = kind::icm_write;
  r.memory = icm_address;
  r.length = bytes;
  r.from = static_cast<const std::uint8_t*>(from);
  return call(r);
}

void hardware_bus::spend(std::uint64_t cycles) {
  command::firmware_request r;
  r.what = kind::spend;
  r.length = cycles;
  call(r);
}

}  // namespace rnic::firmware
