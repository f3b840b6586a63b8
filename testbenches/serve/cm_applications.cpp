// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/cm_applications.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "testbenches/serve/cm_program.h"

namespace rnic::serve {

namespace {

constexpr struct {
  const char* name;
  void (*run)(served_host&, cm_service&, const cm_application_options&, application_result&);
} programs[] = {{"rping", run_rping},
                {"ucmatose", run_ucmatose},
                {"udaddy", run_udaddy},
                {"mckey", run_mckey},
                {"rdma_server", run_rdma_server},
                {"rdma_client", run_rdma_server},
                {"rdma_xserver", run_rdma_xserver},
                {"rdma_xclient", run_rdma_xserver},
                {"cmtime", run_cmtime}};

}  // namespace

bool is_cm_application(const std::string& app) {
  return std::any_of(std::begin(programs), std::end(programs), [&](const auto& p) { return app == p.name; });
}

application_result run_cm_application(served_host& host, cm_service& service, const cm_application_options& o) {
  application_result r;
  const auto start = service.now_ps();
  try {
    for (const auto& p : programs)
      if (o.app == p.name) p.run(host, service, o, r);
    r.took_ps = service.now_ps() - start;
    r.ok = r.wrong_bytes == 0;
    if (!r.ok) r.error = fmt::format("{} bytes arrived changed", r.wrong_bytes);
    sc_core::wait(sc_core::sc_time::from_value(linger_ps));
  } catch (const peer_failure& e) {
    r.error = e.what();
  }
  service.clear();
  return r;
}

}  // namespace rnic::serve
