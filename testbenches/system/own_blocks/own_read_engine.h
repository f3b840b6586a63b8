// SPDX-License-Identifier: Apache-2.0
// A READ engine by the data sheet of the model's alone.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "model/adapter/block_place.h"
#include "model/transport/read_engine/read_engine.h"

namespace rnic::system_test {

/// Requests of four users, of which one is taken a cycle; waits are counted when they are over.
class own_read_engine final : public sim::clocked_block {
 public:
  static constexpr unsigned users = 4;
  explicit own_read_engine(adapter::block_place& place) : clocked_block(place.name() + ".own", place.clock()) {
    const std::string me = place.name().substr(place.name().rfind('.') + 1);
    const char* const who[users][2] = {
        {"requester", ""}, {"responder", ""}, {"requester", "response_"}, {"read_generator", ""}};
    for (unsigned u = 0; u < users; ++u) {
      const std::string block = who[u][0], what = who[u][1];
      if (!place.has(block + "_to_" + me + "_" + what + "requests")) continue;
      place.bind(block + "_to_" + me + "_" + what + "requests", requests_[u]);
      place.bind(me + "_to_" + block + "_" + what + "grants", grants_[u]);
    }
    announce(place.name(), place.around().statistics);
  }

 private:
  using in = sim::fifo_in<transport::read_engine_request>;
  using out = sim::fifo_out<transport::read_engine_grant>;
  std::array<in, users> requests_{in(*this), in(*this), in(*this), in(*this)};
  std::array<out, users> grants_{out(*this), out(*this), out(*this), out(*this)};
  void announce(const std::string& name, sim::statistics& to) {
    static const char* const names[users] = {"requester", "responder", "responses", "generator"};
    for (unsigned u = 0; u < users; ++u) {
      to.add(name + "." + names[u] + ".grants", user_[u].grants);
      to.add(name + "." + names[u] + ".wait_cycles", user_[u].waits);
    }
  }
  void tick() override {
    const sim::cycle_t t = now();
    bool any = false;
    for (unsigned u = 0; u < users; ++u) {
      const bool here = requests_[u].can_pop();
      any = any || here;
      if (!here || user_[u].waiting) continue;
      user_[u].came = t;
      user_[u].waiting = true;
    }
    if (!any) return;
    wake_next();
    if (!turns_.is_free()) return;
    std::uint8_t stops = 0, ready = 0;
    for (unsigned u = 0; u < users; ++u) {
      if (!user_[u].waiting) continue;
      if (!requests_[u].front().wants_grant)
        stops = static_cast<std::uint8_t>(stops | 1U << u);
      else if (grants_[u].can_push())
        ready = static_cast<std::uint8_t>(ready | 1U << u);
    }
    unsigned u = users;
    if (stops != 0)
      u = turn(stops);
    else if ((ready & 4) != 0)
      u = 2;
    else if ((ready & 8) != 0)
      u = 3;
    else if (ready != 0)
      u = turn(ready);
    if (u == users) {
      static const char* const without[users] = {"requester grants", "responder grants", "response grants",
                                                 "generator grants"};
      unsigned first = 0;
      while (!user_[first].waiting) ++first;
      return turns_.blocked(without[first]);
    }
    const transport::read_engine_request r = requests_[u].pop();
    turns_.start(r.cycles);
    user_[u].waits += t - user_[u].came;
    user_[u].waiting = false;
    if (!r.wants_grant) return;
    ++user_[u].grants;
    grants_[u].push({});
  }
  unsigned turn(std::uint8_t of) {
    do turn_ = (turn_ + 1) % users;
    while ((of >> turn_ & 1) == 0);
    return turn_;
  }

  struct state {
    std::uint64_t grants = 0, waits = 0;
    sim::cycle_t came = 0;
    bool waiting = false;
  };
  sim::server turns_{*this, "turns"};
  unsigned turn_ = users - 1;  // the last winner
  std::array<state, users> user_{};
};
}  // namespace rnic::system_test
