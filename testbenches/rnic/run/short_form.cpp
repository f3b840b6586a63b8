// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/run/short_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "model/sim/toml_section.h"

namespace rnic::program {

namespace {

constexpr const char* commands_with_a_form[] = {"latency", "bandwidth"};

/// Of a run and not of an experiment.
bool is_of_run(const std::string& name) {
  constexpr const char* names[] = {"help",    "json", "pcap",  "trace",     "konata", "wave",
                                   "wave-of", "from", "until", "overwrite", "quiet",  "print"};
  return std::any_of(std::begin(names), std::end(names), [&](const char* n) { return name == n; });
}

/// Numbers stand as they are, all else in quotes.
std::string as_toml(const std::string& value) {
  char* end = nullptr;
  std::strtod(value.c_str(), &end);
  if (!value.empty() && *end == 0 && value.find_first_not_of("0123456789.-") == std::string::npos) return value;
  std::string quoted;
  for (const char c : value) quoted += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
  return '"' + quoted + '"';
}

std::string listed_as_toml(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& v : values) text += (text.empty() ? "" : ", ") + as_toml(v);
  return "[" + text + "]";
}

bool is_flag(const CLI::Option& o) { return o.get_expected_max() == 0; }
bool is_list(const CLI::Option& o) {
  return o.get_items_expected_max() > 1 || o.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
}

std::string text_of(const toml::node& n, const sim::toml_section& s, const std::string& key) {
  if (const auto* text = n.as_string()) return text->get();
  if (n.is_number() || n.is_boolean()) return sim::toml_section::shown(n);
  s.fail(n, key + ": expected a number, a text, true or false, or a list of them");
}

}  // namespace

std::string file_of(const CLI::App& command) {
  std::string given, defaults;
  for (const CLI::Option* o : command.get_options()) {
    const std::string name = o->get_single_name();
    if (is_of_run(name) || o->get_positional()) continue;
    if (o->count() == 0) {
      if (!o->get_default_str().empty() && !is_list(*o))
        defaults += fmt::format("# {} = {}\n", name, as_toml(o->get_default_str()));
      continue;
    }
    given += fmt::format("{} = {}\n", name,
                         is_flag(*o)   ? "true"
                         : is_list(*o) ? listed_as_toml(o->results())
                                       : as_toml(o->results().back()));
  }
  return fmt::format("[{}]\n{}{}", command.get_name(), given, defaults);
}

std::optional<std::vector<std::string>> arguments_in(const std::string& text, const std::string& name,
                                                     const CLI::App& all_commands) {
  const toml::table root = sim::read_toml(name, [&] { return toml::parse(text, name); });
  const auto has = [&](const char* command) { return root.contains(command); };
  const auto command = std::find_if(std::begin(commands_with_a_form), std::end(commands_with_a_form), has);
  if (command == std::end(commands_with_a_form)) return std::nullopt;
  const sim::toml_section file(name, "", root);
  file.allow({*command});
  const toml::node& node = *file.find(*command);
  if (!node.is_table()) file.fail(node, std::string(*command) + ": expected a table");
  const sim::toml_section s(name, std::string(*command) + ": ", *node.as_table());
  const CLI::App& known = *all_commands.get_subcommand(*command);
  std::vector<std::string> arguments{*command};
  for (const auto& [k, value] : *node.as_table()) {
    const std::string key(k.str());
    const CLI::Option* const o = is_of_run(key) ? nullptr : known.get_option_no_throw("--" + key);
    if (o == nullptr) s.fail(value, key + ": there is no such option, see rnic " + *command + " --help");
    if (is_flag(*o)) {
      if (!value.is_boolean()) s.fail(value, key + ": expected true or false");
      if (value.as_boolean()->get()) arguments.push_back("--" + key);
    } else if (const toml::array* list = value.as_array()) {
      for (const toml::node& each : *list) arguments.push_back("--" + key + "=" + text_of(each, s, key));
    } else {
      arguments.push_back("--" + key + "=" + text_of(value, s, key));
    }
  }
  return arguments;
}

std::vector<std::string> given_arguments(const CLI::App& command, const std::vector<std::string>& without) {
  std::vector<std::string> arguments;
  for (const CLI::Option* o : command.get_options()) {
    const std::string name = o->get_single_name();
    if (o->count() == 0 || o->get_positional() || std::find(without.begin(), without.end(), name) != without.end())
      continue;
    if (is_flag(*o))
      arguments.push_back("--" + name);
    else
      for (const std::string& v : o->results()) arguments.push_back("--" + name + "=" + v);
  }
  return arguments;
}

}  // namespace rnic::program
