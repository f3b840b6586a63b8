// SPDX-License-Identifier: Apache-2.0
// The completer: acknowledgements, negative ones, READ and atomic responses, and what no answer leads to.
#pragma once

#include <cstdint>
#include <string>

#include "model/icm/contexts.h"
#include "model/payload/frame.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/pipeline.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/transport/path_check.h"
#include "model/transport/read_engine/read_engine_port.h"
#include "model/transport/requester/config.h"
#include "model/transport/requester/congestion_port.h"
#include "model/transport/requester/context_memory.h"
#include "model/transport/requester/diagnostics.h"
#include "model/transport/requester/go_back.h"
#include "model/transport/requester/message_table.h"
#include "model/transport/requester/resumptions.h"
#include "model/transport/requester/scatter.h"
#include "model/transport/requester/settings.h"
#include "model/transport/requester/timer_port.h"
#include "model/transport/traffic_counters.h"

namespace rnic::transport {

/// Data sheet.
///
/// Ports, each of one item a cycle: responses in, from the ICRC check, through the pipeline of `response` stages, which
/// is the channel; jobs for scatter out, its reports in.
///
/// A response is taken in the cycle in which it leaves the pipeline: its queue pair's context is changed, its message
/// told of what has come, its payload handed to scatter, a retransmission decided. The message is the first that waits
/// for an answer, or for an acknowledgement none needs to be known; of an answer that is refused or unexpected it is
/// searched for, an entry a cycle. When a timer ends the search finds where to go back to.
///
/// Memories: the context; the ports' GID tables, a read port of its own (path_check); the message table.
///
/// READ engine: a packet of a READ response takes it for its bytes (read_engine_config::received) and
/// response_overhead_cycles, at least read_response_cycles. The least that the first one of a READ can take was booked
/// with the request, so one of up to 96 bytes takes no more. A packet that does asks when it stands in front, is the
/// one that was expected and lacks nothing else, and goes on in the cycle in which it has the grant, two cycles later
/// where the engine is free; the one behind it has asked before the engine has ended. A response that brings nothing
/// (repeated, late, refused) takes no engine.
///
/// Stalls, for all behind it too, which are acknowledgements, notifications of congestion and other responses, and by
/// the ICRC check requests where the channel is full: context not on chip; no room for a job of scatter; search;
/// go-back of its queue pair; no grant of the READ engine. The last ends by itself: what the engine does takes a known
/// number of cycles, responses come before all that want to start there, and none of it waits for what stands here.
/// Reports of scatter wait for go-back of their queue pair.
class completer {
 public:
  using context = icm::requester_context;
  struct port_set {
    sim::fifo_in<payload::frame_ptr>& responses;
    sim::fifo_out<scatter_job>& scatter;
    sim::fifo_in<scatter_done>& scattered;
    const sim::fifo_out<rate_notice>& notices;
    const sim::fifo_out<congestion_notice>& cnps;
    read_engine_port& read_engine;
  };
  /// Counts what it finds to be of its queue pair.
  void count_into(traffic_table& t) { traffic_ = &t; }
  completer(sim::clocked_block& owner, const requester_config& config, const requester_settings& settings,
            const gid_tables& gids, port_set ports, qp_table& qps, context_memory& contexts, message_table& messages,
            scatter_lists& scatters, go_back& back, timer_port& timers, resumptions& resumes,
            diagnostic_counters& diagnostics, rate_limiter& limiter, payload::frame_pool& frames,
            sim::span_recorder& spans);
  void announce(sim::statistics& to) const;

  void take_response();
  void take_scattered();
  /// The timer of the queue pair has ended, which is offered until it is taken (timer_port::end).
  void time_out(qp_runtime& r);

 private:
  bool handle(payload::frame_ptr& f);
  bool message_of(const qp_runtime& r, const wire::packet& p, std::uint32_t& index);
  void handle_early(context& c, qp_runtime& r, const wire::packet& p);
  void handle_acknowledge(context& c, qp_runtime& r, const wire::packet& p, std::uint32_t index);
  void handle_not_ready(context& c, qp_runtime& r, const wire::packet& p, std::uint32_t index);
  void handle_nak(context& c, qp_runtime& r, const wire::packet& p, std::uint32_t index);
  /// What a packet of a READ response is to its message.
  enum class read_part : std::uint8_t { stray, not_of_a_read, repeated, behind_a_loss, wrong, expected };
  read_part part_of(const context& c, const qp_runtime& r, const wire::packet& p, std::uint32_t index) const;
  bool has_engine(const wire::packet& p);
  void handle_read(context& c, qp_runtime& r, payload::frame_ptr& f, std::uint32_t index, read_part part);
  void handle_atomic(context& c, qp_runtime& r, payload::frame_ptr& f, std::uint32_t index);
  void accept(context& c, qp_runtime& r, std::uint32_t index, sim::span_id span);
  bool lacks_data_before(const qp_runtime& r, wire::psn_t psn) const;
  bool acknowledge_before(context& c, qp_runtime& r, wire::psn_t psn);
  void progress(context& c, qp_runtime& r, wire::psn_t unacked);
  void still_answering(context& c, qp_runtime& r, wire::psn_t psn);
  void retry(context& c, qp_runtime& r, std::uint32_t index, wire::psn_t psn);
  void take_receives(context& c, qp_runtime& r, wire::psn_t psn, const wire::aeth& answer);
  void scatter_payload(const context& c, qp_runtime& r, std::uint32_t index, payload::frame_ptr f,
                       std::uint32_t offset);

  sim::clocked_block& owner_;
  const requester_config& config_;
  const requester_settings& settings_;
  port_set ports_;
  qp_table& qps_;
  context_memory& contexts_;
  message_table& messages_;
  scatter_lists& scatters_;
  go_back& go_back_;
  timer_port& timers_;
  resumptions& resumes_;
  diagnostic_counters& diagnostics_;
  sim::span_recorder& spans_;
  path_check path_;
  traffic_table* traffic_ = nullptr;
  congestion_port congestion_;
  const sim::pipeline_stages stages_;
  message_search response_search_, timer_search_;
  sim::cycle_t asked_engine_ = sim::never;  // when the response in front did
  struct {
    std::uint64_t timeouts = 0, naks = 0, rnr_naks = 0, stray = 0, duplicate = 0, ghost = 0, foreign = 0,
                  not_a_response = 0, dropped_halted = 0;
  } counts_;
};

}  // namespace rnic::transport
