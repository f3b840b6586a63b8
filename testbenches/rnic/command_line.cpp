// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/command_line.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <systemc>

#include "host_driver/hosts/connection.h"
#include "host_driver/hosts/node.h"
#include "model/sim/check.h"
#include "model/version/version.h"
#include "testbenches/bench/usage_error.h"
#include "testbenches/rnic/json_output.h"
#include "testbenches/rnic/named_files.h"
#include "testbenches/rnic/option_groups.h"
#include "tlm/capture.h"

namespace rnic::program {

namespace {

/// CLI11 passes over an empty place between two commas, where somebody has forgotten a number.
void refuse_gaps(const CLI::App& command, const std::vector<std::string>& arguments) {
  const CLI::Option* option = nullptr;
  for (const std::string& argument : arguments) {
    std::string value = argument;
    if (argument.rfind("--", 0) == 0) {
      const std::size_t equals = argument.find('=');
      option = command.get_option_no_throw(argument.substr(0, equals));
      if (equals == std::string::npos) continue;
      value = argument.substr(equals + 1);
    }
    if (option == nullptr || option->get_delimiter() != ',' || ("," + value + ",").find(",,") == std::string::npos)
      continue;
    throw usage_error(option->get_name() + " " + value + ": a value is missing beside a comma");
  }
}

void refuse_two_functions(const CLI::App& command) {
  const CLI::Option* option = command.get_option_no_throw("--functions");
  if (option != nullptr && option->results().size() == 2)
    throw usage_error("--functions: expected one number or three");
}

/// A variable of a script that is not set: the result would be kept nowhere.
void refuse_empty_files(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string type = option->get_type_name();
    const auto is = [&type](const char* what) { return type.find(what) != std::string::npos; };
    const bool names_file = is("FILE") || is("DIR") || is("CAPTURE");
    const std::vector<std::string>& given = option->results();
    if (names_file && std::find(given.begin(), given.end(), "") != given.end())
      throw usage_error(option->get_name() + ": the name is empty");
  }
}

/// What is said of a capture that nobody asked for.
void refuse_without_capture(const CLI::App& command) {
  const auto is_given = [&command](const char* name) {
    const CLI::Option* option = command.get_option_no_throw(name);
    return option != nullptr && option->count() != 0;
  };
  if (is_given("--pcap") || is_given("--output")) return;
  for (const char* name : {"--pcap-fcs", "--pcap-at", "--pcap-before"})
    if (is_given(name)) throw usage_error(name + std::string(": there is no --pcap"));
}

/// The tables of a result that goes to standard output would be in the middle of it.
void make_way_for_json(const CLI::App& command) {
  const CLI::Option* option = command.get_option_no_throw("--json");
  if (option != nullptr && option->count() != 0 && is_standard_output(option->results().back())) keep_output_for_json();
}

}  // namespace

command_line::command_line(std::string where)
    : where_(std::move(where)),
      app_(
          "rnic: a cycle-accurate model of a RoCE network adapter.\n"
          "Two adapters in two hosts, joined by a cable, driven through their PCI Express interface.") {
  app_.set_version_flag("--version", version(), "Version and commit");
  app_.require_subcommand(0, 1);  // that there is one is checked in run(): an unknown one is to be named
  add_measurements(*this);
  add_dma(*this);
  add_run(*this);
  add_sweep(*this);
  add_compare(*this);
  add_explain(*this);
  add_report(*this);
  add_calibrate(*this);
  add_replay(*this);
  add_fabric(*this);
  add_serve(*this);
  add_inspections(*this);
  CLI::App& parameters = add(
      "parameters", "Every parameter with its value, unit and source; one beyond its range is refused with the range");
  auto& options = keep(common_options{});
  add_common(parameters, options);
  on(parameters, [&options] { return run_parameters(options); });
}

/// "latency, bandwidth or parameters".
std::string command_line::names() const {
  std::string text;
  for (std::size_t i = 0; i < all_.size(); ++i)
    text += (i == 0 ? "" : i + 1 == all_.size() ? " or " : ", ") + all_[i].app->get_name();
  return text;
}

int command_line::run(const std::vector<std::string>& arguments) {
  forget_named_files();
  const int status = execute(arguments);
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout) return status;
  std::fprintf(stderr, "rnic: standard output: writing failed\n");
  return status == 0 ? 2 : status;
}

int command_line::execute(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv;
  for (const std::string& a : arguments) argv.push_back(a.c_str());
  try {
    app_.parse(static_cast<int>(argv.size()), argv.data());
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app_.exit(e);
    std::fprintf(stderr, "rnic: %s%s\n", where_.c_str(), e.what());
    return 2;
  }
  try {
    for (const command& c : all_) {
      if (!c.app->parsed()) continue;
      refuse_gaps(*c.app, arguments);
      refuse_two_functions(*c.app);
      refuse_empty_files(*c.app);
      refuse_without_capture(*c.app);
      make_way_for_json(*c.app);
      return c.run();
    }
    throw usage_error("a subcommand is required: " + names());
  } catch (const usage_error& e) {
    std::fprintf(stderr, "rnic: %s%s\n", where_.c_str(), e.what());
    return 2;
  } catch (const sim::config_error& e) {
    std::fprintf(stderr, "rnic: %s\n", e.what());
    return 2;
  } catch (const sc_core::sc_report& e) {
    if (std::strcmp(e.get_msg_type(), hosts::rtl_difference) != 0) {
      std::fprintf(stderr, "rnic: internal error: %s\n", e.what());
      return 3;
    }
    std::fprintf(stderr, "rnic: %s\n", e.get_msg());
    return 1;
  } catch (const hosts::message_failed& e) {
    std::fprintf(stderr, "rnic: %s\n", e.what());
    return 1;
  } catch (const tlm::capture_error& e) {  // of a disk that is full
    std::fprintf(stderr, "rnic: %s\n", e.what());
    return 1;
  } catch (const std::exception& e) {
    if (std::ferror(stdout) != 0) return 0;  // told by run()
    std::fprintf(stderr, "rnic: internal error: %s\n", e.what());
    return 3;
  }
}

}  // namespace rnic::program
