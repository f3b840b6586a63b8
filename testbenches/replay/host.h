// SPDX-License-Identifier: Apache-2.0
// The held host in a replay: its adapter's addresses, queue pairs and memory as the capture shows them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host_driver/device.h"
#include "testbenches/bench/node.h"
#include "testbenches/replay/plan.h"

namespace rnic::replay {

/// Puts the MAC address and the object numbers that the plan asks for into the configuration of a host.
void shape_node(const plan& p, bench::node_config& c);

/// Everything is set up by verbs. All calls from one process of the simulation.
class replay_host {
 public:
  replay_host(const plan& p, bench::node& node);

  /// Addresses, memory, queue pairs in RTS, receives. `rejected` gets what could not be set up, by connection: such a
  /// connection is_ready() not.
  void set_up(std::vector<std::pair<int, std::string>>& rejected);
  bool is_ready(int connection) const { return ends_[static_cast<std::size_t>(connection)].qp != nullptr; }

  /// Posts message `index` of the connection. False: no room in the send queue at present.
  bool post(int connection, std::size_t index);
  /// Gives the memory the content that the peer's READ (frame of the capture) found.
  void fill(std::size_t frame);
  /// Takes completions and posts receives again.
  void poll();
  struct failed {
    int connection;
    std::string status;
  };
  const std::vector<failed>& failures() const { return failures_; }
  std::uint64_t completions() const { return completions_; }

 private:
  struct end {
    host_driver::queue_pair* qp = nullptr;
    std::uint64_t receives_left = 0;  ///< not posted yet
    std::uint32_t receive_bytes = 0;
    std::vector<std::uint64_t> source;  ///< offset of each message's payload
    unsigned under_way = 0, depth = 0;
  };
  struct memory {
    held_region region;
    host_driver::bus_if::dma_memory buffer{};
    std::uint8_t* first = nullptr;  ///< of the region's begin
  };
  std::string set_up_connection(std::size_t index);
  std::string connect(const connection& c, end& e);
  int gid_row(const connection& c);
  void set_up_regions();
  void set_up_own_memory();
  bool post_receive(end& e, std::size_t connection);

  const plan& plan_;
  host_driver::device& device_;
  host_driver::protection_domain* pd_ = nullptr;
  host_driver::completion_queue* send_cq_ = nullptr;
  host_driver::completion_queue* receive_cq_ = nullptr;
  std::vector<end> ends_;
  std::vector<memory> memories_;
  host_driver::bus_if::dma_memory own_{};
  host_driver::memory_region* own_region_ = nullptr;
  std::uint64_t sink_ = 0;  ///< offset of the part that receives and READs write
  std::vector<failed> failures_;
  std::uint64_t completions_ = 0;
};

}  // namespace rnic::replay
