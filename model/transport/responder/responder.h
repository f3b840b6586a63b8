// SPDX-License-Identifier: Apache-2.0
// The half of the offload engine that executes the peer's requests.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "model/completion/completion_if.h"
#include "model/gid/gid_table.h"
#include "model/icm/context_cache.h"
#include "model/icm/key_operation_if.h"
#include "model/register_bus/cr_space.h"
#include "model/register_bus/reset_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/pipeline.h"
#include "model/sim/ring.h"
#include "model/sim/server.h"
#include "model/sim/statistics.h"
#include "model/transport/congestion/notice.h"
#include "model/transport/congestion/notification_point.h"
#include "model/transport/live_command.h"
#include "model/transport/responder/answer_lines.h"
#include "model/transport/responder/answer_port.h"
#include "model/transport/responder/read_backlog.h"
#include "model/transport/responder/read_port.h"
#include "model/transport/responder/receive_wqe.h"
#include "model/transport/responder/shared_receive.h"
#include "model/transport/responder/types.h"
#include "model/transport/shared_engine.h"
#include "model/transport/transport_if.h"

namespace rnic::transport {

/// Requests of peers, for RC, UC, UD and XRC, and plain frames for Ethernet QPs: checks (adapter data plane A.9, C.7),
/// receive WQEs, payload into host memory, completions, answers, READ responses.
///
/// A packet passes these stages: check against the QP context, in order of arrival within its QP, one packet per
/// initiation interval; translation of where its payload goes; commit in order within its QP, not before the
/// pipeline's time: payload writes, completion, answer. A QP that waits (context, receive WQE, translation) does not
/// hold up others. A completion is handed on when the payload writes before it are on their way (notify).
///
/// Registers: transport_cr.h, offsets from cr_base::transport + responder_offset.
class responder : public sim::clocked_block, public register_bus::cr_target_if, public register_bus::reset_target_if {
 public:
  responder(std::string name, sim::clock_domain& domain, const responder_config& config, const icm::icm_map& map,
            const std::array<gid::gid_table*, 2>& gids, payload::frame_pool& frames, sim::span_recorder& spans,
            sim::statistics& stats);

  sim::fifo_in<payload::frame_ptr> rx_in;        ///< requests, ICRC checked
  sim::fifo_in<payload::frame_ptr> ethernet_in;  ///< plain frames, steered to a QP. May stay unbound
  sim::fifo_in<payload::frame_ptr> copies_in;    ///< datagrams to groups, for a member each. May stay unbound
  pcie::dma_port dma_write;                      ///< payload
  pcie::dma_port dma_read;                       ///< receive WQEs, doorbell records
  icm::translate_port translate;
  shared_engine read_engine{*this};  ///< with the requester
  icm::key_port keys;                ///< SEND with invalidate. May stay unbound where nobody sends it
  sim::fifo_out<completion::cqe_request> cqe_out;
  sim::fifo_out<completion::event_request> event_out;
  sim::fifo_out<qp_error> error_out;            ///< to the requester: this QP is in the error state
  sim::fifo_in<qp_error> error_in;              ///< from the requester
  sim::fifo_in<qp_error> lost_in;               ///< from completion: a completion of this QP was lost. May stay unbound
  sim::fifo_in<congestion_notice> notice_in;    ///< from the requester. May stay unbound
  answer_port acknowledgements, notifications;  ///< to answer_transmit
  read_port reads;                              ///< to the READ generator
  icm::context_cache<icm::responder_context>& contexts() { return contexts_; }
  icm::context_cache<icm::rdma_resources>& histories() { return histories_; }
  icm::context_cache<icm::srq_context>& srqs() { return shared_.contexts(); }
  /// Register with the UDP destination port of RoCE v2, for the parsers.
  const std::uint16_t& roce_v2_port() const { return roce_v2_port_; }

  std::uint32_t cr_read(std::uint32_t offset) override;
  void cr_write(std::uint32_t offset, std::uint32_t value) override;
  /// Begins to discard all QPs; transport_cr.h `reset` tells when that is done.
  void device_reset() override;

  struct counters {
    std::uint64_t invalidations = 0;
    std::uint64_t packets = 0, writes = 0, sends = 0, reads = 0, atomics = 0, acks = 0, naks = 0, duplicates = 0,
                  rnr = 0, out_of_sequence = 0, context_waits = 0, check_cycles = 0;
    std::uint64_t drop_no_qp = 0, drop_state = 0, drop_service = 0, drop_address = 0, drop_pkey = 0, drop_qkey = 0,
                  drop_mad_length = 0, drop_halted = 0, drop_error = 0, drop_sequence = 0, drop_duplicate_read = 0,
                  drop_duplicate_atomic = 0, drop_no_wqe = 0, drop_unreliable = 0;
    std::uint64_t ethernet = 0, drop_ethernet_no_wqe = 0, drop_ethernet_vlan = 0, drop_ethernet_function = 0;
    std::uint64_t local_length = 0, local_operation = 0, local_protection = 0, flushed = 0, remote_invalid = 0,
                  remote_access = 0;
    std::uint64_t ecn_marked = 0, cnps = 0, cnps_lost = 0;
  };
  const counters& count() const { return count_; }

