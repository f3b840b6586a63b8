// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/links/whole_frame_link.h"

#include <poll.h>

#include <algorithm>

namespace rnic::serve {

namespace {

constexpr std::size_t most_queued = 1 << 20;  // bytes on their way out

}  // namespace

bool whole_frame_link::writable(int descriptor) {
  pollfd asked{descriptor, POLLOUT, 0};
  return ::poll(&asked, 1, 0) == 1 && (asked.revents & POLLOUT) != 0;
}

/// False when there is no room.
bool whole_frame_link::leave(const std::uint8_t* frame, std::size_t length) {
  switch (attempt(frame, length)) {
    case outcome::sent:
      count_out(length);
      break;
    case outcome::no_peer:
      ++counters_.drop_no_peer;
      break;
    case outcome::no_room:
      return false;
  }
  return true;
}

void whole_frame_link::send(const std::uint8_t* frame, std::size_t length) {
  if (waiting_.empty() && leave(frame, length)) return;
  if (queued_ + length > most_queued) {
    ++counters_.drop_queue_full;
    return;
  }
  waiting_.emplace_back(frame, frame + length);
  queued_ += length;
  if (waiting_.size() != 1) return;
  pause_ = shortest_pause;
  wait(true);
}

/// True when something left.
bool whole_frame_link::work_off() {
  const std::size_t before = waiting_.size();
  while (!waiting_.empty() && leave(waiting_.front().data(), waiting_.front().size())) {
    queued_ -= waiting_.front().size();
    waiting_.pop_front();
  }
  if (waiting_.size() == before) return false;
  pause_ = shortest_pause;
  receiver().relieved();
  return true;
}

/// Somebody says that there is room. Whoever says so wrongly is not asked for a while: he would say it again at once.
void whole_frame_link::try_again() {
  const bool progress = work_off();
  if (!waiting_.empty()) wait(progress);
}

void whole_frame_link::wait(bool may_watch) {
  const bool watched = may_watch && watch();
  again_.expires_after(watched ? longest_pause : pause_);  // also when watched: the peer may have been replaced
  if (!watched) pause_ = std::min(2 * pause_, longest_pause);
  again_.async_wait([this](const boost::system::error_code& error) {
    if (error || waiting_.empty()) return;
    work_off();
    if (!waiting_.empty()) wait(true);
  });
}

}  // namespace rnic::serve
