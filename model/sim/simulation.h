// SPDX-License-Identifier: Apache-2.0
// One simulated system after the other in one process.
#pragma once

#include <cstdint>
#include <memory>

namespace sc_core {
class sc_simcontext;
}

namespace rnic::sim {

/// A SystemC kernel of its own for one system: make it before anything of the system, destroy it after everything of
/// it. While it lives, whatever is built belongs to it; time begins at 0, at a resolution of 1 ps, and elaboration is
/// open again. Results are those of a process that runs this system alone.
///
/// SystemC 2.3.4 has no such object: its functions act on the "current context", which this replaces and puts back.
/// Limits:
///   * One after the other. A second one while one lives, or from within a running simulation, is a config_error.
///   * What lives in static variables of the program (signals, events) belongs to the kernel that was current when it
///     was made, and must not be used by another one.
///   * Processes that still wait at the end (a firmware's) are gone without unwinding: what their local variables own
///     is lost. Statistics of sc_report_handler and the stop mode are the process's.
///   * Objects that outlive it keep their kernel, whose memory is then not given back.
class simulation {
 public:
  simulation();
  ~simulation();
  simulation(const simulation&) = delete;
  simulation& operator=(const simulation&) = delete;

  /// Number of the one that lives, from 1 on in the order of their beginnings; 0: the kernel is the process's own.
  static std::uint64_t current();

 private:
  sc_core::sc_simcontext* before_;
  std::unique_ptr<sc_core::sc_simcontext> own_;
};

}  // namespace rnic::sim