 private:
  enum class verdict : std::uint8_t { done, wait };
  struct completion_entry {
    completion::cqe_request cqe;
    std::uint64_t after = 0;  // payload writes that must be on their way
  };
  struct waiting_frame {
    payload::frame_ptr frame;
    std::uint16_t next = no_link;
  };
  struct poll_entry {
    std::uint32_t qpn = 0;
    std::uint64_t record = 0;
    std::uint16_t function = 0;
    std::uint16_t seen = 0;  // posted count up to which was flushed
    bool last_event = false;
  };
  struct attention_entry {
    std::uint32_t qpn = 0;
    std::uint8_t todo = 0;
    std::uint16_t posted = 0;
  };

  void tick() override;
  // responder.cpp: flows and admission
  void take_answers();
  void accept();
  bool accept_waiting();
  bool accept_new();
  bool accept_copy();
  void accept_in_turn();
  verdict run(std::uint16_t f, payload::frame_ptr& frame);
  std::uint32_t destination(const payload::frame& f) const;
  std::uint16_t find_flow(std::uint32_t qpn) const;
  std::uint16_t open_flow(std::uint32_t qpn);
  bool resolve(responder_flow& f);
  void count_use(responder_flow& f);
  void settle(std::uint16_t f);
  void enqueue(std::uint16_t f, payload::frame_ptr frame);
  void drop_waiting(responder_flow& f);
  std::uint16_t index_of(const responder_flow& f) const { return static_cast<std::uint16_t>(&f - flows_.data()); }

  bool admit(payload::frame_ptr& frame, std::uint32_t qpn);

  // ethernet.cpp: plain frames
  bool accept_ethernet();
  bool spread(payload::frame& frame);
  verdict check_ethernet(responder_flow& f, payload::frame_ptr& frame);
  void complete_ethernet(const responder_flow& f, const responder_slot& s);

  // responder_check.cpp: state flow of a packet (C.7.1)
  verdict check(responder_flow& f, payload::frame_ptr& frame);
  verdict check_rc(responder_flow& f, payload::frame_ptr& frame);
  verdict check_uc(responder_flow& f, payload::frame_ptr& frame);
  bool gate(const responder_flow& f, const payload::frame& frame);
  verdict duplicate(responder_flow& f, payload::frame_ptr& frame);
  verdict repeat(responder_flow& f, payload::frame_ptr& frame);
  verdict execute(responder_flow& f, payload::frame_ptr& frame);
  verdict execute_operation(responder_flow& f, payload::frame_ptr& frame);
  verdict execute_write(responder_flow& f, payload::frame_ptr& frame);
  verdict execute_read(responder_flow& f, payload::frame_ptr& frame);
  // responder_atomics.cpp
  verdict execute_atomic(responder_flow& f, payload::frame_ptr& frame);
  verdict duplicate_atomic(responder_flow& f, payload::frame_ptr& frame);
  bool commit_atomic(responder_slot& s);

  verdict refuse(responder_flow& f, payload::frame_ptr& frame, const responder_error& error);
  verdict refuse_request(responder_flow& f, payload::frame_ptr& frame);
  responder_slot& new_slot(responder_flow& f, payload::frame_ptr& frame, responder_slot::action what);
  void answer(responder_flow& f, payload::frame_ptr& frame, std::uint8_t syndrome, std::uint32_t psn);
  void add_piece(responder_slot& s, std::uint64_t va, std::uint32_t key, std::uint32_t length,
                 std::uint64_t check_length, icm::access access);
  void finish_packet(responder_flow& f, responder_slot& s, const wire::opcode_traits& t);
  void issue(responder_slot& s);
  verdict drop(std::uint64_t& counter) {
    ++counter;
    return verdict::done;
  }

