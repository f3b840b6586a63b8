// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/command_line.h"
#include "testbenches/rnic/fabric/fabric_file.h"
#include "testbenches/rnic/option_groups.h"

namespace rnic::program {

void add_fabric(command_line& line) {
  CLI::App& command =
      line.add("fabric", "Flows between hosts of a network of switches: completion times, queues, pauses");
  auto& o = line.keep(fabric_options{});
  command
      .add_option("network", o.file,
                  "TOML file with topology, parameters and flows (testbenches/rnic/fabric/README.md), or one of\n" +
                      network_names())
      ->required()
      ->type_name("FILE");
  command.add_flag("--print", o.print, "Show the file, and do nothing else");
  add_capture_at(command, o.capture_at);
  add_threads(command, o.threads);
  add_trace(command, o.trace, true);
  add_common(command, o.common);
  line.on(command, [&o] { return run_fabric(o); });
}

}  // namespace rnic::program
