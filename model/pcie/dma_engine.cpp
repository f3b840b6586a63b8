// SPDX-License-Identifier: Apache-2.0
#include "model/pcie/dma_engine.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "model/sim/beats.h"
#include "model/sim/check.h"

namespace rnic::pcie {

namespace {

constexpr std::uint32_t page = 4096;  // no packet crosses it (Base Specification 3.0, 2.2.7)
constexpr std::uint32_t no_client = ~0u;

std::uint32_t to_boundary(std::uint64_t address, std::uint32_t left, std::uint32_t limit) {
  return std::min({left, limit, page - static_cast<std::uint32_t>(address % page)});
}

/// Bytes of a write's packet that pass the interface.
std::uint32_t in_dwords(const payload::tlp& t) {
  return (static_cast<std::uint32_t>(t.address & 3) + t.length + 3) & ~std::uint32_t{3};
}

bool answered(const dma_request& r) { return r.op == dma_request::kind::read || r.notify; }

}  // namespace

dma_engine::dma_engine(sim::clocked_block& owner, const dma_config& c, unsigned clients, transmit_path& path,
                       payload::tlp_pool& pool, config_space& space, msix_table& vectors, sim::span_recorder& spans)
    : owner_(owner),
      config_(c),
      path_(path),
      pool_(pool),
      space_(space),
      vectors_(vectors),
      spans_(spans),
      msix_(owner),
      timeout_cycles_(owner.domain().cycles(c.completion_timeout_ps)) {
  if (clients == 0 || clients > 63) throw sim::config_error("pcie.dma: needs 1 to 63 clients");
  if (c.fill_bytes_per_cycle == 0) throw sim::config_error("pcie.dma.fill_bytes_per_cycle: must be at least 1");
  interrupts_bit_ = std::uint64_t{1} << clients;
  clients_.reserve(clients);
  for (unsigned i = 0; i < clients; ++i) {
    clients_.emplace_back(owner, c.reads_per_client);
  }
  for (unsigned i = 0; i < clients; ++i) clients_[i].port.request.show_in(asking_, i);
  msix_.show_in(asking_, clients);
  reads_.resize(std::size_t{clients} * c.reads_per_client);
  for (std::size_t i = reads_.size(); i-- != 0;) free_reads_.push_back(static_cast<std::uint32_t>(i));
  tags_.resize(c.tags);
  for (unsigned i = c.tags; i-- != 0;) free_tags_.push_back(static_cast<std::uint16_t>(i));
}

void dma_engine::announce(const std::string& prefix, sim::statistics& stats) {
  stats.add(prefix + ".read_requests", read_requests_);
  stats.add(prefix + ".write_requests", write_requests_);
  stats.add(prefix + ".read_bytes", read_bytes_);
  stats.add(prefix + ".write_bytes", write_bytes_);
  stats.add(prefix + ".read_packets", read_packets_);
  stats.add(prefix + ".write_packets", write_packets_);
  stats.add(prefix + ".interrupts", interrupts_);
  stats.add(prefix + ".interrupts_pended", interrupts_pended_);
  stats.add(prefix + ".interrupts_dropped", interrupts_dropped_);
  stats.add(prefix + ".refused_requests", refused_);
  stats.add(prefix + ".unexpected_completions", unexpected_);
  stats.add(prefix + ".completion_timeouts", timeouts_);
  stats.add(prefix + ".failed_reads", failed_reads_);
  stats.add(prefix + ".tags_used_up", tags_used_up_);
}

// ---------------------------------------------------------------- completions and answers

bool dma_engine::complete_ahead(const payload::tlp& t, bool alone, sim::time_ps arrival) {
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

void dma_engine::put_away(tag_state& tag, const payload::tlp& t) {
  const read_state& read = reads_[tag.read];
  if (read.status == dma_status::ok) std::memcpy(read.destination + tag.offset, t.data.data(), t.length);
  tag.offset += t.length;
  tag.remaining -= t.length;
}

void dma_engine::complete(const payload::tlp& t) {
  if (t.tag < tags_.size() && tags_[t.tag].coming != 0) --tags_[t.tag].coming;
  if (t.tag >= tags_.size() || !tags_[t.tag].active) {
    ++unexpected_;
    space_.report(error::unexpected_completion);
    return;
  }
  tag_state& tag = tags_[t.tag];
  const std::uint32_t index = tag.read;
  read_state& read = reads_[index];
  const bool good = t.status == payload::tlp_status::success && !t.poisoned;
  if (good && (t.byte_count != tag.remaining || t.length == 0 || t.length > tag.remaining)) {
    ++unexpected_;
    space_.report(error::unexpected_completion);
    return;
  }
  if (good) {
    put_away(tag, t);
    if (tag.remaining != 0) return;
  }
  tag.active = false;
  free_tags_.push_back(t.tag);
  --read.packets;
  if (!good) {
    if (t.status != payload::tlp_status::success)
      space_.received_abort(t.status == payload::tlp_status::completer_abort);
    else
      space_.report(error::poisoned);
    fail_read(index, t.status == payload::tlp_status::unsupported_request ? dma_status::unsupported_request
                     : t.status == payload::tlp_status::success           ? dma_status::poisoned
                                                                          : dma_status::completer_abort);
  }
  finish_read_if_done(index);
}

/// What was not asked for yet is not asked for any more; packets in flight are waited for.
void dma_engine::fail_read(std::uint32_t index, dma_status status) {
  read_state& read = reads_[index];
  if (read.status == dma_status::ok) {
    read.status = status;
    ++failed_reads_;
  }
  if (read.issued == read.length) return;
  read.issued = read.length;
  sim::ring<std::uint32_t>& queue = clients_[read.client].to_issue;
  for (std::size_t n = queue.size(); n != 0; --n) {  // once around, without this one
    const std::uint32_t other = queue.pop();
    if (other != index) queue.push(other);
  }
  if (queue.empty()) issue_mask_ &= ~(std::uint64_t{1} << read.client);
}

void dma_engine::finish_read_if_done(std::uint32_t index) {
  const read_state& read = reads_[index];
  if (read.packets != 0 || read.issued != read.length) return;
  const std::uint32_t fill = std::min<std::uint32_t>(read.length, config_.fill_limit_bytes);
  sim::cycle_t ready = std::max(owner_.now(), fill_free_);
  if (read.status == dma_status::ok) fill_free_ = ready += sim::beats_of(fill, config_.fill_bytes_per_cycle);
  give_answer(read.client, read.tag, read.status, ready);
  free_reads_.push_back(index);
}

void dma_engine::give_answer(unsigned client, std::uint64_t tag, dma_status status, sim::cycle_t ready) {
  sim::ring<answer>& answers = clients_[client].answers;
  const sim::cycle_t now = owner_.now();
  if (answers.empty() && ready > now && clients_[client].port.response.can_push()) {
    clients_[client].port.response.push_after(dma_response{tag, status}, ready - now);
    request_closed(client);
    return;
  }
  if (!answers.empty()) ready = std::max(ready, answers.back().ready);
  answers.push({{tag, status}, ready});
  answer_mask_ |= std::uint64_t{1} << client;
  if (ready > now) owner_.wake_at(ready);
}

void dma_engine::answer_clients() {
  for (std::uint64_t mask = answer_mask_; mask != 0; mask &= mask - 1) {
    const unsigned i = static_cast<unsigned>(__builtin_ctzll(mask));
    client_state& c = clients_[i];
    const sim::cycle_t now = owner_.now();
    if (c.answers.front().ready > now || !c.port.response.claim()) continue;
    c.port.response.push(c.answers.front().response);
    c.answers.drop();
    request_closed(i);
    if (c.answers.empty())
      answer_mask_ &= ~(std::uint64_t{1} << i);
    else
      owner_.wake_at(std::max(now + 1, c.answers.front().ready));
  }
}

void dma_engine::check_timeouts() {
  if (check_at_ > owner_.now()) return;
  const sim::cycle_t now = owner_.now();
  check_at_ = sim::never;
  for (unsigned i = 0; i < tags_.size(); ++i) {
    tag_state& tag = tags_[i];
    if (!tag.active) continue;
    if (tag.deadline > now) {
      check_at_ = std::min(check_at_, tag.deadline);
      continue;
    }
    tag.active = false;
    free_tags_.push_back(static_cast<std::uint16_t>(i));
    --reads_[tag.read].packets;
    ++timeouts_;
    space_.report(error::completion_timeout);
    fail_read(tag.read, dma_status::timeout);
    finish_read_if_done(tag.read);
  }
  if (check_at_ != sim::never) owner_.wake_at(check_at_);
}

// ---------------------------------------------------------------- start of requests

void dma_engine::give_answers() {
  check_timeouts();
  answer_clients();
}

bool dma_engine::may_master(std::uint16_t function) const {
  const config_space::state& s = space_.now();
  return enabled_ && s.bus_master && function <= s.enabled_vfs;
}

void dma_engine::enable(bool on) {
  enabled_ = on;
  if (!on) {
    vectors_.drop_pending();
    stop_started();
  }
}

/// Packets that are under way are waited for: their answers come, or their time-out.
void dma_engine::stop_started() {
  if (write_active_ && (write_client_ == no_client || !may_master(write_.function))) {
    ++refused_;
    if (write_client_ != no_client && write_.notify)
      give_answer(write_client_, write_.tag, dma_status::unsupported_request, owner_.now() + 1);
    write_.keep.reset();
    write_active_ = false;
  }
  for (client_state& c : clients_) {
    for (std::size_t n = c.to_issue.size(); n != 0; --n) {
      const std::uint32_t index = c.to_issue.front();
      if (may_master(reads_[index].function)) continue;
      ++refused_;
      fail_read(index, dma_status::unsupported_request);  // takes it out of the ring
      finish_read_if_done(index);
    }
  }
  owner_.wake_next();
}

/// Clients with a request to be taken, and interrupts.
std::uint64_t dma_engine::waiting() const {
  const bool interrupt = msix_recheck_ || ((asking_ & interrupts_bit_) != 0 && msix_.can_pop());
  std::uint64_t all = interrupt ? interrupts_bit_ : 0;
  for (std::uint64_t rest = asking_ & ~interrupts_bit_; rest != 0; rest &= rest - 1)
    if (clients_[static_cast<unsigned>(__builtin_ctzll(rest))].port.request.can_pop()) all |= rest & -rest;
  return all;
}

void dma_engine::start() {
  if (write_active_ || (asking_ == 0 && !msix_recheck_)) return;
  if (owner_.now() < clear_at_) return owner_.wake_at(clear_at_);
  std::uint64_t ready = waiting();
  for (std::uint64_t rest = ready & full_; rest != 0; rest &= rest - 1)
    if (answered(clients_[static_cast<unsigned>(__builtin_ctzll(rest))].port.request.front())) ready &= ~(rest & -rest);
  if (ready == 0) return;
  const unsigned winner = static_cast<unsigned>(start_order_.pick(ready));
  const std::uint64_t bit = std::uint64_t{1} << winner;
  if (bit == interrupts_bit_)
    start_msix();
  else
    start_request(winner);
  if (!write_active_ && (ready != bit || msix_recheck_)) owner_.wake_next();
}

void dma_engine::request_opened(unsigned client) {
  if (++clients_[client].in_flight == config_.reads_per_client) full_ |= std::uint64_t{1} << client;
}

void dma_engine::request_closed(unsigned client) {
  --clients_[client].in_flight;
  full_ &= ~(std::uint64_t{1} << client);
}

/// The function masters the bus, and the last byte has an address.
bool dma_engine::may_begin(const dma_request& r) const {
  return r.length != 0 && r.length - 1 <= ~r.address && may_master(r.function);
}

void dma_engine::start_request(unsigned client) {
  sim::fifo_in<dma_request>& in = clients_[client].port.request;
  dma_request& r = in.front();
  if (answered(r)) request_opened(client);
  if (!may_begin(r)) {
    refuse(client, r);
  } else if (r.op == dma_request::kind::read) {
    start_read(client, r);
  } else {
    write_ = std::move(r);
    start_write(client);
    ++write_requests_;
    write_bytes_ += write_.length;
  }
  in.drop();
}

/// One of no bytes has been done.
void dma_engine::refuse(unsigned client, dma_request& r) {
  const bool refused = r.length != 0;
  if (refused) ++refused_;
  if (answered(r))
    give_answer(client, r.tag, refused ? dma_status::unsupported_request : dma_status::ok, owner_.now() + 1);
  r.keep.reset();
}

/// What is in write_.
void dma_engine::start_write(unsigned client) {
  write_active_ = true;
  write_client_ = client;
  written_ = 0;
  write_wait_ = sim::wait::none;
}

void dma_engine::start_read(unsigned client, const dma_request& r) {
  ++read_requests_;
  read_bytes_ += r.length;
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
  clients_[client].to_issue.push(index);
  issue_mask_ |= std::uint64_t{1} << client;
}

bool dma_engine::interrupt_allowed(unsigned vector) const {
  const config_space::state& s = space_.now();
  return s.bus_master && !s.msix_masked && !vectors_.masked(vector);
}

/// An interrupt is a write of the engine's own; what may not go out now stays as a pending bit.
void dma_engine::start_msix() {
  int vector = -1;
  if (msix_.bound() && msix_.can_pop()) {
    const msix_request r = msix_.pop();
    if (!enabled_ || r.vector >= vectors_.vectors() || r.function != 0 || !space_.now().msix_enabled) {
      ++interrupts_dropped_;
    } else if (!interrupt_allowed(r.vector)) {
      if (!vectors_.is_pending(r.vector)) ++interrupts_pended_;
      vectors_.set_pending(r.vector);
    } else {
      vector = r.vector;
    }
  } else {
    const config_space::state& s = space_.now();
    if (s.msix_enabled && s.bus_master && !s.msix_masked) vector = vectors_.deliverable();
    if (vector >= 0) vectors_.clear_pending(static_cast<unsigned>(vector));
    msix_recheck_ = vector >= 0;
  }
  if (vector < 0) return;
  const msix_table::message m = vectors_.of(static_cast<unsigned>(vector));
  ++interrupts_;
  write_.op = dma_request::kind::write;
  write_.notify = false;
  write_.function = 0;
  write_.length = 4;
  write_.address = m.address;
  write_.source = nullptr;
  write_.span = 0;
  std::memcpy(write_.bytes.data(), &m.data, 4);  // little-endian, as all of PCI
  start_write(no_client);
}

// ---------------------------------------------------------------- packets

void dma_engine::issue() {
  const bool reads = issue_mask_ != 0 && !free_tags_.empty();
  if (!reads && !write_active_) return issue_mask_ != 0 ? path_.blocked("tags") : path_.idle();
  if (owner_.now() < clear_at_) return owner_.wake_at(clear_at_);
  if (!path_.ready()) return;
  const bool write_first = write_active_ && (prefer_write_ || !reads);
  const char* by = "link";
  for (unsigned attempt = 0; attempt < 2; ++attempt) {
    const bool write = write_first == (attempt == 0);
    if (write && write_active_) {
      if (!path_.can_send(credit_class::posted, write_packet_bytes())) {
        if (path_.refused_for_credit()) {
          write_wait_ = sim::wait::pcie_credit;
          by = "credits";
        }
        continue;
      }
      issue_write();
      prefer_write_ = false;
      break;
    }
    if (!write && reads) {
      if (path_.can_send(credit_class::non_posted, 0)) {
        issue_read(static_cast<unsigned>(issue_order_.pick(issue_mask_)));
        prefer_write_ = true;
        break;
      }
      if (path_.refused_for_credit()) by = "credits";
    }
    if (attempt == 1) return path_.blocked(by);
  }
  // The next tick is when a request can be started, or when there is room for another packet.
  const sim::cycle_t next = std::max(owner_.now() + 1, clear_at_);
  if (!write_active_ && waiting() != 0) owner_.wake_at(next);
  if (write_active_ || (issue_mask_ != 0 && !free_tags_.empty()))
    path_.await_room(next);
  else if (issue_mask_ != 0)
    path_.blocked("tags");
}

void dma_engine::issue_read(unsigned client) {
  sim::ring<std::uint32_t>& queue = clients_[client].to_issue;
  const std::uint32_t index = queue.front();
  read_state& r = reads_[index];
  const std::uint32_t n = to_boundary(r.address, r.length - r.issued, space_.now().max_read_request);
  const std::uint16_t tag = free_tags_.back();
  free_tags_.pop_back();
  if (free_tags_.empty()) ++tags_used_up_;
  const sim::cycle_t deadline = owner_.now() + timeout_cycles_;
  tags_[tag] = {true, index, r.issued, n, deadline, tags_[tag].coming};
  if (check_at_ == sim::never) {
    check_at_ = deadline;
    owner_.wake_at(check_at_);
  }
  payload::tlp_ptr t = pool_.get();
  t->type = payload::tlp_type::mem_read;
  t->requester = requester_of(r.function);
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
    if (queue.empty()) issue_mask_ &= ~(std::uint64_t{1} << client);
  }
  ++read_packets_;
  path_.send(std::move(t), 0, first);
}

/// Data of the next packet of the write.
std::uint32_t dma_engine::write_packet_bytes() const {
  const std::uint32_t payload = space_.now().max_payload;
  const auto into = config_.aligned_packets ? static_cast<std::uint32_t>(write_.address % payload) : 0;
  return to_boundary(write_.address, write_.length - written_, payload - into);
}

/// Its next `n` bytes, write_packet_bytes().
payload::tlp_ptr dma_engine::next_of_write(std::uint32_t n) {
  payload::tlp_ptr t = pool_.get();
  t->type = payload::tlp_type::mem_write;
  t->requester = requester_of(write_.function);
  t->address = write_.address;
  t->length = n;
  const std::uint8_t* from = write_.source != nullptr ? write_.source : write_.bytes.data();
  std::memcpy(t->data.data(), from + written_, n);
  t->enable_bytes();
  written_ += n;
  write_.address += n;
  if (written_ == write_.length) t->span = write_.span;  // the message goes on with its last packet
  ++write_packets_;
  return t;
}

void dma_engine::issue_write() {
  const bool first = written_ == 0;
  payload::tlp_ptr t = next_of_write(write_packet_bytes());
  const std::uint32_t bytes = in_dwords(*t);
  const sim::time_ps left = path_.send(std::move(t), bytes, first);
  if (written_ == write_.length)
    end_write(owner_.now(), left);
  else
    issue_ahead();
}

/// The write's further packets, as far as their edges are known. Reads that are under way would take turns with them, a
/// client's other answers keep their order with this one's, and a message whose time is recorded takes step by step.
void dma_engine::issue_ahead() {
  if (issue_mask_ != 0 || write_.span != 0) return;
  if (answered(write_)) {
    const client_state& c = clients_[write_client_];
    if (c.in_flight != 1 || !c.port.response.can_push()) return;
  }
  sim::cycle_t at = owner_.now();
  while (write_active_) {
    const std::uint32_t n = write_packet_bytes();
    const sim::cycle_t next = path_.next_edge(at, n);
    if (next == sim::never) break;
    at = next;
    payload::tlp_ptr t = next_of_write(n);
    const std::uint32_t bytes = in_dwords(*t);
    const sim::time_ps left = path_.send_at(at, std::move(t), bytes);
    if (written_ == write_.length) end_write(at, left);
  }
  clear_at_ = at + 1;
}

/// Its last packet is sent at edge `at` and has left at `left`.
void dma_engine::end_write(sim::cycle_t at, sim::time_ps left) {
  spans_.leave(write_.span, owner_.name(), "dma", left, write_wait_);
  if (write_client_ != no_client && write_.notify) give_answer(write_client_, write_.tag, dma_status::ok, at + 1);
  write_.keep.reset();
  write_active_ = false;
}

}  // namespace rnic::pcie
