// SPDX-License-Identifier: Apache-2.0
// Frames of a peer, with a right ICRC and FCS, into the port of an adapter with queue pairs of all kinds.
#include "testbenches/fuzz/attack.h"
#include "testbenches/fuzz/input.h"
#include "testbenches/fuzz/live_adapter.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  rnic::fuzz::bring_up();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  rnic::fuzz::in_adapter([&](rnic::conformance::rig& r) {
    rnic::fuzz::input in(data, size);
    rnic::fuzz::attack(r, in, false).run();
  });
  return 0;
}
