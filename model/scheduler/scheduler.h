// SPDX-License-Identifier: Apache-2.0
// Decides which send queues the requester serves.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/register_bus/reset_if.h"
#include "model/scheduler/scheduler_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
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

/// Round robin over the QPs of a priority, weighted round robin over priorities. Doorbells of a QP that is not idle
/// are merged; none is lost. WQEs that came with doorbells wait as long as there is room for them; behind one that
/// found none, the queue pair's WQEs are read from memory. The priority of a QP is what the requester last reported for
/// it.
class scheduler : public sim::clocked_block, public register_bus::reset_target_if {
 public:
  scheduler(std::string name, sim::clock_domain& domain, const config& cfg, sim::span_recorder& spans,
            sim::statistics& stats);
  ~scheduler() override { scheduler::device_reset(); }  // descriptors hold each other

  sim::fifo_in<send_doorbell> doorbell_in{*this};
  sim::fifo_in<report> report_in{*this};
  sim::fifo_out<grant> grant_out{*this};

  /// Forgets doorbells and their descriptors. QPs in service stay so until the requester, which is reset at the same
  /// time, reports them.
  void device_reset() override;

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  static constexpr std::uint32_t chunk = 256;
  enum class state : std::uint8_t { idle, active, granted, stalled };
  struct alignas(sim::cache_line) queue_pair {
    std::uint32_t qpn = 0;
    std::uint32_t next = none;  // in the active list
    std::uint32_t uar = 0;
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
  unsigned held_ = 0;  // descriptors that wait
  sim::server arbiter_{*this, "arbiter"};
  std::uint64_t doorbells_ = 0, bad_qpn_ = 0, merged_ = 0, grants_ = 0, resumes_ = 0, stalls_ = 0,
                dropped_descriptors_ = 0;
};

}  // namespace rnic::scheduler
