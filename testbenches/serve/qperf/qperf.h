// SPDX-License-Identifier: Apache-2.0
// qperf's tests of reliable connections, as its client and as its server. The others have no path on Ethernet: the tool
// addresses their queue pairs by LID alone, and without the connection manager (-cm 1) those of RC too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "testbenches/serve/cm/rdma_connection.h"
#include "testbenches/serve/host/application.h"
#include "testbenches/serve/host/served_host.h"
#include "testbenches/serve/pingpong/address_exchange.h"

namespace rnic::serve {

struct qperf_options {
  std::string test = "rc_bw";  ///< client: by its name, see is_qperf_test()
  bool client = false;
  std::string server;             ///< client: host of the TCP conversation
  host_driver::gid_bytes peer{};  ///< client: the server's address on the link
  std::uint16_t port = 19765;     ///< of TCP; as server also the service's, of the connection manager
  std::uint32_t size = 0;         ///< client: bytes, 0: what the tool takes
  std::uint32_t messages = 0;     ///< client: rc_bw only; 0: as many as there are in `seconds`
  unsigned seconds = 2;           ///< client: real time
  rdma_route route;
};

bool is_qperf_test(const std::string& name);
/// Bytes of the first word that a client says over TCP.
inline constexpr std::size_t qperf_first_word = 200;
/// Longest message that a server makes room for.
inline constexpr std::uint32_t qperf_longest = 16u << 20;

/// One run, in an SC_THREAD. What goes wrong with the peer is in the result.
application_result run_qperf(served_host& host, address_exchange& socket, cm_service& service,
                             const qperf_options& options);

}  // namespace rnic::serve
