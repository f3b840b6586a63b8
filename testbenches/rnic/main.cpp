// SPDX-License-Identifier: Apache-2.0
// The program `rnic`.
#include <string>
#include <systemc>
#include <vector>

#include "testbenches/rnic/command_line.h"

int sc_main(int argc, char* argv[]) {
  rnic::program::command_line line;
  return line.run(std::vector<std::string>(argv, argv + argc));
}
