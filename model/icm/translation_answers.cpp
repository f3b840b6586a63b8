// SPDX-License-Identifier: Apache-2.0
#include "model/icm/translation_answers.h"

#include <algorithm>

#include "model/sim/seldom.h"

namespace rnic::icm {

bool translation_answers::answer(unsigned client, unsigned index, const translate_response& response) {
  queue& q = queues_[client];
  if (sim::mostly(q.count == 0) && out_[client].can_push()) {
    out_[client].push_after(response, cycles_);
    last_at_ = owner_.now() + cycles_ + 1;
    count(response);
    return true;
  }
  waiting& w = waiting_[index];
  w.response = response;
  w.ready = owner_.now() + cycles_;
  q.places[(q.head + q.count) % q.places.size()] = static_cast<std::uint8_t>(index);
  ++q.count;
  answering_ |= std::uint64_t{1} << client;
  owner_.wake_at(w.ready);
  return false;
}

/// At most one answer a client and cycle. What cannot be delivered because the client's channel is full waits.
std::uint64_t translation_answers::deliver_waiting() {
  std::uint64_t freed = 0;
  for (std::uint64_t clients = answering_; clients != 0; clients &= clients - 1) {
    const unsigned client = static_cast<unsigned>(__builtin_ctzll(clients));
    queue& q = queues_[client];
    const waiting& w = waiting_[q.places[q.head]];
    if (w.ready > owner_.now()) {
      owner_.wake_at(w.ready);
      continue;
    }
    if (!out_[client].claim()) continue;
    out_[client].push(w.response);
    count(w.response);
    freed |= std::uint64_t{1} << q.places[q.head];
    q.head = (q.head + 1) % static_cast<unsigned>(q.places.size());
    if (--q.count == 0)
      answering_ &= ~(std::uint64_t{1} << client);
    else
      owner_.wake_at(std::max(owner_.now() + 1, waiting_[q.places[q.head]].ready));
  }
  return freed;
}

}  // namespace rnic::icm
