// SPDX-License-Identifier: Apache-2.0
// Start of every test program: SystemC wants its own entry, and one process runs one test.
#include <gtest/gtest.h>

#include <systemc>

int sc_main(int argc, char* argv[]) {
  ::testing::InitGoogleTest(&argc, argv);
  sc_core::sc_set_time_resolution(1, sc_core::SC_PS);
  return RUN_ALL_TESTS();
}
