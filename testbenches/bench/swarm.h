// SPDX-License-Identifier: Apache-2.0
// Many threads of a host that keep many queue pairs busy, as the published benchmarks of message rates do.
#pragma once

#include <cstdint>
#include <systemc>
#include <utility>
#include <vector>

#include "host_driver/hosts/connection.h"
#include "host_driver/hosts/hosts_if.h"

namespace rnic::bench {

struct swarm_config {
  ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE;  ///< WRITE, READ, compare and swap or fetch and add
  std::uint32_t size = 32;                   ///< bytes of a message; atomics: 8
  unsigned qps = 16;                         ///< of each side, spread evenly over its hosts
  unsigned threads = 8;                      ///< of each side that posts; at most one for each queue pair
  unsigned window = 16;                      ///< messages that a thread has under way
  unsigned signal_every = 1;                 ///< messages of a queue pair for a completion; divides `window`
  unsigned batch = 1;                        ///< messages for a doorbell
  bool random_qp = false;                    ///< a message takes any queue pair of its thread; else in turn
  unsigned stride = 64;                      ///< bytes from one place to the next; at least `size`
  std::uint64_t random_bytes = 0;  ///< messages go from and to random places in so much memory; 0: one for a queue pair
  std::uint64_t seed = 1;
};

/// Both sides create the same queue pairs, each connected to its twin; one or both post. The numbers of queue pairs and
/// threads of a side are multiples of that of its hosts.
class swarm {
 public:
  swarm(hosts::hosts_if& system, const hosts::connection_options& connection, const swarm_config& config);

  /// To be called by the program of each host, which meet inside.
  void set_up(hosts::endpoint& at);
  /// 0 or 1.
  unsigned side_of(const hosts::endpoint& e) const { return place_of(e).first; }

  /// One host's part. Posts until `messages` messages of its side after the first `warm_up` have completed, and goes on
  /// while the other side still measures. Returns the time that they took in picoseconds. Throws on an error
  /// completion.
  sim::time_ps run(hosts::endpoint& e, std::uint64_t warm_up, std::uint64_t messages);

 private:
  struct lane {
    host_driver::queue_pair* qp = nullptr;
    unsigned under_way = 0, unsignalled = 0;
  };
  struct memory {
    hosts::buffer local, remote;
  };
  struct side {
    std::vector<lane> lanes;
    std::vector<host_driver::completion_queue*> cqs;  // one for each thread
    std::vector<memory> memories;                     // of the hosts
    bool measuring = false;
    std::uint64_t completed = 0, warm_up = 0, target = 0;
    sim::time_ps begin = 0, end = 0;
  };
  void work(hosts::endpoint& e, unsigned from, unsigned thread);
  void post(hosts::endpoint& e, unsigned from, std::uint32_t index, std::uint64_t& random);
  void count(side& s, std::uint64_t messages);
  unsigned first_lane(unsigned thread) const { return thread * config_.qps / config_.threads; }
  std::pair<unsigned, unsigned> place_of(const hosts::endpoint& e) const;  // side, and number of the host
  unsigned host_of(unsigned number, unsigned index) const { return index * system_.hosts(number) / config_.qps; }

  hosts::hosts_if& system_;
  hosts::connection_options connection_;
  swarm_config config_;
  side sides_[2];
  unsigned measuring_ = 0;
};

}  // namespace rnic::bench
