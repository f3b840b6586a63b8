// SPDX-License-Identifier: Apache-2.0
// The requester: executes send work queues and handles what comes back.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/completion/completion_if.h"
#include "model/gid/gid_table.h"
#include "model/icm/context_cache.h"
#include "model/icm/contexts.h"
#include "model/icm/key_operation_if.h"
#include "model/payload/frame.h"
#include "model/register_bus/cr_space.h"
#include "model/register_bus/interrupt_lines.h"
#include "model/register_bus/reset_if.h"
#include "model/scheduler/scheduler_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/server.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/transport/congestion/notice.h"
#include "model/transport/congestion/rate_limiter.h"
#include "model/transport/read_engine/read_engine_port.h"
#include "model/transport/requester/completer.h"
#include "model/transport/requester/completions.h"
#include "model/transport/requester/config.h"
#include "model/transport/requester/context_memory.h"
#include "model/transport/requester/control.h"
#include "model/transport/requester/departures.h"
#include "model/transport/requester/descriptor_fetch.h"
#include "model/transport/requester/diagnostics.h"
#include "model/transport/requester/drain.h"
#include "model/transport/requester/egress_credits.h"
#include "model/transport/requester/gather.h"
#include "model/transport/requester/go_back.h"
#include "model/transport/requester/message_table.h"
#include "model/transport/requester/pacing.h"
#include "model/transport/requester/processing_units.h"
#include "model/transport/requester/resumptions.h"
#include "model/transport/requester/scatter.h"
#include "model/transport/requester/send_unit.h"
#include "model/transport/requester/settings.h"
#include "model/transport/requester/shared_memories.h"
#include "model/transport/requester/tables.h"
#include "model/transport/requester/timer_port.h"
#include "model/transport/requester/transmit.h"
#include "model/transport/transport_if.h"

namespace rnic::transport {

/// Executes send queues of the QPs that the scheduler grants, and handles what comes back. RC, UC, UD and Ethernet;
/// adapter data plane A.3, A.4, A.7, A.10, C.5, C.6, C.8.
///
/// The block is memories and engines, each in a file of its own with its data sheet. It has no work of its own but to
/// tick them in their order; README.md has the table of who reads and writes what. Those memories of which neighbours
/// have a port are `shared`.
///
/// What is on chip of a QP: its context (cache), the messages under way, until when its timer is to run. A
/// retransmission moves the context back to the message and PSN and forgets the messages behind it: they are executed
/// again from host memory.
class requester : public sim::clocked_block, public register_bus::cr_target_if, public register_bus::reset_target_if {
 public:
  static constexpr unsigned ports = egress_ports, priorities = egress_priorities;

  requester(std::string name, sim::clock_domain& domain, const requester_config& cfg, const icm::icm_map& map,
            const gid_tables& gids, requester_memories& shared, payload::frame_pool& frames, sim::span_recorder& spans,
            sim::statistics& stats);

  sim::fifo_in<scheduler::grant> grant_in{*this};
  sim::fifo_out<scheduler::report> report_out{*this};
  sim::fifo_out<descriptor_job> descriptor_out{*this};
  sim::fifo_in<descriptor_result> descriptor_in{*this};
  sim::fifo_out<gather_job> packet_out{*this};
  sim::fifo_out<gather_piece> piece_out{*this};
  sim::fifo_out<gather_verdict> verdict_out{*this};
  sim::fifo_in<gather_left> left_in{*this};
  sim::fifo_in<gather_event> gather_event_in{*this};
  sim::fifo_in<gather_address> address_in{*this};
  sim::fifo_in<payload::frame_ptr> rx_in{*this};
  sim::fifo_out<scatter_job> scatter_out{*this};
  sim::fifo_in<scatter_done> scatter_in{*this};
  read_engine_port read_engine{*this};      ///< of READs and atomics
  read_engine_port response_engine{*this};  ///< the same engine, of the packets of their responses
  sim::fifo_out<timer_command> timer_out{*this};
  sim::fifo_in<timer_expiration> timer_in{*this};
  icm::key_port keys{*this};  ///< may stay unbound where no such operation is posted
  sim::fifo_out<completion::cqe_request> cqe_out{*this};
  sim::fifo_out<completion::event_request> event_out{*this};
  sim::fifo_out<qp_error> error_out{*this};
  sim::fifo_in<qp_error> error_in{*this};
  sim::fifo_in<completion::lost_completion> lost_in{*this};  ///< May stay unbound
  sim::fifo_out<rate_notice> notice_out{*this};              ///< to the READ generator. May stay unbound
  sim::fifo_out<congestion_notice> cnp_out{*this};           ///< to the sender of CNPs. May stay unbound
  sim::fifo_in<cnm_notice> cnm_in{*this};                    ///< from the receiver of CNMs. May stay unbound
  egress_credits::channels credit_in{sim::fifo_in<egress_credit>(*this),
                                     sim::fifo_in<egress_credit>(*this)};  ///< by port
  /// Its DMA port is the second one of this block.
  icm::context_cache<icm::requester_context>& contexts() { return contexts_; }

  std::uint32_t cr_read(std::uint32_t offset) override { return control_.read(offset); }
  void cr_write(std::uint32_t offset, std::uint32_t value) override { control_.write(offset, value); }
  /// Firmware's interrupt inputs (firmware_port::notices), with a pulse `delay_ps` after a send queue has drained.
  void bind_firmware(register_bus::interrupt_lines& lines, sim::time_ps delay_ps) {
    drained_.bind_firmware(lines, delay_ps);
  }
  /// Begins to discard all QPs; transport_cr.h `reset` tells when that is done.
  void device_reset() override { control_.reset(); }
  /// Counts answers that are of their queue pair.
  void count_into(traffic_table& t) { completer_.count_into(t); }

 private:
  using context = icm::requester_context;
  /// Bits of filled_: which input holds something. The others are not looked at.
  enum input : unsigned {
    of_credits = 0,  // and on: a bit for each port
    of_errors = egress_ports,
    of_lost,
    of_descriptors,
    of_keys,
    of_left,
    of_events,
    of_addresses,
    of_scattered,
    of_responses,
    of_expirations,
    of_grants,
    of_cnms
  };
  static constexpr std::uint64_t any_credits = (std::uint64_t{1} << egress_ports) - 1;
  void show_inputs();
  bool holds(unsigned of) const { return (filled_ >> of & 1) != 0; }
  void tick() override;

  const requester_config config_;
  std::uint64_t filled_ = 0;

  // Memories and registers.
  context_memory contexts_;
  qp_table qps_;
  rate_limiter limiter_;
  requester_settings settings_;
  diagnostic_counters diagnostics_;
  std::uint64_t next_packet_ = 0;  // number of the next packet
  resumptions resumes_;
  message_table messages_;
  unit_table units_;

  // Engines.
  timer_port timers_;
  go_back go_back_;
  drained_queues drained_;
  completions completions_;
  completer completer_;
  egress_credits credits_;
  pacing pacing_;
  departures departures_;
  transmit transmit_;
  processing_units processing_;
  requester_control control_;
};

}  // namespace rnic::transport
