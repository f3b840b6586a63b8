// SPDX-License-Identifier: Apache-2.0
#include "model/pcie/endpoint.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "model/pcie/pcie_core.h"
#include "model/pcie/pcie_cr.h"
#include "model/sim/check.h"
#include "model/sim/clock_domain.h"
#include "model/sim/seldom.h"
#include "model/sim/timebase.h"

namespace rnic::pcie {

endpoint::endpoint(std::string name, sim::clock_domain& domain, const endpoint_config& c, unsigned dma_clients,
                   register_file_if& bar0, register_file_if& bar2, payload::tlp_pool& pool, sim::span_recorder& spans,
                   sim::statistics& stats)
    : clocked_block(name, domain),
      config_(sim::checked(c, this->name())),
      functions_(c.space),
      link_(this->name() + ".link", *this, c.link),
      path_(*this, c.core, link_),
      spans_(spans),
      dma_(*this, c.dma, dma_clients, path_, pool, functions_, spans),
      inbox_(this->name() + ".inbox", *this, 256),
      cycle_ps_(domain.longest_cycle()),
      requests_(std::size_t{c.posted_headers} + c.non_posted_headers),
      bars_(*this, config_.space, config_.max_read_bytes, functions_, bar0, bar2, {command_out, doorbell_out}, serving_,
            spans),
      replies_(*this, c.non_posted_headers, pool, path_) {
  if (c.non_posted_data == 0) throw sim::config_error(this->name() + ".non_posted_data: must be at least 1");
  announce(stats);
}

void endpoint::announce(sim::statistics& stats) {
  const bar_target::counters& bar = bars_.counts();
  dma_.announce(name() + ".dma", stats);
  stats.add(name() + ".bar_writes", bar.writes);
  stats.add(name() + ".bar_reads", bar.reads);
  stats.add(name() + ".config_reads", config_reads_);
  stats.add(name() + ".config_writes", config_writes_);
  stats.add(name() + ".unsupported_reads", bar.unsupported_reads);
  stats.add(name() + ".unsupported_writes", bar.unsupported_writes);
  stats.add(name() + ".poisoned", bar.poisoned);
  stats.add(name() + ".held_writes", bar.held_writes);
  stats.add(name() + ".receiver_overflows", overflows_);
  stats.add(name() + ".function_resets", resets_);
  stats.add(name() + ".link.packets", link_.wire().packets());
  stats.add(name() + ".link.busy_ps", link_.wire().busy_ps());
  stats.add(name() + ".link.credit_stalls", link_.credit_stalls());
  stats.add(name() + " read tags in use", gauges_.tags);
  stats.add(name() + " posted header credits", gauges_.posted_headers);
  stats.add(name() + " posted data credits", gauges_.posted_data);
  stats.add(name() + " read header credits", gauges_.non_posted_headers);
}

void endpoint::cross_by(pcie_core& core) {
  core_ = &core;
  path_.cross_by(core.from_endpoint());
}

void endpoint::connect(tlp_link_if& peer) {
  RNIC_ASSERT(config_.core.khz == 0 || core_ != nullptr, name() + ": the PCIe core with a clock of its own is missing");
  peer_ = &peer;
  link_.connect(peer);
  const sim::time_ps now = domain().base().now_ps();
  peer.credit({credit_class::posted, config_.posted_headers, config_.posted_data}, now);
  peer.credit({credit_class::non_posted, config_.non_posted_headers, config_.non_posted_data}, now);
  peer.credit({credit_class::completion, infinite_credits, infinite_credits}, now);
}

void endpoint::tick() {
  work();
  if (gauges_.tags.watched()) tell_gauges();
}

void endpoint::tell_gauges() {
  const credit_amount posted = link_.at_hand(credit_class::posted);
  gauges_.tags.tell(dma_.tags_in_use(), now_ps());
  gauges_.posted_headers.tell(posted.headers, now_ps());
  gauges_.posted_data.tell(posted.data, now_ps());
  gauges_.non_posted_headers.tell(link_.at_hand(credit_class::non_posted).headers, now_ps());
}

void endpoint::work() {
  receive();
  serve_request();
  if (sim::seldom(bars_.took_interrupt_write())) dma_.msix_changed();
  dma_.give_answers();
  const bool replied = send_reply();  // between two writes, however close they follow each other
  dma_.start();
  if (sim::seldom(replied)) return;
  const bool in_write = dma_.write_under_way();
  dma_.issue();
  if (in_write && !replies_.empty() && dma_.clear_at() != sim::never)  // a completion waits for its end
    wake_at(std::max(now() + 1, dma_.clear_at()));
}

// ---------------------------------------------------------------- inbound

void endpoint::deliver(payload::tlp_ptr packet, sim::time_ps arrival) {
  if (packet->type == payload::tlp_type::mem_write)
    spans_.leave(packet->span, name(), "link", arrival, sim::wait::pcie);
  if (core_ != nullptr) return core_->deliver(std::move(packet), arrival);
  // One packet a cycle, also behind one that is taken at once.
  bool alone = arrival >= last_arrival_ + cycle_ps_;
  if (!alone) {
    const sim::cycle_t next = domain().edge_at_or_after(last_arrival_) + 1;
    alone = domain().edge_at_or_after(arrival) >= next;
    if (!alone) arrival = domain().edge_time(next);
  }
  last_arrival_ = arrival;
  const bool ahead = packet->type == payload::tlp_type::completion && dma_.complete_ahead(*packet, alone, arrival);
  if (!ahead) inbox_.push(std::move(packet), arrival);
}

void endpoint::credit(const credit_amount& amount, sim::time_ps arrival) {
  link_.credit(amount, core_ != nullptr ? core_->seen_by_endpoint(arrival) : arrival);
}

bool endpoint::arrived() const { return core_ != nullptr ? core_->to_endpoint().can_pop() : inbox_.can_pop(); }

void endpoint::receive() {
  if (!arrived()) return;
  payload::tlp_ptr t = core_ != nullptr ? core_->to_endpoint().pop() : inbox_.pop();
  if (t->type == payload::tlp_type::completion) {
    dma_.complete(*t);
    return;
  }
  if (requests_.full()) {  // a peer that does not keep to its credits
    ++overflows_;
    return;
  }
  requests_.push(std::move(t));
}

void endpoint::serve_request() {
  if (sim::mostly(requests_.empty())) return;
  const payload::tlp& t = *requests_.front();
  switch (t.type) {
    case payload::tlp_type::mem_write:
      if (!bars_.write(t)) return;
      return_credit(t);
      break;
    case payload::tlp_type::mem_read:
      if (replies_.full()) return serving_.blocked("replies");  // one that leaves ticks this block
      serve_read(t);
      break;
    default:
      if (replies_.full()) return serving_.blocked("replies");
      serve_config(t);
      break;
  }
  serving_.start(1);
  requests_.pop();
  if (!requests_.empty()) wake_next();
}

void endpoint::return_credit(const payload::tlp& t) {
  const sim::time_ps given = core_ != nullptr ? core_->seen_here(now_ps()) : now_ps();
  peer_->credit(credits_of(t), given + config_.link.credit_latency_ps);
}

void endpoint::serve_read(const payload::tlp& t) {
  if (!bars_.claims_read(t)) {
    answer(t, payload::tlp_status::unsupported_request, config_.mmio_read_cycles);
    return;
  }
  payload::tlp_ptr reply = answer(t, payload::tlp_status::success, config_.mmio_read_cycles);
  reply->length = t.length;
  reply->byte_count = t.length;
  bars_.read(t, reply->data.data());
}

// ---------------------------------------------------------------- configuration

std::uint32_t endpoint::look(payload::tlp& request) const {
  if (request.length == 0 || request.length > payload::tlp::max_data) return 0;
  if (request.type == payload::tlp_type::mem_read)
    return bars_.look(request.address, request.length, request.data.data()) ? request.length : 0;
  const auto function = function_of(request);
  if (request.type != payload::tlp_type::cfg_read || !function || request.address + request.length > 4096) return 0;
  for (std::uint32_t i = 0; i < request.length; ++i) {
    const std::uint64_t at = request.address + i;
    const std::uint32_t value = functions_.read32(*function, static_cast<std::uint16_t>(at & ~std::uint64_t{3}));
    request.data[i] = static_cast<std::uint8_t>(value >> 8 * (at & 3));
  }
  return request.length;
}

/// The physical function takes the device number that it is asked under; routing IDs of virtual functions follow its
/// own (SR-IOV 2.1.2).
std::optional<std::uint16_t> endpoint::function_of(const payload::tlp& t) const {
  const auto function = static_cast<std::uint16_t>(t.completer & 0xff);
  if (!functions_.exists(function)) return {};
  return function;
}

void endpoint::serve_config(const payload::tlp& t) {
  const bool read = t.type == payload::tlp_type::cfg_read;
  const std::uint64_t end = (t.address & 3) + t.length;
  const auto function = function_of(t);
  if (!function || t.address >= 4096 || t.length == 0 || end > 4) {
    ++bars_.counts().unsupported_reads;
    answer(t, payload::tlp_status::unsupported_request, config_.config_cycles);
    return;
  }
  const auto offset = static_cast<std::uint16_t>(t.address);
  const unsigned shift = 8 * (offset & 3u);
  payload::tlp_ptr reply = answer(t, payload::tlp_status::success, config_.config_cycles);
  if (read) {
    ++config_reads_;
    const std::uint32_t value = functions_.read32(*function, offset) >> shift;
    std::memcpy(reply->data.data(), &value, 4);
    reply->length = reply->byte_count = t.length;
    return;
  }
  ++config_writes_;
  // A function learns its number from configuration writes (Base Specification 3.0, 2.2.6.2).
  own_id_ = static_cast<std::uint16_t>(t.completer - *function);
  dma_.set_requester(own_id_);
  std::uint32_t value = 0;
  std::memcpy(&value, t.data.data(), t.length);
  unsigned enables = 0;
  for (std::uint32_t i = 0; i < t.length; ++i)
    if (byte_enabled(t, i)) enables |= 1u << ((offset & 3u) + i);
  const std::uint16_t enabled = functions_.now().enabled_vfs;
  const bool master = functions_.masters_bus(*function);
  const config_effect e = functions_.write32(*function, offset, value << shift, enables);
  if (e.msix_changed || offset / 4 == cfg::command / 4) dma_.msix_changed();
  if (e.function_level_reset) reset_function(*function);
  const bool others = functions_.now().enabled_vfs != enabled;
  if (others && function_listener_ != nullptr) function_listener_->functions_enabled();
  if (others || (master && !functions_.masters_bus(*function))) dma_.stop_started();
}

void endpoint::reset_function(std::uint16_t function) {
  ++resets_;
  functions_.reset(function);
  functions_.hold(function, true);
  dma_.line_changed();
  if (function_listener_ != nullptr) function_listener_->function_level_reset(function);
}

// ---------------------------------------------------------------- outbound

payload::tlp_ptr endpoint::answer(const payload::tlp& request, payload::tlp_status status, unsigned cycles) {
  payload::tlp_ptr t = replies_.put(request, status, own_id_, cycles);
  return_credit(request);
  return t;
}

/// Completions push posted writes ahead of them, so none is sent in the middle of one.
bool endpoint::send_reply() {
  if (replies_.empty()) return false;
  if (dma_.write_under_way()) {
    if (dma_.clear_at() != sim::never) wake_at(std::max(now() + 1, dma_.clear_at()));
    return false;
  }
  return replies_.send();
}

// ---------------------------------------------------------------- internal bus

std::uint32_t endpoint::cr_read(std::uint32_t offset) {
  const config_space::state& s = functions_.now();
  const config_space::config& c = config_.space;
  switch (offset) {
    case cr::bus_device_function:
      return own_id_;
    case cr::function_state:
      return (s.memory_enabled ? 1u : 0u) | (s.bus_master ? 2u : 0u);
    case cr::enabled_vfs:
      return s.enabled_vfs;
    case cr::max_payload:
      return s.max_payload;
    case cr::max_read_request:
      return s.max_read_request;
    case cr::bar0_low:
      return static_cast<std::uint32_t>(s.bar0);
    case cr::bar0_high:
      return static_cast<std::uint32_t>(s.bar0 >> 32);
    case cr::bar2_low:
      return static_cast<std::uint32_t>(s.bar2);
    case cr::bar2_high:
      return static_cast<std::uint32_t>(s.bar2 >> 32);
    case cr::msix_state:
      return (s.msix_enabled ? 1u : 0u) | (s.msix_masked ? 2u : 0u);
    case cr::msix_vectors:
      return functions_.vectors(0).vectors();
    case cr::link_state:
      return c.link_generation | c.link_width << 4;
    case cr::dma_enable:
      return dma_.enabled() ? 1 : 0;
    case cr::total_vfs:
      return c.total_vfs;
    case cr::bar2_log_bytes:
      return static_cast<std::uint32_t>(__builtin_ctzll(c.bar2_bytes));
    default:
      return 0;
  }
}

void endpoint::cr_write(std::uint32_t offset, std::uint32_t value) {
  if (offset == cr::dma_enable && value == 1) dma_.enable(true);
  if (offset == cr::msix_drop_pending) {
    functions_.drop_pending();
    dma_.line_changed();
  }
  if (offset == cr::hold_function) {
    functions_.hold(value, true);
    domain().as_in_tick([this] { dma_.stop_started(); });  // answers go into channels
  }
  if (offset == cr::release_function) {
    functions_.hold(value, false);
    dma_.msix_changed();  // a vector may have been unmasked meanwhile
  }
}

}  // namespace rnic::pcie
