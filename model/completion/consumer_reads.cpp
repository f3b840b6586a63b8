// SPDX-License-Identifier: Apache-2.0
#include "model/completion/consumer_reads.h"

#include "model/abi/queue_entries.h"

namespace rnic::completion {

std::optional<consumer_reads::record> consumer_reads::take(const icm::cq_context& cq) {
  fetch* f = nullptr;
  for (fetch& c : fetches_)
    if (c.active && !c.stale && c.cqn == cq.cqn) f = &c;
  if (f == nullptr || !f->arrived) {
    if (f == nullptr) start(cq);
    return std::nullopt;
  }
  free(*f);
  return record{f->failed, abi::load32(f->data.data())};
}

void consumer_reads::start(const icm::cq_context& cq) {
  for (unsigned i = 0; i < fetches_.size(); ++i) {
    fetch& f = fetches_[i];
    if (f.active) continue;
    f.active = true;
    ++taken_;
    f.arrived = f.failed = f.stale = false;
    f.cqn = cq.cqn;
    dma_.read(cq.db_record, cq.function, f.data.data(), dma_queue::answer::consumer_read, i);
    return;
  }
}

void consumer_reads::answered(std::uint32_t place, bool ok) {
  fetch& f = fetches_[place];
  f.arrived = true;
  f.failed = !ok;
  if (f.stale) free(f);
}

bool consumer_reads::forget(std::uint32_t cqn) {
  bool freed = false;
  for (fetch& f : fetches_)
    if (f.active && f.cqn == cqn) {
      f.stale = true;
      freed = freed || f.arrived;
      if (f.arrived) free(f);
    }
  return freed;
}

void consumer_reads::forget_all() {
  for (fetch& f : fetches_) {
    f.stale = true;
    if (f.active && f.arrived) free(f);
  }
}

}  // namespace rnic::completion
