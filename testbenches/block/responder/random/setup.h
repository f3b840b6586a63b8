// SPDX-License-Identifier: Apache-2.0
// What a run begins with: the responder's parameters, queue pairs, receives, memory.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "model/transport/responder/types.h"
#include "testbenches/block/responder/random/behaviour.h"
#include "testbenches/block/responder/random/layout.h"
#include "testbenches/block/responder/random/regions.h"

namespace rnic::transport::random_test {

enum class service : std::uint8_t { rc, rc_shared, xrc, uc, uc_shared, ud, ethernet };

struct queue_pair {
  unsigned index = 0;
  service kind = service::rc;
  std::uint32_t qpn = 0, srqn = 0;  ///< srqn: 0 without; XRC names one in each message
  std::uint32_t mtu = 256;
  std::uint8_t access = 0;  ///< icm::responder_access_*
  std::uint8_t log_reads = 0;
  bool ready_to_receive = false;  ///< RTR: the first packet establishes communication
  bool inline_receive = false;
  wire::psn_t first_psn;
  std::uint16_t consumed = 0, posted = 0;  ///< of its own receive queue

  bool is_reliable() const { return kind <= service::xrc; }
  bool is_unreliable_connection() const { return kind == service::uc || kind == service::uc_shared; }
  /// Of its own, not a shared receive queue.
  bool has_own_queue() const {
    return kind == service::rc || kind == service::uc || kind == service::ud || kind == service::ethernet;
  }
  std::uint32_t domain() const { return kind == service::xrc ? domain_of_xrc : protection_domain; }
  std::uint32_t key_of_reads() const { return kind == service::xrc ? read_key_of_xrc : read_key; }
  std::uint32_t peer() const { return first_peer + index; }
  wire::transport transport() const;
};

/// What software has posted: where a message is scattered to.
struct receive {
  struct segment {
    std::uint64_t bus;
    std::uint32_t length;
  };
  std::vector<segment> segments;
  bool bad_key = false;
  std::uint32_t bytes() const {
    std::uint32_t all = 0;
    for (const segment& s : segments) all += s.length;
    return all;
  }
};

struct shared_queue {
  std::uint16_t posted = shared_entries, limit = 0;
  std::vector<receive> receives;
};

struct setup {
  /// `chaos`: receives may run out, memory may fail.
  setup(std::uint64_t seed, bool chaos, dice& d);

  behaviour how;
  responder_config parameters;
  std::vector<queue_pair> queue_pairs;
  std::vector<std::vector<receive>> own_receives;  // by queue pair
  std::vector<shared_queue> shared_queues;         // from 1 on

  std::uint32_t last_shared() const { return static_cast<std::uint32_t>(shared_queues.size()); }
  const receive& receive_of(const queue_pair& q, std::uint16_t index) const {
    return own_receives[q.index][index % own_entries];
  }
  const receive& shared_receive(std::uint32_t srqn, std::uint16_t index) const {
    return shared_queues[srqn - 1].receives.at(index);
  }

  icm::responder_context context_of(const queue_pair& q) const;
  /// Contexts, receive queues, doorbell records and what is read, as software has written them.
  void write_to(octets& memory) const;
  region_table regions() const;

 private:
  void draw_parameters(dice& d);
  void draw_queue_pair(dice& d);
};

}  // namespace rnic::transport::random_test
