// SPDX-License-Identifier: Apache-2.0
#include "model/sim/thread_team.h"

#include <sched.h>

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rnic::sim {

namespace {

/// Looks before somebody sleeps, or gives the processor away: some 100 us, which is what the kernel's processes take
/// between two windows of many hosts.
constexpr unsigned patience = 4'000;
/// Before what a thread has not even begun is taken from it: it sleeps, or has no processor.
constexpr unsigned short_patience = 200;

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

unsigned thread_team::processors() {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  if (sched_getaffinity(0, sizeof mine, &mine) != 0) return std::max(1u, std::thread::hardware_concurrency());
  return static_cast<unsigned>(std::max(1, CPU_COUNT(&mine)));
}

thread_team::thread_team(unsigned threads, std::size_t pieces, std::function<void(std::size_t)> work)
    : work_(std::move(work)),
      pieces_(pieces),
      shares_(std::clamp<std::size_t>(std::min<std::size_t>(threads, pieces), 1, most)) {
  for (std::size_t t = 0; t != shares_.size(); ++t) {
    shares_[t].pieces = (pieces + shares_.size() - 1 - t) / shares_.size();
    shares_[t].taken = shares_[t].pieces;
  }
  for (unsigned t = 1; t != this->threads(); ++t) others_.emplace_back([this, t] { stand_by(t); });
}

thread_team::~thread_team() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  wakes_.notify_all();
  for (std::thread& t : others_) t.join();
}

/// Pieces are there as soon as nobody has taken them: one that still looks for those of the last time may do so.
void thread_team::share() {
  left_.store(pieces_, std::memory_order_relaxed);
  for (share_of_one& s : shares_) s.taken.store(0);  // sequentially consistent, as sleep() needs it
  if (sleeping_.load() != 0) {
    { const std::lock_guard<std::mutex> lock(mutex_); }
    wakes_.notify_all();
  }
  take_of(0);
  for (unsigned looks = 1; left_.load(std::memory_order_acquire) != 0; ++looks)
    if (looks == short_patience) {
      for (std::size_t place = 1; place != threads(); ++place)
        if (shares_[place].taken.load(std::memory_order_relaxed) == 0) take_of(place);
    } else if (looks % patience != 0) {
      relax();
    } else {
      take_any();
      std::this_thread::yield();
    }
  if (failures_.empty()) return;
  const auto first = std::min_element(failures_.begin(), failures_.end(),
                                      [](const auto& x, const auto& y) { return x.first < y.first; });
  const std::exception_ptr thrown = first->second;
  failures_.clear();
  std::rethrow_exception(thrown);
}

void thread_team::take_of(std::size_t place) {
  share_of_one& s = shares_[place];
  std::size_t done = 0;
  while (s.has_more()) {
    const std::size_t nth = s.taken.fetch_add(1);
    if (nth >= s.pieces) break;
    work_at(place + nth * threads());
    ++done;
  }
  if (done != 0) left_.fetch_sub(done, std::memory_order_acq_rel);
}

/// What a piece touches is in the caches of its thread's processor: another one takes it where that thread does not
/// come.
void thread_team::take_any() {
  for (std::size_t place = 0; place != threads(); ++place) take_of(place);
}

void thread_team::work_at(std::size_t piece) {
  try {
    work_(piece);
  } catch (...) {
    const std::lock_guard<std::mutex> lock(mutex_);
    failures_.emplace_back(piece, std::current_exception());
  }
}

bool thread_team::has_work(std::memory_order order) const {
  return std::any_of(shares_.begin(), shares_.end(), [order](const share_of_one& s) { return s.has_more(order); });
}

void thread_team::stand_by(unsigned place) {
  own_place = place;
  for (unsigned looks = 0; !ends_.load(std::memory_order_relaxed);) {
    if (shares_[place].has_more()) {
      take_of(place);
      looks = 0;
    } else if (++looks < patience) {
      relax();
    } else {
      looks = 0;
      if (has_work(std::memory_order_relaxed))
        take_any();
      else
        sleep();
    }
  }
}

/// Who shares work first says that it is there, then looks for sleepers; a sleeper does it the other way round.
void thread_team::sleep() {
  std::unique_lock<std::mutex> lock(mutex_);
  ++sleeping_;
  wakes_.wait(lock, [this] { return ends_.load() || has_work(std::memory_order_seq_cst); });
  --sleeping_;
}

}  // namespace rnic::sim
