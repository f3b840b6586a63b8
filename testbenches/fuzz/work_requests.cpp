// SPDX-License-Identifier: Apache-2.0
// Descriptors and doorbells of a process that owns a page of doorbells, with a peer that answers.
#include "testbenches/fuzz/attack.h"
#include "testbenches/fuzz/input.h"
#include "testbenches/fuzz/live_adapter.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  rnic::fuzz::bring_up(true);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  rnic::fuzz::in_adapter([&](rnic::conformance::rig& r) {
    rnic::fuzz::input in(data, size);
    rnic::fuzz::attack(r, in, true).run();
  });
  return 0;
}
