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
#include "model/register_bus/notice.h"
#include "model/register_bus/reset_if.h"
#include "model/scheduler/scheduler_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/server.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/sim/timed_inbox.h"
#include "model/transport/congestion/notice.h"
#include "model/transport/congestion/rate_limiter.h"
#include "model/transport/live_command.h"
#include "model/transport/requester/ack_timers.h"
#include "model/transport/requester/completer.h"
#include "model/transport/requester/completions.h"
#include "model/transport/requester/config.h"
#include "model/transport/requester/congestion_port.h"
#include "model/transport/requester/descriptor_fetch.h"
#include "model/transport/requester/descriptor_memory.h"
#include "model/transport/requester/descriptor_window.h"
#include "model/transport/requester/diagnostics.h"
#include "model/transport/requester/drain.h"
#include "model/transport/requester/gather.h"
#include "model/transport/requester/go_back.h"
#include "model/transport/requester/message_table.h"
#include "model/transport/requester/mlx_wqe.h"
#include "model/transport/requester/packet.h"
#include "model/transport/requester/resumptions.h"
#include "model/transport/requester/scatter.h"
#include "model/transport/requester/send_unit.h"
#include "model/transport/requester/send_wqe.h"
#include "model/transport/requester/settings.h"
#include "model/transport/requester/tables.h"
#include "model/transport/shared_engine.h"
#include "model/transport/transport_if.h"

namespace rnic::transport {

/// Processing units fetch and parse WQEs of the QPs that the scheduler grants; one transmit engine starts their
/// packets; payload is gathered into frames that leave in the order in which they were started. The completer takes
/// acknowledgements and READ responses. RC, UC, UD and Ethernet; adapter data plane A.3, A.4, A.7, A.10, C.5, C.6, C.8.
///
/// What is on chip of a QP: its context (cache), the messages under way, a timer. A retransmission moves the context
/// back to the message and PSN and forgets the messages behind it: they are executed again from host memory.
class requester : public sim::clocked_block, public register_bus::cr_target_if, public register_bus::reset_target_if {
 public:
  static constexpr unsigned ports = egress_ports, priorities = egress_priorities;

  requester(std::string name, sim::clock_domain& domain, const requester_config& cfg, const icm::icm_map& map,
            const gid_tables& gids, payload::frame_pool& frames, sim::span_recorder& spans, sim::statistics& stats);

  sim::fifo_in<scheduler::grant> grant_in{*this};
  sim::fifo_out<scheduler::report> report_out{*this};
  sim::fifo_out<descriptor_job> descriptor_out{*this};
  sim::fifo_in<descriptor_result> descriptor_in{*this};
  descriptor_memory& descriptors() { return descriptors_; }  ///< of which descriptor fetch has the port to write
  sim::fifo_out<gather_job> packet_out{*this};
  sim::fifo_out<gather_piece> piece_out{*this};
  sim::fifo_out<gather_verdict> verdict_out{*this};
  sim::fifo_in<gather_left> left_in{*this};
  sim::fifo_in<gather_event> gather_event_in{*this};
  sim::fifo_in<gather_address> address_in{*this};
  withdrawals& withdrawn() { return withdrawals_; }  ///< of which gather has two ports to read
  sim::fifo_in<payload::frame_ptr> rx_in{*this};
  sim::fifo_out<scatter_job> scatter_out{*this};
  sim::fifo_in<scatter_done> scatter_in{*this};
  scatter_lists& lists() { return scatters_; }  ///< of which scatter has the other port
  shared_engine read_engine{*this};             ///< with the responder
  icm::key_port keys{*this};                    ///< may stay unbound where no such operation is posted
  sim::fifo_out<completion::cqe_request> cqe_out{*this};
  sim::fifo_out<completion::event_request> event_out{*this};
  sim::fifo_out<qp_error> error_out{*this};
  sim::fifo_in<qp_error> error_in{*this};
  sim::fifo_in<qp_error> lost_in{*this};  ///< from completion: a completion of this QP was lost. May stay unbound
  sim::fifo_out<congestion_notice> notice_out{*this};  ///< to the responder. May stay unbound
  std::array<sim::fifo_in<egress_credit>, ports> credit_in{sim::fifo_in<egress_credit>(*this),
                                                           sim::fifo_in<egress_credit>(*this)};  ///< by port
  /// Its DMA port is the second one of this block.
  icm::context_cache<icm::requester_context>& contexts() { return contexts_; }

