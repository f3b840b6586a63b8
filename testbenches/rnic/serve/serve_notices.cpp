// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/serve/serve_notices.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace rnic::program {

namespace {

constexpr std::uint64_t us_per_ms = 1000;

/// False for a pipe of which half is full: nobody may be reading, and a write to a full one would stop everything.
bool output_is_read() {
  const int capacity = ::fcntl(STDOUT_FILENO, F_GETPIPE_SZ);
  int waiting = 0;
  return capacity <= 0 || ::ioctl(STDOUT_FILENO, FIONREAD, &waiting) != 0 || waiting < capacity / 2;
}

}  // namespace

bool serve_notices::may_print() {
  const clock::time_point now = clock::now();
  const auto more = (now - refilled_) / one_more;
  if (more > 0) {
    refilled_ += more * one_more;
    tokens_ = static_cast<unsigned>(std::min<std::int64_t>(burst, tokens_ + more));
  }
  if (tokens_ == 0 || !output_is_read()) return false;
  --tokens_;
  return true;
}

void serve_notices::print(const std::string& line) {
  if (left_out_ != 0) fmt::print("{} more lines like these were left out\n", left_out_);
  left_out_ = 0;
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void serve_notices::say(const std::string& line) {
  if (quiet_) return;
  if (!may_print()) {
    ++left_out_;
  } else if (begun_) {
    print(line);
  } else {
    early_.push_back(line);
  }
}

void serve_notices::lost_time(std::uint64_t us) {
  lost_us_ += us;
  const clock::time_point now = clock::now();
  const bool first = loss_said_ == clock::time_point{};
  if (!first && now - loss_said_ < between_losses) return;
  const auto since = std::chrono::duration_cast<std::chrono::seconds>(now - loss_said_).count();
  say(first ? fmt::format("simulated time falls behind: {} ms are lost", lost_us_ / us_per_ms)
            : fmt::format("simulated time falls behind: {} ms are lost in {} s", lost_us_ / us_per_ms, since));
  loss_said_ = now;
  lost_us_ = 0;
}

void serve_notices::begin() {
  begun_ = true;
  for (const std::string& line : early_) print(line);
  early_.clear();
}

void serve_notices::end() {
  if (left_out_ != 0) fmt::print("{} more lines like these were left out\n", left_out_);
  left_out_ = 0;
}

}  // namespace rnic::program
