// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/run.h"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <string_view>
#include <systemc>

#include "model/fabric/cable.h"
#include "testbenches/bench/cable_player.h"
#include "testbenches/bench/node.h"
#include "testbenches/replay/comments.h"
#include "testbenches/replay/host.h"
#include "testbenches/replay/latencies.h"
#include "tlm/capture.h"
#include "tlm/pcapng_writer.h"

namespace rnic::replay {

namespace {

constexpr std::uint32_t player_khz = 1'000'000;  // resolution of injection: 1 ns, that of the captures
constexpr sim::time_ps never = ~sim::time_ps{0};
constexpr std::size_t spans_kept = 4096;
constexpr std::string_view commented_ending = ".pcapng";

bool has_comments(const std::string& file) {
  return file.size() >= commented_ending.size() &&
         file.compare(file.size() - commented_ending.size(), commented_ending.size(), commented_ending) == 0;
}

/// What happens next on a connection, in the order of the capture.
struct step {
  enum class kind : std::uint8_t { inject, expect, post };
  kind what;
  std::size_t frame;    ///< of the capture
  std::size_t message;  ///< post
};

/// One connection's way through its steps.
struct lane {
  std::vector<step> steps;
  std::size_t next = 0;
  std::vector<std::size_t> owed;  ///< expected frames before `next` that have not been seen to be settled
};

class director final : public bench::player_listener_if {
 public:
  director(plan& p, const replay_settings& s, std::unique_ptr<comparison>& compared, const progress& shown);
  replay_result run();

  void injected(std::size_t number, sim::span_id span, sim::time_ps first_bit) override;
  void received(const tlm::frame& f, sim::time_ps arrival) override;

 private:
  void open_outputs();
  void close_outputs();
  void program();
  void leave_out(const std::vector<std::pair<int, std::string>>& rejected);
  void make_steps();
  bool advance(lane& l, int connection, bool force);
  bool may_inject(lane& l, const captured_frame& f, bool requests_too);
  void go_on_without(lane& l, const captured_frame& f);
  sim::time_ps due(const lane& l) const;
  bool pass_round();
  void wait_for_change();
  void touch() { last_activity_ = std::max(last_activity_, base_.now_ps()); }

