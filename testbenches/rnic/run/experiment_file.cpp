// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/run/experiment_file.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "testbenches/rnic/measure/experiment.h"
#include "testbenches/rnic/named_files.h"
#include "testbenches/rnic/options.h"
#include "testbenches/rnic/run/workload_table.h"

namespace rnic::program {

namespace {

using section = sim::toml_section;

/// [faults]: what happens to frames on the cables of one host.
void read_fault_table(const section& file, const std::string& name, experiment_file& e) {
  const toml::table* table = table_at(file, "faults");
  if (table == nullptr) return;
  const section s(name, "faults: ", *table);
  s.allow({"at", "file", "drop", "duplicate", "reorder", "corrupt"});
  const std::vector<unsigned> at = read_hosts(s, *table, "at", e.shape);
  if (at.size() != 1) s.fail(*s.find("at"), "at: expected one host");
  fault_options o;
  s.text("file", o.file);
  s.percent("drop", o.drop);
  s.percent("duplicate", o.duplicate);
  s.percent("reorder", o.reorder);
  s.percent("corrupt", o.corrupt);
  e.faults_at = static_cast<int>(at.front());
  e.faults = faults_from(o);
}

}  // namespace

experiment_file parse_experiment(const std::string& text, const std::string& name) {
  const toml::table root = sim::read_toml(name, [&] { return toml::parse(text, name); });
  const section s(name, "", root);
  std::vector<const char*> fields = network_fields();
  fields.insert(fields.end(), {"duration_us", "warm_up_us", "drain_us", "faults", "workload"});
  s.allow(fields);
  experiment_file e;
  read_network(s, name, e, topology_in_file::may_be_missing);
  s.number("duration_us", 1, longest_us, e.duration_us);
  s.number("warm_up_us", 0, longest_us, e.warm_up_us);
  if (e.duration_us != 0 && e.warm_up_us >= e.duration_us)
    s.fail(*s.find("warm_up_us"), "warm_up_us: " + std::to_string(e.warm_up_us) + " is not legal, expected 0 to " +
                                      std::to_string(e.duration_us - 1) + ", less than duration_us");
  e.drain_us = std::max<std::uint64_t>(e.duration_us, 1000);
  s.number("drain_us", 0, longest_us, e.drain_us);
  read_fault_table(s, name, e);
  if (!s.has("workload"))
    throw sim::config_error(name + ": workload: is missing, expected a list of tables, [[workload]]");
  read_list(s, "workload", [&](const toml::node& n, std::size_t i) {
    e.workloads.push_back(read_workload(section(name, "workload " + std::to_string(i) + ": ", *n.as_table()), n, i, e));
  });
  return e;
}

std::string experiment_text(const std::string& file) {
  name_input(file);
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  if (!in) throw sim::config_error(file + ": cannot be read");
  return text.str();
}

}  // namespace rnic::program
