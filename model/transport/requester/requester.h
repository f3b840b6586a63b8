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
#include "model/sim/pipeline.h"
#include "model/sim/server.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/sim/timed_inbox.h"
#include "model/transport/congestion/notice.h"
#include "model/transport/congestion/notification_point.h"
#include "model/transport/congestion/rate_limiter.h"
#include "model/transport/live_command.h"
#include "model/transport/requester/config.h"
#include "model/transport/requester/descriptor_fetch.h"
#include "model/transport/requester/descriptor_memory.h"
#include "model/transport/requester/descriptor_window.h"
#include "model/transport/requester/gather.h"
#include "model/transport/requester/mlx_wqe.h"
#include "model/transport/requester/packet.h"
#include "model/transport/requester/scatter.h"
#include "model/transport/requester/send_wqe.h"
#include "model/transport/requester/tables.h"
#include "model/transport/requester/timers.h"
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
  static constexpr unsigned ports = 2, priorities = 8;
  using gid_tables = std::array<const gid::gid_table*, ports>;

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
    firmware_ = &inbox;
    notice_ps_ = delay_ps;
  }
  /// Begins to discard all QPs; transport_cr.h `reset` tells when that is done.
  void device_reset() override;

 private:
  using context = icm::requester_context;
  using report_kind = scheduler::report::kind;
  static constexpr std::uint32_t translation_bytes = 4096;  // what one translation covers
  static constexpr unsigned diagnostic_words = 0x1a4 / 4;

  // Room in a port's egress queue of one priority
  struct egress_pool {
    std::uint32_t credits = 0;
    std::uint32_t awaited_by = 0;  // mask of units
    sim::cycle_t moved = 0;        // when the last credit came back
    qp_queue parked{qp_list::credit};
    bool is_awaited() const { return awaited_by != 0 || !parked.empty(); }
  };

  struct unit {
    enum class state : std::uint8_t { free, context, work, fetch, finish };
    state at = state::free;
    bool pinned = false;
    bool missed = false;
    bool second_missed = false;
    bool current = false;  // `wqe` is parsed and is the one at current_index
    enum class keys_state : std::uint8_t { none, asked, refused };
    keys_state keys = keys_state::none;  // of the WQE's operation on keys
    icm::key_status keys_answer = icm::key_status::ok;
    bool awaited = false;  // it has waited for descriptors of this WQE
    bool lone = false;     // the grant's descriptor is all that software has posted
    bool paced = false;    // waits, or has waited, for the QP's time
    report_kind report = report_kind::idle;
    std::uint8_t stamp_tries = 0;
    scheduler::grant grant;
    context* ctx = nullptr;
    sim::cycle_t granted_at = 0;
    sim::cycle_t busy_until = 0;
    sim::cycle_t credit_since = sim::never;  // waits since then for room in an egress queue,
    egress_pool* awaits = nullptr;           // this one
    const char* held_up_by = nullptr;        // what kept the send engine from its packet when it last looked
    descriptor_window window;                // what is on chip of a send queue
    // WQE under execution
    std::uint32_t current_index = 0, strides = 1;
    std::uint32_t message_index = no_index;
    std::uint32_t segment = 0, segment_offset = 0;
    unsigned stall = 0;   // cycles for which the transmit engine stands still for entries that were missing
    unsigned taking = 0;  // cycles in which the transmit engine takes its descriptor from the buffer
    std::uint32_t turn_wqes = 0, turn_bytes = 0;
    unsigned translating = 0;  // addresses of its packets that are looked up
    sim::span_id span = 0;
    sim::cycle_t wqe_start = 0;
    send_wqe wqe;
    std::array<std::uint8_t, 1024> bytes;  // of the WQE under execution
  };

  // requester.cpp: the block
  void tick() override;
  void announce(sim::statistics& stats);
  void take_credits();
  void take_errors();
  bool stop_for(std::uint32_t qpn, bool fatal);
  void push_resumes();
  void resume(qp_runtime& r);

  // control.cpp: registers, commands of firmware
  void run_halts();
  bool halt_step(qp_runtime& r);
  static bool nothing_under_way(const qp_runtime& r) { return r.packets == 0 && r.jobs == 0 && r.fetches == 0; }
  void check_at_rest(const qp_runtime& r) const;
  void finish_reset();
  void save_position(context& c, qp_runtime& r);
  void note_begun(context& c, qp_runtime& r);
  static bool drain_left(const context& c) { return static_cast<std::int32_t>(c.drain_end - c.next_wqe) > 0; }
  void check_drained(context& c, qp_runtime& r);
  void tell_drained(std::uint32_t qpn);
  void work_command();
  void changed_by_command(context& c, qp_runtime& r, icm::qp_state was);

  // unit.cpp: processing units
  void take_grants();
  void run_units();
  void end_service();
  bool in_service(const unit& u);
  void step(unit& u);
  void open_context(unit& u);
  bool second_entry(unit& u);
  void await_context(const unit& u);
  void advance(unit& u);
  bool must_stop(const unit& u) const;
  bool load(unit& u);
  bool load_from(unit& u, const std::uint8_t* bytes, std::uint32_t available);
  bool run_local(unit& u);
  // descriptors.cpp: what units read of send queues
  void take_descriptors();
  void listen_to_descriptors();
  void forget_descriptors(unit& u);
  unsigned choose_unit(const scheduler::grant& g);
  void start_fetch(unit& u);
  void read_ahead(unit& u, std::uint32_t next);
  void ask_for_descriptors(unit& u);
  void finish_fetch(unit& u);
  void cannot_execute(unit& u);
  // keys.cpp: operations on memory keys
  bool run_keys(unit& u);
  bool keys_may_begin(unit& u);
  void take_key_answers();
  void flush_one(unit& u);
  void end_turn(unit& u, report_kind kind);
  void push_report(unit& u);

  // send.cpp: transmit engine, and what gather tells
  void start_packets();
  void note_hold_up();
  void look_for_credit();
  void return_credit(unsigned port, unsigned priority);
  void resume_parked(egress_pool& pool);
  void use_credit(unit& u, unsigned port, unsigned priority);
  void forget_credit(unit& u);
  bool start_packet(unit& u);
  bool open_message(unit& u);
  bool source_is_ours(const context& c) const;
  bool source_is_ours(const context& c, const datagram_address& a) const;
  bool refuse_source(unit& u);
  bool window_open(unit& u, std::uint32_t packets);
  void give_back_to_unit(unit& u);
  void wait_for_credit(unit& u, std::uint8_t port, std::uint8_t priority);
  void hand_pieces(unit& u, gather_job& job, std::uint32_t at, std::uint32_t end);
  void hand_packet(unit& u, qp_runtime& r, gather_job job);
  void listen_to_gather();
  void take_left();
  void packet_gone(std::uint32_t qpn, bool last_local);
  void message_left(std::uint32_t index, std::uint32_t generation, std::uint32_t qpn);
  void take_gather_events();
  bool packet_failed(const gather_event& e);
  void take_addresses();
  void after_packet(unit& u, std::uint32_t length, std::uint32_t packets);
  void seek(unit& u, std::uint32_t offset);
  void cancel_packets(std::uint32_t qpn);
  void cancel_packets(std::uint32_t qpn, std::uint32_t from);

  // ethernet.cpp: plain frames
  std::uint8_t ethernet_fault(const unit& u) const;
  void forget_leftovers(unit& u) const;
  void begin_ethernet(unit& u, gather_job& job, const packet_place& place);

  // complete.cpp: responses, retransmission, completions, errors
  void take_responses();
  bool handle_response(payload::frame_ptr& f);
  bool from_peer(const context& c, const payload::frame& f) const;
  void handle_acknowledge(context& c, qp_runtime& r, const wire::packet& p);
  void handle_nak(context& c, qp_runtime& r, std::uint32_t psn, std::uint8_t code);
  bool handle_read_response(context& c, qp_runtime& r, payload::frame_ptr& f);
  void handle_atomic_response(context& c, qp_runtime& r, payload::frame_ptr& f);
  bool acknowledge_before(context& c, qp_runtime& r, std::uint32_t psn);
  void progress(context& c, qp_runtime& r, std::uint32_t unacked);
  static unsigned most_reads(const context& c) { return 1u << std::min<unsigned>(c.log_max_rd_atomic, 7); }
  void still_answering(context& c, qp_runtime& r, std::uint32_t psn);
  void retry(context& c, qp_runtime& r, std::uint32_t psn);
  void run_timers();
  void time_out(context& c, qp_runtime& r);
  void start_timer(context& c, qp_runtime& r);

  // rate.cpp: rate limits, congestion
  std::uint32_t limit_of(const context& c, std::uint8_t static_rate) const;
  void set_limit(const unit& u);
  void change_limit(const context& c, qp_runtime& r);
  bool in_time(unit& u);
  bool nothing_asked(const context& c, const qp_runtime& r) const;
  void pace(unit& u, std::uint32_t bytes);
  void wake_paced();
  bool handle_cnp(const payload::frame& f);
  void note_marked(const context& c, const payload::frame& f);

  // messages.cpp: the list of messages of a QP
  std::uint32_t find_message(qp_runtime& r, std::uint32_t psn);
  void handle_early_response(context& c, qp_runtime& r, const wire::packet& p);
  bool may_use_receive(const context& c, const send_wqe& wqe) const;
  void take_receives(context& c, qp_runtime& r, std::uint32_t psn, const wire::aeth& answer);
  void use_receive(context& c, const qp_runtime& r, const message& m) const;
  std::uint32_t append_message(context& c, qp_runtime& r, const unit& u, std::uint32_t packets);
  void cut_after(context& c, qp_runtime& r, std::uint32_t keep);
  void free_message(context& c, qp_runtime& r, std::uint32_t index);
  bool rewind(context& c, qp_runtime& r, std::uint32_t psn);
  void fail(context& c, qp_runtime& r, std::uint32_t index, std::uint8_t syn, std::uint8_t vendor, std::uint32_t psn);
  void enter_error(context& c, qp_runtime& r, icm::qp_state state = icm::qp_state::error);
  bool complete(const context& c, const message& m) const;
  void drain_completions();
  bool drain_one(context& c, qp_runtime& r);
  void report_completion(const context& c, const message& m);
  void report_flush(const context& c, std::uint32_t wqe_index);
  void count_error(std::uint8_t syn);
  void restart_unit(qp_runtime& r);
  void wake_stalled(qp_runtime& r);

  void scatter_payload(const context& c, message& m, std::uint32_t index, payload::frame_ptr f, std::uint32_t offset);
  void take_scattered();

  /// Path MTU in bytes; a code that does not exist is taken as the nearest one.
  static std::uint32_t mtu_of(const context& c) {
    return icm::mtu_bytes(c.dest.mtu_code < 1 ? 1 : c.dest.mtu_code > 5 ? 5 : c.dest.mtu_code);
  }
  /// Bytes of the message that a packet takes: the path MTU, or what an Ethernet QP puts into a frame.
  static std::uint32_t packet_bytes(const context& c, const send_wqe& wqe) {
    if (c.type == icm::service::mlx) return longest_special_frame;
    if (c.type != icm::service::ethernet) return mtu_of(c);
    return wqe.is_segmented() ? std::max<std::uint32_t>(1, wqe.ethernet.segment_bytes) : std::max(1u, wqe.length);
  }
  std::uint32_t mask_of(const unit& u) const { return 1u << static_cast<unsigned>(&u - units_.data()); }
  static std::uint32_t distance(std::uint32_t from, std::uint32_t to) { return (to - from) & 0xffffff; }

  requester_config config_;
  gid_tables gids_;
  payload::frame_pool& frames_;
  const sim::pipeline response_pipeline_{{"response context", config_.response.context},
                                         {"response sequence", config_.response.sequence},
                                         {"response message", config_.response.message},
                                         {"response place", config_.response.place}};
  sim::span_recorder& spans_;
  icm::context_cache<context> contexts_;
  qp_table qps_;
  index_pool<message> messages_;
  scatter_lists scatters_;
  withdrawals withdrawals_;
  descriptor_memory descriptors_;
  qp_timers timers_;
  sim::server timers_engine_{*this, "timer_engine"};
  rate_limiter limiter_;
  notification_point notification_;
  sim::cycle_t timeout_unit_;  // cycles of 4.096 us
  qp_queue drain_{qp_list::drain}, resumes_{qp_list::resume}, room_{qp_list::room}, halts_{qp_list::halt};
  std::array<std::array<egress_pool, priorities>, ports> egress_;
  std::array<bool, ports> awaits_credit_{true, true};  // by port; while nobody does, returned credits tick nobody

  std::vector<unit> units_;
  std::uint32_t busy_units_ = 0;                // mask
  std::uint32_t sendable_ = 0;                  // mask: has a WQE for the transmit engine
  std::uint32_t uncredited_ = 0;                // mask of sendable ones: there was no room in their egress queue,
  sim::cycle_t uncredited_until_ = sim::never;  // and this is how long the first of them waits for it
  std::uint32_t translating_ = 0;               // mask: waits for addresses before its next WQE
  std::uint32_t fetching_ = 0;                  // mask: waits for descriptors that were asked for
  std::uint32_t unclaimed_ = 0;                 // reads of queues whose result no unit wants any more
  std::uint32_t operating_ = 0;                 // mask: waits for an operation on keys
  std::uint32_t serving_ = 0;                   // mask: waits until the service time of its last WQE is over,
  sim::cycle_t serving_until_ = sim::never;     // the earliest of these
  std::uint32_t missing_ = 0;                   // mask: waits for the context cache,
  std::uint64_t missing_since_ = 0;             // whose progress was this when the first of them asked
  unsigned last_sent_ = 0;                      // unit of the last packet: the next one has its turn
  sim::server engine_{*this, "send_engine"};

  std::uint64_t next_packet_ = 0;    // number of the next packet
  std::uint32_t leaving_ = 0;        // packets in gather and the transmit pipeline,
  std::uint32_t leaving_local_ = 0;  // those whose leaving completes a message,
  bool awaits_leaving_ = false;      // and somebody waits for one

  bool resetting_ = false;
  live_command<context> command_;
  sim::timed_inbox<register_bus::notice>* firmware_ = nullptr;
  sim::time_ps notice_ps_ = 1;
  std::vector<std::uint32_t> drained_;  // QPNs that firmware has to be told
  std::uint32_t selected_ = 0;
  std::uint32_t reserved_lkey_ = 0;
  std::uint32_t special_base_ = 0;
  std::uint32_t num_qps_log_ = 0;
  std::uint16_t udp_port_ = wire::roce_v2_udp_port;
  std::array<std::uint32_t, ports> port_mtu_{};
  std::array<std::uint32_t, diagnostic_words> diagnostics_{};

  std::uint64_t packets_ = 0, wqes_ = 0, completions_ = 0, late_descriptors_ = 0, blueflame_used_ = 0,
                retransmissions_ = 0, timeouts_ = 0, naks_ = 0, rnr_naks_ = 0, wrong_uar_ = 0, no_context_ = 0,
                bad_grant_ = 0, stray_responses_ = 0, duplicate_responses_ = 0, ghost_responses_ = 0,
                foreign_responses_ = 0, not_a_response_ = 0, cancelled_packets_ = 0, stalls_ = 0, credit_stalls_ = 0,
                receive_waits_ = 0, stamped_ = 0, drop_halted_ = 0, unit_busy_cycles_ = 0, key_operations_ = 0,
                paced_ = 0, cnp_handled_ = 0, cnp_ignored_ = 0, ecn_marked_ = 0, cnp_lost_ = 0, ethernet_blocked_ = 0;
};

}  // namespace rnic::transport