  plan& plan_;
  const replay_settings& settings_;
  std::unique_ptr<comparison>& compared_;
  const progress& shown_;
  sim::timebase base_;
  sim::span_recorder spans_{spans_kept};
  sim::statistics statistics_;
  tlm::frame_pool frames_;
  tlm::tlp_pool packets_;
  std::unique_ptr<bench::node> node_;
  std::unique_ptr<sim::clock_domain> clock_;
  std::unique_ptr<bench::cable_player> player_;
  std::unique_ptr<fabric::cable> cable_;
  std::vector<std::unique_ptr<tlm::capture_writer>> captures_;
  std::unique_ptr<tlm::capture_writer> merged_;
  std::unique_ptr<tlm::pcapng_writer> commented_;
  std::unique_ptr<replay_host> host_;
  sc_core::sc_event change_{"replay_change"};
  std::vector<lane> lanes_;
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
  bench::node_config c = s.system.node;
  shape_node(p, c);
  node_ = std::make_unique<bench::node>("held", env, c, 0);
  clock_ = std::make_unique<sim::clock_domain>("player", base_, sim::clock_period::from_khz(player_khz));
  player_ = std::make_unique<bench::cable_player>("player", *clock_, frames_, spans_, c.adapter.port.rate_mbps);
  player_->set_listener(this);
  fabric::cable::config cable;
  cable.metres = s.system.cable_metres;
  cable_ = std::make_unique<fabric::cable>(node_->nic().port(0), *player_, cable);
  open_outputs();
  host_ = std::make_unique<replay_host>(p, *node_);
  result_.injected_at.assign(p.frames.size(), never);
}

void director::open_outputs() {
  const tlm::capture_writer::config& how = settings_.system.capture_options;
  for (const std::string& file : settings_.outputs) {
    captures_.push_back(std::make_unique<tlm::capture_writer>(file, how));
    cable_->add_observer(*captures_.back());
  }
  if (settings_.merged_output.empty()) return;
  if (has_comments(settings_.merged_output)) {
    tlm::pcapng_writer::config ng;
    ng.capture = how;
    ng.names[from_adapter] = "from the adapter";
    ng.names[to_adapter] = "to the adapter";
    ng.inbound[to_adapter] = true;
    commented_ = std::make_unique<tlm::pcapng_writer>(settings_.merged_output, ng);
    cable_->add_observer(*commented_);
  } else {
    merged_ = std::make_unique<tlm::capture_writer>(settings_.merged_output, how);
    cable_->add_observer(*merged_);
  }
}

void director::close_outputs() {
  for (auto& c : captures_) c->close();
  if (merged_) merged_->close();
  if (!commented_) return;
  comments about;
  if (compared_ && ended_) about = comment_on(plan_, *compared_, result_, captured_questions(plan_));
  commented_->close(about.of_frames, about.about);
}

void director::injected(std::size_t number, sim::span_id, sim::time_ps first_bit) {
  compared_->injected(number, first_bit);
  result_.injected_at[number] = first_bit;
  ++result_.injected;
  --handed_over_;
  touch();
  change_.notify(sc_core::SC_ZERO_TIME);
}

void director::received(const tlm::frame& f, sim::time_ps) {
  compared_->received(f, spans_);
  touch();
  change_.notify(sc_core::SC_ZERO_TIME);
}

void director::leave_out(const std::vector<std::pair<int, std::string>>& rejected) {
  for (const auto& [connection, why] : rejected)
    for (captured_frame& f : plan_.frames) {
      if (f.connection != connection) continue;
      f.connection = -1;
      ++plan_.rejected[why];
    }
}

void director::make_steps() {
  lanes_.resize(plan_.connections.size());
  std::vector<std::size_t> message(plan_.connections.size(), 0);
  for (std::size_t i = 0; i < plan_.frames.size(); ++i) {
    const captured_frame& f = plan_.frames[i];
    if (f.connection < 0) continue;
    const auto c = static_cast<std::size_t>(f.connection);
    if (!f.from_held) {
      lanes_[c].steps.push_back({step::kind::inject, i, 0});
      continue;
    }
    const std::vector<held_message>& messages = plan_.connections[c].messages;
    while (message[c] < messages.size() && messages[message[c]].first_frame <= i)
      lanes_[c].steps.push_back({step::kind::post, i, message[c]++});
    lanes_[c].steps.push_back({step::kind::expect, i, 0});
  }
}

/// Peer requests come after what the held host had sent before them; answers after their questions. What the held host
/// sends of its own accord waits for its earlier answers only, so that its requests can be under way together.
bool director::may_inject(lane& l, const captured_frame& f, bool requests_too) {
  l.owed.erase(std::remove_if(l.owed.begin(), l.owed.end(), [&](std::size_t i) { return compared_->settled(i); }),
               l.owed.end());
  if (!f.from_held && wire::traits(f.packet.bth.opcode).response)
    return compared_->asked(f.connection, f.packet.bth.psn);
  return std::none_of(l.owed.begin(), l.owed.end(), [&](std::size_t i) {
    return requests_too || wire::traits(plan_.frames[i].packet.bth.opcode).response;
  });
}

void director::go_on_without(lane& l, const captured_frame&) {
  for (const std::size_t i : l.owed) compared_->give_up(i);
  l.owed.clear();
}

/// When the capture's clock allows the next step.
sim::time_ps director::due(const lane& l) const {
  if (!settings_.captured_timing) return 0;
  return result_.started_at + plan_.frames[l.steps[l.next].frame].at;
}

/// Takes the next step of a connection if it may be taken, or with `force` if it is only waiting for the adapter.
bool director::advance(lane& l, int connection, bool force) {
  if (l.next == l.steps.size()) return false;
  const step& s = l.steps[l.next];
  const captured_frame& f = plan_.frames[s.frame];
  if (s.what == step::kind::expect) {
    l.owed.push_back(s.frame);
    ++l.next;
    return true;
  }
  if (due(l) > base_.now_ps()) return false;
  const bool inject = s.what == step::kind::inject;
  if (!may_inject(l, f, inject)) {
    if (!force) return false;
    go_on_without(l, f);
  }
  if (inject) {
    host_->fill(s.frame);
    ++handed_over_;
    player_->send(s.frame, f.bytes, wire::traits(f.packet.bth.opcode).request);
  } else if (host_->post(connection, s.message)) {
    ++result_.posted;
  } else if (force) {  // the queue pair takes no more work: it has failed, or the peer acknowledges nothing
    compared_->note(difference_kind::not_posted, connection, s.frame + 1, describe(f.packet), "");
  } else {
    return false;
  }
  ++l.next;
  touch();
  return true;
}

/// One look at every connection. True when something was done.
bool director::pass_round() {
  bool done = false;
  for (std::size_t i = 0; i < lanes_.size(); ++i)
    while (handed_over_ < 64 && advance(lanes_[i], static_cast<int>(i), false)) done = true;
  if (done || handed_over_ != 0 || base_.now_ps() < last_activity_ + settings_.rest_ps) return done;
  for (std::size_t i = 0; i < lanes_.size(); ++i) done = advance(lanes_[i], static_cast<int>(i), true) || done;
  return done;
}

/// Until a frame comes or goes, the clock of the capture allows a step, or the adapter has been at rest for long.
void director::wait_for_change() {
  const sim::time_ps now = base_.now_ps();
  sim::time_ps until = never;
  for (const lane& l : lanes_) {
    if (l.next == l.steps.size()) continue;
    const sim::time_ps at = due(l);
    until = std::min(until, at > now ? at : std::max(last_activity_ + settings_.rest_ps, now + sim::ps_per_us));
  }
  if (until == never) until = std::max(last_activity_ + settings_.rest_ps, now + sim::ps_per_us);
  sc_core::wait(sc_core::sc_time::from_value(until - now), change_);
}

void director::program() {
  bench::require(node_->start(), "open device");
  host_->set_up(result_.left_out);
  leave_out(result_.left_out);
  compared_ = std::make_unique<comparison>(plan_, settings_.ignored);
  make_steps();
  last_activity_ = result_.started_at = base_.now_ps();
  const tlm::file_clock as_captured{result_.started_at, plan_.notes.start_ns};
  if (merged_) merged_->set_clock(as_captured);
  if (commented_) commented_->set_clock(as_captured);
  for (;;) {
    host_->poll();
    if (pass_round()) continue;
    const bool over = std::all_of(lanes_.begin(), lanes_.end(), [](const lane& l) { return l.next == l.steps.size(); });
    if (over && handed_over_ == 0 && base_.now_ps() >= last_activity_ + settings_.rest_ps) break;
    shown_(result_.injected);
    wait_for_change();
  }
  result_.ended_at = base_.now_ps();
  for (const replay_host::failed& f : host_->failures())
    compared_->note(difference_kind::failed_completion, f.connection, 0, "",
                    f.status + " on queue pair " +
                        std::to_string(plan_.connections[static_cast<std::size_t>(f.connection)].held_qpn));
  result_.pauses = player_->pauses();
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
  close_outputs();
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
