// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/run.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <stdexcept>
#include <systemc>

#include "host_driver/hosts/node.h"
#include "model/fabric/cable.h"
#include "testbenches/bench/cable_player.h"
#include "testbenches/replay/comments.h"
#include "testbenches/replay/host.h"
#include "testbenches/replay/numbers.h"
#include "testbenches/replay/outputs.h"
#include "testbenches/replay/packets.h"
#include "testbenches/replay/questions.h"
#include "testbenches/replay/steps.h"

namespace rnic::replay {

namespace {

constexpr std::uint32_t player_khz = 1'000'000;  // resolution of injection: 1 ns, that of the captures
constexpr std::size_t spans_kept = 4096;
constexpr unsigned patience = 50;  // rests that a connection may be without news while others are busy

/// Frames of the held host that are waited for, the first one first.
using debts = std::deque<std::size_t>;

/// One connection's way through its steps.
struct lane {
  std::vector<step> steps;
  std::size_t next = 0;
  debts owed, owed_answers;        // expected requests and answers before `next`
  debts owed_again;                // of the requests those for which the peer asked by NAK
  bool begun = true;               // false: another connection has its queue pair number
  bool queued = false;             // in `ready`
  bool blocked = false;            // waits for the adapter
  sim::time_ps active = 0;         // when something happened to it last
  sim::time_ps appointment = 0;    // in `timed`
  sim::time_ps ends_at = 0;        // its queue pair has failed: when it is taken down
  sim::time_ps patient_until = 0;  // the adapter has been told to wait
};

class director final : public bench::player_listener_if {
 public:
  director(plan& p, const replay_settings& s, std::unique_ptr<comparison>& compared, const progress& shown);
  replay_result run();

  void injected(std::size_t number, sim::span_id span, sim::time_ps first_bit) override;
  void received(const payload::frame& f, sim::time_ps arrival) override;

 private:
  void program();
  void leave_out(const std::vector<std::pair<int, std::string>>& rejected);
  void make_steps();
  bool advance(lane& l, int connection, bool force);
  bool may_take(lane& l, const step& s);
  bool is_free(const installation& i) const;
  void end_soon(int connection);
  void end_failed(int connection);
  void take(lane& l, int connection, const step& s);
  void inject(lane& l, const step& s);
  void go_on_without(lane& l);
  sim::time_ps due(const lane& l) const;
  void wake(int connection);
  void wake_with_others(int connection);
  bool run_ready();
  bool captured_failure(int connection) const;
  bool force_blocked();
  void wait_for_change();
  void touch() { last_activity_ = std::max(last_activity_, base_.now_ps()); }

