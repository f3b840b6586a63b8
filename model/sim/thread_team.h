// SPDX-License-Identifier: Apache-2.0
// Threads of the operating system that share pieces of work.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace rnic::sim {

/// The calling thread and `threads` - 1 others. Each begins with pieces of its own, every n-th one of n threads, so
/// that what they touch stays in the caches of its processor. The calling one takes what another has not even begun
/// after a short wait, and each takes what is left of others' after a long one: a thread that gets no processor holds
/// them up by the piece that it is at.
///
/// Others wait for the next work by looking for it, and sleep when there has been none for a while.
class thread_team {
 public:
  static constexpr unsigned most = 16;

  /// Of `pieces`, by number, in each share().
  thread_team(unsigned threads, std::size_t pieces, std::function<void(std::size_t)> work);
  ~thread_team();
  thread_team(const thread_team&) = delete;
  thread_team& operator=(const thread_team&) = delete;

  unsigned threads() const { return static_cast<unsigned>(shares_.size()); }
  /// Those that have looked for work in vain for a while: some 100 us.
  unsigned asleep() const { return sleeping_.load(); }
  /// Does all pieces, in no order. What one throws comes out when all are done, of several that of the lowest number.
  void share();

  /// Of the calling thread in its team, below `most`; 0: it is in none, or the one that calls share().
  static unsigned place() { return own_place; }
  /// Processors that this process may use.
  static unsigned processors();

 private:
  static constexpr std::size_t cache_line = 64;
  /// The pieces with which a thread begins: those that have been taken, and how many there are.
  struct alignas(cache_line) share_of_one {
    std::atomic<std::size_t> taken{0};
    std::size_t pieces = 0;

    bool has_more(std::memory_order order = std::memory_order_relaxed) const { return taken.load(order) < pieces; }
  };

  void take_of(std::size_t place);
  void take_any();
  void work_at(std::size_t piece);
  bool has_work(std::memory_order order) const;
  void stand_by(unsigned place);
  void sleep();

  std::function<void(std::size_t)> work_;
  std::size_t pieces_;
  std::vector<share_of_one> shares_;  // by place
  alignas(cache_line) std::atomic<std::size_t> left_{0};
  alignas(cache_line) std::atomic<unsigned> sleeping_{0};
  std::atomic<bool> ends_{false};
  std::mutex mutex_;
  std::condition_variable wakes_;
  std::vector<std::pair<std::size_t, std::exception_ptr>> failures_;
  std::vector<std::thread> others_;
  inline static thread_local unsigned own_place = 0;
};

}  // namespace rnic::sim
