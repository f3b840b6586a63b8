// SPDX-License-Identifier: Apache-2.0
// Firmware and software that interfere with queue pairs at work.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "testbenches/block/responder/random/system.h"

namespace rnic::transport::random_test {

/// Halts, discards and releases queue pairs and shared receive queues, publishes and changes contexts, resets the
/// device once, posts receives, in random order: one command at a time, each followed to its end (transport_cr.h). It
/// acts between two edges, as the firmware of an adapter does.
class firmware {
 public:
  firmware(system& s, const setup& with, dice& d, unsigned commands)
      : system_(s), with_(with), dice_(d), left_(commands) {}

  void work();
  bool is_done() const { return left_ == 0 && at_ == step::idle; }
  /// It looks again soon: in the next cycle.
  bool is_quick() const { return at_ == step::reset; }
  /// What must not be when a command has ended.
  const std::vector<std::string>& faults() const { return faults_; }

 private:
  enum class step : std::uint8_t { idle, halting, edited, halting_shared, live_command, reset };
  bool is_busy();
  void begin();
  void command(step next, std::uint32_t code);
  void command_shared(std::uint32_t code);
  void change(const queue_pair& q);
  void post(const queue_pair& q);
  void edit();

  system& system_;
  const setup& with_;
  dice& dice_;
  step at_ = step::idle;
  const queue_pair* of_ = nullptr;
  std::uint32_t srqn_ = 0;
  bool discards_ = false, was_reset_ = false;
  unsigned left_;
  std::vector<std::string> faults_;
};

}  // namespace rnic::transport::random_test
