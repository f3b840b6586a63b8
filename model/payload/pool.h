// SPDX-License-Identifier: Apache-2.0
// Pooled, reference-counted objects: steady state allocates nothing (law 13).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "model/sim/seldom.h"
#include "model/sim/thread_team.h"

namespace rnic::payload {

template <class T>
class pool;

/// Handle of a pooled object. Copies share it; the last one gives it back to its pool. Threads of a sim::thread_team
/// have no copies of each other's.
template <class T>
class handle {
 public:
  handle() = default;
  handle(const handle& other) : p_(other.p_) {
    if (sim::seldom(p_ != nullptr)) ++p_->references;
  }
  handle(handle&& other) noexcept : p_(std::exchange(other.p_, nullptr)) {}
  handle& operator=(const handle& other) {
    if (this != &other) *this = handle(other);
    return *this;
  }
  handle& operator=(handle&& other) noexcept {
    node* const old = std::exchange(p_, std::exchange(other.p_, nullptr));
    if (sim::seldom(old != nullptr)) release(old);
    return *this;
  }
  ~handle() {
    if (sim::seldom(p_ != nullptr)) release(p_);
  }
  void reset() {
    if (p_ != nullptr) release(std::exchange(p_, nullptr));
  }
  T& operator*() const { return p_->value; }
  T* operator->() const { return &p_->value; }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  friend class pool<T>;
  struct node {  // what every copy of a handle touches lies beside the first fields of the object
    pool<T>* home = nullptr;
    std::uint32_t references = 0;
    T value{};
  };
  explicit handle(node* p) : p_(p) { ++p->references; }
  // Most handles that end are empty: what they ask is short, and this is in one place.
  [[gnu::noinline]] static void release(node* p) {
    if (sim::mostly(--p->references == 0)) p->home->give_back(p);
  }
  node* p_ = nullptr;
};

/// T has a method recycle() that makes a used object as good as new without touching its bulk data. Threads of a
/// sim::thread_team may use it at once.
template <class T>
class pool {
 public:
  pool() = default;
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;

  handle<T> get() {
    std::vector<node*>& mine = lists_[sim::thread_team::place()].free;
    if (sim::seldom(mine.empty())) fill(mine);
    node* n = mine.back();
    mine.pop_back();
    n->value.recycle();
    return handle<T>(n);
  }
  /// While one thread uses it.
  std::size_t allocated() const { return all_.size(); }
  std::size_t in_use() const {
    std::size_t used = all_.size() - shared_.size();
    for (const list& l : lists_) used -= l.free.size();
    return used;
  }

 private:
  friend class handle<T>;
  using node = typename handle<T>::node;
  /// What a thread keeps at most for itself: the others may have given what it is short of.
  static constexpr std::size_t most_kept = 64;
  struct alignas(64) list {  // a line of a processor's cache
    std::vector<node*> free;
  };

  void give_back(node* n) {
    std::vector<node*>& mine = lists_[sim::thread_team::place()].free;
    mine.push_back(n);
    if (sim::seldom(mine.size() == most_kept)) share_half(mine);
  }
  static void move_last(std::vector<node*>& from, std::vector<node*>& to, std::size_t count) {
    to.insert(to.end(), from.end() - static_cast<std::ptrdiff_t>(count), from.end());
    from.resize(from.size() - count);
  }
  /// Those that were used last stay.
  [[gnu::noinline, gnu::cold]] void share_half(std::vector<node*>& mine) {
    const std::lock_guard<std::mutex> lock(mutex_);
    shared_.insert(shared_.end(), mine.begin(), mine.begin() + most_kept / 2);
    mine.erase(mine.begin(), mine.begin() + most_kept / 2);
  }
  [[gnu::noinline, gnu::cold]] void fill(std::vector<node*>& mine) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (shared_.empty()) grow();
    move_last(shared_, mine, std::min(shared_.size(), most_kept / 2));
  }
  /// By half of what there is: a peak a little above the one before finds room.
  void grow() {
    const std::size_t more = all_.size() < 16 ? 8 : all_.size() / 2;
    shared_.reserve(all_.size() + more);
    for (std::size_t i = 0; i < more; ++i) {
      all_.push_back(std::make_unique<node>());
      all_.back()->home = this;
      shared_.push_back(all_.back().get());
    }
  }
  std::array<list, sim::thread_team::most> lists_;  // by place of the thread
  std::mutex mutex_;
  std::vector<node*> shared_;  // free, and nobody's
  std::vector<std::unique_ptr<node>> all_;
};

}  // namespace rnic::payload
