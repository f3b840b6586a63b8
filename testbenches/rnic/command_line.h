// SPDX-License-Identifier: Apache-2.0
// Subcommands: each room of the program adds its own.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rnic::program {

class command_line {
 public:
  /// `where` is what lines on standard error name behind the program: a file that has the arguments.
  explicit command_line(std::string where = "");
  command_line(const command_line&) = delete;
  command_line& operator=(const command_line&) = delete;

  /// A subcommand with options of its own, which live as long as the command line.
  template <class Options>
  Options& keep(Options options) {
    auto kept = std::make_shared<Options>(std::move(options));
    kept_.push_back(kept);
    return *kept;
  }
  const CLI::App& app() const { return app_; }
  CLI::App& add(const char* name, const char* what) { return *app_.add_subcommand(name, what); }
  /// What it does, with what exit status; after add().
  void on(CLI::App& app, std::function<int()> run) { all_.push_back({&app, std::move(run)}); }

  /// Exit status of the command that the arguments ask for: 2 and a line on standard error for what is wrong with them.
  /// The first argument is the program's name.
  int run(const std::vector<std::string>& arguments);

 private:
  struct command {
    CLI::App* app;
    std::function<int()> run;
  };
  int execute(const std::vector<std::string>& arguments);
  std::string names() const;

  std::string where_;
  CLI::App app_;
  std::vector<std::shared_ptr<void>> kept_;
  std::vector<command> all_;
};

// By the rooms, in the order of the help.
void add_measurements(command_line& line);
void add_dma(command_line& line);
void add_run(command_line& line);
void add_sweep(command_line& line);
void add_compare(command_line& line);
void add_explain(command_line& line);
void add_report(command_line& line);
void add_calibrate(command_line& line);
void add_replay(command_line& line);
void add_fabric(command_line& line);
void add_serve(command_line& line);
void add_inspections(command_line& line);

}  // namespace rnic::program
