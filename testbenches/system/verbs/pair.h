// SPDX-License-Identifier: Apache-2.0
// Two hosts, connected queue pairs and messages between them, for tests that drive both hosts from one program.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "host_driver/hosts/connection.h"
#include "host_driver/hosts/two_nodes.h"

namespace rnic::system_test {

inline constexpr std::uint64_t us = sim::ps_per_us;
inline constexpr std::uint64_t ms = 1000 * us;
inline constexpr std::uint32_t grh_bytes = 40;  // IBA 8.3: in front of what a datagram has brought

/// One end of a connection with completion queues of its own.
struct side {
  hosts::endpoint at;
  host_driver::completion_queue* send_cq = nullptr;
  host_driver::completion_queue* receive_cq = nullptr;
  host_driver::queue_pair* qp = nullptr;

  host_driver::device& dev() const { return *at.device; }
  /// One completion within `timeout_ps`; a test failure and IBV_WC_GENERAL_ERR when there is none.
  ibv_wc wait_send(std::uint64_t timeout_ps = 100 * ms) const { return wait(*send_cq, timeout_ps); }
  ibv_wc wait_receive(std::uint64_t timeout_ps = 100 * ms) const { return wait(*receive_cq, timeout_ps); }
  bool silent() const;  ///< nothing in either completion queue
  ibv_qp_state state() const;

 private:
  ibv_wc wait(host_driver::completion_queue& cq, std::uint64_t timeout_ps) const;
};

struct link {
  side a, b;
};

/// Addresses, completion queues, queue pairs and the connection. `hosts` is the number of host a's address; host b has
/// the next: connections with other address kinds need other numbers.
link make_link(hosts::two_nodes& system, const hosts::connection_options& options, unsigned hosts = 1);
/// The same between two ends of our choice.
link make_link(hosts::endpoint& a, hosts::endpoint& b, const hosts::connection_options& options, unsigned hosts = 1);
/// Another queue pair between the same ends, in the same protection domains and completion queues.
link make_sibling(const link& first, const hosts::connection_options& options, std::uint32_t psn = 100);

/// A datagram queue pair on `s`'s host, ready to send, with room for `depth` requests of `sges` buffers each way; its
/// completions go to the queues of `s`.
host_driver::queue_pair* make_datagram_qp(const side& s, std::uint32_t qkey, unsigned depth, unsigned sges,
                                          std::uint32_t psn = 0, unsigned inline_receive = 0);

/// RoCE versions with the addresses that they can have.
struct encapsulation_case {
  host_driver::roce_types roce;
  unsigned ip;
};
inline constexpr encapsulation_case encapsulations[] = {
    {host_driver::roce_types::v1, 4}, {host_driver::roce_types::v2, 4}, {host_driver::roce_types::v2, 6}};

/// Runs `body` after both drivers have opened their devices.
void run(hosts::two_nodes& system, const std::function<void()>& body);

/// A request with its list of buffers.
struct request {
  ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE;
  std::vector<ibv_sge> sges;
  std::uint64_t remote = 0;
  std::uint32_t rkey = 0;
  unsigned flags = IBV_SEND_SIGNALED;
  std::uint32_t immediate = 0;  ///< host order
  std::uint64_t id = 0;
};
void post(const side& s, const request& r);
/// RDMA WRITE of `bytes` from one buffer to the other, both from `offset` on.
void post_write(const side& s, const hosts::buffer& from, const hosts::buffer& to, std::uint32_t bytes,
                std::uint64_t id = 0, std::uint64_t offset = 0, unsigned flags = IBV_SEND_SIGNALED);
void post_receive(const side& s, std::vector<ibv_sge> sges, std::uint64_t id = 0);

/// A WRITE, a SEND and a READ of 100 000 bytes each way arrive as they were sent; fatal test failure otherwise.
void expect_works(const link& l);

/// Bytes that nothing in the model could guess.
void fill_random(std::uint8_t* to, std::size_t bytes, std::mt19937_64& random);

/// What `body` says in a process of its own, for tests that compare several simulations: a process has one kernel. A
/// test failure when the other process has had one.
std::string in_child(const std::function<std::string()>& body);

/// Sum over both adapters of the counters whose names contain `part`; throws when there are none.
std::uint64_t counted(hosts::two_nodes& system, const std::string& part);

inline hosts::two_nodes_config default_system() {
  hosts::two_nodes_config c;
  c.node = hosts::make_node_config("connectx3pro_40g");
  return c;
}

}  // namespace rnic::system_test
