// SPDX-License-Identifier: Apache-2.0
// Address decoder of the internal register bus.
#include "model/register_bus/cr_bus.h"

#include "model/sim/check.h"

namespace rnic::register_bus {

void cr_bus::map(std::uint32_t base, std::uint32_t bytes, cr_target_if& target) {
  for (const range& r : ranges_) {
    const bool apart = std::uint64_t{base} + bytes <= r.base || std::uint64_t{r.base} + r.bytes <= base;
    if (!apart) throw sim::config_error("register bus: two blocks at the same address");
  }
  ranges_.push_back({base, bytes, &target});
}

void cr_bus::replace(const cr_target_if& of, cr_target_if& by) {
  for (range& r : ranges_)
    if (r.target == &of) r.target = &by;
}

const cr_bus::range* cr_bus::find(std::uint32_t address) {
  for (const range& r : ranges_)
    if (address - r.base < r.bytes) return &r;
  ++unclaimed_;
  return nullptr;
}

std::uint32_t cr_bus::read(std::uint32_t address) {
  const range* r = find(address);
  return r != nullptr ? r->target->cr_read(address - r->base) : 0;
}

void cr_bus::write(std::uint32_t address, std::uint32_t value) {
  if (const range* r = find(address)) r->target->cr_write(address - r->base, value);
}

}  // namespace rnic::register_bus
