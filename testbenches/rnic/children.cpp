// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/children.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <thread>

#include "testbenches/bench/child.h"
#include "testbenches/bench/usage_error.h"

namespace rnic::program {

namespace {

bool open_as(int descriptor, const std::string& file) {
  const int opened = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  return opened >= 0 && dup2(opened, descriptor) >= 0;
}

}  // namespace

pid_t begin(const own_run& run) {
  std::vector<std::string> arguments{"rnic"};
  arguments.insert(arguments.end(), run.arguments.begin(), run.arguments.end());
  std::vector<char*> argv;
  for (std::string& a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);
  const pid_t parent = getpid(), process = fork();
  if (process < 0) throw usage_error(fmt::format("no process: {}", std::strerror(errno)));
  if (process != 0) return process;
  bench::end_with_parent(parent);
  if (open_as(STDOUT_FILENO, run.out) && open_as(STDERR_FILENO, run.errors)) execv("/proc/self/exe", argv.data());
  constexpr int not_begun = 127;
  _exit(not_begun);
}

int wait_for(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

void run_all(std::size_t count, unsigned jobs, const std::function<own_run(std::size_t)>& run_of,
             const std::function<void(std::size_t, int)>& ended) {
  if (jobs == 0) jobs = std::max(1u, std::thread::hardware_concurrency());
  std::map<pid_t, std::size_t> under_way;
  for (std::size_t next = 0; next < count || !under_way.empty();) {
    if (next < count && under_way.size() < jobs) {
      own_run run = run_of(next);
      if (run.arguments.empty()) {
        ended(next, 0);
      } else {
        if (jobs != 1) run.arguments.insert(run.arguments.end(), {"--threads", "1"});
        under_way.emplace(begin(run), next);
      }
      ++next;
      continue;
    }
    int status = 0;
    const pid_t process = waitpid(-1, &status, 0);
    if (process < 0 && errno != EINTR) throw usage_error(fmt::format("waiting failed: {}", std::strerror(errno)));
    const auto at = under_way.find(process);
    if (at == under_way.end()) continue;
    ended(at->second, status);
    under_way.erase(at);
  }
}

std::string verdict_of(int status) {
  if (!WIFEXITED(status)) return "crashed";
  switch (WEXITSTATUS(status)) {
    case 0:
      return "ok";
    case 1:
      return "failed";
    case 2:
      return "refused";
    default:
      return "crashed";
  }
}

std::string last_line(const std::string& file) {
  std::ifstream in(file);
  std::string last;
  for (std::string line; std::getline(in, line);)
    if (!line.empty()) last = line;
  return last;
}

}  // namespace rnic::program
