// SPDX-License-Identifier: Apache-2.0
#include "model/completion/dma_queue.h"

#include <algorithm>
#include <utility>

namespace rnic::completion {

pcie::dma_request& dma_queue::add(unsigned latency) {
  pending& p = requests_.extend();
  p.request = pcie::dma_request{};
  p.ready = owner_.now() + std::max(1u, latency);
  if (requests_.size() == 1) owner_.wake_at(p.ready);
  if (!has_room()) owner_.wake_next();  // who has had its turn in this cycle waits for something else from now on
  return p.request;
}

pcie::dma_request& dma_queue::write_entry(std::uint64_t address, std::uint16_t function, std::uint32_t bytes,
                                          unsigned latency) {
  pcie::dma_request& write = add(latency);
  write.op = pcie::dma_request::kind::write;
  write.function = function;
  write.length = bytes;
  write.address = address;
  last_address_ = address;
  last_function_ = function;
  return write;
}

void dma_queue::notify(pcie::dma_request& write, answer what) {
  write.notify = true;
  write.tag = static_cast<std::uint64_t>(what) << 32;
}

void dma_queue::read(std::uint64_t address, std::uint16_t function, std::uint8_t* to, answer what,
                     std::uint32_t index) {
  pcie::dma_request& read = add(1);
  read.op = pcie::dma_request::kind::read;
  read.function = function;
  read.length = 4;
  read.address = address;
  read.tag = static_cast<std::uint64_t>(what) << 32 | index;
  read.destination = to;
}

void dma_queue::note(sim::span_id span, const char* stage, sim::wait why) const {
  if (span != 0 && spans_ != nullptr) spans_->leave(span, owner_.name(), stage, owner_.now_ps(), why);
}

/// In the order in which they were decided, one a cycle.
void dma_queue::hand_over_front() {
  pending& p = requests_.front();
  if (p.ready > owner_.now()) return owner_.wake_at(p.ready);
  if (!port_.request.claim()) return;
  note(p.request.span, "completion", sim::wait::none);
  port_.request.push(std::move(p.request));
  requests_.drop();
  if (!requests_.empty()) owner_.wake_at(std::max(owner_.now() + 1, requests_.front().ready));
}

}  // namespace rnic::completion
