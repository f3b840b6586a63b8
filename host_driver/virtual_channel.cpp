// SPDX-License-Identifier: Apache-2.0
#include "host_driver/virtual_channel.h"

#include <cerrno>
#include <cstring>

#include "host_driver/command_channel.h"

namespace rnic::host_driver {

namespace comm = abi::comm;

namespace {
constexpr std::uint64_t ps_per_us = 1'000'000;
constexpr unsigned bar = 2;
constexpr std::uint64_t offline_timeout_us = 30'000'000;  // MLX4_COMM_OFFLINE_TIME_OUT
constexpr std::uint64_t channel_timeout_us = 10'000'000;  // MLX4_COMM_TIME
}  // namespace

virtual_channel::~virtual_channel() {
  if (vhcr_.pointer != nullptr) bus_.release(vhcr_);
}

int virtual_channel::open() {
  const std::uint64_t deadline = bus_.now_ps() + offline_timeout_us * ps_per_us;
  std::uint32_t flags = 0;
  while (((flags = bus_.mmio_read32(bar, comm::flags)) & comm::flag_offline) != 0) {
    if (flags == ~0u) return -ENODEV;
    if (bus_.now_ps() >= deadline) return -ETIMEDOUT;
    bus_.spend_ps(cfg_.poll_interval_ns * 1000);
  }
  if (vhcr_.pointer == nullptr) vhcr_ = bus_.allocate(abi::mailbox_bytes);
  if (vhcr_.pointer == nullptr) return -ENOMEM;
  toggle_ = bus_.mmio_read32(bar, comm::slave_write) >> comm::toggle_shift;
  std::uint32_t answer = 0;
  if (const int error = send(comm::command::reset, 0, channel_timeout_us, &answer)) return error;
  if ((answer & comm::parameter_mask) != comm::version) return -ENODEV;
  const std::uint64_t at = vhcr_.bus_address;
  const auto part = [at](unsigned shift) { return static_cast<std::uint16_t>(at >> shift); };
  const struct {
    comm::command what;
    std::uint16_t parameter;
  } steps[] = {{comm::command::vhcr0, part(48)},
               {comm::command::vhcr1, part(32)},
               {comm::command::vhcr2, part(16)},
               {comm::command::vhcr_enable, part(0)}};
  for (const auto& s : steps) {
    if (const int error = send(s.what, s.parameter, channel_timeout_us, nullptr)) return error;
  }
  open_ = true;
  return 0;
}

void virtual_channel::close() {
  if (open_) send(comm::command::reset, 0, channel_timeout_us, nullptr);
  open_ = false;
}

/// The other side answers with the same toggle.
int virtual_channel::send(comm::command what, std::uint16_t parameter, std::uint64_t timeout_us,
                          std::uint32_t* answer) {
  toggle_ ^= 1;
  bus_.mmio_write32(
      bar, comm::slave_write,
      toggle_ << comm::toggle_shift | static_cast<std::uint32_t>(what) << comm::command_shift | parameter);
  const std::uint64_t deadline = bus_.now_ps() + timeout_us * ps_per_us;
  std::uint32_t word = bus_.mmio_read32(bar, comm::slave_read);
  while (word >> comm::toggle_shift != toggle_) {
    if (bus_.now_ps() >= deadline) return -ETIMEDOUT;
    bus_.spend_ps(cfg_.poll_interval_ns * 1000);
    word = bus_.mmio_read32(bar, comm::slave_read);
  }
  if (word == ~0u) return -ENODEV;  // the function is not there any more
  if ((word & comm::internal_error) != 0) return -EIO;
  if (answer != nullptr) *answer = word;
  return 0;
}

int virtual_channel::execute(abi::opcode op, std::uint8_t op_modifier, std::uint32_t modifier, std::uint64_t in,
                             std::uint64_t out, std::uint64_t* immediate, std::uint8_t* status) {
  namespace v = abi::vhcr;
  if (!open_) return -ENODEV;
  std::uint8_t* const m = vhcr_.pointer;
  std::memset(m, 0, v::bytes);
  abi::set(m, v::in_param, in);
  abi::set(m, v::in_modifier, modifier);
  abi::set(m, v::out_param, out);
  abi::set(m, v::token, v::polling_token);
  abi::set(m, v::opcode, static_cast<std::uint16_t>(static_cast<unsigned>(op) | unsigned{op_modifier} << 12));
  if (const int error = send(comm::command::vhcr_post, 0, cfg_.command_timeout_us, nullptr)) return error;
  if (immediate != nullptr) *immediate = abi::get(m, v::out_param);
  *status = abi::get(m, v::status);
  return command_channel::errno_of(*status);
}

}  // namespace rnic::host_driver
