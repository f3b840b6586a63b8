// SPDX-License-Identifier: Apache-2.0
// The tests of the perftest package: programs that talk to ib_write_bw, ib_write_lat, ib_read_bw, ib_read_lat,
// ib_send_bw, ib_send_lat, ib_atomic_bw and ib_atomic_lat of another host.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "testbenches/serve/cm/cm_service.h"
#include "testbenches/serve/cm/reception.h"
#include "testbenches/serve/host/application.h"
#include "testbenches/serve/host/served_host.h"
#include "testbenches/serve/pingpong/address_exchange.h"

namespace rnic::serve {

enum class perftest_verb : std::uint8_t { write, read, send, atomic };

/// Over what the two sides talk, and who connects the queue pairs.
enum class perftest_meeting : std::uint8_t {
  tcp,      ///< TCP, each side its own ones
  cm_talk,  ///< messages on a connection of the connection manager, each side its own ones: -z
  cm        ///< the connection manager does both: -R
};

struct perftest_options {
  perftest_verb verb = perftest_verb::write;
  bool latency = false;           ///< else bandwidth
  ibv_qp_type type = IBV_QPT_RC;  ///< WRITE also UC, SEND also UC and UD
  bool compare_swap = false;      ///< atomics; else fetch and add
  bool both_directions = false;   ///< bandwidth: the server sends too
  bool all_sizes = false;         ///< powers of two from 2 bytes to 8 MiB, datagrams to the MTU; not atomics
  perftest_meeting meeting = perftest_meeting::tcp;
  bool client = false;
  std::string server;             ///< TCP: host of this machine's network where the server listens
  host_driver::gid_bytes peer{};  ///< connection manager: the server's address
  std::uint16_t port = 18515;     ///< of the exchange
  std::uint32_t size = 0;         ///< bytes of a message, 0: what the tool takes
  unsigned mtu = 1024;            ///< path MTU in bytes; the smaller one of both sides' is used
  unsigned iterations = 0;        ///< messages of a queue pair, 0: what the tool takes
  unsigned seconds = 0;           ///< instead of a number of messages
  unsigned queue_pairs = 1;       ///< bandwidth
  unsigned depth = 128;           ///< requests under way on a queue pair, bandwidth
  unsigned receive_depth = 512;
  unsigned reads = 0;  ///< READs and atomics under way on a queue pair, the peer's and ours; 0: what the adapter takes
  unsigned service_level = 0;
  std::uint8_t traffic_class = 0;  ///< over the connection manager: the ToS
  unsigned ack_timeout = 14;       ///< 4.096 us * 2^n
  int gid_index = 0;
  std::uint64_t seed = 1;                          ///< of the starting PSNs and the content of messages
  std::uint64_t patience_ps = 30 * sim::ps_per_s;  ///< without anything of the peer's
  std::uint64_t connect_ps = 20 * sim::ps_per_s;   ///< a client tries to reach its server for this long

  /// With what the tool takes instead of zeroes. With all_sizes the largest.
  std::uint32_t message_bytes() const;
  std::uint64_t messages() const;
};

/// The options of a tool by its name (ib_write_bw, ...), or nothing when there is none.
std::optional<perftest_options> find_perftest(const std::string& tool);

/// Where a server receives its clients over the connection manager, for all of its runs; nothing in other roles.
std::unique_ptr<reception> receive_clients(served_host& host, cm_service& service, const std::string& tool,
                                           const perftest_options& options);

/// Bytes of a client's first word over TCP: its version.
inline constexpr std::size_t perftest_first_word = 16;

/// One run against one peer, in an SC_THREAD. TCP: `socket` listens already when we are the server; else `service` is
/// there, and `clients` of receive_clients(). Everything that can go wrong with the peer is in the result.
application_result run_perftest(served_host& host, address_exchange& socket, cm_service* service, reception* clients,
                                const perftest_options& options);

}  // namespace rnic::serve