  std::uint32_t cr_read(std::uint32_t offset) override;
  void cr_write(std::uint32_t offset, std::uint32_t value) override;
  /// Firmware's interrupt inputs (firmware_port::notices), moved `delay_ps` after a send queue has drained.
  void bind_firmware(sim::timed_inbox<register_bus::notice>& inbox, sim::time_ps delay_ps) {
    drained_.bind_firmware(inbox, delay_ps);
  }
  /// Begins to discard all QPs; transport_cr.h `reset` tells when that is done.
  void device_reset() override;

 private:
  using context = icm::requester_context;
  using report_kind = scheduler::report::kind;
  static constexpr std::uint32_t translation_bytes = 4096;  // what one translation covers

  // requester.cpp: the block
  void tick() override;
  void announce(sim::statistics& stats);
  void take_credits();
  void take_errors();
  bool stop_for(std::uint32_t qpn, bool fatal);

  // control.cpp: registers, commands of firmware
  void run_halts();
  bool halt_step(qp_runtime& r);
  static bool nothing_under_way(const qp_runtime& r) { return r.packets == 0 && r.jobs == 0 && r.fetches == 0; }
  void check_at_rest(const qp_runtime& r) const;
  void finish_reset();
  void save_position(context& c, qp_runtime& r);
  void work_command();
  void changed_by_command(context& c, qp_runtime& r, icm::qp_state was);

  // unit.cpp: processing units
  void take_grants();
  void run_units();
  void end_service();
  bool in_service(const send_unit& u);
  void step(send_unit& u);
  void open_context(send_unit& u);
  bool second_entry(send_unit& u);
  void await_context(const send_unit& u);
  void advance(send_unit& u);
  bool must_stop(const send_unit& u);
  bool load(send_unit& u);
  bool load_from(send_unit& u, const std::uint8_t* bytes, std::uint32_t available);
  bool run_local(send_unit& u);
  // descriptors.cpp: what units read of send queues
  void take_descriptors();
  void listen_to_descriptors();
  void forget_descriptors(send_unit& u);
  unsigned choose_unit(const scheduler::grant& g);
  void start_fetch(send_unit& u);
  void read_ahead(send_unit& u, std::uint32_t next);
  void ask_for_descriptors(send_unit& u);
  void finish_fetch(send_unit& u);
  void cannot_execute(send_unit& u);
  // keys.cpp: operations on memory keys
  bool run_keys(send_unit& u);
  bool keys_may_begin(send_unit& u);
  void take_key_answers();
  void flush_one(send_unit& u);
  void push_report(send_unit& u);

  // send.cpp: transmit engine, and what gather tells
  void start_packets();
  void note_hold_up();
  void return_credit(unsigned port, unsigned priority);
  void resume_parked(egress_pool& pool);
  void use_credit(send_unit& u, unsigned port, unsigned priority);
  bool start_packet(send_unit& u);
  bool open_message(send_unit& u);
  bool source_is_ours(const context& c) const;
  bool source_is_ours(const context& c, const datagram_address& a) const;
  bool refuse_source(send_unit& u);
  bool window_open(send_unit& u, std::uint32_t packets);
  void wait_for_credit(send_unit& u, std::uint8_t port, std::uint8_t priority);
  void hand_pieces(send_unit& u, gather_job& job, std::uint32_t at, std::uint32_t end);
  void hand_packet(send_unit& u, qp_runtime& r, gather_job job);
  void listen_to_gather();
  void take_left();
  void packet_gone(std::uint32_t qpn, bool last_local);
  void message_left(std::uint32_t index, std::uint32_t generation, std::uint32_t qpn);
  void take_gather_events();
  bool packet_failed(const gather_event& e);
  void take_addresses();
  void after_packet(send_unit& u, std::uint32_t length, std::uint32_t packets);
  void seek(send_unit& u, std::uint32_t offset);
  std::uint32_t append_message(context& c, qp_runtime& r, const send_unit& u, std::uint32_t packets);
  bool may_use_receive(const context& c, const send_wqe& wqe) const;

