// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/explain/explained_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include "host_driver/workloads/workload.h"
#include "model/fabric/topology.h"
#include "testbenches/rnic/compare/result_fields.h"
#include "testbenches/rnic/fabric/fabric_file.h"
#include "testbenches/rnic/run/experiment_file.h"
#include "testbenches/rnic/sweep/sweep_file.h"

namespace rnic::program {

namespace {

namespace fs = std::filesystem;

constexpr const char* recorded_parameters = "parameters.toml";  // in the folder

bool begins_with(const std::string& text, const char* with) { return text.rfind(with, 0) == 0; }

/// Fields of the file that --topology names, where there is one.
bool is_of_network(const std::string& field) {
  return begins_with(field, "topology.") || begins_with(field, "cable.") || begins_with(field, "hosts.");
}

std::optional<std::uint64_t> number_at(const toml::table& t, const std::string& at) {
  const auto v = t.at_path(at).value<std::int64_t>();
  return v && *v >= 0 ? std::optional(static_cast<std::uint64_t>(*v)) : std::nullopt;
}

/// A list of tables, or nullptr.
const toml::array* tables_at(const toml::table& t, const char* key) {
  const toml::node* const n = t.get(key);
  return n != nullptr && n->is_array_of_tables() ? n->as_array() : nullptr;
}

void vary(toml::table& root, const std::string& field, std::uint64_t value, const std::string& name) {
  if (begins_with(field, "topology.") && !root.contains("topology")) {
    root.insert("topology", toml::table{{"kind", "pair"}});  // which is what joins two hosts without one
    root.erase("cable");                                     // not read without a topology, and refused in this one
  }
  assign(root, field, toml::value<std::int64_t>(static_cast<std::int64_t>(value)), name);
}

std::string text_of(const toml::table& t) {
  std::ostringstream text;
  text << t << '\n';
  return text.str();
}

/// `text` with the user's name for a file instead of that of its copy. The lines of a copy that has been `written` anew
/// are not the user's.
void put_name(std::string& text, const std::string& copy, const std::string& name, bool written) {
  for (std::size_t at = text.find(copy); at != std::string::npos; at = text.find(copy, at + name.size())) {
    std::size_t end = at + copy.size();
    if (written && end < text.size() && text[end] == ':') {
      std::size_t behind = end + 1;
      while (behind < text.size() && std::isdigit(static_cast<unsigned char>(text[behind])) != 0) ++behind;
      if (behind > end + 1) end = behind;
    }
    text.replace(at, end - at, name);
  }
}

std::string without_program(std::string line) {
  constexpr const char* program = "rnic: ";
  if (begins_with(line, program)) line.erase(0, std::string(program).size());
  return line.empty() ? "the run ended without a result" : line;
}

toml::table parameters_in(const nlohmann::json& result, const std::string& name) {
  return sim::read_toml(name, [&] { return toml::parse(result.at("parameters").get<std::string>(), name); });
}

}  // namespace

working_folder::working_folder() {
  std::string name = (fs::temp_directory_path() / "rnic-explain-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw usage_error(name + ": cannot be made");
  path_ = name;
}

working_folder::~working_folder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

fs::path working_folder::file(std::size_t run, const char* ending) const {
  return path_ / (std::to_string(run) + ending);
}

explained_run::explained_run(const explain_options& options) : options_(options), text_(experiment_text(options.file)) {
  if (const auto first = text_.find_first_not_of(" \t\r\n"); first != std::string::npos && text_[first] == '{')
    take_from(read_result(options_.file));
  set_.insert(set_.end(), options_.assignments.begin(), options_.assignments.end());
  const std::string name = name_of_text();
  experiment_ = sim::read_toml(name, [&] { return toml::parse(text_, name); });
  read_network();
}

/// The file of a short form has every option that was given; that of an experiment is the user's own, and the options
/// are beside it.
void explained_run::take_from(const nlohmann::json& result) {
  constexpr std::array of{"run", "latency", "bandwidth"};
  const auto file = result.find("file");
  const std::string command = result.value("command", "");
  if (std::find(of.begin(), of.end(), command) == of.end() || file == result.end() || !file->is_string())
    throw usage_error(options_.file + ": is no result of run, latency or bandwidth, which have \"file\"");
  result_ = result;
  text_ = file->get<std::string>();
  if (command != "run") return;
  const common_options usual;
  own_ = {"--profile", result.value("profile", usual.profile), "--seed",
          std::to_string(result.value("seed", usual.seed))};
  for (const nlohmann::json& t : result.value("traffic_class", nlohmann::json::array()))
    own_.push_back("--traffic-class=" + t.get<std::string>());
  if (result.contains("ttl")) own_.push_back("--ttl=" + result["ttl"].get<std::string>());
  for (const nlohmann::json& s : result.value("set", nlohmann::json::array())) set_.push_back(s.get<std::string>());
}

void explained_run::read_network() {
  for (const char* command : {"latency", "bandwidth"})
    if (const auto name = experiment_[command]["topology"].value<std::string>()) topology_ = *name;
  if (topology_.empty()) return;
  network_ = sim::read_toml(topology_, [&] { return toml::parse(fabric_text(topology_), topology_); });
}

/// As errors call it.
std::string explained_run::name_of_text() const { return result_.is_null() ? options_.file : options_.file + ": file"; }

void explained_run::write(const fs::path& file, const std::string& text) const {
  std::ofstream out(file);
  out << text;
  if (!out.flush()) throw usage_error(file.string() + ": writing failed");
}

own_run explained_run::run_of(const variation& v, std::size_t number) const {
  const fs::path file = folder_.file(number, ".toml"), network = folder_.file(number, ".network.toml");
  toml::table own = experiment_, its_network = network_;
  bool other_network = false;
  for (const auto& [field, value] : v.fields) {
    const bool there = !topology_.empty() && is_of_network(field);
    other_network |= there;
    vary(there ? its_network : own, field, value, options_.file);
  }
  if (other_network) {
    write(network, text_of(its_network));
    own[has_latencies() ? "latency" : "bandwidth"].as_table()->insert_or_assign("topology", network.string());
  }
  write(file, v.fields.empty() ? text_ : text_of(own));  // the user's text has the user's lines
  fs::remove(result_of(number));
  own_run run{{"run", file, "--quiet", "--json", result_of(number)},
              folder_.file(number, ".txt"),
              folder_.file(number, ".log")};
  run.arguments.insert(run.arguments.end(), own_.begin(), own_.end());
  for (const auto* some : {&set_, &v.set})
    for (const std::string& s : *some) run.arguments.insert(run.arguments.end(), {"--set", s});
  return run;
}

std::string explained_run::error_of(const variation& v, std::size_t number) const {
  std::string why = last_line(folder_.file(number, ".log"));
  put_name(why, folder_.file(number, ".network.toml"), topology_, true);
  put_name(why, folder_.file(number, ".toml"), name_of_text(), !v.fields.empty());
  put_name(why, folder_.file(recorded_parameters), options_.file + ": parameters", true);
  return without_program(why);
}

nlohmann::json explained_run::run_base() const {
  const int status = wait_for(begin(run_of({}, 0)));
  if (verdict_of(status) == "refused" || !fs::exists(result_of(0))) throw usage_error(error_of({}, 0));
  return read_result(result_of(0));
}

nlohmann::json explained_run::base() {
  nlohmann::json found = run_base();
  if (take_parameters_of_result(found)) found = run_base();
  check_repeats(found);
  parameters_ = parameters_in(found, "parameters");
  return found;
}

/// True: some were otherwise there, by --config; they are from now on. Only these, since the driver's tables have the
/// size that the experiment needs, and more of something may need larger ones.
bool explained_run::take_parameters_of_result(const nlohmann::json& base) {
  if (result_.is_null() || is_short() || !result_.contains("parameters")) return false;
  const std::string name = options_.file + ": parameters";
  const auto now = sim::settings_in(parameters_in(base, name), name);
  const std::map<std::string, std::string> are(now.begin(), now.end());
  std::string other;
  for (const auto& [path, value] : sim::settings_in(parameters_in(result_, name), name))
    if (const auto is = are.find(path); is == are.end() || is->second != value)
      other += fmt::format("{} = \"{}\"\n", path, value);
  if (other.empty()) return false;
  const fs::path file = folder_.file(recorded_parameters);
  write(file, other);
  own_.insert(own_.end(), {"--config", file});
  return true;
}

/// Another version, or a file beside the experiment that is otherwise now, gives other numbers.
void explained_run::check_repeats(const nlohmann::json& base) const {
  constexpr std::array compared{"all.completed",    "all.rate_mpps",     "all.latency.mean",
                                "rows.*.rate_mpps", "rows.*.typical_us", "rows.*.avg_us"};
  if (result_.is_null() || !options_.assignments.empty()) return;
  const named_fields is = fields_of(base);
  const std::map<std::string, nlohmann::json> now(is.begin(), is.end());
  for (const auto& [field, was] : fields_of(result_)) {
    const auto fits = [&f = field](const char* pattern) { return matches(pattern, f); };
    const auto at = now.find(field);
    if (at == now.end() || at->second == was || std::none_of(compared.begin(), compared.end(), fits)) continue;
    const std::string by = result_.value("version", ""), of = base.value("version", "");
    throw usage_error(fmt::format("{}: its run cannot be repeated: {} was {} and is {}{}", options_.file, field,
                                  was.dump(), at->second.dump(),
                                  by == of ? "" : fmt::format(", by versions {} and {}", by, of)));
  }
}

std::uint64_t explained_run::option(const char* name, std::uint64_t usual) const {
  return number_at(experiment_, std::string("latency.") + name).value_or(usual);
}

bool explained_run::ends_by_time() const {
  const toml::array* const list = is_short() ? nullptr : tables_at(experiment_, "workload");
  return list != nullptr && std::any_of(list->begin(), list->end(), [](const toml::node& n) {
           const toml::table& w = *n.as_table();
           return !w.contains("messages") && !w["background"].value_or(false);
         });
}

/// Where topology, cables and hosts' own parameters are; nullptr: the run has no such file.
const toml::table* explained_run::network() const {
  if (!is_short()) return &experiment_;
  return topology_.empty() ? nullptr : &network_;
}

std::vector<knob_place> explained_run::place_of_option(const std::string& path) const {
  if (!experiment_.contains("bandwidth")) return {};
  const bandwidth_options usual;
  const std::uint64_t otherwise = path == "--depth"  ? usual.depth
                                  : path == "--outs" ? usual.reads
                                                     : usual.receive_depth;
  const std::string field = "bandwidth." + path.substr(2);
  return {{path, field, number_at(experiment_, field).value_or(otherwise)}};
}

std::vector<knob_place> explained_run::depths() const {
  const workloads::workload_config usual;
  std::vector<knob_place> all;
  const toml::array* const list = is_short() ? nullptr : tables_at(experiment_, "workload");
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const toml::table& w = *list->get(i)->as_table();
    if (w["loop"].value_or(std::string()) == "ping-pong") continue;  // one message, whatever its depth
    const std::string field = fmt::format("workload.{}.depth", i + 1);
    all.push_back({field, field, number_at(w, "depth").value_or(usual.depth)});
  }
  return all;
}

std::vector<knob_place> explained_run::rates_of_cables() const {
  const std::uint64_t usual = fabric::cable_kind{}.rate_mbps;
  const toml::table* const n = network();
  if (n == nullptr) return {};
  std::vector<knob_place> all;
  if ((*n)["topology"]["kind"].value_or(std::string()) == "custom") {
    const toml::array* const cables = tables_at(*n, "cable");
    for (std::size_t i = 0; cables != nullptr && i < cables->size(); ++i) {
      const std::string field = fmt::format("cable.{}.rate_mbps", i + 1);
      all.push_back({field, field, number_at(*cables->get(i)->as_table(), "rate_mbps").value_or(usual)});
    }
    return all;
  }
  constexpr const char *edge = "topology.rate_mbps", *trunk = "topology.trunk_rate_mbps";
  all.push_back({edge, edge, number_at(*n, edge).value_or(usual)});
  if (const auto now = number_at(*n, trunk)) all.push_back({trunk, trunk, *now});  // else it is as fast as the edge
  return all;
}

/// Values of tables [hosts.NAME], which go before those of all hosts.
std::vector<knob_place> explained_run::places_of_hosts(const std::string& path) const {
  std::vector<knob_place> all;
  const toml::table* const n = network();
  const toml::table* const hosts = n == nullptr ? nullptr : (*n)["hosts"].as_table();
  if (hosts == nullptr) return all;
  for (const auto& [key, node] : *hosts) {
    const std::string name = "hosts." + std::string(key.str()) + "." + path;
    for (const auto& [of, value] : sim::settings_in(*node.as_table(), options_.file)) {
      std::uint64_t now = 0;
      const auto read = std::from_chars(value.data(), value.data() + value.size(), now);
      if (of == path && read.ec == std::errc{}) all.push_back({name, name, now});
    }
  }
  return all;
}

std::vector<knob_place> explained_run::places_of(const std::string& path) const {
  if (begins_with(path, "--")) return place_of_option(path);
  if (path == "workload.depth") return depths();
  if (path == "topology.rate_mbps") return rates_of_cables();
  if (path == "adapter.port.rate_mbps" && network() != nullptr) return {};  // a cable of the topology says it
  std::vector<knob_place> all;
  for (const char* side : {"", "a.", "b."})  // the sides' own behind what both have, which would be theirs otherwise
    if (const auto now = number_at(parameters_, side + path)) all.push_back({side + path, "", *now});
  for (knob_place& own : places_of_hosts(path)) all.push_back(std::move(own));
  return all;
}

}  // namespace rnic::program
