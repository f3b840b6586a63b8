// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/child.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

namespace rnic::bench {

namespace {

constexpr char succeeded = 's', failed = 'f';  // first byte in the pipe

[[noreturn]] void run(const std::function<std::string()>& body, int out) {
  std::string text(1, succeeded);
  try {
    text += body();
  } catch (const std::exception& e) {
    text = failed + std::string(e.what());
  }
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = ::write(out, text.data() + written, text.size() - written);
    if (n <= 0) break;
    written += static_cast<std::size_t>(n);
  }
  std::fflush(nullptr);
  ::_exit(written == text.size() ? 0 : 1);
}

}  // namespace

void end_with_parent(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
}

child::child(const std::function<std::string()>& body) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) throw std::runtime_error("no pipe can be opened");
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  process_ = ::fork();
  if (process_ == 0) {
    end_with_parent(parent);
    run(body, ends[1]);
  }
  ::close(ends[1]);
  pipe_ = ends[0];
  if (process_ > 0) return;
  ::close(pipe_);
  throw std::runtime_error("no process can be started");
}

child::child(child&& other) noexcept
    : process_(std::exchange(other.process_, -1)), pipe_(std::exchange(other.pipe_, -1)) {}

child& child::operator=(child&& other) noexcept {
  std::swap(process_, other.process_);
  std::swap(pipe_, other.pipe_);
  return *this;
}

child::~child() {
  if (pipe_ >= 0) ::close(pipe_);
  int status = 0;
  if (process_ > 0) ::waitpid(process_, &status, 0);
}

std::string child::finish() {
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t n; (n = ::read(pipe_, part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(n));
  ::close(std::exchange(pipe_, -1));
  int status = 1;
  ::waitpid(std::exchange(process_, -1), &status, 0);
  if (status != 0 || text.empty()) throw std::runtime_error("the process came to an end before its result");
  if (text.front() == failed) throw std::runtime_error(text.substr(1));
  return text.substr(1);
}

void run_children(std::size_t count, unsigned jobs, const std::function<std::string(std::size_t)>& body,
                  const std::function<void(std::size_t, child&)>& ended) {
  if (jobs == 0) jobs = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::pair<std::size_t, child>> now;
  for (std::size_t next = 0; next < count || !now.empty();) {
    for (; now.size() < jobs && next < count; ++next)
      now.emplace_back(next, child([&body, next] { return body(next); }));
    std::vector<pollfd> waits;
    for (const auto& [number, process] : now) waits.push_back({process.pipe(), POLLIN, 0});
    if (::poll(waits.data(), waits.size(), -1) < 0) continue;  // interrupted
    for (std::size_t i = now.size(); i-- != 0;) {
      if (waits[i].revents == 0) continue;
      ended(now[i].first, now[i].second);
      now.erase(now.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

}  // namespace rnic::bench
