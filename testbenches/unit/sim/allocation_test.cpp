// SPDX-License-Identifier: Apache-2.0
// Steady state allocates nothing.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <new>
#include <systemc>

#include "testbenches/unit/sim/toy_network.h"

namespace {
std::uint64_t allocations = 0;
}

void* operator new(std::size_t size) {
  ++allocations;
  if (void* p = std::malloc(size == 0 ? 1 : size)) return p;
  throw std::bad_alloc();
}
// Not inlined: a compiler that sees free() but not malloc() warns of a mismatch.
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace rnic::sim::test {
namespace {

TEST(SteadyState, AllocatesNothing) {
  toy_network n({}, 1000);
  sc_core::sc_start(sc_core::sc_time(50, sc_core::SC_US));
  const std::size_t done = n.consumed.size();
  ASSERT_GT(done, 0U);
  const std::uint64_t before = allocations;
  ASSERT_GT(before, 0U);
  sc_core::sc_start(sc_core::sc_time(200, sc_core::SC_US));
  EXPECT_EQ(allocations, before);
  EXPECT_GT(n.consumed.size(), done + 100);
}

}  // namespace
}  // namespace rnic::sim::test
