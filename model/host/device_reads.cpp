// SPDX-License-Identifier: Apache-2.0
#include "model/host/device_reads.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "model/sim/check.h"
#include "model/sim/clock_domain.h"
#include "model/sim/seldom.h"
#include "model/sim/timebase.h"

namespace rnic::host {

device_reads::device_reads(sim::clocked_block& owner, const root_complex_config& c, const host_memory& memory,
                           memory_timing& timing, pcie::link_transmitter& link, device_credits& credits,
                           payload::tlp_pool& pool)
    : owner_(owner),
      completion_bytes_(c.completion_bytes),
      memory_(memory),
      timing_(timing),
      link_(link),
      credits_(credits),
      pool_(pool),
      reads_(c.non_posted_headers + 1) {}

void device_reads::take(payload::tlp_ptr request, sim::time_ps arrival) {
  if (reads_.full()) return credits_.broken();
  memory_.touch_soon(request->address, request->length, false);
  device_read r{std::move(request), 0, false};
  r.ready = timing_.read(r.request->address, r.request->length, arrival);
  insert(std::move(r));
}

void device_reads::take_refused(payload::tlp_ptr request, sim::time_ps at) {
  if (reads_.full()) return credits_.broken();
  request->status = payload::tlp_status::unsupported_request;
  insert({std::move(request), at, true});
}

void device_reads::answer(payload::tlp_ptr request, payload::tlp_status status) {
  RNIC_ASSERT(!reads_.full(), "more answers than reads were allowed");
  request->status = status;
  insert({std::move(request), owner_.domain().base().now_ps() + 1, true});
}

void device_reads::insert(device_read r) {
  // Sorted insertion: only the answered part of the first one must stay where it is.
  std::size_t at = reads_.size();
  const std::size_t fixed = done_ != 0 ? 1 : 0;
  reads_.extend();
  for (; at > fixed && reads_[at - 1].ready > r.ready; --at) reads_[at] = std::move(reads_[at - 1]);
  owner_.wake_at(owner_.domain().edge_at_or_after(r.ready));
  reads_[at] = std::move(r);
}

/// Where the bytes of a read are; nullptr: nowhere.
const std::uint8_t* device_reads::data_of(const device_read& read) const {
  const payload::tlp& request = *read.request;
  if (sim::seldom(read.answered)) return request.status == payload::tlp_status::success ? request.data.data() : nullptr;
  if (request.type != payload::tlp_type::mem_read || request.length == 0 || crosses_page(request)) return nullptr;
  if (!memory_.admits(request.requester & 0xff, request.address)) return nullptr;
  return memory_.at(request.address, request.length);
}

bool device_reads::send(sim::time_ps now) {
  if (reads_.empty()) return false;
  const sim::time_ps ready = reads_.front().ready;
  if (ready > now) {
    owner_.wake_at(owner_.domain().edge_at_or_after(ready));
    return false;
  }
  if (!link_.can_send(pcie::credit_class::completion, completion_bytes_)) return false;
  put(now);
  return true;
}

bool device_reads::send_ahead(sim::time_ps until) {
  bool sent = false;
  while (done_ != 0 && link_.has_at_hand(pcie::credit_class::completion, completion_bytes_)) {
    const sim::clock_domain& domain = owner_.domain();
    const sim::time_ps at = domain.edge_time(domain.edge_at_or_after(link_.wire().room_at()));
    if (at >= until) break;
    put(at);
    sent = true;
  }
  return sent;
}

/// The next completion of the first read, at `at`; data as it is now.
void device_reads::put(sim::time_ps at) {
  device_read& r = reads_.front();
  const payload::tlp& request = *r.request;
  const std::uint8_t* const from = data_of(r);
  if (from == nullptr) {
    refuse(request, r.answered ? request.status : payload::tlp_status::unsupported_request, at);
    done_ = request.length;
  } else {
    const std::uint64_t address = request.address + done_;
    const auto room = completion_bytes_ - (static_cast<std::uint32_t>(address) & (completion_bytes_ - 1));
    const std::uint32_t n = std::min(request.length - done_, room);
    payload::tlp_ptr t = pool_.get();
    t->type = payload::tlp_type::completion;
    t->requester = request.requester;
    t->tag = request.tag;
    t->address = address & 0x7f;
    t->length = n;
    t->byte_count = request.length - done_;
    t->span = request.span;
    std::memcpy(t->data.data(), from + done_, n);
    link_.send(std::move(t), at);
    done_ += n;
    counts_.bytes += n;
  }
  if (done_ < request.length) return;
  ++counts_.requests;
  credits_.give(request, at);
  r.request.reset();
  reads_.drop();
  done_ = 0;
}

void device_reads::refuse(const payload::tlp& request, payload::tlp_status status, sim::time_ps at) {
  ++counts_.unsupported;
  payload::tlp_ptr t = pool_.get();
  t->type = payload::tlp_type::completion;
  t->status = status;
  t->requester = request.requester;
  t->tag = request.tag;
  t->byte_count = request.length;
  link_.send(std::move(t), at);
}

}  // namespace rnic::host
