// SPDX-License-Identifier: Apache-2.0
// Queue pairs that firmware has stopped.
#pragma once

#include <cstdint>
#include <unordered_set>

namespace rnic::transport {

/// Part of the responder: a bit a queue pair, and one for all. Nothing of a halted queue pair may begin: its frames are
/// dropped at the door. Ports: one write, of firmware's command; a read each by check, error state and READs that come
/// back.
class queue_pair_halts {
 public:
  /// Firmware has stopped it, or resets the adapter.
  bool halted(std::uint32_t qpn) const { return closed_ || halted_.count(qpn) != 0; }
  bool closed() const { return closed_; }
  void halt(std::uint32_t qpn) { halted_.insert(qpn); }
  void release(std::uint32_t qpn) { halted_.erase(qpn); }
  /// From a reset's beginning to its end, when no halt is left.
  void close() { closed_ = true; }
  void reopen() {
    closed_ = false;
    halted_.clear();
  }

 private:
  std::unordered_set<std::uint32_t> halted_;
  bool closed_ = false;
};

}  // namespace rnic::transport