  plan& plan_;
  const replay_settings& settings_;
  std::unique_ptr<comparison>& compared_;
  const progress& shown_;
  sim::timebase base_;
  sim::span_recorder spans_{spans_kept};
  sim::statistics statistics_;
  payload::frame_pool frames_;
  payload::tlp_pool packets_;
  std::unique_ptr<hosts::node> node_;
  std::unique_ptr<sim::clock_domain> clock_;
  std::unique_ptr<bench::cable_player> player_;
  std::unique_ptr<fabric::cable> cable_;
  std::unique_ptr<outputs> outputs_;
  std::unique_ptr<replay_host> host_;
  sc_core::sc_event change_{"replay_change"};
  std::vector<lane> lanes_;
  std::deque<int> ready_;  // connections that may have something to do
  using appointment = std::pair<sim::time_ps, int>;
  std::priority_queue<appointment, std::vector<appointment>, std::greater<>> timed_;
  std::set<int> blocked_;           // connections that wait for the adapter
  std::set<int> waits_for_others_;  // of these those that wait for another connection's answers
  std::size_t unfinished_ = 0;
  std::size_t handed_over_ = 0;  // frames given to the player that have not begun yet
  sim::time_ps last_activity_ = 0;
  replay_result result_;
  std::exception_ptr failure_;
  bool ended_ = false;
};

director::director(plan& p, const replay_settings& s, std::unique_ptr<comparison>& compared, const progress& shown)
    : plan_(p), settings_(s), compared_(compared), shown_(shown), base_(s.system.timing) {
  const adapter::environment env{base_, spans_, statistics_, frames_, packets_};
  spans_.enable(true);
  hosts::node_config c = hosts::of_side(s.system.node, 0);
  const unsigned port = s.system.ports.front();
  c.cabled = 1u << (port - 1);
  shape_node(p, port, c);
  node_ = std::make_unique<hosts::node>("held", env, c, 0);
  clock_ = std::make_unique<sim::clock_domain>("player_clock", base_, sim::clock_period::from_khz(player_khz));
  player_ = std::make_unique<bench::cable_player>("player", *clock_, frames_, spans_, c.adapter.rate_mbps(port - 1));
  player_->set_listener(this);
  fabric::cable::config cable;
  cable.metres = s.system.cable_metres;
  cable_ = std::make_unique<fabric::cable>(node_->connector(port), *player_, cable);
  outputs_ = std::make_unique<outputs>(s, *cable_);
  host_ = std::make_unique<replay_host>(p, *node_, port);
  result_.injected_at.assign(p.frames.size(), never);
}

void director::injected(std::size_t number, sim::span_id, sim::time_ps first_bit) {
  compared_->injected(number, first_bit);
  if (number < plan_.frames.size()) {
    result_.injected_at[number] = first_bit;
    ++result_.injected;
  }
  --handed_over_;
  touch();
  wake_with_others(plan_.frame(number).connection);
  change_.notify(sc_core::SC_ZERO_TIME);
}

void director::received(const payload::frame& f, sim::time_ps) {
  const int connection = compared_->received(f, spans_);
  touch();
  if (connection < 0) return;
  wake_with_others(connection);
  const std::uint8_t syndrome = compared_->answers().back().syndrome;
  if (syndrome_kind(syndrome) == aeth_kind::nak && (syndrome & 0x1f) != 0) end_soon(connection);
  change_.notify(sc_core::SC_ZERO_TIME);
}

void director::leave_out(const std::vector<std::pair<int, std::string>>& rejected) {
  std::map<int, std::string> why(rejected.begin(), rejected.end());
  if (why.empty()) return;
  for (captured_frame& f : plan_.frames) {
    const auto at = why.find(f.connection);
    if (at == why.end()) continue;
    f.connection = -1;
    ++plan_.rejected[at->second];
  }
  for (const auto& [connection, reason] : why) plan_.connections[static_cast<std::size_t>(connection)].order.clear();
}

void director::make_steps() {
  lanes_.resize(plan_.connections.size());
  for (std::size_t i = 0; i < lanes_.size(); ++i) lanes_[i].steps = steps_of(plan_, i);
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const int before = plan_.connections[i].before;
    if (before >= 0) lanes_[static_cast<std::size_t>(before)].steps.push_back({step::kind::succeed, no_frame, i});
    lanes_[i].begun = before < 0;
  }
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    unfinished_ += lanes_[i].steps.empty() ? 0 : 1;
    if (lanes_[i].begun) wake(static_cast<int>(i));
  }
}

/// A queue pair in error goes on looking for work to flush. What it has to say it says soon.
void director::end_soon(int connection) {
  lane& l = lanes_[static_cast<std::size_t>(connection)];
  if (l.ends_at != 0) return;
  l.ends_at = base_.now_ps() + settings_.rest_ps;
  timed_.emplace(l.ends_at, connection);
}

void director::end_failed(int connection) {
  lane& l = lanes_[static_cast<std::size_t>(connection)];
  if (l.ends_at == 0 || l.ends_at > base_.now_ps() || !host_->is_ready(connection)) return;
  host_->close(connection);
}

void director::wake(int connection) {
  lane& l = lanes_[static_cast<std::size_t>(connection)];
  l.active = std::max(l.active, base_.now_ps());
  if (l.queued || !l.begun || l.next == l.steps.size()) return;
  l.queued = true;
  ready_.push_back(connection);
}

/// Peer requests come after what the held host had sent before them; answers after their questions. What the held host
/// sends of its own accord waits for its earlier answers only, so that its requests can be under way together.
bool director::may_take(lane& l, const step& s) {
  const auto settle = [&](debts& d) {
    while (!d.empty() && compared_->settled(d.front())) d.pop_front();
    return d.empty();
  };
  if (s.what == step::kind::post) return settle(l.owed_answers);
  if (s.what == step::kind::inject) {
    const captured_frame& f = plan_.frame(s.frame);
    if (f.crosses != no_frame && !compared_->settled(f.crosses)) return false;
    if (wire::traits(f.packet.bth.opcode).response)
      return compared_->asked(f.connection, f.packet.bth.psn) && settle(l.owed_again);
  }
  if (!settle(l.owed) || !settle(l.owed_answers)) return false;
  if (s.what != step::kind::install || is_free(plan_.installed.at(s.frame))) return true;
  waits_for_others_.insert(plan_.frame(s.frame).connection);
  return false;
}

/// Something has happened to a connection; others may have waited for it.
void director::wake_with_others(int connection) {
  wake(connection);
  for (const int other : waits_for_others_) wake(other);
  waits_for_others_.clear();
}

