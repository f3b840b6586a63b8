// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/cm/cm_applications.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "testbenches/serve/cm/cm_program.h"

namespace rnic::serve {

namespace {

using guest_maker = std::unique_ptr<arrival> (*)(served_host&, cm_service&, const cm_application_options&);

constexpr struct {
  const char* name;
  void (*run)(served_host&, cm_service&, reception*, const cm_application_options&, application_result&);
  std::uint16_t port;  // 0: the connection manager has no clients for it
  guest_maker make;    // without: a service of datagrams
} programs[] = {{"rping", run_rping, rping_port, rping_guest},
                {"ucmatose", run_ucmatose, ucmatose_port, ucmatose_guest},
                {"udaddy", run_udaddy, udaddy_port, nullptr},
                {"mckey", run_mckey, 0, nullptr},
                {"rdma_server", run_rdma_server, rdma_server_port, rdma_server_guest},
                {"rdma_client", run_rdma_server, rdma_server_port, rdma_server_guest},
                {"rdma_xserver", run_rdma_xserver, rdma_server_port, rdma_xserver_guest},
                {"rdma_xclient", run_rdma_xserver, rdma_server_port, rdma_xserver_guest},
                {"rstream", run_rstream, rstream_port, rstream_guest},
                {"udpong", run_udpong, 0, nullptr},
                {"cmtime", run_cmtime, cmtime_port, cmtime_guest}};

}  // namespace

bool is_cm_application(const std::string& app) {
  return std::any_of(std::begin(programs), std::end(programs), [&](const auto& p) { return app == p.name; });
}

std::unique_ptr<reception> receive_clients(served_host& host, cm_service& service, const cm_application_options& o) {
  for (const auto& p : programs) {
    if (o.app != p.name || p.port == 0 || o.client) continue;
    using host_driver::cm::port_space, host_driver::cm::service_kind;
    const auto space = p.make == nullptr ? port_space::udp : o.xrc ? port_space::ib : port_space::tcp;
    const auto kind = p.make == nullptr ? service_kind::datagrams
                      : o.xrc           ? service_kind::xrc_connections
                                        : service_kind::connections;
    reception::maker make;
    if (p.make != nullptr) make = [&host, &service, o, make_one = p.make] { return make_one(host, service, o); };
    return std::make_unique<reception>(service, host_driver::cm::service_id(space, o.port != 0 ? o.port : p.port),
                                       o.app, std::move(make), kind);
  }
  return nullptr;
}

application_result run_cm_application(served_host& host, cm_service& service, reception* clients,
                                      const cm_application_options& o) {
  application_result r;
  const auto start = service.now_ps();
  try {
    for (const auto& p : programs)
      if (o.app == p.name) p.run(host, service, clients, o, r);
    r.took_ps = service.now_ps() - start;
    r.ok = r.wrong_bytes == 0;
    if (!r.ok) r.error = fmt::format("{} bytes arrived changed", r.wrong_bytes);
    sc_core::wait(sc_core::sc_time::from_value(linger_ps));
  } catch (const peer_failure& e) {
    r.error = e.what();
  }
  return r;
}

}  // namespace rnic::serve
