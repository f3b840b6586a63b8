// SPDX-License-Identifier: Apache-2.0
#include "model/host/root_complex.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "model/sim/check.h"
#include "model/sim/clock_domain.h"

namespace rnic::host {

namespace {

constexpr std::uint32_t page = 4096;

}  // namespace

root_complex::root_complex(std::string name, sim::clock_domain& domain, const root_complex_config& c,
                           host_memory& memory, payload::tlp_pool& pool, sim::span_recorder& spans,
                           sim::statistics& stats)
    : clocked_block(name, domain),
      config_(sim::checked(c, this->name())),
      memory_(memory),
      timing_(this->name().c_str(), c.memory, memory, domain.longest_cycle()),
      pool_(pool),
      spans_(spans),
      link_(this->name() + ".link", *this, c.link),
      posted_(std::max<std::size_t>(c.posted_headers, 256)),
      completions_(this->name() + ".completions", *this, 64),
      operations_(this->name() + ".operations", *this, 64),
      reads_(c.non_posted_headers + 1),
      pending_(c.processor_tags) {
  if (c.completion_bytes != 64 && c.completion_bytes != 128 && c.completion_bytes != 256)
    throw sim::config_error(this->name() + ".completion_bytes: must be 64, 128 or 256");
  if (c.sends_per_cycle == 0) throw sim::config_error(this->name() + ".sends_per_cycle: must be at least 1");
  if (c.processor_tags == 0 || c.processor_tags > 256)
    throw sim::config_error(this->name() + ".processor_tags: must be 1 to 256");
  domain.base().add(*this);
  memory.add(*this);
  for (unsigned i = c.processor_tags; i-- != 0;) free_tags_.push_back(static_cast<std::uint16_t>(i));
  const std::string& n = this->name();
  stats.add(n + ".writes", writes_);
  stats.add(n + ".write_bytes", write_bytes_);
  stats.add(n + ".line_allocations", timing_.allocations());
  stats.add(n + ".read_requests", read_requests_);
  stats.add(n + ".read_bytes", read_bytes_);
  stats.add(n + ".unsupported_writes", unsupported_writes_);
  stats.add(n + ".unsupported_reads", unsupported_reads_);
  stats.add(n + ".malformed", malformed_);
  stats.add(n + ".poisoned", poisoned_);
  stats.add(n + ".interrupt_messages", messages_);
  stats.add(n + ".stores", stores_);
  stats.add(n + ".loads", loads_);
  stats.add(n + ".refused_operations", refused_);
  stats.add(n + ".unexpected_completions", unexpected_);
  stats.add(n + ".completion_timeouts", timeouts_);
  stats.add(n + ".link.packets", link_.wire().packets());
  stats.add(n + ".link.busy_ps", link_.wire().busy_ps());
  stats.add(n + ".link.credit_stalls", link_.credit_stalls());
}

root_complex::~root_complex() {
  memory_.remove(*this);
  domain().base().remove(*this);
}

void root_complex::connect(pcie::tlp_link_if& peer) {
  peer_ = &peer;
  link_.connect(peer);
  const sim::time_ps now = domain().base().now_ps();
  peer.credit({pcie::credit_class::posted, config_.posted_headers, config_.posted_data}, now);
  peer.credit({pcie::credit_class::non_posted, config_.non_posted_headers, config_.non_posted_headers}, now);
  peer.credit({pcie::credit_class::completion, pcie::infinite_credits, pcie::infinite_credits}, now);
}

/// Sorts a packet by what comes next for it, at the time at which that happens: one tick a packet.
void root_complex::deliver(payload::tlp_ptr packet, sim::time_ps arrival) {
  if (packet->type == payload::tlp_type::completion) {
    completions_.push(std::move(packet), arrival + config_.link_to_processor_ps);
    return;
  }
  if (outside_ != nullptr) {
    outside_->request(std::move(packet), arrival);
    return;
  }
  if (packet->type == payload::tlp_type::mem_write) {
    take_write(std::move(packet), arrival);
    return;
  }
  if (reads_.full()) {  // a peer that does not keep to its credits
    ++malformed_;
    return;
  }
  memory_.touch_soon(packet->address, packet->length, false);
  device_read r{std::move(packet), 0, false};
  r.ready = timing_.read(r.request->address, r.request->length, arrival);
  insert(std::move(r));
}

void root_complex::answer(payload::tlp_ptr request, payload::tlp_status status) {
  RNIC_ASSERT(!reads_.full(), "more answers than reads were allowed");
  request->status = status;
  insert({std::move(request), domain().base().now_ps() + 1, true});
}

void root_complex::insert(device_read r) {
  // Sorted insertion: only the answered part of the first one must stay where it is.
  std::size_t at = reads_.size();
  const std::size_t fixed = read_done_ != 0 ? 1 : 0;
  reads_.extend();
  for (; at > fixed && reads_[at - 1].ready > r.ready; --at) reads_[at] = std::move(reads_[at - 1]);
  wake_at(domain().edge_at_or_after(r.ready));
  reads_[at] = std::move(r);
}

void root_complex::tick() {
  write_due();
  if (!completions_.empty()) take_completion();
  if (check_at_ != ~sim::time_ps{0}) check_timeouts();
  if (!reads_.empty() || !operations_.empty()) send();
  if (!waiters_.empty()) wake_waiters();
}

void root_complex::send() {
  const sim::time_ps now = now_ps();
  for (unsigned sent = 0; sent < config_.sends_per_cycle; ++sent) {
    // Turn and turn about, so neither loads and stores nor completions starve.
    // Who is sent gives the turn to the others, ahead of time (send_ahead) as well.
    const bool sent_one =
        operation_next_ ? send_operation(now) || send_completion(now) : send_completion(now) || send_operation(now);
    if (!sent_one) return;
  }
  wake_next();
}

/// The next completions of the read that is being answered, as long as no operation of the processor can be at the link
/// before them: each at the edge at which the transmit buffer has room for it. Those of the next read are not: it finds
/// what is in memory when its first one is sent.
void root_complex::send_ahead(sim::time_ps now) {
  const sim::time_ps others = operations_.empty() ? now + config_.store_to_link_ps : operations_.front_arrival();
  while (read_done_ != 0 && link_.has_at_hand(pcie::credit_class::completion, config_.completion_bytes)) {
    const sim::time_ps at = domain().edge_time(domain().edge_at_or_after(link_.wire().room_at()));
    if (at >= others) return;
    put_completion(at);
  }
}

// ---------------------------------------------------------------- from the device

void root_complex::return_credit(const payload::tlp& t, sim::time_ps given) {
  peer_->credit(pcie::credits_of(t), given + config_.link.credit_latency_ps);
}

/// Each becomes visible at an edge of its own (memory_timing).
void root_complex::take_write(payload::tlp_ptr packet, sim::time_ps arrival) {
  write_unseen(domain().base().now_ps());
  if (posted_.full()) {  // a peer that does not keep to its credits
    ++malformed_;
    return;
  }
  memory_.touch_soon(packet->address, packet->length, true);
  spans_.leave(packet->span, name(), "link", arrival, sim::wait::pcie);
  posted_write& w = posted_.extend();
  w.edge = domain().edge_at_or_after(timing_.write(packet->address, packet->length, arrival));
  w.visible = domain().edge_time(w.edge);
  w.seen = is_seen(*packet);
  if (w.seen)
    wake_at(w.edge);
  else
    return_credit(*packet, w.visible);
  w.packet = std::move(packet);
}

/// Whether anything but the bytes in memory tells that it has become visible.
bool root_complex::is_seen(const payload::tlp& t) const {
  return !domain().base().may_defer() || t.span != 0 || t.poisoned || (t.address >= msi_base && t.address < msi_end) ||
         memory_.tells(t.address, t.length);
}

/// Those before the first seen one that are visible before `before`.
void root_complex::write_unseen(sim::time_ps before) {
  while (!posted_.empty()) {
    posted_write& w = posted_.front();
    if (w.seen || w.visible >= before) return;
    write_memory(*w.packet, w.visible);
    w.packet.reset();
    posted_.drop();
  }
}

void root_complex::catch_up(sim::time_ps before) {
  write_unseen(before);
  if (!posted_.empty() && !posted_.front().seen) wake_at(posted_.front().edge);
}

void root_complex::watch_added() {
  for (std::size_t i = 0; i < posted_.size(); ++i) {
    posted_write& w = posted_[i];
    if (!w.seen && w.edge > now()) wake_at(w.edge);
  }
}

void root_complex::write_due() {
  while (!posted_.empty() && posted_.front().edge <= now()) {
    const posted_write w = posted_.pop();
    write_memory(*w.packet, w.visible);
    if (w.seen) return_credit(*w.packet, w.visible);
  }
}

void root_complex::write_memory(const payload::tlp& t, sim::time_ps at) {
  if (t.poisoned) {
    ++poisoned_;
    return;
  }
  if (t.address >= msi_base && t.address < msi_end) {
    ++messages_;
    std::uint32_t data = 0;
    std::memcpy(&data, t.data.data(), std::min<std::uint32_t>(t.length, 4));
    if (interrupts_ != nullptr)
      interrupts_->interrupt(static_cast<std::uint16_t>(t.requester & 0xff), t.address, data, at);
    return;
  }
  if (t.address % page + t.length > page) {
    ++malformed_;
    return;
  }
  spans_.leave(t.span, name(), "memory write", at);
  if (!memory_.device_write(t.address, t.data.data(), t.length, at)) {
    ++unsupported_writes_;
    return;
  }
  ++writes_;
  write_bytes_ += t.length;
}

void root_complex::refuse(const payload::tlp& request, payload::tlp_status status, sim::time_ps at) {
  ++unsupported_reads_;
  payload::tlp_ptr t = pool_.get();
  t->type = payload::tlp_type::completion;
  t->status = status;
  t->requester = request.requester;
  t->tag = request.tag;
  t->byte_count = request.length;
  link_.send(std::move(t), at);
}

/// Where the bytes of a read are; nullptr: nowhere.
const std::uint8_t* root_complex::data_of(const device_read& read) const {
  const payload::tlp& request = *read.request;
  if (read.answered) return request.status == payload::tlp_status::success ? request.data.data() : nullptr;
  if (request.type != payload::tlp_type::mem_read || request.length == 0 ||
      request.address % page + request.length > page)
    return nullptr;
  return memory_.at(request.address, request.length);
}

/// One completion of the first read that is due.
bool root_complex::send_completion(sim::time_ps now) {
  if (read_done_ != 0 && !link_.wire().has_room(now)) send_ahead(now);
  if (reads_.empty()) return false;
  const sim::time_ps ready = reads_.front().ready;
  if (ready > now) {
    wake_at(domain().edge_at_or_after(ready));
    return false;
  }
  if (!link_.can_send(pcie::credit_class::completion, config_.completion_bytes)) return false;
  put_completion(now);
  return true;
}

/// The next one of the first read, at `at`; data as it is now.
void root_complex::put_completion(sim::time_ps at) {
  operation_next_ = true;
  device_read& r = reads_.front();
  const payload::tlp& request = *r.request;
  const std::uint8_t* const from = data_of(r);
  if (from == nullptr) {
    refuse(request, r.answered ? request.status : payload::tlp_status::unsupported_request, at);
    read_done_ = request.length;
  } else {
    const std::uint64_t address = request.address + read_done_;
    const auto room = config_.completion_bytes - (static_cast<std::uint32_t>(address) & (config_.completion_bytes - 1));
    const std::uint32_t n = std::min(request.length - read_done_, room);
    payload::tlp_ptr t = pool_.get();
    t->type = payload::tlp_type::completion;
    t->requester = request.requester;
    t->tag = request.tag;
    t->address = address & 0x7f;
    t->length = n;
    t->byte_count = request.length - read_done_;
    t->span = request.span;
    std::memcpy(t->data.data(), from + read_done_, n);
    link_.send(std::move(t), at);
    read_done_ += n;
    read_bytes_ += n;
  }
  if (read_done_ < request.length) return;
  ++read_requests_;
  return_credit(request, at);
  r.request.reset();
  reads_.drop();
  read_done_ = 0;
}

// ---------------------------------------------------------------- from the processor

bool root_complex::start(payload::tlp_type type, std::uint16_t function, std::uint64_t address, const void* data,
                         std::uint32_t bytes, reader* to, std::uint64_t token, sim::span_id span) {
  RNIC_ASSERT(bytes != 0 && address % 64 + bytes <= 64, "a processor access is 1 to 64 bytes in one line");
  if (operations_held_ == config_.store_buffer) {
    ++refused_;
    return false;
  }
  ++operations_held_;
  payload::tlp_ptr t = pool_.get();
  t->type = type;
  t->completer = static_cast<std::uint16_t>(config_.device_id + function);
  t->address = address;
  t->length = bytes;
  t->span = span;
  const sim::time_ps posted = domain().base().now_ps();
  spans_.leave(span, name(), "post", posted, sim::wait::software);
  t->enable_bytes();
  if (data != nullptr) std::memcpy(t->data.data(), data, bytes);
  operations_.push({std::move(t), to, token}, posted + config_.store_to_link_ps);
  return true;
}

bool root_complex::start_config_read(std::uint16_t function, std::uint16_t offset, std::uint32_t bytes, reader& to,
                                     std::uint64_t token) {
  return start(payload::tlp_type::cfg_read, function, offset, nullptr, bytes, &to, token, 0);
}
bool root_complex::start_config_write(std::uint16_t function, std::uint16_t offset, const void* data,
                                      std::uint32_t bytes, reader& to, std::uint64_t token) {
  return start(payload::tlp_type::cfg_write, function, offset, data, bytes, &to, token, 0);
}
bool root_complex::start_mmio_read(std::uint64_t address, std::uint32_t bytes, reader& to, std::uint64_t token) {
  return start(payload::tlp_type::mem_read, 0, address, nullptr, bytes, &to, token, 0);
}
bool root_complex::mmio_store(std::uint64_t address, const void* data, std::uint32_t bytes, sim::span_id span) {
  return start(payload::tlp_type::mem_write, 0, address, data, bytes, nullptr, 0, span);
}

/// The first operation in order; a load waits for a tag and for credit, a store for credit.
bool root_complex::send_operation(sim::time_ps now) {
  if (!operations_.can_pop()) return false;
  const payload::tlp& t = *operations_.front().packet;
  const bool posted = t.type == payload::tlp_type::mem_write;
  if (!posted && free_tags_.empty()) return false;  // a completion or the time-out ticks this block
  if (!link_.can_send(pcie::class_of(t), t.carried())) return false;
  operation o = operations_.pop();
  --operations_held_;
  if (posted) {
    ++stores_;
  } else {
    ++loads_;
    const std::uint16_t tag = free_tags_.back();
    free_tags_.pop_back();
    pending_read& p = pending_[tag];
    p.to = o.to;
    p.token = o.token;
    p.bytes = o.packet->type == payload::tlp_type::cfg_write ? 0 : o.packet->length;
    p.received = 0;
    p.deadline = now + config_.completion_timeout_ps;
    o.packet->tag = tag;
    if (check_at_ == ~sim::time_ps{0}) {
      check_at_ = p.deadline;
      wake_at(domain().edge_at_or_after(check_at_));
    }
  }
  spans_.leave(o.packet->span, name(), "store path", now);
  link_.send(std::move(o.packet), now);
  operation_next_ = false;
  return true;
}

void root_complex::take_completion() {
  if (!completions_.can_pop()) return;
  const payload::tlp_ptr t = completions_.pop();  // has booked the edge of the next one
  if (t->tag >= pending_.size() || pending_[t->tag].to == nullptr) {
    ++unexpected_;
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

void root_complex::complete_read(std::uint16_t tag, payload::tlp_status status) {
  pending_read& p = pending_[tag];
  if (status != payload::tlp_status::success) p.data.fill(0xff);
  reader* to = std::exchange(p.to, nullptr);
  free_tags_.push_back(tag);
  const std::array<std::uint8_t, 64> data = p.data;  // the reader may start the next one at once
  to->read_completed(p.token, status, data.data(), p.bytes);
}

void root_complex::check_timeouts() {
  if (check_at_ > link_.now_ps()) return;
  check_at_ = ~sim::time_ps{0};
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    if (pending_[i].to == nullptr) continue;
    if (pending_[i].deadline > link_.now_ps()) {
      check_at_ = std::min(check_at_, pending_[i].deadline);
      continue;
    }
    ++timeouts_;
    complete_read(static_cast<std::uint16_t>(i), payload::tlp_status::unsupported_request);
  }
  if (check_at_ != ~sim::time_ps{0}) wake_at(domain().edge_at_or_after(check_at_));
}

void root_complex::wake_waiters() {
  if (operations_held_ == config_.store_buffer) return;
  called_.clear();
  called_.swap(waiters_);
  for (space_waiter* w : called_) w->store_space();
}

}  // namespace rnic::host
