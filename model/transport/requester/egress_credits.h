// SPDX-License-Identifier: Apache-2.0
// Room in the ports' egress queues, as the transmit engine sees it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/statistics.h"
#include "model/transport/requester/resumptions.h"
#include "model/transport/requester/send_unit.h"
#include "model/transport/requester/settings.h"
#include "model/transport/requester/tables.h"
#include "model/transport/transport_if.h"

namespace rnic::transport {

/// A counter of credits for each port and priority; a packet takes one when it is started, and its port, or gather for
/// one that does not leave, gives it back. The units that wait for a credit try again when one comes; of the queue
/// pairs that gave up waiting one goes on for each. While nobody waits, credits that come tick nobody.
class egress_credits {
 public:
  using channels = std::array<sim::fifo_in<egress_credit>, egress_ports>;
  egress_credits(sim::clocked_block& owner, std::uint32_t frames, unsigned wait_cycles, channels& in, qp_table& qps,
                 unit_table& units, resumptions& resumes);
  void announce(sim::statistics& to) const { to.add(owner_.name() + ".credit_stalls", stalls_); }

  /// Those that came back.
  void take();
  /// One for a packet that does not leave.
  void give_back(unsigned port, unsigned priority);

  bool available(unsigned port, unsigned priority) const { return pools_[port][priority].credits != 0; }
  void use(send_unit& u, unsigned port, unsigned priority);
  /// There is none for the unit's packet. False: its queue pair gives up, and is told when there is one.
  bool await(send_unit& u, unsigned port, unsigned priority);
  /// A turn has ended: a queue pair that was woken for a credit, and has not needed it, leaves it to the next one.
  void pass_on();
  /// Queue pairs send through other ports than before: all that wait try again.
  void look_again();

 private:
  sim::clocked_block& owner_;
  unsigned wait_cycles_;
  channels& in_;
  qp_table& qps_;
  unit_table& units_;
  resumptions& resumes_;
  std::array<std::array<egress_pool, egress_priorities>, egress_ports> pools_;
  std::array<bool, egress_ports> awaited_{true, true};
  std::uint64_t stalls_ = 0;
};

}  // namespace rnic::transport
