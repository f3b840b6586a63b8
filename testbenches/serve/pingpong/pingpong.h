// SPDX-License-Identifier: Apache-2.0
// The verbs ping-pongs: programs that talk to ibv_rc_pingpong, ibv_uc_pingpong, ibv_ud_pingpong,
// ibv_srq_pingpong and ibv_xsrq_pingpong of another host.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>

#include "host_driver/hosts/connection.h"
#include "testbenches/serve/host/application.h"
#include "testbenches/serve/host/served_host.h"
#include "testbenches/serve/pingpong/address_exchange.h"

namespace rnic::serve {

struct pingpong_options {
  ibv_qp_type type = IBV_QPT_RC;
  std::string server;          ///< host of this machine's network where the server listens; empty: we are the server
  std::uint16_t port = 18515;  ///< of the address exchange
  std::uint32_t size = 4096;   ///< bytes of a message
  unsigned mtu = 1024;         ///< path MTU in bytes
  unsigned iterations = 1000;
  unsigned receive_depth = 500;
  unsigned service_level = 0;
  unsigned ack_timeout = 14;  ///< 4.096 us * 2^n
  int gid_index = 0;
  unsigned queue_pairs = 16;                       ///< with a shared receive queue: connections
  std::uint64_t seed = 1;                          ///< of the starting PSN
  std::uint64_t patience_ps = 30 * sim::ps_per_s;  ///< without any completion; the real tools wait for ever
  std::uint64_t connect_ps = 20 * sim::ps_per_s;   ///< a client tries to reach its server for this long
};

using pingpong_result = application_result;

/// Bytes of a client's first word (ibv_rc_pingpong and its like, ibv_srq_pingpong, ibv_xsrq_pingpong).
std::size_t first_word_bytes(const std::string& app);

/// One run against one peer, in an SC_THREAD. `exchange` listens already when we are the server. Everything that can go
/// wrong with the peer is in the result.
pingpong_result run_pingpong(served_host& host, address_exchange& exchange, const pingpong_options& options);

/// Addresses that ibv_srq_pingpong exchanges, and the most queue pairs.
inline constexpr unsigned most_queue_pairs = 256;
/// The same with one shared receive queue for `queue_pairs` connections (ibv_srq_pingpong).
pingpong_result run_srq_pingpong(served_host& host, address_exchange& exchange, const pingpong_options& options);

/// The same over XRC (ibv_xsrq_pingpong), with one client.
pingpong_result run_xsrq_pingpong(served_host& host, address_exchange& exchange, const pingpong_options& options);

}  // namespace rnic::serve
