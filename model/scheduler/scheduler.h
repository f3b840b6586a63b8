// SPDX-License-Identifier: Apache-2.0
// Decides which send queues the requester serves.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/register_bus/cr_space.h"
#include "model/register_bus/reset_if.h"
#include "model/scheduler/scheduler_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/memory_ports.h"
#include "model/sim/parameter.h"
#include "model/sim/server.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"

namespace rnic::scheduler {

inline constexpr unsigned priorities = 8;

struct config {
  sim::parameter<unsigned> grant_cycles{2, {1, sim::many, "cycles", "design"}};  ///< from one grant to the next
  /// In service at once.
  sim::parameter<unsigned> grants{8, {1, 32, "queue pairs", "calibration 5: processing units"}};
  /// That came by BlueFlame and wait, of all QPs.
  sim::parameter<unsigned> descriptors{128, {1, 65'536, "WQEs", "calibration 5: WQE cache, 128 to 256"}};
  unsigned log_qps = 18;  ///< doorbells for QPNs from 2^log_qps on are counted and ignored
  std::array<std::uint8_t, priorities> weights{1, 1, 1, 1, 1, 1, 1, 1};  ///< grants in a row per priority, 1..255

  void list(sim::fields& are) {
    are("grant_cycles", grant_cycles);
    are("grants", grants);
    are("descriptors", descriptors);
  }
};

/// Data sheet.
///
/// Ports, each of one item a cycle: doorbells and reports in, grants out.
///
/// Stages, in one cycle in this order: grant, from the state of the registers; then a report; then a doorbell. So what
/// comes in cycle n is granted in n + 1 at the earliest, and a place in service that a report frees in n is another's
/// from n + 1 on. Initiation interval of the arbiter: `grant_cycles`.
///
/// A queue pair is idle, ready (in the line of its priority), granted (one of `grants` in service) or stalled.
///
/// | comes | idle | ready | granted | stalled |
/// |---|---|---|---|---|
/// | doorbell | ready | | | |
/// | report more | | | ready | |
/// | report idle | | | ready when a doorbell or `resume` came since the grant, or a WQE waits; else idle | |
/// | report stalled | | | ready when `resume` came since the grant; else stalled | |
/// | `resume` | ready | nothing, also of its priority | noted | ready |
///
/// Each other report sets the priority (0 at first), before the queue pair goes to the end of its line. A doorbell that
/// finds it stalled waits for `resume`.
///
/// Order: weighted round robin over priorities, round robin in each. The turn begins at priority 0, and goes to the
/// next higher one that is not empty, 0 behind 7, when its line is empty or has had its weight of grants in a row; one
/// that comes back to the same line begins to count anew.
///
/// A grant has the oldest WQE that came with a doorbell and waits, and says `doorbell` when one has come since the last
/// grant, or more of these wait, and `more` when one of those since then came without a WQE, or its WQE was dropped.
/// WQEs of a queue pair that is or gets stalled, which may be for long, are dropped: they are read from memory later.
/// The span is the first doorbell's since the last grant.
///
/// A doorbell of another page than the owner's (scheduler_cr.h) changes nothing, takes no place, and does not wait for
/// one. Those of a queue pair that is nobody's are granted: the requester finds no context.
///
/// Memories: a word a queue pair (2^log_qps), with a port each for grants, reports and doorbells (memory
/// `queue_pairs`) and one for the register bus; the links of the lines, which a report and a doorbell may write and a
/// grant read in one cycle; `descriptors` WQEs of all queue pairs, one written by a doorbell, one read by a grant in a
/// cycle (memory `descriptors`; those that are dropped go to the free ones as the chain that they are). Registers:
/// first and last of each line.
///
/// Stalls: grant, while `grants` queue pairs are in service (the arbiter is blocked by "processing units") and while
/// the channel takes none ("requester"); a doorbell with a WQE, and what is behind it, while `descriptors` of them
/// wait. Reports never wait.
///
/// Counters: doorbells; merged, that found another one since the last grant; dropped_descriptors; bad_qpn; wrong_uar,
/// that were not the owner's; grants; resumes, that did not find their queue pair ready; stalls.
class scheduler : public sim::clocked_block, public register_bus::cr_target_if, public register_bus::reset_target_if {
 public:
  scheduler(std::string name, sim::clock_domain& domain, const config& cfg, sim::span_recorder& spans,
            sim::statistics& stats);
  ~scheduler() override { forget_all(); }  // descriptors hold each other

  sim::fifo_in<send_doorbell> doorbell_in{*this};
  sim::fifo_in<report> report_in{*this};
  sim::fifo_out<grant> grant_out{*this};

  std::uint32_t cr_read(std::uint32_t offset) override;
  void cr_write(std::uint32_t offset, std::uint32_t value) override;

  /// Forgets owners, doorbells and their descriptors. QPs in service stay so until the requester, which is reset at the
  /// same time, reports them.
  void device_reset() override;

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  static constexpr std::uint32_t chunk = 256;
  enum class state : std::uint8_t { idle, active, granted, stalled };
  struct alignas(sim::cache_line) queue_pair {
    std::uint32_t qpn = 0;
    std::uint32_t next = none;  // in the active list
    std::uint32_t owner = no_owner;
    state at = state::idle;
    std::uint8_t priority = 0;
    bool doorbell = false, more = false;
    bool resumed = false;            // while granted: schedule again whatever the report says
    blueflame_ptr descriptor, last;  // of those that wait; behind the first one in order
    sim::span_id span = 0;
  };
  struct list {
    std::uint32_t head = none, tail = none;
  };

  void tick() override;
  void take_doorbell();
  void take_report();
  bool grant_one();
  queue_pair& find(std::uint32_t qpn);
  bool has_word(std::uint32_t qpn) const { return qpn >> config_.log_qps == 0; }
  static bool obeys(const queue_pair& qp, const send_doorbell& d) { return qp.owner == d.uar || qp.owner == no_owner; }
  void forget_doorbells(queue_pair& qp);
  void forget_all();
  void activate(queue_pair& qp);
  void merge(queue_pair& qp, send_doorbell d);
  bool has_room();
  void drop_descriptors(queue_pair& qp);
  bool keep(queue_pair& qp, blueflame_ptr descriptor);
  blueflame_ptr take_descriptor(queue_pair& qp);
  unsigned choose_priority();

  config config_;
  sim::span_recorder& spans_;
  std::vector<std::unique_ptr<std::array<queue_pair, chunk>>> table_;
  std::array<list, priorities> active_{};
  std::uint32_t nonempty_ = 0;  // priorities with active QPs
  unsigned current_ = 0;        // priority whose turn it is,
  unsigned served_ = 0;         // grants that it had in this turn
  unsigned in_service_ = 0;
  unsigned held_ = 0;           // descriptors that wait
  std::uint32_t selected_ = 0;  // QPN in cr::qp_select
  enum word_user : unsigned { of_grants, of_reports, of_doorbells };
  enum descriptor_user : unsigned { read, written };
  sim::memory_ports words_{*this, "queue_pairs", sim::port_each{}, {"grants", "reports", "doorbells"}};
  sim::memory_ports kept_{*this,
                          "descriptors",
                          sim::port_each{},
                          {{"grants", sim::access_kind::read}, {"doorbells", sim::access_kind::write}}};
  sim::server arbiter_{*this, "arbiter"};
  std::uint64_t doorbells_ = 0, bad_qpn_ = 0, wrong_uar_ = 0, merged_ = 0, grants_ = 0, resumes_ = 0, stalls_ = 0,
                dropped_descriptors_ = 0;
};

}  // namespace rnic::scheduler