/// Whether what had the place of a region has served.
bool director::is_free(const installation& i) const {
  if (i.behind < plan_.frames.size() && plan_.frames[i.behind].connection >= 0 &&
      result_.injected_at[i.behind] == never)
    return false;
  return i.settled == no_frame || plan_.frames[i.settled].connection < 0 || compared_->settled(i.settled);
}

void director::go_on_without(lane& l) {
  for (const debts* d : {&l.owed, &l.owed_answers, &l.owed_again})
    for (const std::size_t i : *d) compared_->give_up(i);
  l.owed.clear();
  l.owed_answers.clear();
  l.owed_again.clear();
}

/// When the capture's clock allows the next step.
sim::time_ps director::due(const lane& l) const {
  const step& s = l.steps[l.next];
  if (!settings_.captured_timing || s.frame == no_frame || s.what == step::kind::allow) return 0;
  return result_.started_at + plan_.frame(s.frame).at;
}

void director::inject(lane& l, const step& s) {
  const captured_frame& f = plan_.frame(s.frame);
  host_->memory().fill(s.frame);
  ++handed_over_;
  player_->send(s.frame, bytes_on_wire(f), wire::traits(f.packet.bth.opcode).request && s.frame < plan_.frames.size());
  if (!is_rnr(f.packet)) return;
  l.patient_until = std::max(l.patient_until, base_.now_ps() + rnr_wait(f.packet.aeth.syndrome));
}

void director::take(lane& l, int connection, const step& s) {
  switch (s.what) {
    case step::kind::inject:
      return inject(l, s);
    case step::kind::allow:
      return host_->allow(connection, s.frame);
    case step::kind::revoke:
      return host_->memory().revoke(static_cast<std::uint32_t>(s.number));
    case step::kind::install:
      return host_->memory().install(s.number);
    case step::kind::succeed: {
      const auto next = static_cast<int>(s.number);
      host_->close(connection);
      if (!plan_.connections[s.number].order.empty()) host_->open(next);
      compared_->begin(next);
      lanes_[s.number].begun = true;
      wake(next);
      return;
    }
    default:
      return;
  }
}

/// Takes the next step of a connection if it may be taken, or with `force` if it is only waiting for the adapter.
bool director::advance(lane& l, int connection, bool force) {
  if (l.next == l.steps.size()) return false;
  const step& s = l.steps[l.next];
  l.blocked = false;
  if (s.what == step::kind::expect) {
    (wire::traits(plan_.frame(s.frame).packet.bth.opcode).response ? l.owed_answers : l.owed).push_back(s.frame);
    if (plan_.frame(s.frame).asked_again) l.owed_again.push_back(s.frame);
    ++l.next;
    return true;
  }
  if (const sim::time_ps at = due(l); at > base_.now_ps()) {
    if (l.appointment != at) timed_.emplace(at, connection);
    l.appointment = at;
    return false;
  }
  l.blocked = true;
  if (!may_take(l, s)) {
    if (!force) return false;
    go_on_without(l);
  }
  if (s.what != step::kind::post) {
    take(l, connection, s);
  } else if (host_->post(connection, s.number)) {
    ++result_.posted;
  } else if (force) {  // the queue pair takes no more work: it has failed, or the peer acknowledges nothing
    compared_->note(difference_kind::not_posted, connection, s.frame + 1, describe(plan_.frame(s.frame).packet), "");
  } else {
    return false;
  }
  l.blocked = false;
  ++l.next;
  touch();
  l.active = base_.now_ps();
  return true;
}

/// Takes the steps of connections to which something has happened. True when something was done.
bool director::run_ready() {
  while (!timed_.empty() && timed_.top().first <= base_.now_ps()) {
    const int connection = timed_.top().second;
    timed_.pop();
    end_failed(connection);
    wake(connection);
  }
  bool done = false;
  while (!ready_.empty() && handed_over_ < 64) {
    const int connection = ready_.front();
    lane& l = lanes_[static_cast<std::size_t>(connection)];
    while (handed_over_ < 64 && advance(l, connection, false)) done = true;
    if (l.next == l.steps.size()) --unfinished_;
    if (handed_over_ >= 64 && l.next != l.steps.size()) break;  // it goes on when the line has room
    ready_.pop_front();
    l.queued = false;
    if (l.blocked)
      blocked_.insert(connection);
    else
      blocked_.erase(connection);
  }
  return done;
}

