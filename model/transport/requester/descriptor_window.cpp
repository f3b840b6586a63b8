// SPDX-License-Identifier: Apache-2.0
#include "model/transport/requester/descriptor_window.h"

#include <algorithm>

#include "model/transport/requester/send_wqe.h"

namespace rnic::transport {

bool descriptor_window::posted(const context& c, std::uint32_t place) const {
  const std::uint32_t index = index_ + (place >> c.log_sq_stride);
  return wqe_owner(at(place)) == ((index >> c.log_sq_size & 1) != 0);
}

bool descriptor_window::goes_on_behind(const context& c, std::uint32_t place) const {
  for (; place < held_; place += ring_bytes(c, wqe_size(at(place))))
    if (!posted(c, place)) return false;
  return true;
}

void descriptor_window::forget() {
  qpn_ = nobody;
  held_ = stale_ = 0;
  ++generation_;
  state_ = state::idle;
}

void descriptor_window::begin(const context& c, std::uint32_t bytes) {
  qpn_ = c.qpn;
  index_ = c.next_wqe;
  held_ = stale_ = 0;
  end_ = bytes;
  ++generation_;
  state_ = state::wanted;
  extending_ = failed_ = false;
}

void descriptor_window::extend(std::uint32_t end) {
  end_ = end;
  ++generation_;
  state_ = state::wanted;
  extending_ = true;
  failed_ = false;
}

void descriptor_window::give_up() {
  if (wants()) state_ = state::idle;
}

descriptor_job descriptor_window::job(const context& c, sim::span_id span) {
  descriptor_job j;
  j.mtt = c.sq_address;
  j.offset = c.sq_offset;
  j.log_ring = static_cast<std::uint8_t>(c.log_sq_size + c.log_sq_stride);
  j.at = ((std::uint64_t{index_} << c.log_sq_stride) + held_) & ((std::uint64_t{1} << j.log_ring) - 1);
  j.bytes = end_ - held_;
  j.place = held_;
  j.qpn = qpn_;
  j.generation = generation_;
  j.function = c.function;
  j.unit = unit_;
  j.log_page = c.log_page;
  j.span = span;
  state_ = state::asked;
  return j;
}

bool descriptor_window::take(const descriptor_result& r) {
  if (state_ != state::asked || r.generation != generation_) return false;
  state_ = state::idle;
  failed_ = !r.ok;
  if (r.ok) held_ = end_;
  return true;
}

std::uint32_t ring_bytes(const icm::requester_context& c, unsigned size) {
  return std::max(1u, (size + (1u << c.log_sq_stride) - 1) >> c.log_sq_stride) << c.log_sq_stride;
}

std::uint32_t longest_read(const icm::requester_context& c, std::uint32_t want) {
  return std::min({want, 1u << std::min(30, c.log_sq_size + c.log_sq_stride), descriptor_memory::unit_bytes});
}

}  // namespace rnic::transport
