// SPDX-License-Identifier: Apache-2.0
#include "model/command/comm_channel.h"

namespace rnic::command {

namespace comm = abi::comm;

std::uint32_t comm_channel::physical_read(std::uint64_t offset, sim::cycle_t now) const {
  const slot& s = slots_[offset / comm::slot_bytes];
  return offset % comm::slot_bytes == comm::slave_write ? s.from_function.seen(now) : s.to_function.seen(now);
}

void comm_channel::physical_write(std::uint64_t offset, std::uint32_t value, sim::cycle_t now) {
  slot& s = slots_[offset / comm::slot_bytes];
  (offset % comm::slot_bytes == comm::slave_write ? s.from_function : s.to_function).set(value, now);
}

std::uint32_t comm_channel::virtual_read(unsigned function, std::uint64_t offset, sim::cycle_t now) const {
  const slot& s = slots_[function % slots_.size()];
  switch (offset) {
    case comm::slave_write:
      return s.from_function.seen(now);
    case comm::slave_read:
      return s.to_function.seen(now);
    case comm::capabilities:
      return comm::capability_reset;
    case comm::flags:
      return s.flags.seen(now);
    default:
      return ~0u;
  }
}

comm_channel::effect comm_channel::virtual_write(unsigned function, std::uint64_t offset, std::uint32_t value,
                                                 sim::cycle_t now) {
  slot& s = slots_[function % slots_.size()];
  if (offset == comm::slave_read || offset == comm::capabilities) return effect::none;  // read only
  if (offset == comm::slave_write) {
    s.from_function.set(value, now);
    mark(written_, function);
    return effect::tell_firmware;
  }
  if (offset != comm::flags) return effect::unknown;
  const std::uint32_t asks = value & comm::flag_reset_request;
  const std::uint32_t held = s.flags.now;
  s.flags.set((held & ~comm::flag_reset_request) | asks, now);
  if ((held & comm::flag_reset_request) == asks) return effect::none;
  mark(reset_requests_, function);
  return effect::tell_firmware;
}

void comm_channel::function_was_reset(unsigned function, sim::cycle_t now) {
  slot& s = slots_[function % slots_.size()];
  s.from_function.set(0, now);
  s.to_function.set(0, now);
  s.flags.set(comm::flag_offline, now);
  mark(function_resets_, function);
}

void comm_channel::reset(sim::cycle_t now) {
  for (slot& s : slots_) {
    s.from_function.set(0, now);
    s.to_function.set(0, now);
    s.flags.set(comm::flag_offline, now);
  }
  written_.fill(0);
  reset_requests_.fill(0);
  function_resets_.fill(0);
}

}  // namespace rnic::command
