// SPDX-License-Identifier: Apache-2.0
// Processing units: from the grant of a queue pair to a parsed WQE for the transmit engine.
#pragma once

#include <cstdint>

#include "model/icm/contexts.h"
#include "model/scheduler/scheduler_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/transport/requester/completions.h"
#include "model/transport/requester/config.h"
#include "model/transport/requester/context_memory.h"
#include "model/transport/requester/drain.h"
#include "model/transport/requester/egress_credits.h"
#include "model/transport/requester/gather.h"
#include "model/transport/requester/go_back.h"
#include "model/transport/requester/key_requests.h"
#include "model/transport/requester/message_table.h"
#include "model/transport/requester/pacing.h"
#include "model/transport/requester/queue_reader.h"
#include "model/transport/requester/send_unit.h"
#include "model/transport/requester/settings.h"

namespace rnic::transport {

/// Data sheet.
///
/// Ports: grants in and reports out, one a cycle each; those of queue_reader and key_requests; addresses that gather
/// has got, all that are there in a cycle (a counter of the unit). Each unit has a read port of its own to its part of
/// the descriptor memory.
///
/// Stages of a unit: context (looked up and pinned; of an acknowledged queue pair the second entry too); fetch, until
/// what it needs of the queue is on chip (queue_reader); parse; then the WQE is the transmit engine's, or it is
/// executed here (no operation, operation on keys, error: a message without a packet); service, `wqe_cycles` from one
/// WQE's first packet to the next one's, `read_wqe_cycles` from where a READ began to wait for the READ engine: what is
/// done for it goes on meanwhile; report, when the turn ends. A unit executes up to `turn_wqes` WQEs and `turn_bytes`
/// of a queue pair, those without a packet included; what a queue pair in error has is flushed without a limit, one WQE
/// a cycle and no service time.
///
/// Stalls of a unit: context not on chip; descriptors; service time; addresses of its packets that are being looked up;
/// an operation on keys; a port to append to the message table; go-back of its queue pair; channel of reports or
/// completions full.
class processing_units {
 public:
  using context = icm::requester_context;
  struct port_set {
    sim::fifo_in<scheduler::grant>& grants;
    sim::fifo_out<scheduler::report>& reports;
    sim::fifo_in<gather_address>& addresses;
    sim::fifo_out<descriptor_job>& jobs;
    sim::fifo_in<descriptor_result>& results;
    icm::key_port& keys;
  };
  struct neighbours {
    message_table& messages;
    go_back& back;
    completions& completed;
    drained_queues& drained;
    egress_credits& credits;
    pacing& pace;
    departures& leaving;
  };
  processing_units(sim::clocked_block& owner, const requester_config& config, const requester_settings& settings,
                   sim::span_recorder& spans, port_set ports, qp_table& qps, context_memory& contexts,
                   unit_table& units, neighbours to, const std::uint64_t& next_packet)
      : owner_(owner),
        config_(config),
        settings_(settings),
        spans_(spans),
        adapter_(spans.adapter_of(owner.name())),
        ports_(ports),
        qps_(qps),
        contexts_(contexts),
        units_(units),
        to_(to),
        next_packet_(next_packet),
        reader_(owner, config, qps, units, ports.jobs, ports.results),
        keys_(owner, ports.keys, qps, units, to.leaving) {}
  void announce(sim::statistics& to) const;
  queue_reader& reader() { return reader_; }

  void take_grant();
  void take_key_answer() { keys_.take_answer(); }
  void take_addresses();
  /// A step of each unit that can go on.
  void work();
  /// At the end of each tick: contexts have moved behind work(), and units that wait for one ask anew at the next edge.
  void look_again() const {
    if (sim::seldom(missing_ != 0) && contexts_.progress() != missing_since_) owner_.wake_next();
  }

 private:
  void end_service();
  bool in_service(const send_unit& u);
  void step(send_unit& u);
  void open_context(send_unit& u);
  bool second_entry(send_unit& u);
  void await_context(const send_unit& u);
  void advance(send_unit& u);
  bool load(send_unit& u);
  bool load_from(send_unit& u, const std::uint8_t* bytes, std::uint32_t available);
  void follow(send_unit& u, std::uint32_t index);
  bool run_local(send_unit& u);
  void flush_one(send_unit& u);
  void push_report(send_unit& u);

  sim::clocked_block& owner_;
  const requester_config& config_;
  const requester_settings& settings_;
  sim::span_recorder& spans_;
  const unsigned adapter_;  // among those whose requests are followed
  port_set ports_;
  qp_table& qps_;
  context_memory& contexts_;
  unit_table& units_;
  neighbours to_;
  const std::uint64_t& next_packet_;
  queue_reader reader_;
  key_requests keys_;
  std::uint32_t busy_ = 0;                   // mask of units
  std::uint32_t translating_ = 0;            // mask: waits for addresses before its next WQE
  std::uint32_t serving_ = 0;                // mask: waits until the service time of its last WQE is over,
  sim::cycle_t serving_until_ = sim::never;  // the earliest of these
  std::uint32_t missing_ = 0;                // mask: waits for the context cache,
  std::uint64_t missing_since_ = 0;          // whose progress was this when the first of them asked
  struct {
    std::uint64_t blueflame_used = 0, wrong_uar = 0, no_context = 0, bad_grant = 0, stalls = 0, busy_cycles = 0;
    std::uint64_t context_cycles = 0;  // of busy_cycles, for contexts that were not on chip
  } counts_;
};

}  // namespace rnic::transport
