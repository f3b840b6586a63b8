// SPDX-License-Identifier: Apache-2.0
// A device in the middle of a cable that loses, copies, holds back and damages frames by plan.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/fabric/cable.h"
#include "model/fabric/fault_plan.h"
#include "model/payload/frame.h"
#include "model/sim/clocked_block.h"
#include "model/sim/statistics.h"

namespace rnic::fabric {

/// Follows a fault_plan. Frames that nothing happens to pass without delay. The two directions know nothing of each
/// other: each has its own random numbers, flows and counts, so that what happens in one cannot depend on the order in
/// which the two ends are served. The clock is only for frames that are held back.
///
/// What is put between other frames takes its time on the line, and those behind it wait for as long.
class fault_injector : public sim::clocked_block, public cable_element_if {
 public:
  /// What has happened to the frames of one end.
  struct counts {
    std::uint64_t frames = 0;
    std::array<std::uint64_t, fault_actions> done{};  ///< by fault_action
    std::uint64_t hold_ended = 0;                     ///< reordered ones for which not enough others came in time
    std::uint64_t not_possible = 0;  ///< hit, but without the part or field to be changed: they pass as they are
  };

  /// Counters are `name`.a_to_b.* and `name`.b_to_a.*. `seed` is for plans without one. The pool is where copies come
  /// from.
  fault_injector(std::string name, sim::clock_domain& domain, const fault_plan& plan, std::uint64_t seed,
                 payload::frame_pool& pool, sim::statistics& stats);

  void connect(unsigned from, payload::frame_sink_if& onward) override { lanes_[from].onward = &onward; }
  void enter(unsigned from, payload::frame_ptr frame, sim::time_ps last_bit) override;

  const fault_plan& plan() const { return plan_; }
  const counts& counted(unsigned from) const { return lanes_[from].count; }
  /// How often a rule has acted, in both directions.
  std::uint64_t hits(std::size_t rule) const { return lanes_[0].rules[rule].hits + lanes_[1].rules[rule].hits; }
  /// How many frames of both directions were of the kind that a rule means, whichever of them it hits.
  std::uint64_t meant(std::size_t rule) const;

 private:
  struct flow {
    std::uint32_t number = 0;
    std::uint32_t first_psn = 0;
  };
  struct rule_state {
    std::uint64_t hits = 0;
    std::vector<std::uint64_t> seen;  // matching frames, by index of the flow
  };
  struct held_frame {
    sim::cycle_t due = 0;  // edge at whose time it goes on
    std::uint64_t number = 0;
    std::uint32_t qpn = 0;
    std::uint32_t to_pass = 0;  // goes on before, behind so many frames; 0: only by time
    payload::frame_ptr frame;
  };
  /// What rules may ask of a frame.
  struct subject {
    bool decoded = false, roce = false, response = false;
    std::uint32_t qpn = no_qp;
    std::size_t flow_index = 0;
    wire::packet packet;
  };
  static constexpr std::uint32_t no_qp = ~0u;

  struct lane {
    payload::frame_sink_if* onward = nullptr;
    std::uint64_t random = 0;
    counts count;
    std::vector<rule_state> rules;
    std::unordered_map<std::uint32_t, std::size_t> flow_of;  // by QPN, responses with bit 31
    std::vector<flow> flows;                                 // [0]: frames that are not RoCE
    std::uint32_t requests = 0, responses = 0;               // flows of either kind
    std::vector<held_frame> held;                            // heap, the first due on top
    std::uint64_t held_number = 0;
    unsigned passing = 0;  // of those held, how many count frames
    sim::time_ps line_free = 0;
  };

  void tick() override;
  void announce(sim::statistics& stats);
  static std::uint64_t next_random(lane& l);
  static std::uint64_t below(lane& l, std::uint64_t limit) { return limit == 0 ? 0 : next_random(l) % limit; }
  static void look_at(lane& l, const payload::frame& f, subject& s, bool with_flow);
  static bool means(const fault_rule& r, unsigned from, const lane& l, const subject& s);
  const fault_rule* choose(unsigned from, lane& l, const payload::frame& f, subject& s);
  void act(const fault_rule& r, lane& l, payload::frame_ptr frame, sim::time_ps last_bit, subject& s);
  void hold(lane& l, payload::frame_ptr frame, sim::time_ps last_bit, sim::time_ps due, std::uint32_t qpn,
            std::uint32_t to_pass);
  void release_due(lane& l, sim::time_ps until);
  void pass(lane& l, payload::frame_ptr frame, sim::time_ps last_bit, subject& s);
  void send_on(lane& l, payload::frame_ptr frame, sim::time_ps last_bit, sim::time_ps duration);
  bool damage(const fault_rule& r, lane& l, payload::frame& f, subject& s);
  void ask_for_wake();

  fault_plan plan_;
  payload::frame_pool& pool_;
  bool needs_flow_ = false, needs_packet_ = false;
  std::array<lane, 2> lanes_;
};

}  // namespace rnic::fabric
