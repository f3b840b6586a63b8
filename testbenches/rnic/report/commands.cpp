// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/command_line.h"
#include "testbenches/rnic/options.h"

namespace rnic::program {

void add_report(command_line& line) {
  CLI::App& command = line.add("report", "Results and traces as one page for a browser: curves, stages, tables");
  auto& o = line.keep(report_options{});
  command
      .add_option("results", o.places,
                  "Folders, of which all results and traces are taken, or files (--json, --trace);\n"
                  "of a sweep's folder its table is taken, not its points")
      ->required()
      ->type_name("DIR|FILE");
  command.add_option("-o,--output", o.output, "The page, which needs no other file and no network")
      ->type_name("FILE")
      ->capture_default_str();
  command.add_option("--title", o.title, "Heading of the page (default: what was given)")->type_name("TEXT");
  command.add_flag("--overwrite", o.overwrite, "Replace the page if it exists");
  line.on(command, [&o] { return run_report(o); });
}

}  // namespace rnic::program
