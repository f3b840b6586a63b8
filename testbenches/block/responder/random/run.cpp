// SPDX-License-Identifier: Apache-2.0
#include "testbenches/block/responder/random/run.h"

#include <algorithm>
#include <exception>

#include "model/sim/simulation.h"
#include "testbenches/block/responder/random/check.h"
#include "testbenches/block/responder/random/firmware.h"
#include "testbenches/block/responder/random/pools.h"
#include "testbenches/block/responder/random/traffic.h"

namespace rnic::transport::random_test {

namespace {

class runner {
 public:
  runner(std::uint64_t seed, kind_of_run kind, const sim::timebase::options& options)
      : chaos_(kind == kind_of_run::chaos),
        draws_(seed),
        setup_(seed, chaos_, draws_),
        system_(options, setup_),
        reference_(setup_, system_.memory.bytes),
        firmware_(system_, setup_, draws_, chaos_ ? draws_.below(8) : 0) {
    make_traffic(setup_, reference_, draws_, system_.ports, system_.tested.frames);
    if (chaos_) plan_chaos();
  }

  outcome run() {
    until_the_end();
    outcome o;
    o.faults = std::move(faults_);
    const auto append = [&](const std::vector<std::string>& all) {
      o.faults.insert(o.faults.end(), all.begin(), all.end());
    };
    for (const journal* j : system_.journals()) append(j->faults());
    append(firmware_.faults());
    if (!chaos_) append(differences(system_, setup_, reference_));
    append(what_is_left(system_.tested, setup_));
    for (const journal* j : system_.journals()) o.seen.insert(o.seen.end(), j->all().begin(), j->all().end());
    std::stable_sort(o.seen.begin(), o.seen.end(),
                     [](const observation& a, const observation& b) { return a.at < b.at; });
    for (const auto& [name, counter] : system_.tested.stats.all()) o.counters.emplace_back(name, *counter);
    return o;
  }

 private:
  static constexpr sim::cycle_t longest_run = 400'000, longest_silence = 20'000, before_calm = 2'500, rest = 6'000,
                                longest_wait_for_place = 4'000;

  /// Errors of the other half, lost completions, keys that others withdraw; READs that do not wait for a place.
  void plan_chaos() {
    const auto n = static_cast<std::uint32_t>(setup_.queue_pairs.size());
    const auto any = [&]() -> const queue_pair& { return setup_.queue_pairs[draws_.below(n)]; };
    for (queues::due* const all : {&system_.software.errors_to_tell, &system_.software.losses_to_tell}) {
      sim::cycle_t at = 0;
      for (unsigned i = draws_.below(3); i != 0; --i) all->emplace_back(at += draws_.below(4000), any().qpn);
    }
    sim::cycle_t at = 0;
    for (unsigned i = draws_.below(4); i != 0; --i) {
      const queue_pair& q = any();
      std::uint32_t key = draws_.one_of({write_key(q.index), atomic_key(q.index), receive_key(q.index),
                                         q.key_of_reads(), invalidated_key(q.index, 0), shared_receive_key(1)});
      system_.keys.withdrawals.emplace_back(at += draws_.below(4000), key);
    }
    for (peers::stream& s : system_.ports.streams)
      for (outgoing& o : s.frames)
        if (draws_.percent(70)) o.needs_place = false;
    system_.keys.wake_next();
    system_.software.wake_next();
  }

  bool all_is_sent() const {
    return system_.ports.all_sent() && firmware_.is_done() && system_.keys.withdrawals.empty() &&
           system_.software.errors_to_tell.empty() && system_.software.losses_to_tell.empty();
  }

  /// Peers, firmware and the others have done all they want to, then nothing happens any more but looks at doorbell
  /// records of queue pairs in error. Towards the end the neighbours do not hesitate any more.
  void until_the_end() {
    const auto now = [&] { return system_.core.now(); };
    sim::cycle_t idle_since = sim::never, checked_at = 0;
    std::uint64_t checked = 0;  // packets: of one that is dropped nothing else is seen
    for (;;) {
      system_.run(firmware_.is_quick() ? 1 : 20 + draws_.below(200));
      firmware_.work();
      if (chaos_) give_up_waiting();
      if (const std::uint64_t n = system_.tested.stats.value("responder.packets"); n != checked) {
        checked = n;
        checked_at = now();
      }
      const sim::cycle_t silence = now() - std::min(now(), std::max(system_.last_active(), checked_at));
      if (all_is_sent()) {
        idle_since = std::min(idle_since, now());
        if (now() > idle_since + before_calm) system_.how.calm_down();
        const sim::cycle_t looks = setup_.parameters.flush_poll_cycles * (setup_.queue_pairs.size() + 1);
        if (system_.how.calm() && silence > looks + rest) return;
      } else if (silence > longest_silence) {
        return faults_.push_back(stuck("nothing happens any more, and "));
      }
      if (now() > longest_run) return faults_.push_back(stuck("there is no end, and "));
    }
  }

  std::string stuck(const std::string& why) const {
    return why + (!system_.ports.all_sent() ? "frames of the peers wait"
                  : !firmware_.is_done()    ? "a command of firmware goes on"
                                            : "all is sent");
  }

  /// A peer whose READ has failed would wait for ever.
  void give_up_waiting() {
    for (peers::stream& s : system_.ports.streams)
      if (!s.frames.empty() && s.frames.front().needs_place && system_.core.now() > s.sent + longest_wait_for_place) {
        s.frames.front().needs_place = false;
        system_.ports.wake_next();
      }
  }

  const bool chaos_;
  dice draws_;
  setup setup_;
  system system_;
  reference reference_;
  firmware firmware_;
  std::vector<std::string> faults_;
};

std::string text(const observation& o) {
  std::string all = "cycle " + std::to_string(o.at) + ", " + std::string(o.what);
  for (const std::uint64_t v : o.values) all += " " + hex(v);
  return all;
}

}  // namespace

outcome run(std::uint64_t seed, kind_of_run kind, const sim::timebase::options& options) {
  const sim::simulation kernel;
  try {
    return runner(seed, kind, options).run();
  } catch (const std::exception& e) {
    outcome o;
    o.faults.emplace_back(e.what());
    return o;
  }
}

std::string first_difference(const outcome& a, const outcome& b) {
  const std::size_t n = std::min(a.seen.size(), b.seen.size());
  for (std::size_t i = 0; i < n; ++i)
    if (!(a.seen[i] == b.seen[i])) return text(a.seen[i]) + " became " + text(b.seen[i]);
  if (a.seen.size() != b.seen.size()) return text((a.seen.size() > n ? a : b).seen[n]) + " is in one of them only";
  for (std::size_t i = 0; i < std::min(a.counters.size(), b.counters.size()); ++i)
    if (a.counters[i] != b.counters[i])
      return "counter " + a.counters[i].first + " is " + std::to_string(a.counters[i].second) + " and " +
             std::to_string(b.counters[i].second);
  return a.counters.size() == b.counters.size() ? "" : "one of them has more counters";
}

}  // namespace rnic::transport::random_test
