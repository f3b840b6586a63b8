// SPDX-License-Identifier: Apache-2.0
// A system in steady state allocates nothing; one without work costs nothing.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <new>

#include "host_driver/hosts/two_nodes.h"
#include "testbenches/bench/stream.h"

namespace {
std::uint64_t allocations = 0;
bool stop_at_allocation = false;  // set by RNIC_STOP_AT_ALLOCATION, for a debugger

void* allocate(std::size_t size) {
  ++allocations;
  if (stop_at_allocation) std::abort();
  if (void* p = std::malloc(size == 0 ? 1 : size)) return p;
  throw std::bad_alloc();
}
}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
// std::stable_sort asks for its buffer so; AddressSanitizer has its own, which would not match delete below.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace rnic::system_test {
namespace {

hosts::two_nodes_config default_system() {
  hosts::two_nodes_config c;
  c.node = hosts::make_node_config("connectx3pro_40g");
  return c;
}

/// Allocations while `messages` messages stream, after as many to warm up.
std::uint64_t allocations_of(const char* verb, std::uint32_t size, std::uint64_t messages, unsigned qps,
                             const hosts::connection_options& connection = {}) {
  hosts::two_nodes system(default_system());
  bench::stream_config config;
  config.verb = workloads::find_verb(verb);
  config.largest = size;
  config.qps = qps;
  config.depth = 64;
  bench::stream flow(system, system.a(), system.b(), connection, config);
  std::uint64_t before = 0, after = 0;
  const auto host = [&](hosts::endpoint& e, unsigned number) {
    hosts::set_address(e, connection, number);
    system.meet();
    flow.set_up(e);
    const bool sends = number == 1;
    const bench::stream::work work{sends ? &flow : nullptr, sends ? nullptr : &flow, size, messages};
    const auto run = [&] {
      bench::stream::prepare(work);
      system.meet();
      bench::stream::run_host(e, work);
    };
    for (unsigned warm = 0; warm < 2; ++warm) {  // either host may be the one that waits for the other
      run();
      system.meet();
    }
    if (sends) before = allocations;
    if (sends) stop_at_allocation = std::getenv("RNIC_STOP_AT_ALLOCATION") != nullptr;
    run();
    system.meet();
    stop_at_allocation = false;
    if (sends) after = allocations;
  };
  system.run([&] { host(system.a(), 1); }, [&] { host(system.b(), 2); });
  EXPECT_GT(before, 1000U) << "the count does not count";
  flow.check_content(size);
  return after - before;
}

TEST(SteadyState, WritesOf64KiB) { EXPECT_EQ(allocations_of("write", 65536, 400, 1), 0U); }
TEST(SteadyState, WritesOf64Bytes) { EXPECT_EQ(allocations_of("write", 64, 20000, 2), 0U); }
TEST(SteadyState, SendsOf4KiB) { EXPECT_EQ(allocations_of("send", 4096, 4000, 2), 0U); }
TEST(SteadyState, Atomics) { EXPECT_EQ(allocations_of("cas", 8, 4000, 2), 0U); }
TEST(SteadyState, ReadsOf4KiB) { EXPECT_EQ(allocations_of("read", 4096, 4000, 2), 0U); }

/// Queue pairs that give their units up and come back for each packet.
hosts::connection_options paced() {
  hosts::connection_options o;
  o.static_rate = IBV_RATE_2_5_GBPS;
  return o;
}
TEST(SteadyState, PacedWrites) { EXPECT_EQ(allocations_of("write", 65536, 200, 8, paced()), 0U); }
TEST(SteadyState, PacedReads) { EXPECT_EQ(allocations_of("read", 4096, 4000, 2, paced()), 0U); }

TEST(Idle, ASecondCostsNothing) {
  hosts::two_nodes system(default_system());
  const hosts::connection_options connection;
  bench::stream_config config;
  config.largest = 4096;
  bench::stream flow(system, system.a(), system.b(), connection, config);
  const auto host = [&](hosts::endpoint& e, unsigned number) {
    hosts::set_address(e, connection, number);
    system.meet();
    flow.set_up(e);
    const bench::stream::work work{number == 1 ? &flow : nullptr, number == 1 ? nullptr : &flow, 4096, 100};
    bench::stream::prepare(work);
    bench::stream::run_host(e, work);
    system.meet();
  };
  system.run([&] { host(system.a(), 1); }, [&] { host(system.b(), 2); });
  system.pass(sim::ps_per_s / 100);  // timers that run out
  const auto ticks = [&system] {
    return system.node_a().nic().clock().ticks() + system.node_b().nic().clock().ticks();
  };
  const std::uint64_t before = ticks();
  const std::uint64_t activations = system.base().kernel_activations();
  const sim::time_ps start = system.now_ps();
  EXPECT_GT(before, 10000U);
  system.pass(sim::ps_per_s);
  EXPECT_EQ(system.now_ps(), start + sim::ps_per_s);
  EXPECT_LT(ticks() - before, 100U);
  EXPECT_LT(system.base().kernel_activations() - activations, 100U);
}

}  // namespace
}  // namespace rnic::system_test