  // ethernet.cpp: plain frames
  std::uint8_t ethernet_fault(const send_unit& u) const;
  void forget_leftovers(send_unit& u) const;
  void begin_ethernet(send_unit& u, gather_job& job, const packet_place& place);

  // rate.cpp: rate limits, congestion
  std::uint32_t limit_of(const context& c, std::uint8_t static_rate) const;
  void set_limit(const send_unit& u);
  void change_limit(const context& c, qp_runtime& r);
  bool in_time(send_unit& u);
  void pace(send_unit& u, std::uint32_t bytes);
  void wake_paced();

  requester_config config_;
  gid_tables gids_;
  payload::frame_pool& frames_;
  sim::span_recorder& spans_;
  icm::context_cache<context> contexts_;
  qp_table qps_;
  scatter_lists scatters_;
  withdrawals withdrawals_;
  descriptor_memory descriptors_;
  rate_limiter limiter_;
  requester_settings settings_;
  diagnostic_counters diagnostics_;
  std::uint64_t next_packet_ = 0;  // number of the next packet
  resumptions resumes_;
  message_table messages_;
  unit_table units_;
  ack_timers timers_;
  go_back go_back_;
  drained_queues drained_;
  completions completions_;
  congestion_port congestion_;
  completer completer_;

  qp_queue halts_{qp_list::halt};
  std::array<std::array<egress_pool, priorities>, ports> egress_;
  std::array<bool, ports> awaits_credit_{true, true};  // by port; while nobody does, returned credits tick nobody

  std::uint32_t busy_units_ = 0;             // mask
  std::uint32_t translating_ = 0;            // mask: waits for addresses before its next WQE
  std::uint32_t fetching_ = 0;               // mask: waits for descriptors that were asked for
  std::uint32_t unclaimed_ = 0;              // reads of queues whose result no unit wants any more
  std::uint32_t operating_ = 0;              // mask: waits for an operation on keys
  std::uint32_t serving_ = 0;                // mask: waits until the service time of its last WQE is over,
  sim::cycle_t serving_until_ = sim::never;  // the earliest of these
  std::uint32_t missing_ = 0;                // mask: waits for the context cache,
  std::uint64_t missing_since_ = 0;          // whose progress was this when the first of them asked
  unsigned last_sent_ = 0;                   // unit of the last packet: the next one has its turn
  sim::server engine_{*this, "send_engine"};

  std::uint32_t leaving_ = 0;        // packets in gather and the transmit pipeline,
  std::uint32_t leaving_local_ = 0;  // those whose leaving completes a message,
  bool awaits_leaving_ = false;      // and somebody waits for one

  bool resetting_ = false;
  live_command<context> command_;
  std::uint32_t selected_ = 0;

  std::uint64_t packets_ = 0, wqes_ = 0, late_descriptors_ = 0, blueflame_used_ = 0, wrong_uar_ = 0, no_context_ = 0,
                bad_grant_ = 0, cancelled_packets_ = 0, stalls_ = 0, credit_stalls_ = 0, receive_waits_ = 0,
                stamped_ = 0, unit_busy_cycles_ = 0, key_operations_ = 0, paced_ = 0, ethernet_blocked_ = 0;
};

}  // namespace rnic::transport
