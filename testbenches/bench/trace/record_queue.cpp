// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/trace/record_queue.h"

#include <utility>

namespace rnic::bench {

record_queue::record_queue(std::function<void(const batch&)> read)
    : read_(std::move(read)), thread_([this] { work(); }) {
  current_.reserve(2 * batch_bytes);
}

record_queue::batch record_queue::pass(batch full) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.size() < most_batches; });
  waiting_.push_back(std::move(full));
  changed_.notify_all();
  if (used_.empty()) return {};
  batch empty = std::move(used_.back());
  used_.pop_back();
  return empty;
}

void record_queue::pass_current() {
  current_ = pass(std::move(current_));
  current_.clear();
}

void record_queue::finish() {
  if (!thread_.joinable()) return;
  if (!current_.empty()) pass_current();
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void record_queue::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return over_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    batch b = std::move(waiting_.front());
    waiting_.pop_front();
    changed_.notify_all();
    lock.unlock();
    read_(b);
    lock.lock();
    used_.push_back(std::move(b));
  }
}

}  // namespace rnic::bench
