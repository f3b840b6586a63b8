// SPDX-License-Identifier: Apache-2.0
#include "model/transport/requester/gather.h"

#include <utility>

namespace rnic::transport {

gather::gather(std::string name, sim::clock_domain& domain, const requester_config& cfg,
               const gid::source_access& sources, withdrawals& withdrawn, sim::span_recorder& spans,
               sim::statistics& stats)
    : clocked_block(name, domain),
      queue_(*this, cfg.gather_depth, withdrawn),
      fetch_(*this, {piece_in, address_out, translate, dma}, queue_, cfg.translation_blocks, counters_),
      leave_(*this, {verdict_in, tx_out, left_out, event_out}, queue_, cfg, sources, spans, counters_, stats) {
  const gather_counters& c = counters_;
  const std::pair<const char*, const std::uint64_t*> all[] = {{"packets", &c.packets},
                                                              {"pieces", &c.pieces},
                                                              {"bytes", &c.bytes},
                                                              {"failed", &c.failed},
                                                              {"withdrawn", &c.withdrawn},
                                                              {"translation_misses", &c.translation_misses},
                                                              {"ethernet_frames", &c.ethernet_frames}};
  for (const auto& [n, counter] : all) stats.add(this->name() + "." + n, *counter);
}

void gather::tick() {
  fetch_.take_memory();
  leave_.work();
  fetch_.take_address();
  accept();
  fetch_.ask();
  if (revoking_ || keys.revoke.can_pop()) revoke();
  fetch_.note_hold_ups();
  leave_.note_hold_ups();
}

void gather::accept() {
  if (queue_.full() || !job_in.can_pop()) return;
  queue_.push(std::move(job_in.front()));
  job_in.drop();
}

// What was asked for under the key is in its frame; what was not will be refused by translation.
void gather::revoke() {
  if (!revoking_) drain_to_ = queue_.asking() + (!queue_.all_asked() ? 1 : 0);
  revoking_ = true;
  for (std::uint32_t n = queue_.first(); static_cast<std::int32_t>(drain_to_ - n) > 0; ++n)
    if (queue_.at(n).pending != 0) return;  // answers of memory tick us
  if (!keys.revoked.claim()) return;
  keys.revoked.push(keys.revoke.pop());
  revoking_ = false;
  if (keys.revoke.can_pop()) wake_next();
}

}  // namespace rnic::transport
