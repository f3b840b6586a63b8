// SPDX-License-Identifier: Apache-2.0
// The requester as a block: its edge and its channels.
#include "model/transport/requester/requester.h"

#include <algorithm>

namespace rnic::transport {

namespace {

const requester_config& checked(const requester_config& c, const std::string& name) {
  if (c.log_qps < 8 || c.log_qps > 24) throw sim::config_error(name + ".log_qps: must be 8 to 24");
  if (c.datapath_bytes == 0) throw sim::config_error(name + ".datapath_bytes: must be at least 1");
  return sim::checked(c, name);
}

}  // namespace

requester::requester(std::string name, sim::clock_domain& domain, const requester_config& cfg, const icm::icm_map& map,
                     const gid_tables& gids, requester_memories& shared, payload::frame_pool& frames,
                     sim::span_recorder& spans, sim::statistics& stats)
    : clocked_block(name, domain),
      config_(checked(cfg, this->name())),
      contexts_(*this, cfg.contexts, cfg.context_ports, map),
      qps_(cfg.log_qps),
      limiter_(config_.congestion, domain, cfg.log_qps),
      resumes_(qps_, limiter_, report_out),
      messages_(*this, cfg.outstanding_entries, cfg.message_append_ports, cfg.processing_units, qps_, shared.lists,
                resumes_),
      units_(*this, cfg.processing_units, qps_),
      timers_(*this, {timer_out, timer_in}, qps_),
      go_back_(*this, cfg.withdrawal_ports, qps_, contexts_, messages_, units_, timers_, shared.withdrawn, resumes_,
               next_packet_),
      drained_(*this, contexts_, qps_),
      completions_(*this, qps_, contexts_, messages_, go_back_, drained_, resumes_, diagnostics_, cqe_out, error_out,
                   spans),
      completer_(*this, config_, settings_, gids,
                 {rx_in, scatter_out, scatter_in, notice_out, cnp_out, response_engine}, qps_, contexts_, messages_,
                 shared.lists, go_back_, timers_, resumes_, diagnostics_, limiter_, frames, spans),
      credits_(*this, cfg.egress_frames, cfg.credit_wait_cycles, credit_in, qps_, units_, resumes_),
      pacing_(*this, config_.congestion, limiter_, qps_, units_, resumes_, spans),
      departures_(*this, {left_in, gather_event_in, verdict_out}, qps_, contexts_, messages_, go_back_, credits_),
      transmit_(*this, config_, settings_, frames, spans, {packet_out, piece_out, read_engine}, qps_, contexts_,
                messages_, units_, timers_, credits_, pacing_, departures_, next_packet_),
      processing_(*this, config_, settings_, spans,
                  {grant_in, report_out, address_in, descriptor_out, descriptor_in, keys}, qps_, contexts_, units_,
                  {messages_, go_back_, completions_, drained_, credits_, pacing_, departures_}, next_packet_),
      control_(*this, config_, settings_, {error_in, lost_in, grant_in, event_out}, qps_, contexts_,
               {messages_, units_, processing_.reader(), departures_, go_back_, timers_, drained_, limiter_, pacing_,
                resumes_, credits_, diagnostics_}) {
  show_inputs();
  for (unsigned i = 0; i < units_.size(); ++i) units_[i].window.attach(shared.descriptors, i);
  transmit_.announce(stats);
  processing_.announce(stats);
  pacing_.announce(stats);
  credits_.announce(stats);
  departures_.announce(stats);
  messages_.announce(stats);
  timers_.announce(stats);
  go_back_.announce(stats);
  completions_.announce(stats);
  completer_.announce(stats);
  contexts_.announce(stats);
  limiter_.qcn().announce(this->name(), stats);
}

void requester::show_inputs() {
  for (unsigned port = 0; port < egress_ports; ++port) credit_in[port].show_in(filled_, of_credits + port);
  error_in.show_in(filled_, of_errors);
  lost_in.show_in(filled_, of_lost);
  descriptor_in.show_in(filled_, of_descriptors);
  keys.response.show_in(filled_, of_keys);
  left_in.show_in(filled_, of_left);
  gather_event_in.show_in(filled_, of_events);
  address_in.show_in(filled_, of_addresses);
  scatter_in.show_in(filled_, of_scattered);
  rx_in.show_in(filled_, of_responses);
  timer_in.show_in(filled_, of_expirations);
  grant_in.show_in(filled_, of_grants);
  cnm_in.show_in(filled_, of_cnms);
}

// What comes back goes before what is sent. Where engines share a memory, one sees in the same cycle what those before
// it in this list have changed.
void requester::tick() {
  contexts_.service();
  read_engine.work();
  if ((filled_ & any_credits) != 0) credits_.take();
  if (holds(of_errors) || holds(of_lost)) control_.take_errors();
  if (holds(of_descriptors)) processing_.reader().take_results();
  if (holds(of_keys)) processing_.take_key_answer();
  if (holds(of_left)) departures_.take_left();
  if (holds(of_events)) departures_.take_event();
  if (holds(of_addresses)) processing_.take_addresses();
  if (holds(of_scattered)) completer_.take_scattered();
  if (holds(of_responses)) completer_.take_response();
  if (holds(of_expirations))
    if (qp_runtime* const r = timers_.expired(); r != nullptr) completer_.time_out(*r);
  if (holds(of_cnms) && cnm_in.can_pop()) limiter_.notified(cnm_in.pop());
  pacing_.wake_due();
  go_back_.walk();
  if (!messages_.to_complete().empty()) completions_.work();
  control_.work();
  processing_.work();
  transmit_.work();
  if (holds(of_grants)) processing_.take_grant();
  go_back_.take_back();  // what comes for the queue pair meets it as it went back, before it sends again
  go_back_.write_withdrawals();
  resumes_.push();
  timers_.send();
  processing_.reader().listen(control_.halting());
  processing_.look_again();
  const sim::cycle_t next = limiter_.earliest();
  if (next != sim::never) wake_at(std::max(next, edge() + 1));
}

}  // namespace rnic::transport
