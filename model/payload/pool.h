// SPDX-License-Identifier: Apache-2.0
// Pooled, reference-counted objects: steady state allocates nothing (law 13).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "model/sim/seldom.h"

namespace rnic::payload {

template <class T>
class pool;

/// Handle of a pooled object. Copies share it; the last one gives it back to its pool. Not for use between threads of
/// the operating system.
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

/// T has a method recycle() that makes a used object as good as new without touching its bulk data.
template <class T>
class pool {
 public:
  pool() = default;
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;

  handle<T> get() {
    if (sim::seldom(free_.empty())) grow();
    node* n = free_.back();
    free_.pop_back();
    n->value.recycle();
    return handle<T>(n);
  }
  std::size_t allocated() const { return all_.size(); }
  std::size_t in_use() const { return all_.size() - free_.size(); }

 private:
  friend class handle<T>;
  using node = typename handle<T>::node;
  void give_back(node* n) { free_.push_back(n); }
  /// By half of what there is: a peak a little above the one before finds room.
  [[gnu::noinline, gnu::cold]] void grow() {
    const std::size_t more = all_.size() < 16 ? 8 : all_.size() / 2;
    free_.reserve(all_.size() + more);
    for (std::size_t i = 0; i < more; ++i) {
      all_.push_back(std::make_unique<node>());
      all_.back()->home = this;
      free_.push_back(all_.back().get());
    }
  }
  std::vector<std::unique_ptr<node>> all_;
  std::vector<node*> free_;
};

}  // namespace rnic::payload