/// Connections go on without what the adapter does not send: all when it has been at rest, one for which nothing came
/// for long while others are busy.
bool director::force_blocked() {
  if (handed_over_ != 0) return false;
  const sim::time_ps now = base_.now_ps();
  const bool at_rest = now >= last_activity_ + settings_.rest_ps;
  std::vector<int> forced;
  for (const int connection : blocked_) {
    const lane& l = lanes_[static_cast<std::size_t>(connection)];
    const bool patient = now < l.patient_until + settings_.rest_ps;
    if (!patient && (at_rest || (settings_.captured_timing && now >= l.active + patience * settings_.rest_ps)))
      forced.push_back(connection);
  }
  for (const int connection : forced) {
    lane& l = lanes_[static_cast<std::size_t>(connection)];
    if (l.blocked && advance(l, connection, true) && l.next == l.steps.size()) --unfinished_;
    blocked_.erase(connection);
    wake(connection);
  }
  return !forced.empty();
}

/// Until a frame comes or goes, the clock of the capture allows a step, or the adapter has been at rest for long.
void director::wait_for_change() {
  const sim::time_ps now = base_.now_ps();
  sim::time_ps until = timed_.empty() ? never : timed_.top().first;
  // Completions do not wake anybody: a last look at them is due when the adapter has come to rest.
  const sim::time_ps rest = last_activity_ + settings_.rest_ps;
  if (rest > now) until = std::min(until, rest);
  for (const int connection : blocked_) {
    const lane& l = lanes_[static_cast<std::size_t>(connection)];
    const sim::time_ps alone =
        settings_.captured_timing ? std::min(rest, l.active + patience * settings_.rest_ps) : rest;
    until = std::min(until, std::max({alone, l.patient_until + settings_.rest_ps, now + sim::ps_per_us}));
  }
  if (until == never) until = std::max(rest, now + sim::ps_per_us);
  sc_core::wait(sc_core::sc_time::from_value(std::max(until, now + 1) - now), change_);
}

/// The real host's queue pair failed as well: it or its peer refused a request, and did so here.
bool director::captured_failure(int connection) const {
  const struct connection& c = plan_.connections[static_cast<std::size_t>(connection)];
  if (c.refusals.by_peer != no_frame && result_.injected_at[c.refusals.by_peer] != never) return true;
  if (c.refusals.by_held == no_frame) return false;
  const std::size_t e = compared_->expectation_of(c.refusals.by_held);
  return e != 0 && compared_->expectations()[e - 1].answer != 0;
}

void director::program() {
  hosts::require(node_->start(), "open device");
  host_->set_up(result_.left_out, plan_.remarks);
  leave_out(result_.left_out);
  compared_ = std::make_unique<comparison>(plan_, settings_.ignored);
  make_steps();
  last_activity_ = result_.started_at = base_.now_ps();
  outputs_->set_clock({result_.started_at, plan_.notes.start_ns});
  for (;;) {
    const std::size_t failures = host_->failures().size();
    for (const int connection : host_->poll()) wake(connection);
    for (std::size_t i = failures; i < host_->failures().size(); ++i) end_soon(host_->failures()[i].connection);
    if (run_ready() || force_blocked()) continue;
    if (unfinished_ == 0 && handed_over_ == 0 && base_.now_ps() >= last_activity_ + settings_.rest_ps) break;
    shown_(result_.injected);
    wait_for_change();
  }
  result_.ended_at = base_.now_ps();
  for (const replay_host::failed& f : host_->failures())
    if (!captured_failure(f.connection))
      compared_->note(difference_kind::failed_completion, f.connection, 0, "",
                      f.status + " on queue pair " +
                          std::to_string(plan_.connections[static_cast<std::size_t>(f.connection)].held_qpn));
  result_.pauses = player_->pauses();
  result_.deliveries = host_->deliveries();
  for (std::size_t i = 0; i < result_.deliveries.size(); ++i)
    compared_->delivered(static_cast<int>(i), result_.deliveries[i].messages);
  compared_->finish();
}

replay_result director::run() {
  sc_core::sc_spawn(
      [this] {
        try {
          program();
          ended_ = true;
        } catch (...) {
          failure_ = std::current_exception();
        }
        sc_core::sc_stop();
      },
      "replay");
  sc_core::sc_start();
  outputs_->close([this] {
    return compared_ && ended_ ? comment_on(plan_, *compared_, result_, captured_questions(plan_)) : comments{};
  });
  if (failure_) std::rethrow_exception(failure_);
  if (!ended_) throw std::runtime_error("the simulation came to rest before the replay had ended");
  return std::move(result_);
}

}  // namespace

replay_result run_plan(plan& p, const replay_settings& settings, std::unique_ptr<comparison>& compared,
                       const progress& shown) {
  director d(p, settings, compared, shown);
  return d.run();
}

}  // namespace rnic::replay
