// SPDX-License-Identifier: Apache-2.0
#include "model/host/processor_accesses.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "model/sim/check.h"
#include "model/sim/clock_domain.h"
#include "model/sim/seldom.h"
#include "model/sim/timebase.h"

namespace rnic::host {

processor_accesses::processor_accesses(sim::clocked_block& owner, const root_complex_config& c, payload::tlp_pool& pool,
                                       pcie::link_transmitter& link, sim::span_recorder& spans)
    : owner_(owner),
      config_(c),
      pool_(pool),
      link_(link),
      spans_(spans),
      completions_(owner.name() + ".completions", owner, 64),
      operations_(owner.name() + ".operations", owner, 64),
      pending_(c.processor_tags) {
  if (c.processor_tags == 0 || c.processor_tags > 256)
    throw sim::config_error(owner.name() + ".processor_tags: must be 1 to 256");
  for (unsigned i = c.processor_tags; i-- != 0;) free_tags_.push_back(static_cast<std::uint16_t>(i));
}

bool processor_accesses::start(payload::tlp_type type, std::uint16_t function, std::uint64_t address, const void* data,
                               std::uint32_t bytes, reader* to, std::uint64_t token, sim::span_id span) {
  RNIC_ASSERT(bytes != 0 && address % 64 + bytes <= 64, "a processor access is 1 to 64 bytes in one line");
  if (held_ == config_.store_buffer) {
    ++counts_.refused;
    return false;
  }
  ++held_;
  payload::tlp_ptr t = pool_.get();
  t->type = type;
  t->completer = static_cast<std::uint16_t>(config_.device_id + function);
  t->address = address;
  t->length = bytes;
  t->span = span;
  const sim::time_ps posted = owner_.domain().base().now_ps();
  spans_.leave(span, owner_.name(), "post", posted, sim::wait::software);
  t->enable_bytes();
  if (data != nullptr) std::memcpy(t->data.data(), data, bytes);
  operations_.push({std::move(t), to, token}, posted + config_.store_to_link_ps);
  return true;
}

bool processor_accesses::send(sim::time_ps now) {
  if (!operations_.can_pop()) return false;
  const payload::tlp& t = *operations_.front().packet;
  const bool posted = t.type == payload::tlp_type::mem_write;
  if (!posted && free_tags_.empty()) return false;  // a completion or the time-out ticks the owner
  if (!link_.can_send(pcie::class_of(t), t.carried())) return false;
  operation o = operations_.pop();
  --held_;
  if (posted)
    ++counts_.stores;
  else
    give_tag(o, now);
  spans_.leave(o.packet->span, owner_.name(), "store path", now);
  link_.send(std::move(o.packet), now);
  return true;
}

void processor_accesses::give_tag(operation& o, sim::time_ps now) {
  ++counts_.loads;
  const std::uint16_t tag = free_tags_.back();
  free_tags_.pop_back();
  pending_read& p = pending_[tag];
  p.to = o.to;
  p.token = o.token;
  p.bytes = o.packet->type == payload::tlp_type::cfg_write ? 0 : o.packet->length;
  p.received = 0;
  p.deadline = now + config_.completion_timeout_ps;
  o.packet->tag = tag;
  if (check_at_ != ~sim::time_ps{0}) return;
  check_at_ = p.deadline;
  owner_.wake_at(owner_.domain().edge_at_or_after(check_at_));
}

void processor_accesses::work() {
  if (!completions_.empty()) take_completion();
  if (sim::seldom(check_at_ != ~sim::time_ps{0})) check_timeouts();
}

void processor_accesses::take_completion() {
  if (!completions_.can_pop()) return;
  const payload::tlp_ptr t = completions_.pop();  // has booked the edge of the next one
  if (t->tag >= pending_.size() || pending_[t->tag].to == nullptr) {
    ++counts_.unexpected;
    return;
  }
  pending_read& p = pending_[t->tag];
  const bool good = t->status == payload::tlp_status::success && !t->poisoned;
  if (good) {
    const std::uint32_t n = std::min(t->length, p.bytes - p.received);
    std::memcpy(p.data.data() + p.received, t->data.data(), n);
    p.received += n;
    if (p.received < p.bytes && t->length != 0) return;
  }
  complete_read(t->tag, good && p.received < p.bytes ? payload::tlp_status::completer_abort
                        : t->poisoned                ? payload::tlp_status::completer_abort
                                                     : t->status);
}

void processor_accesses::complete_read(std::uint16_t tag, payload::tlp_status status) {
  pending_read& p = pending_[tag];
  if (status != payload::tlp_status::success) p.data.fill(0xff);
  reader* to = std::exchange(p.to, nullptr);
  free_tags_.push_back(tag);
  const std::array<std::uint8_t, 64> data = p.data;  // the reader may start the next one at once
  to->read_completed(p.token, status, data.data(), p.bytes);
}

void processor_accesses::check_timeouts() {
  if (check_at_ > link_.now_ps()) return;
  check_at_ = ~sim::time_ps{0};
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    if (pending_[i].to == nullptr) continue;
    if (pending_[i].deadline > link_.now_ps()) {
      check_at_ = std::min(check_at_, pending_[i].deadline);
      continue;
    }
    ++counts_.timeouts;
    complete_read(static_cast<std::uint16_t>(i), payload::tlp_status::unsupported_request);
  }
  if (check_at_ != ~sim::time_ps{0}) owner_.wake_at(owner_.domain().edge_at_or_after(check_at_));
}

void processor_accesses::wake_waiters() {
  if (held_ == config_.store_buffer) return;
  called_.clear();
  called_.swap(waiters_);
  for (space_waiter* w : called_) w->store_space();
}

}  // namespace rnic::host
