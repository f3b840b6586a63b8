// SPDX-License-Identifier: Apache-2.0
#include "model/host/root_complex.h"

#include <utility>

#include "model/sim/clock_domain.h"
#include "model/sim/timebase.h"

namespace rnic::host {

root_complex::root_complex(std::string name, sim::clock_domain& domain, const root_complex_config& c,
                           host_memory& memory, payload::tlp_pool& pool, sim::span_recorder& spans,
                           sim::statistics& stats)
    : clocked_block(name, domain),
      config_(sim::checked(c, this->name())),
      memory_(memory),
      spans_(spans),
      timing_(this->name().c_str(), c.memory, memory, domain.longest_cycle()),
      link_(this->name() + ".link", *this, c.link),
      credits_(c.link.credit_latency_ps),
      writes_(*this, config_, memory, timing_, credits_, spans),
      reads_(*this, config_, memory, timing_, link_, credits_, pool),
      processor_(*this, config_, pool, link_, spans) {
  if (c.completion_bytes != 64 && c.completion_bytes != 128 && c.completion_bytes != 256)
    throw sim::config_error(this->name() + ".completion_bytes: must be 64, 128 or 256");
  if (c.sends_per_cycle == 0) throw sim::config_error(this->name() + ".sends_per_cycle: must be at least 1");
  announce(stats);
  if (!c.iommu.enable) return;
  translated_traffic_if& behind = *this;
  iommu_ = std::make_unique<iommu>(this->name() + ".iommu", domain, c.iommu, memory, timing_, behind, stats);
  requests_to_ = iommu_.get();
}

void root_complex::forward(device_traffic_if& to) {
  if (iommu_) throw sim::config_error(name() + ".iommu.enable: must be false where memory is the platform's");
  requests_to_ = &to;
}

void root_complex::announce(sim::statistics& stats) {
  const std::string& n = name();
  stats.add(n + ".writes", writes_.counts().writes);
  stats.add(n + ".write_bytes", writes_.counts().bytes);
  stats.add(n + ".line_allocations", timing_.allocations());
  stats.add(n + ".read_requests", reads_.counts().requests);
  stats.add(n + ".read_bytes", reads_.counts().bytes);
  stats.add(n + ".unsupported_writes", writes_.counts().unsupported);
  stats.add(n + ".unsupported_reads", reads_.counts().unsupported);
  stats.add(n + ".malformed", credits_.malformed());
  stats.add(n + ".poisoned", writes_.counts().poisoned);
  stats.add(n + ".interrupt_messages", writes_.counts().messages);
  stats.add(n + ".stores", processor_.counts().stores);
  stats.add(n + ".loads", processor_.counts().loads);
  stats.add(n + ".refused_operations", processor_.counts().refused);
  stats.add(n + ".unexpected_completions", processor_.counts().unexpected);
  stats.add(n + ".completion_timeouts", processor_.counts().timeouts);
  stats.add(n + ".link.packets", link_.wire().packets());
  stats.add(n + ".link.busy_ps", link_.wire().busy_ps());
  stats.add(n + ".link.credit_stalls", link_.credit_stalls());
}

void root_complex::connect(pcie::tlp_link_if& peer) {
  credits_.connect(peer);
  link_.connect(peer);
  const sim::time_ps now = domain().base().now_ps();
  peer.credit({pcie::credit_class::posted, config_.posted_headers, config_.posted_data}, now);
  peer.credit({pcie::credit_class::non_posted, config_.non_posted_headers, config_.non_posted_headers}, now);
  peer.credit({pcie::credit_class::completion, pcie::infinite_credits, pcie::infinite_credits}, now);
}

/// Sorts a packet by what comes next for it, at the time at which that happens: one tick a packet.
void root_complex::deliver(payload::tlp_ptr packet, sim::time_ps arrival) {
  if (packet->type == payload::tlp_type::completion && !iommu_)
    processor_.take(std::move(packet), arrival, timing_.visible());
  else if (requests_to_ != nullptr)
    requests_to_->request(std::move(packet), arrival);
  else if (packet->posted())
    writes_.take(std::move(packet), arrival);
  else
    reads_.take(std::move(packet), arrival);
}

void root_complex::translated(payload::tlp_ptr packet, const passage& p) {
  if (packet->type == payload::tlp_type::completion) return processor_.take(std::move(packet), p.at, timing_.visible());
  if (packet->posted()) {
    spans_.leave(packet->span, name(), "link", p.arrival, sim::wait::pcie);
    spans_.leave(packet->span, name(), "iommu", p.at, p.missed ? sim::wait::translation_miss : sim::wait::none);
    if (p.refused) {
      packet->poisoned = true;
      packet->status = payload::tlp_status::unsupported_request;
    }
    return writes_.accept(std::move(packet), p.at);
  }
  if (p.refused)
    reads_.take_refused(std::move(packet), p.at);
  else
    reads_.take(std::move(packet), p.at);
}

void root_complex::tick() {
  writes_.work();  // before the processor, which must see them
  processor_.work();
  if (!reads_.empty() || processor_.waiting()) send();
  processor_.tell_of_room();
}

// ---------------------------------------------------------------- to the device

void root_complex::send() {
  const sim::time_ps now = now_ps();
  for (unsigned sent = 0; sent < config_.sends_per_cycle; ++sent) {
    // Ahead of time what there will be room for before anything else is at the link. Not in a tick that has nothing to
    // send: how far that is, which counters tell, must not depend on such ticks.
    if (sent != 0 && reads_.under_way() && !link_.wire().has_room(now) &&
        reads_.send_ahead(processor_.next_at_link(now)))
      operation_next_ = true;
    // Turn and turn about, so neither loads and stores nor completions starve.
    // Who is sent gives the turn to the others, ahead of time as well.
    const bool sent_one =
        operation_next_ ? send_operation(now) || send_completion(now) : send_completion(now) || send_operation(now);
    if (!sent_one) return;
  }
  wake_next();
}

bool root_complex::send_completion(sim::time_ps now) {
  if (!reads_.send(now)) return false;
  return operation_next_ = true;
}

bool root_complex::send_operation(sim::time_ps now) {
  if (!processor_.send(now)) return false;
  operation_next_ = false;
  return true;
}

// ---------------------------------------------------------------- from the processor

bool root_complex::start_config_read(std::uint16_t function, std::uint16_t offset, std::uint32_t bytes, reader& to,
                                     std::uint64_t token) {
  return processor_.start(payload::tlp_type::cfg_read, function, offset, nullptr, bytes, &to, token, 0);
}
bool root_complex::start_config_write(std::uint16_t function, std::uint16_t offset, const void* data,
                                      std::uint32_t bytes, reader& to, std::uint64_t token) {
  return processor_.start(payload::tlp_type::cfg_write, function, offset, data, bytes, &to, token, 0);
}
bool root_complex::start_mmio_read(std::uint64_t address, std::uint32_t bytes, reader& to, std::uint64_t token) {
  return processor_.start(payload::tlp_type::mem_read, 0, address, nullptr, bytes, &to, token, 0);
}
bool root_complex::mmio_store(std::uint64_t address, const void* data, std::uint32_t bytes, sim::span_id span) {
  return processor_.start(payload::tlp_type::mem_write, 0, address, data, bytes, nullptr, 0, span);
}

}  // namespace rnic::host
