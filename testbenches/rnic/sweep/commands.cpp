// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/command_line.h"
#include "testbenches/rnic/option_groups.h"

namespace rnic::program {

void add_sweep(command_line& line) {
  CLI::App& command = line.add(
      "sweep", "An experiment with many values of its fields and of parameters: a table in CSV, JSON and SQLite");
  auto& o = line.keep(sweep_options{});
  command
      .add_option("sweep", o.file, "TOML file that names an experiment and its axes (testbenches/rnic/sweep/README.md)")
      ->required()
      ->type_name("FILE");
  command
      .add_option(
          "--out", o.folder,
          "Folder of the results. One of the same sweep is gone on with: points that are there are not run again")
      ->required()
      ->type_name("DIR");
  command.add_option("--jobs", o.jobs, "Points at a time, 0: one for each processor")
      ->check(CLI::Range(0u, 1024u))
      ->capture_default_str();
  auto* point = command.add_option("--point", o.point, "Runs this point and no other, from 1: a task of a job array")
                    ->check(CLI::Range(1u, 1'000'000u))
                    ->type_name("N");
  auto* collect = command.add_flag("--collect", o.collect, "Makes the table of what is there, and runs nothing");
  auto* slurm = command.add_flag("--slurm", o.slurm, "Writes job.sh, a job array for sbatch, and runs nothing");
  point->excludes(collect)->excludes(slurm);
  collect->excludes(slurm);
  command.add_flag("--quiet", o.quiet, "No progress");
  line.on(command, [&o] { return run_sweep(o); });
}

}  // namespace rnic::program
