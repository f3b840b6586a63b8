// SPDX-License-Identifier: Apache-2.0
// The responder with neighbours and traffic of many seeds (README.md).
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "testbenches/bench/random_seeds.h"
#include "testbenches/block/responder/random/run.h"

namespace rnic::transport::random_test {
namespace {

using bench::for_seeds;

std::string fault_in_any_mode(std::uint64_t seed, kind_of_run kind) {
  return bench::fault_in_any_mode(
      seed, [&](const sim::timebase::options& time) { return run(seed, kind, time); }, first_difference);
}

TEST(responder_random, requests_have_the_results_of_the_reference) {
  // 1548: a NAK that was out of date took the acknowledgement of what was before it along. 1554: who waits for a
  // context held a port of it. 6218: payload of a message of UC that was broken off came behind the completion of an
  // empty one in the same receive.
  for_seeds(120, {1548, 1554, 6218}, [](std::uint64_t seed) {
    const outcome o = run(seed, kind_of_run::requests, {});
    return o.faults.empty() ? "" : o.faults.front();
  });
}

TEST(responder_random, sleep_and_order_of_blocks_are_invisible) {
  // 363: a receive that UC gives back was completed late. 1573: nobody woke a packet behind an answer.
  for_seeds(40, {363, 1573}, [](std::uint64_t seed) { return fault_in_any_mode(seed, kind_of_run::requests); });
}

TEST(responder_random, chaos_ends_and_leaves_nothing_behind) {
  // 934: a halt of a queue pair that failed meanwhile did not end. 41581, 52657: nobody woke a READ that waited when
  // its key was withdrawn.
  for_seeds(60, {934, 41581, 52657}, [](std::uint64_t seed) { return fault_in_any_mode(seed, kind_of_run::chaos); });
}

}  // namespace
}  // namespace rnic::transport::random_test
