// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/command_line.h"
#include "testbenches/rnic/option_groups.h"

namespace rnic::program {

void add_compare(command_line& line) {
  CLI::App& command = line.add(
      "compare", "Two results of --json, field by field with tolerances; status 1 when one is beyond them (for CI)");
  auto& o = line.keep(compare_options{});
  command.add_option("reference", o.reference, "JSON of the run that is the reference")->required()->type_name("FILE");
  command.add_option("other", o.other, "JSON of the other run")->required()->type_name("FILE");
  command
      .add_option("--tolerance", o.tolerances,
                  "How far numbers may be from the reference, in per cent, of all fields or of those that match:\n"
                  "--tolerance 1 --tolerance 'all.latency.p99*=5'; the last that matches counts (default: 0).\n"
                  "Texts must be equal")
      ->type_name("[FIELD=]PERCENT")
      ->take_all();
  command
      .add_option("--field", o.fields,
                  "Compares these fields and no others, with * for any text: --field 'all.latency.*'; repeatable\n"
                  "(default: all but counters, histograms, parameters and what the run is called)")
      ->type_name("FIELD")
      ->take_all();
  command.add_option("--without", o.without, "Leaves these out; repeatable. A name that is in neither file is refused")
      ->type_name("FIELD")
      ->take_all();
  command.add_option("--junit", o.junit_file, "Write a report that CI services read, a case for each field")
      ->type_name("FILE");
  command
      .add_option("--json", o.json_file,
                  "Write what differs as JSON; -: to standard output, and the tables to standard error")
      ->type_name("FILE");
  command.add_flag("--overwrite", o.overwrite, "Replace result files that exist");
  line.on(command, [&o] { return run_compare(o); });
}

}  // namespace rnic::program