  // responder_receive.cpp: receive WQEs and the packets that use them
  using supply = shared_receive::result;
  supply find_receive(icm::responder_context& ctx, bool first, bool payload, shared_receive::entry_view& out);
  static_assert(static_cast<int>(supply::failed) == static_cast<int>(receive_wqe_cache::result::failed) &&
                static_cast<int>(supply::empty) == static_cast<int>(receive_wqe_cache::result::empty));
  void take_receive(icm::responder_context& ctx, const shared_receive::entry_view& entry, bool keep);
  bool give_back_receive(responder_flow& f);
  supply choose_queue(icm::responder_context& ctx, const payload::frame& frame);
  void flush_shared(const responder_flow& f, std::uint32_t done);
  void push_shared_flushes();
  bool has_shared_flushes(std::uint32_t qpn) const;
  verdict check_ud(responder_flow& f, payload::frame_ptr& frame);
  /// The end of a packet that is a message: its bytes into the receive `entry` (its buffers or, `in_wqe`, itself), a
  /// completion.
  verdict receive_whole(responder_flow& f, responder_slot& s, const shared_receive::entry_view& entry,
                        std::uint8_t cqe_opcode, std::uint32_t bytes, bool in_wqe);
  verdict execute_send(responder_flow& f, payload::frame_ptr& frame);
  verdict no_receive(responder_flow& f, payload::frame_ptr& frame);
  void put_in_wqe(responder_slot& s, const icm::responder_context& ctx, std::uint32_t length);
  bool scatter(responder_slot& s, const shared_receive::entry_view& entry, std::uint32_t offset, std::uint32_t length,
               responder_error& error);

  // responder_commit.cpp: what a packet leaves behind
  void commit();
  bool commit_slot(std::uint16_t i);
  bool commit_payload(responder_slot& s);
  bool commit_read(responder_slot& s);
  // held_reads.cpp: READs that wait in host memory
  bool read_has_place(std::uint32_t qpn, bool has_some) const;
  bool put_aside(responder_flow& f, const read_command& r);
  void work_backlog();
  void fetch_more();
  void stop_fetching(responder_flow& f);
  enum class fetched : std::uint8_t { no, request, nothing };
  fetched fetch_read(std::uint16_t i);
  void note_commit(const responder_slot& s);
  bool drop_repeated(const responder_slot& s);
  void commit_answer(responder_slot& s);
  bool commit_failure(responder_slot& s);
  void fail_translation(responder_slot& s);
  bool raise(std::uint8_t event, std::uint32_t number);
  void queue_cqe(const completion::cqe_request& cqe);
  bool cqe_room() const { return cqe_count_ != cqes_.size(); }
  void complete_in_error(std::uint32_t cqn, std::uint32_t qpn, std::uint16_t wqe_index, std::uint8_t syndrome,
                         std::uint32_t srqn);
  void release_slot(std::uint16_t i);
  void complete(const responder_flow& f, responder_slot& s);
  read_command command_of(const responder_slot& s);
  bool give_up_request(const responder_slot& s);
  void push_cqes();
  // answers.cpp: acknowledgements, and what goes to the READ generator
  bool ack_is_full(const responder_flow& f);
  void set_ack(responder_flow& f, std::uint32_t psn, std::uint32_t msn, sim::span_id asked);
  void set_nak(responder_flow& f, std::uint8_t syndrome, std::uint32_t psn, std::uint32_t msn);
  void route_answer(responder_flow& f);
  void send_answers();
  void send_answer(responder_flow& f);
  void hand_answers();
  void hand_answer(responder_flow& f, bool ack);
  bool may_hand_over() const;
  void hand_over(responder_flow& f, read_command r, bool held = false);
  bool give_up_reads(responder_flow& f);
  void take_report();
  void end_read(responder_flow& f, const read_report& r);
  bool fail_read(responder_flow& f, const read_report& r);
  static constexpr std::uint32_t no_entry = ~std::uint32_t{0};
  /// `done`: receive WQE that was completed in error, or no_entry.
  void enter_error(responder_flow& f, std::uint16_t rq_consumed, bool tell_requester, std::uint32_t done = no_entry);
  std::uint16_t first_uncompleted(const responder_flow& f) const;
  void cancel_slots(responder_flow& f);
  void cancel_slot(responder_flow& f, responder_slot& s);

  // responder_keys.cpp: keys that are withdrawn
  bool invalidate(responder_slot& s);
  void fail_invalidation(responder_slot& s);
  void take_key_answers();
  void take_revocation();
  void refuse_key(std::uint32_t key);
  bool uses_key(std::uint32_t key) const;
  // congestion.cpp: marked packets and CNPs
  void keep_marked(const payload::frame& f);
  void note_marked(const responder_flow& f);
  void take_notices();
  void queue_cnp(std::uint32_t qpn, payload::frame_ptr frame);
  void send_cnp();
  bool send_cnp(unsigned port);

