// SPDX-License-Identifier: Apache-2.0
#include "model/transport/responder/atomics.h"

namespace rnic::transport {

namespace {

/// Sum of two words made of fields that end at the bits of `boundaries`: no carry leaves a field.
std::uint64_t add_fields(std::uint64_t a, std::uint64_t b, std::uint64_t boundaries) {
  const std::uint64_t below = ~boundaries;
  return ((a & below) + (b & below)) ^ ((a ^ b) & boundaries);
}

}  // namespace

std::uint64_t atomic_operation::apply(std::uint64_t memory) const {
  if (what == kind::fetch_add) return add_fields(memory, swap_add, boundaries);
  if (((memory ^ compare) & compare_mask) != 0) return memory;
  return (memory & ~swap_mask) | (swap_add & swap_mask);
}

}  // namespace rnic::transport
