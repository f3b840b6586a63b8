// SPDX-License-Identifier: Apache-2.0
#include "model/pcie/dma_reads.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "model/sim/beats.h"
#include "model/sim/seldom.h"

namespace rnic::pcie {

dma_reads::dma_reads(sim::clocked_block& owner, const dma_config& c, unsigned clients, dma_clients& answers,
                     transmit_path& path, payload::tlp_pool& pool, config_space& space, const bus_master& bus)
    : owner_(owner),
      config_(c),
      clients_(answers),
      path_(path),
      pool_(pool),
      space_(space),
      bus_(bus),
      timeout_cycles_(owner.domain().cycles(c.completion_timeout_ps)) {
  if (c.fill_bytes_per_cycle == 0) throw sim::config_error("pcie.dma.fill_bytes_per_cycle: must be at least 1");
  for (unsigned i = 0; i < clients; ++i) queues_.emplace_back(c.reads_per_client);
  reads_.resize(std::size_t{clients} * c.reads_per_client);
  for (std::size_t i = reads_.size(); i-- != 0;) free_reads_.push_back(static_cast<std::uint32_t>(i));
  tags_.resize(c.tags);
  for (unsigned i = c.tags; i-- != 0;) free_tags_.push_back(static_cast<std::uint16_t>(i));
}

// ---------------------------------------------------------------- requests

void dma_reads::start(unsigned client, const dma_request& r) {
  ++counts_.requests;
  counts_.bytes += r.length;
  const std::uint32_t index = free_reads_.back();
  free_reads_.pop_back();
  read_state& s = reads_[index];
  s.tag = r.tag;
  s.address = r.address;
  s.destination = r.destination;
  s.length = r.length;
  s.issued = 0;
  s.packets = 0;
  s.client = static_cast<std::uint16_t>(client);
  s.function = r.function;
  s.status = dma_status::ok;
  s.span = r.span;
  queues_[client].push(index);
  waiting_ |= std::uint64_t{1} << client;
}

void dma_reads::issue() {
  const auto client = static_cast<unsigned>(order_.pick(waiting_));
  sim::ring<std::uint32_t>& queue = queues_[client];
  const std::uint32_t index = queue.front();
  read_state& r = reads_[index];
  const std::uint32_t n = to_boundary(r.address, r.length - r.issued, space_.now().max_read_request);
  const std::uint16_t tag = free_tags_.back();
  free_tags_.pop_back();
  if (free_tags_.empty()) ++counts_.tags_used_up;
  const sim::cycle_t deadline = owner_.edge() + timeout_cycles_;
  tags_[tag] = {true, index, r.issued, n, deadline, tags_[tag].coming};
  if (check_at_ == sim::never) {
    check_at_ = deadline;
    owner_.wake_at(check_at_);
  }
  payload::tlp_ptr t = pool_.get();
  t->type = payload::tlp_type::mem_read;
  t->requester = bus_.requester_of(r.function);
  t->tag = tag;
  t->address = r.address;
  t->length = n;
  t->span = r.span;
  t->enable_bytes();
  const bool first = r.issued == 0;
  r.issued += n;
  r.address += n;
  ++r.packets;
  if (r.issued == r.length) {
    queue.drop();
    if (queue.empty()) waiting_ &= ~(std::uint64_t{1} << client);
  }
  ++counts_.packets;
  path_.send(std::move(t), 0, first);
}

// ---------------------------------------------------------------- completions

bool dma_reads::complete_ahead(const payload::tlp& t, bool alone, sim::time_ps arrival) {
  if (t.tag >= tags_.size()) return false;
  tag_state& tag = tags_[t.tag];
  const bool inner = tag.active && t.length < tag.remaining && alone && tag.coming == 0 &&
                     t.byte_count == tag.remaining && t.length != 0 && t.status == payload::tlp_status::success &&
                     !t.poisoned && owner_.domain().edge_at_or_after(arrival) < tag.deadline;
  if (inner)
    put_away(tag, t);
  else
    ++tag.coming;
  return inner;
}

void dma_reads::put_away(tag_state& tag, const payload::tlp& t) {
  const read_state& read = reads_[tag.read];
  if (sim::mostly(read.status == dma_status::ok)) std::memcpy(read.destination + tag.offset, t.data.data(), t.length);
  tag.offset += t.length;
  tag.remaining -= t.length;
}

void dma_reads::unexpected() {
  ++counts_.unexpected;
  space_.report(error::unexpected_completion);
}

/// Its packet has come, or its time is over.
void dma_reads::free_tag(unsigned tag) {
  tags_[tag].active = false;
  free_tags_.push_back(static_cast<std::uint16_t>(tag));
  --reads_[tags_[tag].read].packets;
}

void dma_reads::complete(const payload::tlp& t) {
  if (t.tag < tags_.size() && tags_[t.tag].coming != 0) --tags_[t.tag].coming;
  if (t.tag >= tags_.size() || !tags_[t.tag].active) return unexpected();
  tag_state& tag = tags_[t.tag];
  const bool good = t.status == payload::tlp_status::success && !t.poisoned;
  if (good) {
    if (t.byte_count != tag.remaining || t.length == 0 || t.length > tag.remaining) return unexpected();
    put_away(tag, t);
    if (tag.remaining != 0) return;
  }
  free_tag(t.tag);
  if (sim::seldom(!good)) {
    if (t.status != payload::tlp_status::success)
      space_.received_abort(t.status == payload::tlp_status::completer_abort);
    else
      space_.report(error::poisoned);
    fail(tag.read, t.status == payload::tlp_status::unsupported_request ? dma_status::unsupported_request
                   : t.status == payload::tlp_status::success           ? dma_status::poisoned
                                                                        : dma_status::completer_abort);
  }
  finish_if_done(tag.read);
}

/// What was not asked for yet is not asked for any more; packets in flight are waited for.
void dma_reads::fail(std::uint32_t index, dma_status status) {
  read_state& read = reads_[index];
  if (read.status == dma_status::ok) {
    read.status = status;
    ++counts_.failed;
  }
  if (read.issued == read.length) return;
  read.issued = read.length;
  sim::ring<std::uint32_t>& queue = queues_[read.client];
  for (std::size_t n = queue.size(); n != 0; --n) {  // once around, without this one
    const std::uint32_t other = queue.pop();
    if (other != index) queue.push(other);
  }
  if (queue.empty()) waiting_ &= ~(std::uint64_t{1} << read.client);
}

void dma_reads::finish_if_done(std::uint32_t index) {
  const read_state& read = reads_[index];
  if (read.packets != 0 || read.issued != read.length) return;
  const std::uint32_t fill = std::min<std::uint32_t>(read.length, config_.fill_limit_bytes);
  sim::cycle_t ready = std::max(owner_.edge(), fill_free_);
  if (read.status == dma_status::ok) fill_free_ = ready += sim::beats_of(fill, config_.fill_bytes_per_cycle);
  clients_.give(read.client, read.tag, read.status, ready);
  free_reads_.push_back(index);
}

void dma_reads::check_timeouts() {
  if (sim::mostly(check_at_ > owner_.edge())) return;
  const sim::cycle_t now = owner_.edge();
  check_at_ = sim::never;
  for (unsigned i = 0; i < tags_.size(); ++i) {
    const tag_state& tag = tags_[i];
    if (!tag.active) continue;
    if (tag.deadline > now) {
      check_at_ = std::min(check_at_, tag.deadline);
      continue;
    }
    free_tag(i);
    ++counts_.timeouts;
    space_.report(error::completion_timeout);
    fail(tag.read, dma_status::timeout);
    finish_if_done(tag.read);
  }
  if (check_at_ != sim::never) owner_.wake_at(check_at_);
}

unsigned dma_reads::stop() {
  unsigned given_up = 0;
  for (sim::ring<std::uint32_t>& queue : queues_) {
    for (std::size_t n = queue.size(); n != 0; --n) {
      const std::uint32_t index = queue.pop();
      queue.push(index);
      if (bus_.allowed(reads_[index].function)) continue;
      ++given_up;
      fail(index, dma_status::unsupported_request);  // takes it out of the ring
      finish_if_done(index);
    }
  }
  return given_up;
}

}  // namespace rnic::pcie
