// SPDX-License-Identifier: Apache-2.0
// From the simulation to the thread that writes.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace rnic::bench {

/// Records of plain values, in order, which a thread of its own reads batch by batch: text is made of them beside the
/// simulation. When the thread is behind, who adds waits for it, so that memory is bounded.
class record_queue {
 public:
  using batch = std::vector<char>;
  static constexpr std::size_t batch_bytes = std::size_t{1} << 18, most_batches = 8;

  /// `read` is called in the thread, with whole records.
  explicit record_queue(std::function<void(const batch&)> read);
  ~record_queue() { finish(); }

  template <class T>
  void add(const T* values, std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T>, "a record has plain values");
    const auto* const bytes = reinterpret_cast<const char*>(values);
    current_.insert(current_.end(), bytes, bytes + count * sizeof(T));
  }
  /// What was added since the last call is a record.
  void end_record() {
    if (current_.size() >= batch_bytes) pass_current();
  }
  /// Instead of add(): a batch of whole records. Returns one that has been read, as it was passed, or an empty one.
  batch pass(batch full);
  /// Returns when all has been read; to be called behind the last record.
  void finish();

 private:
  void pass_current();
  void work();

  std::function<void(const batch&)> read_;
  batch current_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<batch> waiting_;
  std::vector<batch> used_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace rnic::bench
