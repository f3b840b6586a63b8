// SPDX-License-Identifier: Apache-2.0
// Linked into every program: keeps the SystemC kernel's banner and its notes off the program's output.
#include <cstdlib>
#include <systemc>

namespace {

// Before main(), which belongs to the SystemC library and prints the banner.
const bool quiet = [] {
  setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);
  sc_core::sc_report_handler::set_actions("/OSCI/SystemC", sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
  return true;
}();

}  // namespace
