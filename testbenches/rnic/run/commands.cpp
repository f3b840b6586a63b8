// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "testbenches/rnic/command_line.h"
#include "testbenches/rnic/option_groups.h"
#include "testbenches/rnic/run/experiment_file.h"
#include "testbenches/rnic/run/short_form.h"

namespace rnic::program {

void add_run(command_line& line) {
  CLI::App& command = line.add(
      "run",
      "An experiment: workloads in closed, ping-pong or open loops on a network; goodput, rates and tails of latency");
  auto& o = line.keep(run_options{});
  command
      .add_option("experiment", o.file,
                  "TOML file with topology, parameters and workloads (testbenches/rnic/run/README.md)")
      ->required()
      ->type_name("FILE");
  command.add_flag("--print", o.print, "Show the file, and do nothing else");
  add_capture_at(command, o.capture_at);
  add_threads(command, o.threads);
  add_trace(command, o.trace, true);
  add_common(command, o.common);
  line.on(command, [&command, &line, &o] {
    const std::string text = experiment_text(o.file);
    if (o.print) {
      fmt::print("{}", text);
      return 0;
    }
    auto arguments = arguments_in(text, o.file, line.app());
    if (!arguments) return run_experiment(o, text);
    // What the user gives beside the file comes behind it.
    arguments->insert(arguments->begin(), "rnic");
    for (std::string& a : given_arguments(command, {"print", "pcap-at", "threads"})) arguments->push_back(std::move(a));
    return command_line(o.file + ": " + (*arguments)[1] + ": ").run(*arguments);
  });
}

}  // namespace rnic::program
