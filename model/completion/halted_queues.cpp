// SPDX-License-Identifier: Apache-2.0
#include "model/completion/halted_queues.h"

namespace rnic::completion {

bool halted_queues::halt(std::uint32_t number, bool discard) {
  entry* mine = nullptr;
  entry* unused = nullptr;
  for (entry& e : entries_) {
    if (e.active && e.number == number) mine = &e;
    if (!e.active && e.state != entry::fence::under_way) unused = &e;
  }
  if (mine == nullptr) {
    if (unused == nullptr) return false;
    mine = unused;
    *mine = entry{};
    mine->active = true;
    mine->number = number;
    ++count_;
  }
  mine->discard = discard;
  return true;
}

void halted_queues::release(std::uint32_t number) {
  for (entry& e : entries_)
    if (e.active && e.number == number) {
      e.active = false;
      --count_;
    }
}

void halted_queues::release_all() {
  for (entry& e : entries_) e.active = false;
  count_ = 0;
}

void halted_queues::fence_answered(std::uint32_t index) {
  entry& e = entries_[index - first_fence_];
  if (e.state == entry::fence::under_way) e.state = entry::fence::done;
}

void halted_queues::ask_for_fence(entry& e, dma_queue& dma) {
  const auto place = static_cast<std::uint32_t>(&e - entries_.data());
  if (!dma.anything_written())
    e.state = entry::fence::done;
  else if (dma.has_room()) {
    dma.fence(first_fence_ + place);
    e.state = entry::fence::under_way;
  }
}

}  // namespace rnic::completion
