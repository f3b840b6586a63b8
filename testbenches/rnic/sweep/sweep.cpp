// SPDX-License-Identifier: Apache-2.0
// `rnic sweep`: the same experiment with many values, each point in a process of its own.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "testbenches/rnic/compare/result_fields.h"
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

class sweep_run {
 public:
  sweep_run(const sweep_options& o, const sweep_file& f)
      : options_(o), file_(f), points_(points_of(f, o.file)), folder_(o.folder) {}

  int run() {
    prepare();
    if (options_.slurm) return write_job();
    if (options_.point != 0) return run_one();
    if (!options_.collect) run_all();
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
        (content(own) != file_.text || content(experiment) != file_.experiment))
      throw usage_error(options_.folder + ": holds something else than this sweep; give another --out");
    std::error_code error;
    fs::create_directories(folder_ / "points", error);
    if (error) throw usage_error(options_.folder + ": cannot be made: " + error.message());
    if (fs::exists(own)) return;
    write(experiment, file_.experiment);
    write(own, file_.text);
  }

  /// Its result is there, from the same experiment.
  bool is_done(unsigned point) const {
    return fs::exists(of(point, ".status")) && content(of(point, ".toml")) == points_[point - 1].text;
  }

  /// Begins a point. Throws usage_error when there is no process to be had.
  pid_t begin(unsigned point) const {
    const sweep_point& p = points_[point - 1];
    for (const char* ending : {".status", ".json"}) fs::remove(of(point, ending));
    write(of(point, ".toml"), p.text);
    std::vector<std::string> arguments{"rnic", "run", of(point, ".toml"), "--json", of(point, ".json"), "--quiet"};
    for (const std::string& s : p.set) arguments.insert(arguments.end(), {"--set", s});
    std::vector<char*> argv;
    for (std::string& a : arguments) argv.push_back(a.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, of(point, ".txt").c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                     0644);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, of(point, ".log").c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                     0644);
    pid_t process = -1;
    const int error = posix_spawn(&process, "/proc/self/exe", &files, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    if (error != 0) throw usage_error(fmt::format("point {}: no process: {}", point, std::strerror(error)));
    return process;
  }

  void end(unsigned point, int status) const {
    std::string words = "crashed";
    if (WIFEXITED(status))
      words = WEXITSTATUS(status) == 0   ? "ok"
              : WEXITSTATUS(status) == 1 ? "failed"
              : WEXITSTATUS(status) == 2 ? "refused"
                                         : words;
    write(of(point, ".status"), words + "\n");
  }

  int run_one() {
    if (options_.point > points_.size())
      throw usage_error(fmt::format("--point: {}: expected 1 to {}", options_.point, points_.size()));
    if (is_done(options_.point)) return 0;
    const pid_t process = begin(options_.point);
    int status = 0;
    while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
    }
    end(options_.point, status);
    return 0;
  }

  void run_all() {
    const unsigned jobs = options_.jobs != 0 ? options_.jobs : std::max(1u, std::thread::hardware_concurrency());
    common_options quiet;
    quiet.quiet = options_.quiet;
    progress shown(quiet, "sweep", points_.size());
    std::map<pid_t, unsigned> under_way;
    unsigned next = 1, done = 0;
    while (next <= points_.size() || !under_way.empty()) {
      if (next <= points_.size() && is_done(next)) {
        ++next;
        shown.at(++done);
        continue;
      }
      if (next <= points_.size() && under_way.size() < jobs) {
        under_way.emplace(begin(next), next);
        ++next;
        continue;
      }
      int status = 0;
      const pid_t ended = waitpid(-1, &status, 0);
      if (ended < 0 && errno == EINTR) continue;
      const auto at = under_way.find(ended);
      if (at == under_way.end()) continue;
      end(at->second, status);
      under_way.erase(at);
      shown.at(++done);
    }
  }

  /// For a cluster: a job array with a task for each point.
  int write_job() const {
    const fs::path program = fs::read_symlink("/proc/self/exe"), job = folder_ / "job.sh";
    write(job, fmt::format("#!/bin/sh\n"
                           "#SBATCH --job-name=rnic-sweep\n"
                           "#SBATCH --array=1-{}\n"
                           "#SBATCH --ntasks=1\n"
                           "#SBATCH --output={}/points/task-%a.out\n"
                           "exec '{}' sweep '{}' --out '{}' --point \"$SLURM_ARRAY_TASK_ID\"\n",
                           points_.size(), fs::absolute(folder_).string(), program.string(),
                           fs::absolute(options_.file).string(), fs::absolute(folder_).string()));
    fs::permissions(job, fs::perms::owner_exec, fs::perm_options::add);
    fmt::print("{} points; submit them with: sbatch {}\nthen, when all have ended: rnic sweep {} --out {} --collect\n",
               points_.size(), job.string(), options_.file, options_.folder);
    return 0;
  }

  sweep_row row_of(unsigned point) const {
    sweep_row r;
    r.point = point;
    r.values = points_[point - 1].values;
    r.status = is_done(point) ? content(of(point, ".status")) : "missing\n";
    r.status.pop_back();
    if (r.status != "ok" && r.status != "missing") {
      std::istringstream log(content(of(point, ".log")));
      for (std::string line; std::getline(log, line);)
        if (!line.empty()) r.error = line;
    }
    if (!fs::exists(of(point, ".json")) || r.status == "missing") return r;
    for (auto& [name, value] : fields_of(read_result(of(point, ".json")))) {
      const auto asked = [&name = name](const std::string& pattern) { return matches(pattern, name); };
      if (std::any_of(file_.columns.begin(), file_.columns.end(), asked)) r.fields.emplace_back(name, value);
    }
    return r;
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
    write_json(
        folder_ / "sweep.json",
        {{"command", "sweep"}, {"file", file_.text}, {"experiment", file_.experiment}, {"points", table_json(t)}});
    std::string words;
    for (const auto& [status, n] : count) words += fmt::format("{}{} {}", words.empty() ? "" : ", ", n, status);
    fmt::print("{} points: {}; sweep.csv, sweep.json and sweep.sqlite are in {}\n", points_.size(), words,
               options_.folder);
    if (first == nullptr) return 0;
    fmt::print(stderr, "rnic: point {} {}: {}\n", first->point, first->status,
               first->error.empty() ? "no result" : first->error);
    return 1;
  }

  const sweep_options& options_;
  const sweep_file& file_;
  std::vector<sweep_point> points_;
  fs::path folder_;
};

}  // namespace

int run_sweep(const sweep_options& o) {
  const sweep_file file = load_sweep(o.file);
  return sweep_run(o, file).run();
}

}  // namespace rnic::program
