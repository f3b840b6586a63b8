// SPDX-License-Identifier: Apache-2.0
// Programs that talk to the connection manager's tools of rdma-core on another host.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "testbenches/serve/cm/rdma_connection.h"
#include "testbenches/serve/cm/reception.h"
#include "testbenches/serve/host/application.h"

namespace rnic::serve {

struct cm_application_options {
  std::string app;                ///< one of those that is_cm_application() knows
  bool client = false;            ///< mckey: sends
  host_driver::gid_bytes peer{};  ///< client: address of the server; mckey: the group
  std::uint16_t port = 0;         ///< 0: the tool's own
  std::uint32_t size = 0;         ///< bytes, 0: what the tool takes
  unsigned count = 0;             ///< messages, 0: what the tool takes; rping and udpong as server: the client's
  bool all_sizes = false;         ///< rstream without size and count: its long list
  unsigned connections = 0;       ///< ucmatose, udaddy, cmtime; 0: what the tool takes
  bool echo = false;              ///< udpong: the server sends each message back
  bool xrc = false;               ///< rdma_xserver: over XRC, not RC
  rdma_route route;
};

bool is_cm_application(const std::string& app);

/// Where this server receives its clients, for all of its runs; nothing when it has none (mckey), or is a client.
std::unique_ptr<reception> receive_clients(served_host& host, cm_service& service,
                                           const cm_application_options& options);

/// One run, in an SC_THREAD. `clients`: of receive_clients(). Everything that can go wrong with the peer is in the
/// result.
application_result run_cm_application(served_host& host, cm_service& service, reception* clients,
                                      const cm_application_options& options);

}  // namespace rnic::serve
