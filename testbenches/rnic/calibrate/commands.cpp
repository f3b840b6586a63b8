// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/command_line.h"
#include "testbenches/rnic/option_groups.h"

namespace rnic::program {

void add_calibrate(command_line& line) {
  CLI::App& command = line.add("calibrate", "Published figures of this adapter family beside those of the model");
  auto& o = line.keep(calibrate_options{});
  command.add_option("--only", o.only, "Points whose id begins so, for example C04,C07")->delimiter(',');
  command.add_flag("--held-out", o.held_out, "Instead the published points that were looked at afterwards, V01 to V16");
  command.add_option("--jobs", o.jobs, "Experiments at a time, 0: one for each processor")
      ->check(CLI::Range(0u, 256u))
      ->capture_default_str();
  add_common(command, o.common);
  line.on(command, [&o] { return run_calibrate(o); });
}

}  // namespace rnic::program
