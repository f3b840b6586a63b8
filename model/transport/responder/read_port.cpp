// SPDX-License-Identifier: Apache-2.0
#include "model/transport/responder/read_port.h"

#include <algorithm>

namespace rnic::transport {

read_port::read_port(sim::clocked_block& owner, const responder_config& cfg)
    : command(owner),
      report(owner),
      owner_(owner),
      waiting_(cfg.read_hand_over),
      places_(cfg.read_queue),
      all_places_(cfg.read_queue),
      most_reading_(cfg.flows / 2),
      most_repeating_(cfg.flows - std::max(1u, cfg.flows / 4)) {}

void read_port::push(const read_command& r) { waiting_.push(r); }

void read_port::work(std::uint64_t writes_done) {
  if (waiting_.empty()) return;
  if (waiting_.front().writes_before > writes_done) return;  // the answer to those writes ticks us
  if (!command.claim()) return;
  command.push(waiting_.pop());
  owner_.wake_next();  // for the next one, or for who waits for the place
}

void read_port::take_place(bool first) {
  --places_;
  if (first) ++reading_;
}

void read_port::ended(bool last) {
  ++places_;
  if (last) --reading_;
}

}  // namespace rnic::transport
