// SPDX-License-Identifier: Apache-2.0
#include "model/pcie/dma_clients.h"

#include <algorithm>

namespace rnic::pcie {

dma_clients::dma_clients(sim::clocked_block& owner, unsigned count, unsigned requests)
    : owner_(owner), requests_(requests) {
  if (count == 0 || count > 63) throw sim::config_error("pcie.dma: needs 1 to 63 clients");
  clients_.reserve(count);
  for (unsigned i = 0; i < count; ++i) clients_.emplace_back(owner, requests);
  for (unsigned i = 0; i < count; ++i) clients_[i].port.request.show_in(asking_, i);
}

std::uint64_t dma_clients::waiting() const {
  std::uint64_t all = 0;
  for (std::uint64_t rest = asking_; rest != 0; rest &= rest - 1)
    if (clients_[static_cast<unsigned>(__builtin_ctzll(rest))].port.request.can_pop()) all |= rest & -rest;
  return all;
}

std::uint64_t dma_clients::startable(std::uint64_t waiting) const {
  for (std::uint64_t rest = waiting & full_; rest != 0; rest &= rest - 1)
    if (answered(clients_[static_cast<unsigned>(__builtin_ctzll(rest))].port.request.front()))
      waiting &= ~(rest & -rest);
  return waiting;
}

void dma_clients::give(unsigned client, std::uint64_t tag, dma_status status, sim::cycle_t ready) {
  state& c = clients_[client];
  const sim::cycle_t now = owner_.edge();
  if (c.answers.empty() && ready > now && c.port.response.can_push()) {
    c.port.response.push_after(dma_response{tag, status}, ready - now);
    close(client);
    return;
  }
  if (!c.answers.empty()) ready = std::max(ready, c.answers.back().ready);
  c.answers.push({{tag, status}, ready});
  answers_ |= std::uint64_t{1} << client;
  if (ready > now) owner_.wake_at(ready);
}

void dma_clients::work() {
  for (std::uint64_t mask = answers_; mask != 0; mask &= mask - 1) {
    const unsigned i = static_cast<unsigned>(__builtin_ctzll(mask));
    state& c = clients_[i];
    const sim::cycle_t now = owner_.edge();
    if (c.answers.front().ready > now || !c.port.response.claim()) continue;
    c.port.response.push(c.answers.front().response);
    c.answers.drop();
    close(i);
    if (c.answers.empty())
      answers_ &= ~(std::uint64_t{1} << i);
    else
      owner_.wake_at(std::max(now + 1, c.answers.front().ready));
  }
}

}  // namespace rnic::pcie
