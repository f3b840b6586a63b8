// SPDX-License-Identifier: Apache-2.0
// Egress queues of a port and the choice among them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/payload/frame.h"
#include "model/sim/arbiter.h"
#include "model/sim/ring.h"
#include "model/sim/types.h"

namespace rnic::mac {

/// Who goes next among the priorities that have a frame and are not paused.
enum class arbitration : std::uint8_t {
  strict = 0,       ///< the highest priority
  round_robin = 1,  ///< frame by frame in turn
  ets = 2           ///< priority groups strictly, bandwidth shares by bytes inside a group (adapter data plane E.4),
                    ///< priorities of a class frame by frame in turn
};

/// Eight bounded queues. A part of the port: it has no time of its own.
///
/// ETS is start-time fair queueing in virtual time, of which a group has a clock: of the classes of the first group
/// with a frame the one goes that would start first, the lower number among equals; a frame takes its class 1024 *
/// bytes / share of virtual time; who comes back from idleness starts at the clock, which is the start of the last
/// frame of the group. The clocks are of the low three bits of groups' numbers.
class egress {
 public:
  struct entry {
    payload::frame_ptr frame;
    sim::time_ps since = 0;  ///< when it was queued
  };
  explicit egress(std::size_t frames_per_priority);

  bool full(unsigned priority) const { return queues_[priority].full(); }
  void push(payload::frame_ptr frame, sim::time_ps now);
  /// Priorities that have a frame, bit n = priority n.
  std::uint8_t waiting() const { return waiting_; }
  const entry& head(unsigned priority) const { return queues_[priority].front(); }
  std::size_t depth(unsigned priority) const { return queues_[priority].size(); }

  /// The priority to serve among `ready` (not 0), which must be waiting. Its state moves on: take the frame.
  unsigned pick(std::uint8_t ready);
  entry pop(unsigned priority);

  /// Priorities whose class has had its highest rate for now.
  std::uint8_t held(sim::time_ps now) const;
  /// When the first of them goes on; ~0 without.
  sim::time_ps first_held_until(sim::time_ps now) const;
  /// Until when the class of `priority` is held, or was last; 0 without.
  sim::time_ps held_until(unsigned priority) const { return limited_ ? next_[traffic_class(priority)] : 0; }
  /// A frame of `priority` that takes `line_bytes` starts at `start`. A class that is late by up to `excused` has
  /// waited for others, which is made up for; else it had nothing to send.
  void started(unsigned priority, std::uint64_t line_bytes, sim::time_ps start, sim::time_ps excused);
  void limit(unsigned tc, std::uint32_t mbps);
  /// Group and share of a class. Who has had what before no longer counts.
  void set_share(unsigned tc, std::uint16_t group, std::uint16_t bandwidth);

  arbitration mode = arbitration::round_robin;
  static constexpr std::uint32_t own_class_each = 0x76543210;
  std::uint32_t prio2tc = own_class_each;  ///< nibble n: traffic class of priority n
  struct share {
    std::uint16_t group = 0;        ///< lower goes first
    std::uint16_t bandwidth = 100;  ///< in % of the group's rate
    std::uint32_t max_mbps = 0;     ///< of the class, whatever the line has free; 0: no limit
  };
  std::array<share, 8> classes{};

 private:
  unsigned pick_ets(std::uint8_t ready);
  unsigned traffic_class(unsigned priority) const { return (prio2tc >> (4 * priority)) & 7; }

  std::vector<sim::ring<entry>> queues_;  // by priority
  std::uint8_t waiting_ = 0;
  sim::round_robin turn_;                           // of all priorities
  std::array<sim::round_robin, 8> turns_of_class_;  // ETS: of those of a class
  bool limited_ = false;                            // any class has a highest rate
  std::array<sim::time_ps, 8> next_{};              // the class's next frame not before
  std::array<std::uint64_t, 8> finish_{};           // ETS: virtual time at which a class has had its share
  std::array<std::uint64_t, 8> clock_{};            // ETS: virtual time of the last service, by group (modulo 8)
};

}  // namespace rnic::mac