  // responder_control.cpp: registers, commands of firmware, the error state
  void take_errors();
  void work_attention();
  bool attend(responder_flow& f);
  bool flush_queue(responder_flow& f);
  void send_errors();
  bool tell_last_wqe(std::uint32_t qpn);
  void poll_records();
  void start_polling(const responder_flow& f);
  void stop_polling(std::uint32_t qpn);
  void command(std::uint32_t qpn, std::uint32_t code);
  void work_command();
  void work_stopping();
  bool stopping_done(std::uint32_t qpn, bool discard, bool& begun);
  void finish_reset();
  void work_shared();

  const responder_config config_;
  const icm::icm_map& map_;
  const std::array<gid::gid_table*, 2> gids_;
  payload::frame_pool& frames_;
  sim::span_recorder& spans_;
  const sim::pipeline receive_pipeline_{{"sequence", config_.receive.sequence},
                                        {"rights", config_.receive.rights},
                                        {"place", config_.receive.place},
                                        {"order", config_.receive.order}};
  icm::context_cache<icm::responder_context> contexts_;
  icm::context_cache<icm::rdma_resources> histories_;
  std::uint16_t roce_v2_port_ = wire::roce_v2_udp_port;
  std::vector<responder_flow> flows_;
  receive_wqe_cache receive_;
  shared_receive shared_;
  struct shared_flush {
    std::uint32_t qpn, cqn, srqn;
    std::uint16_t index;
  };
  std::vector<shared_flush> shared_flushes_;
  notification_point notification_;
  struct {
    wire::packet packet;
    std::uint8_t port = 0;
    std::uint16_t gid_index = 0;
  } marked_;                                           // packet under check that was marked,
  bool gate_passed_ = false;                           // and whether it was one for its QP
  std::array<sim::ring<payload::frame_ptr>, 2> cnps_;  // by port
  unsigned cnp_turn_ = 0;
  read_backlog backlog_;
  std::vector<std::uint16_t> fetching_;  // flows with READs in host memory, one of each is being fetched

  std::vector<std::uint16_t> free_flows_, active_flows_, waiting_flows_;
  std::vector<std::uint32_t> active_qpns_;  // beside active_flows_
  std::vector<waiting_frame> waiting_;
  std::uint16_t free_waiting_ = no_link;
  std::vector<responder_slot> slots_;
  std::vector<std::uint16_t> free_slots_;
  std::uint16_t first_slot_ = no_link, last_slot_ = no_link;
  unsigned unissued_ = 0;  // slots with pieces that were not sent to translation
  std::uint64_t pass_ = 0;
  bool sums_packets_ = false;  // register rx_checksum_mode
  unsigned turn_ = 0;          // of requests, copies and plain frames, when several wait
  bool plain_spread_ = false;  // the plain frame in front has its final QP
  sim::server check_{*this, "check"};
  unsigned cost_ = 1;  // cycles of the packet just checked

  std::vector<completion_entry> cqes_;  // ring
  std::size_t cqe_head_ = 0, cqe_count_ = 0;
  std::uint64_t writes_asked_ = 0, writes_done_ = 0;  // notified payload writes
  answer_lines ready_;                                // flows with an answer that may leave,
  sim::ring<std::uint16_t> hands_;                    // and with one that goes behind READs
  sim::cycle_t next_answer_ = 0;
  unsigned reads_translating_ = 0;  // first addresses of READs and atomics that translation owes
  bool ack_awaited_ = false;        // a packet waits until the ACK that it would be answered by has left

  bool reads_revoked_ = false;                // the READ generator does not need the key any more
  bool revoking_ = false, flushing_ = false;  // a revocation has begun; the payload before it is being flushed,
  std::uint64_t flush_end_ = 0;               // which is done when as many writes are
  std::uint32_t revoked_key_ = 0;

  std::vector<attention_entry> attention_;
  std::vector<std::uint32_t> errors_;  // QPNs the requester has to be told of
  unsigned todo_flows_ = 0;
  std::vector<poll_entry> polls_;
  std::size_t poll_at_ = 0;
  bool poll_reading_ = false, poll_answered_ = false, poll_ok_ = false;
  std::array<std::uint8_t, 4> poll_bytes_{};
  std::uint32_t poll_qpn_ = 0;
  sim::cycle_t next_poll_ = 0;
  std::unordered_set<std::uint32_t> halted_;
  struct stopping_entry {
    std::uint32_t qpn = 0;
    bool discard = false, begun = false;
  };
  std::vector<stopping_entry> stopping_;
  live_command<icm::responder_context> command_;
  bool resetting_ = false;
  std::uint32_t selected_ = 0, selected_srq_ = 0, reserved_lkey_ = 0, special_qp_base_ = 0, num_qps_log_ = 24;
  counters count_;
  counters counted_at_reset_;  // what the diagnostic counters begin at
};

}  // namespace rnic::transport
