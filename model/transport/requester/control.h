// SPDX-License-Identifier: Apache-2.0
// Control: the requester's registers, and what commands and errors from outside do to queue pairs.
#pragma once

#include <cstdint>

#include "model/completion/completion_if.h"
#include "model/icm/contexts.h"
#include "model/scheduler/scheduler_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/transport/congestion/rate_limiter.h"
#include "model/transport/live_command.h"
#include "model/transport/requester/config.h"
#include "model/transport/requester/context_memory.h"
#include "model/transport/requester/departures.h"
#include "model/transport/requester/diagnostics.h"
#include "model/transport/requester/drain.h"
#include "model/transport/requester/go_back.h"
#include "model/transport/requester/message_table.h"
#include "model/transport/requester/pacing.h"
#include "model/transport/requester/queue_reader.h"
#include "model/transport/requester/resumptions.h"
#include "model/transport/requester/send_unit.h"
#include "model/transport/requester/settings.h"
#include "model/transport/requester/timer_port.h"
#include "model/transport/transport_if.h"

namespace rnic::transport {

/// Data sheet.
///
/// Ports: the internal register bus (transport_cr.h); errors that the responder found and completions that were lost,
/// one a cycle each; events out.
///
/// Operations, one a cycle each: an error of a queue pair; a halt or discard, one queue pair after the other, each
/// until nothing of it is on chip (its unit gone, what it has in gather, scatter and descriptor fetch come back, its
/// messages taken back by go-back, its context in ICM, the stop of its timer sent); a command about a queue pair that
/// goes on working. A grant that no unit has taken yet is not waited for: when a queue pair is released that was
/// discarded, it loses its WQE, which was its last owner's (a comparator at each place of the channel).
///
/// Stalls: context not on chip; go-back of the queue pair; channel of events full.
class requester_control {
 public:
  using context = icm::requester_context;
  struct port_set {
    sim::fifo_in<qp_error>& errors;
    sim::fifo_in<completion::lost_completion>& lost;
    sim::fifo_in<scheduler::grant>& grants;
    sim::fifo_out<completion::event_request>& events;
  };
  struct neighbours {
    message_table& messages;
    unit_table& units;
    queue_reader& reader;
    departures& leaving;
    go_back& back;
    timer_port& timers;
    drained_queues& drained;
    rate_limiter& limiter;
    pacing& pace;
    resumptions& resumes;
    egress_credits& credits;
    diagnostic_counters& diagnostics;
  };
  requester_control(sim::clocked_block& owner, const requester_config& config, requester_settings& settings,
                    port_set ports, qp_table& qps, context_memory& contexts, neighbours to)
      : owner_(owner), config_(config), settings_(settings), ports_(ports), qps_(qps), contexts_(contexts), to_(to) {
    settings_.port_mtu.fill(config.port_mtu);
  }

  std::uint32_t read(std::uint32_t offset) const;
  void write(std::uint32_t offset, std::uint32_t value);
  void reset();

  void take_errors();
  /// Halts and commands.
  void work();
  /// Queue pairs are being halted.
  bool halting() const { return !halts_.empty(); }

 private:
  bool stop_for(std::uint32_t qpn, bool fatal);
  void halt();
  bool halt_step(qp_runtime& r);
  bool take_messages(qp_runtime& r);
  void finish_reset();
  void save_position(context& c, const qp_runtime& r);
  void command();
  void after_change(context& c, qp_runtime& r, icm::qp_state was);
  void halt_or_release(qp_runtime& r, std::uint32_t what);

  sim::clocked_block& owner_;
  const requester_config& config_;
  requester_settings& settings_;
  port_set ports_;
  qp_table& qps_;
  context_memory& contexts_;
  neighbours to_;
  qp_queue halts_{qp_list::halt};
  bool resetting_ = false;
  live_command<context> command_;
  std::uint32_t selected_ = 0;
};

}  // namespace rnic::transport
