// SPDX-License-Identifier: Apache-2.0
// The revocation of a key: everybody who holds translations is told, and answers.
#pragma once

#include <array>
#include <cstdint>

#include "model/icm/key_operation_if.h"
#include "model/sim/fifo.h"

namespace rnic::icm {

/// Data sheet. Part of the engine of keys.
///
/// One key at a time goes to all holders whose ports are bound, in the order of their numbers, as many in a cycle as
/// their channels take; then their answers are awaited, one a holder and cycle.
///
/// Stalls: a holder's channel is full; a holder has not answered.
class key_revocations {
 public:
  static constexpr unsigned holders = 4;
  using outputs = std::array<sim::fifo_out<key_revocation>, holders>;
  using inputs = std::array<sim::fifo_in<key_revocation>, holders>;

  key_revocations(const outputs& revoke, const inputs& revoked) : revoke_(revoke), revoked_(revoked) {}

  void begin(std::uint32_t key) {
    key_ = key;
    sent_ = awaited_ = 0;
  }
  /// False: not all could be told yet.
  bool send();
  /// False: not all have answered.
  bool answered();

 private:
  const outputs& revoke_;
  const inputs& revoked_;
  std::uint32_t key_ = 0;
  unsigned sent_ = 0, awaited_ = 0;  // masks of holders
};

}  // namespace rnic::icm
