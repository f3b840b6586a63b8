// SPDX-License-Identifier: Apache-2.0
// `rnic sweep`: the same experiment with many values, each point in a process of its own.
#include <fmt/format.h>
#include <sys/wait.h>
#include <zlib.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "model/version/version.h"
#include "testbenches/rnic/children.h"
#include "testbenches/rnic/compare/result_fields.h"
#include "testbenches/rnic/json_output.h"
#include "testbenches/rnic/options.h"
#include "testbenches/rnic/results.h"
#include "testbenches/rnic/run/experiment_file.h"
#include "testbenches/rnic/sweep/sweep_file.h"
#include "testbenches/rnic/sweep/sweep_table.h"

namespace rnic::program {

namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

/// In one go: who is interrupted leaves no half of a file.
void write(const fs::path& file, const std::string& text) {
  const fs::path part = file.string() + ".part";
  std::ofstream out(part);
  out << text;
  if (!out.flush()) throw usage_error(file.string() + ": writing failed");
  out.close();
  fs::rename(part, file);
}

/// Texts of an experiment that name files are inputs as the experiment is: distributions, plans of faults, topologies.
void add_inputs(const toml::node& node, const fs::path& folder, std::set<fs::path>& inputs) {
  if (const auto* table = node.as_table()) {
    for (const auto& [key, value] : *table) add_inputs(value, folder, inputs);
  } else if (const auto* array = node.as_array()) {
    for (const toml::node& value : *array) add_inputs(value, folder, inputs);
  } else if (const auto* text = node.as_string()) {
    std::error_code none;
    for (const fs::path& file : {fs::path(text->get()), folder / text->get()})
      if (!text->get().empty() && fs::is_regular_file(file, none)) inputs.insert(fs::weakly_canonical(file, none));
  }
}

/// What a point is made from beside its own file: this program, and what the experiment reads.
std::string origin_of(const sweep_file& f) {
  std::string text = std::string(version()) + "\n";
  std::set<fs::path> inputs;
  try {
    add_inputs(toml::parse(f.experiment), f.folder, inputs);
    add_inputs(toml::parse(f.text), f.folder, inputs);
  } catch (const toml::parse_error&) {  // told by whoever runs it
  }
  for (const fs::path& input : inputs) {
    const std::string bytes = content(input);
    const auto sum = crc32_z(crc32_z(0, nullptr, 0), reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
    text += fmt::format("{} {} {:08x}\n", input.filename().string(), bytes.size(), sum);
  }
  return text;
}

/// As one word of a shell's command.
std::string for_shell(const std::string& text) {
  const auto is_plain = [](unsigned char c) { return std::isalnum(c) != 0 || std::strchr("/._-+=,", c) != nullptr; };
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

/// The same results make another table then.
bool differ_at_most_in_columns(const std::string& one, const std::string& other) {
  if (one == other) return true;
  try {
    toml::table a = toml::parse(one), b = toml::parse(other);
    a.erase("columns");
    b.erase("columns");
    return a == b;
  } catch (const toml::parse_error&) {
    return false;
  }
}

class sweep_run {
 public:
  sweep_run(const sweep_options& o, const sweep_file& f)
      : options_(o), file_(f), points_(points_of(f, o.file)), folder_(o.folder), origin_(origin_of(f)) {}

  int run() {
    prepare();
    if (options_.slurm) return write_job();
    if (options_.point != 0) return run_one();
    if (!options_.collect) run_missing();
    return collect();
  }

 private:
  fs::path of(unsigned point, const char* ending) const {
    return folder_ / "points" / fmt::format("{:06}{}", point, ending);
  }

  /// The folder is new, or that of the same sweep, whose results are taken.
  void prepare() {
    const fs::path own = folder_ / "sweep.toml", experiment = folder_ / "experiment.toml";
    if (fs::exists(folder_) && !fs::is_empty(folder_) &&
        (!differ_at_most_in_columns(content(own), file_.text) || content(experiment) != file_.experiment))
      throw usage_error(options_.folder + ": holds something else than this sweep; give another --out");
    std::error_code error;
    fs::create_directories(folder_ / "points", error);
    if (error) throw usage_error(options_.folder + ": cannot be made: " + error.message());
    if (fs::exists(own) && content(own) == file_.text) return;
    write(experiment, file_.experiment);
    write(own, file_.text);
  }

  /// It has ended, with the same experiment, inputs and program.
  bool has_ended(unsigned point) const {
    return fs::exists(of(point, ".status")) && content(of(point, ".toml")) == points_[point - 1].text &&
           content(of(point, ".from")) == origin_;
  }
  /// In one piece: neither taken away since, nor lost with a machine that stopped before it was on its disk.
  nlohmann::json result_of(unsigned point) const {
    nlohmann::json result = nlohmann::json::parse(content(of(point, ".json")), nullptr, false);
    return result.is_object() && result.contains("command") ? result : nlohmann::json(nullptr);
  }
  /// It need not run any more. One that crashed or was refused may have been so for reasons that have gone: memory, its
  /// node, a full disk. What is refused for its values costs nothing.
  bool is_done(unsigned point) const {
    if (!has_ended(point)) return false;
    const std::string status = content(of(point, ".status"));
    return (status == "failed\n" || status == "ok\n") && !result_of(point).is_null();
  }

  own_run run_of(unsigned point) const {
    const sweep_point& p = points_[point - 1];
    for (const char* ending : {".status", ".json"}) fs::remove(of(point, ending));
    write(of(point, ".toml"), p.text);
    write(of(point, ".from"), origin_);
    own_run run{
        {"run", of(point, ".toml"), "--json", of(point, ".json"), "--quiet"}, of(point, ".txt"), of(point, ".log")};
    for (const std::string& s : p.set) run.arguments.insert(run.arguments.end(), {"--set", s});
    return run;
  }

  void end(unsigned point, int status) const {
    write(of(point, ".status"), verdict_of(status) + "\n");
    if (!WIFSIGNALED(status)) return;
    std::ofstream log(of(point, ".log"), std::ios::app);
    log << "ended by signal " << WTERMSIG(status) << " (" << strsignal(WTERMSIG(status)) << ")\n";
  }

  int run_one() {
    if (options_.point > points_.size())
      throw usage_error(fmt::format("--point: {}: expected 1 to {}", options_.point, points_.size()));
    if (is_done(options_.point)) return 0;
    end(options_.point, wait_for(begin(run_of(options_.point))));
    return 0;
  }

  void run_missing() const {
    common_options quiet;
    quiet.quiet = options_.quiet;
    progress shown(quiet, "sweep", points_.size());
    std::vector<bool> was_done(points_.size());
    std::uint64_t done = 0;
    run_all(
        points_.size(), options_.jobs,
        [&](std::size_t i) {
          const unsigned point = static_cast<unsigned>(i) + 1;
          was_done[i] = is_done(point);
          return was_done[i] ? own_run{} : run_of(point);
        },
        [&](std::size_t i, int status) {
          if (!was_done[i]) end(static_cast<unsigned>(i) + 1, status);
          shown.at(++done);
        });
  }

  /// For a cluster: a job array with a task for each point. What a task says goes where the script sends it: sbatch
  /// reads its directives by rules of its own, which not every path survives.
  int write_job() const {
    const fs::path program = fs::read_symlink("/proc/self/exe"), job = folder_ / "job.sh", out = fs::absolute(folder_);
    write(job, fmt::format("#!/bin/sh\n"
                           "#SBATCH --job-name=rnic-sweep\n"
                           "#SBATCH --array=1-{}\n"
                           "#SBATCH --ntasks=1\n"
                           "#SBATCH --output=/dev/null\n"
                           "exec >{}/points/task-\"$SLURM_ARRAY_TASK_ID\".out 2>&1\n"
                           "exec {} sweep {} --out {} --point \"$SLURM_ARRAY_TASK_ID\"\n",
                           points_.size(), for_shell(out), for_shell(program), for_shell(fs::absolute(options_.file)),
                           for_shell(out)));
    fs::permissions(job, fs::perms::owner_exec, fs::perm_options::add);
    fmt::print("{} points; submit them with: sbatch {}\nthen, when all have ended: rnic sweep {} --out {} --collect\n",
               points_.size(), for_shell(job), for_shell(options_.file), for_shell(options_.folder));
    constexpr std::size_t most_tasks = 1000;  // Slurm's MaxArraySize is 1001 where it is not set
    if (points_.size() > most_tasks)
      fmt::print("the cluster's MaxArraySize must be above {} (scontrol show config)\n", points_.size());
    return 0;
  }

  /// What the run said last, with the name of its file as this folder has it; or what its results say failed.
  std::string error_of(unsigned point, const nlohmann::json& result) const {
    std::string error = last_line(of(point, ".log"));
    const std::string folder = (folder_ / "").string();
    for (auto at = error.find(folder); at != std::string::npos; at = error.find(folder)) error.erase(at, folder.size());
    if (!error.empty() || result.is_null()) return error;
    for (const auto& [name, value] : fields_of(result))
      if (matches("*.failure", name) && value.is_string()) return name + ": " + value.get<std::string>();
    return result.value("standstills", nlohmann::json::array()).empty() ? "" : "the network stands still (standstills)";
  }

  sweep_row row_of(unsigned point) const {
    sweep_row r;
    r.point = point;
    r.values = points_[point - 1].values;
    r.status = has_ended(point) ? content(of(point, ".status")) : std::string();
    if (!r.status.empty()) r.status.pop_back();
    const nlohmann::json result = result_of(point);
    if (r.status.empty() || (r.status == "ok" && result.is_null())) r.status = "missing";
    if (r.status != "ok" && r.status != "missing") r.error = error_of(point, result);
    if (r.status == "missing" || result.is_null()) return r;
    for (auto& [name, value] : fields_of(result)) {
      const auto asked = [&name = name](const std::string& pattern) { return matches(pattern, name); };
      if (std::any_of(file_.columns.begin(), file_.columns.end(), asked)) r.fields.emplace_back(name, value);
    }
    return r;
  }

  static bool has_column(const sweep_table& t, const std::string& pattern) {
    return std::any_of(t.rows.begin(), t.rows.end(), [&pattern](const sweep_row& r) {
      return std::any_of(r.fields.begin(), r.fields.end(),
                         [&pattern](const auto& field) { return matches(pattern, field.first); });
    });
  }

  int collect() {
    sweep_table t;
    for (const sweep_axis& a : file_.axes) t.axes.push_back(a.path);
    std::map<std::string, unsigned> count;
    const sweep_row* first = nullptr;
    t.rows.reserve(points_.size());
    for (unsigned p = 1; p <= points_.size(); ++p) {
      t.rows.push_back(row_of(p));
      ++count[t.rows.back().status];
      if (first == nullptr && t.rows.back().status != "ok") first = &t.rows.back();
    }
    write_csv(folder_ / "sweep.csv", t);
    write_sqlite(folder_ / "sweep.sqlite", t);
    write_json(folder_ / "sweep.json", {{"command", "sweep"},
                                        {"version", version()},
                                        {"file", file_.text},
                                        {"experiment", file_.experiment},
                                        {"points", table_json(t)}});
    std::string words;
    for (const auto& [status, n] : count) words += fmt::format("{}{} {}", words.empty() ? "" : ", ", n, status);
    fmt::print("{} points: {}; sweep.csv, sweep.json and sweep.sqlite are in {}\n", points_.size(), words,
               options_.folder);
    if (first != nullptr) {
      fmt::print(stderr, "rnic: point {} {}: {}\n", first->point, first->status,
                 first->error.empty() ? "no result" : first->error);
      return 1;
    }
    if (file_.has_columns)
      for (const std::string& pattern : file_.columns)
        if (!has_column(t, pattern))
          throw usage_error(options_.file + ": columns: '" + pattern +
                            "' is no field of any result; with another one " + "the same results are used");
    return 0;
  }

  const sweep_options& options_;
  const sweep_file& file_;
  std::vector<sweep_point> points_;
  fs::path folder_;
  std::string origin_;
};

}  // namespace

int run_sweep(const sweep_options& o) {
  const sweep_file file = load_sweep(o.file);
  return sweep_run(o, file).run();
}

}  // namespace rnic::program
