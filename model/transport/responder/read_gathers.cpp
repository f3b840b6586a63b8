// SPDX-License-Identifier: Apache-2.0
#include "model/transport/responder/read_gathers.h"

#include <algorithm>
#include <utility>

namespace rnic::transport {

read_gathers::read_gathers(sim::clocked_block& owner, unsigned places, payload::frame_pool& frames,
                           icm::translate_port& translate, pcie::dma_port& read)
    : owner_(owner), frames_(frames), translate_(translate), dma_(read), packets_(places), reading_(places) {
  for (unsigned i = places; i-- != 0;) free_.push_back(static_cast<std::uint16_t>(i));
}

std::uint16_t read_gathers::begin() {
  const std::uint16_t g = free_.back();
  free_.pop_back();
  packet& a = packets_[g];
  a.frame = frames_.get();
  a.next = no_link;
  a.open = 0;
  a.translating = a.dropped = a.address_only = false;
  a.nak = a.event = 0;
  return g;
}

void read_gathers::free(std::uint16_t g) {
  packets_[g].frame.reset();
  packets_[g].job = no_link;
  free_.push_back(g);
}

void read_gathers::translate(std::uint16_t g, icm::translate_request q) {
  q.tag = g;
  translate_.request.push(q);
  packets_[g].translating = true;
  packets_[g].open = 1;
}

void read_gathers::found(std::uint16_t g, const icm::translate_response& where) {
  packet& a = packets_[g];
  a.where = where;
  a.next_segment = 0;
  ++a.open;
  reading_.push(g);
}

std::uint16_t read_gathers::take_address() {
  if (!translate_.response.can_pop()) return no_link;
  const icm::translate_response r = translate_.response.pop();
  const auto g = static_cast<std::uint16_t>(r.tag);
  packet& a = packets_[g];
  a.translating = false;
  --a.open;
  if (a.dropped) return g;
  if (r.status != icm::translate_status::ok || r.count == 0) {
    a.nak = access_violation.nak;
    a.event = access_violation.event;
  } else if (a.address_only) {
    a.where = r;
  } else {
    found(g, r);
  }
  return g;
}

std::uint16_t read_gathers::take_memory(const pcie::dma_response& r) {
  const auto g = static_cast<std::uint16_t>(r.tag);
  packet& a = packets_[g];
  --a.open;
  if (r.status != pcie::dma_status::ok) {
    a.nak = memory_unreachable.nak;
    a.event = memory_unreachable.event;
  }
  return g;
}

std::uint16_t read_gathers::read() {
  if (reading_.empty()) return no_link;
  const std::uint16_t g = reading_.front();
  packet& a = packets_[g];
  if (!a.dropped) {
    if (!dma_.request.claim()) return no_link;
    const icm::translate_response::segment& s = a.where.segments[a.next_segment];
    const std::uint32_t at = a.next_segment == 0 ? 0 : a.where.segments[0].length;
    dma_.request.push_made([&](pcie::dma_request& r) {
      r.renew(pcie::dma_request::kind::read);
      r.function = a.function;
      r.address = s.address;
      r.length = s.length;
      r.destination = a.frame->buffer.data() + payload::frame::payload_start + at;
      r.tag = g;
      r.span = a.span;
    });
    ++a.open;
  }
  const bool all = a.dropped || ++a.next_segment == a.where.count;
  if (all) {
    --a.open;
    reading_.drop();
  }
  if (!reading_.empty()) owner_.wake_next();
  return g;
}

bool read_gathers::uses_key(std::uint32_t key) const {
  return std::any_of(packets_.begin(), packets_.end(), [&](const packet& a) { return a.open != 0 && a.key == key; });
}

}  // namespace rnic::transport
