// SPDX-License-Identifier: Apache-2.0
// The requester as a block: its edge and its channels.
#include "model/transport/requester/requester.h"

#include <algorithm>
#include <utility>

#include "model/transport/transport_cr.h"

namespace rnic::transport {

namespace {

void check(bool ok, const char* what) {
  if (!ok) throw sim::config_error(std::string("requester: ") + what);
}

void check(const requester_config& c) {
  check(c.processing_units >= 1 && c.processing_units <= 32, "processing_units must be 1..32");
  check(c.prefetch_bytes >= 64 && c.prefetch_bytes <= 1024, "prefetch_bytes must be 64..1024");
  check(c.gather_depth >= 1 && c.gather_depth <= 64, "gather_depth must be 1..64");
  check(c.scatter_jobs >= 1, "scatter_jobs must be at least 1");
  check(c.outstanding_entries >= 1 && c.scatter_lists >= 1, "outstanding_entries and scatter_lists must be at least 1");
  check(c.max_unacked_packets >= 1 && c.max_unacked_packets <= 1u << 23, "max_unacked_packets must be 1..2^23");
  check(c.timers.entries >= 1 && c.timers.expiry_cycles >= 1, "timers.entries and .expiry_cycles must be at least 1");
  check(c.log_qps >= 8 && c.log_qps <= 24, "log_qps must be 8..24");
  check(c.datapath_bytes >= 1, "datapath_bytes must be at least 1");
  check(c.turn_wqes >= 1 && c.turn_bytes >= 1, "turn_wqes and turn_bytes must be at least 1");
}

}  // namespace

requester::requester(std::string name, sim::clock_domain& domain, const requester_config& cfg, const icm::icm_map& map,
                     const gid_tables& gids, payload::frame_pool& frames, sim::span_recorder& spans,
                     sim::statistics& stats)
    : clocked_block(name, domain),
      config_(cfg),
      gids_(gids),
      frames_(frames),
      spans_(spans),
      contexts_(name + ".contexts", *this, cfg.contexts, map, icm::table::qpc, 0),
      qps_(cfg.log_qps),
      scatters_(cfg.scatter_lists),
      withdrawals_(cfg.log_qps),
      descriptors_(cfg.processing_units),
      limiter_(config_.congestion, domain, cfg.log_qps),
      resumes_(qps_, limiter_, report_out),
      messages_(*this, cfg.outstanding_entries, qps_, scatters_, resumes_),
      units_(*this, cfg.processing_units, qps_),
      timers_(*this, config_.timers, qps_, limiter_),
      go_back_(*this, qps_, contexts_, messages_, units_, timers_, withdrawals_, resumes_, next_packet_),
      drained_(*this, contexts_),
      completions_(*this, qps_, contexts_, messages_, go_back_, drained_, resumes_, diagnostics_, cqe_out, error_out),
      congestion_(config_, qps_, contexts_, gids_, frames_, limiter_, notice_out),
      completer_(*this, config_, settings_, gids_, {rx_in, scatter_out, scatter_in}, qps_, contexts_, messages_,
                 scatters_, go_back_, timers_, resumes_, diagnostics_, congestion_, spans_) {
  check(cfg);
  for (auto& port : egress_)
    for (egress_pool& pool : port) pool.credits = cfg.egress_frames;
  for (unsigned i = 0; i < units_.size(); ++i) units_[i].window.attach(descriptors_, i);
  settings_.port_mtu.fill(cfg.port_mtu);
  announce(stats);
}

void requester::announce(sim::statistics& stats) {
  const std::pair<const char*, const std::uint64_t*> all[] = {
      {"packets", &packets_},
      {"wqes", &wqes_},
      {"late_descriptors", &late_descriptors_},
      {"blueflame_used", &blueflame_used_},
      {"wrong_uar", &wrong_uar_},
      {"no_context", &no_context_},
      {"bad_grant", &bad_grant_},
      {"cancelled_packets", &cancelled_packets_},
      {"stalls", &stalls_},
      {"credit_stalls", &credit_stalls_},
      {"receive_waits", &receive_waits_},
      {"stamped_wqes", &stamped_},
      {"unit_busy_cycles", &unit_busy_cycles_},
      {"ethernet_blocked", &ethernet_blocked_},
      {"key_operations", &key_operations_},
      {"paced", &paced_},
  };
  for (const auto& [n, counter] : all) stats.add(name() + "." + n, *counter);
  messages_.announce(stats);
  timers_.announce(stats);
  go_back_.announce(stats);
  completions_.announce(stats);
  completer_.announce(stats);
  congestion_.announce(name(), stats);
  contexts_.announce(stats);
}

void requester::tick() {
  contexts_.service();
  read_engine.work();
  take_credits();
  take_errors();
  take_descriptors();
  take_key_answers();
  take_left();
  take_gather_events();
  take_addresses();
  completer_.take_scattered();
  completer_.take_response();
  if (qp_runtime* const r = timers_.expired(); r != nullptr && completer_.time_out(*r)) timers_.done();
  if (limiter_.earliest() <= now()) wake_paced();
  go_back_.walk();
  completions_.work();
  if (!halts_.empty()) run_halts();
  if (!command_.idle()) work_command();
  run_units();
  start_packets();
  take_grants();
  go_back_.take_back();  // what comes for the queue pair meets it as it went back, before it sends again
  resumes_.push();
  listen_to_descriptors();
  const sim::cycle_t next = std::min(timers_.next(), limiter_.earliest());
  if (next != sim::never) wake_at(std::max(next, now() + 1));
}

void requester::take_credits() {
  for (unsigned port = 0; port < ports; ++port) {
    if (!credit_in[port].can_pop()) continue;
    credit_in[port].take_due([&](const egress_credit& c) { return_credit(port, c.priority % priorities); });
    if (!awaits_credit_[port]) continue;
    const auto& all = egress_[port];
    awaits_credit_[port] = std::any_of(all.begin(), all.end(), [](const egress_pool& p) { return p.is_awaited(); });
    credit_in[port].set_quiet(!awaits_credit_[port]);
  }
}

// The responder found an error, or a completion was lost: everything not yet complete is flushed.
void requester::take_errors() {
  if (error_in.can_pop() && stop_for(error_in.front().qpn, false)) error_in.pop();
  if (!lost_in.bound()) return;
  if (lost_in.can_pop() && stop_for(lost_in.front().qpn, true)) lost_in.pop();
}

// False: not now. `fatal`: nobody has told software yet.
bool requester::stop_for(std::uint32_t qpn, bool fatal) {
  if (!qps_.legal(qpn) || qps_[qpn].halted || qps_[qpn].flushing) return true;
  if (go_back_.busy(qps_[qpn]) || (fatal && !event_out.claim())) return false;
  context* c = nullptr;
  const auto found = contexts_.lookup(qpn, c);
  if (found == decltype(contexts_)::result::pending) return false;
  if (found != decltype(contexts_)::result::hit || c->qpn != qpn || c->state == icm::qp_state::error) return true;
  go_back_.enter_error(*c, qps_[qpn]);
  contexts_.mark_dirty(qpn);
  if (!fatal) return true;
  completion::event_request e;
  e.type = static_cast<std::uint8_t>(abi::eqe::event::wq_catastrophic);
  e.set(abi::eqe::number, qpn);
  event_out.push(e);
  return true;
}

}  // namespace rnic::transport
