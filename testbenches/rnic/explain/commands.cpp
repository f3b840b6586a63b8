// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/command_line.h"
#include "testbenches/rnic/option_groups.h"

namespace rnic::program {

void add_explain(command_line& line) {
  CLI::App& command = line.add(
      "explain", "What more of each resource gives to a run, measured by running it again, and what limits it next");
  auto& o = line.keep(explain_options{});
  command
      .add_option("run", o.file,
                  "TOML file of `rnic run` (also of latency --print, bandwidth --print), or a result of these (--json)")
      ->required()
      ->type_name("FILE");
  command.add_option("--more", o.more, "How much more of each, in per cent, or the next whole number above that")
      ->check(CLI::Range(0.1, 1000.0))
      ->capture_default_str();
  command
      .add_option(
          "--metric", o.metric,
          "Number of the result that is looked at, with * for any text, as all.latency.p99; one number must fit\n"
          "(default: the rate, and of latency the typical one of the first size)")
      ->type_name("FIELD");
  command.add_option("--set", o.assignments, "Change one parameter, as the command of the run takes it; repeatable")
      ->type_name("PATH=VALUE")
      ->take_all();
  command.add_option("--jobs", o.jobs, "Runs at a time, 0: one for each processor")
      ->check(CLI::Range(0u, 1024u))
      ->capture_default_str();
  command
      .add_option("--json", o.json_file,
                  "Write the results as JSON; -: to standard output, and the tables to standard error")
      ->type_name("FILE");
  command.add_flag("--overwrite", o.overwrite, "Replace result files that exist");
  command.add_flag("--quiet", o.quiet, "No progress");
  line.on(command, [&o] { return run_explain(o); });
}

}  // namespace rnic::program
