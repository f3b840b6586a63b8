// SPDX-License-Identifier: Apache-2.0
// The held host in a replay: its adapter's addresses, queue pairs and memory as the capture shows them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "host_driver/device.h"
#include "host_driver/hosts/node.h"
#include "testbenches/replay/held_memory.h"
#include "testbenches/replay/plan.h"
#include "testbenches/replay/receiver.h"

namespace rnic::replay {

/// Messages that came into receives, and their bytes: of datagrams with the 40 bytes in front of each, of WRITEs with
/// immediate data none.
struct delivered {
  std::uint64_t messages = 0, bytes = 0;
};

/// Everything is set up by verbs. All calls from one process of the simulation.
class replay_host {
 public:
  /// `port`: 1 or 2, which the capture is of.
  replay_host(const plan& p, hosts::node& node, unsigned port);

  /// Addresses, memory, queue pairs in RTS, receives. `rejected` gets what could not be set up, by connection: such a
  /// connection is_ready() not. `remarks`: what else was left out, and how often.
  void set_up(std::vector<std::pair<int, std::string>>& rejected, std::map<std::string, std::uint64_t>& remarks);
  bool is_ready(int connection) const { return ends_[static_cast<std::size_t>(connection)].qp != nullptr; }

  held_memory& memory() { return memory_; }

  /// Posts message `index` of the connection. False: no room in the send queue at present.
  bool post(int connection, std::size_t index);
  /// The connection has sent this frame: receives that the capture has behind it are posted.
  void allow(int connection, std::size_t frame);
  /// Ends a connection's queue pair; sets up that of the next one with its number.
  void close(int connection);
  void open(int connection);
  /// Takes completions and posts receives again: connections that had completions.
  const std::vector<int>& poll();
  struct failed {
    int connection;
    std::string status;
  };
  const std::vector<failed>& failures() const { return failures_; }
  std::uint64_t completions() const { return completions_; }
  /// By connection: messages of the peer that came into receives.
  const std::vector<delivered>& deliveries() const { return deliveries_; }

 private:
  struct end {
    host_driver::queue_pair* qp = nullptr;
    receiver receives;                  ///< not of XRC
    std::vector<std::uint64_t> source;  ///< offset of each message's payload
    unsigned under_way = 0, depth = 0;
  };
  std::string set_up_connection(std::size_t index);
  std::string create(const connection& c, end& e);
  std::string connect(const connection& c, end& e);
  int to_rtr(const connection& c, end& e, int row);
  int to_rts(const connection& c, end& e);
  void set_up_shared_queues(std::map<std::string, std::uint64_t>& remarks);
  int gid_row(const wire::packet& p, const wire::gid& id);
  std::string start_datagrams(const connection& c, end& e);
  host_driver::address_handle* way_of(const wire::packet& p);
  void set_up_own_memory();
  void take(const ibv_wc& wc);
  ibv_sge sink(std::uint32_t bytes) const;

  const plan& plan_;
  unsigned port_;
  host_driver::device& device_;
  held_memory memory_;
  host_driver::protection_domain* pd_ = nullptr;
  host_driver::completion_queue* send_cq_ = nullptr;
  host_driver::completion_queue* receive_cq_ = nullptr;
  host_driver::xrc_domain* domain_ = nullptr;  ///< of all XRC queue pairs
  std::vector<end> ends_;
  std::map<std::uint32_t, std::size_t> shared_at_;  // by number of the shared receive queue: index of
  std::vector<receiver> shared_;
  host_driver::bus_if::dma_memory own_{};
  host_driver::memory_region* own_region_ = nullptr;
  std::uint64_t sink_ = 0;  ///< offset of the part that receives and READs write
  std::vector<failed> failures_;
  std::vector<int> touched_;
  std::vector<delivered> deliveries_;
  using way_key = std::tuple<wire::gid, wire::mac_address, wire::gid, wire::encapsulation, std::uint8_t, std::uint8_t,
                             std::uint32_t, std::uint16_t>;
  std::map<way_key, host_driver::address_handle*> ways_;
  std::uint64_t completions_ = 0;
};

}  // namespace rnic::replay
