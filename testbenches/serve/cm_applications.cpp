// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/cm_applications.h"

#include <fmt/format.h>

#include "testbenches/serve/cm_program.h"

namespace rnic::serve {

application_result run_cm_application(served_host& host, cm_service& service, const cm_application_options& o) {
  application_result r;
  const auto start = service.now_ps();
  try {
    if (o.app == "rping") run_rping(host, service, o, r);
    if (o.app == "ucmatose") run_ucmatose(host, service, o, r);
    if (o.app == "udaddy") run_udaddy(host, service, o, r);
    if (o.app == "mckey") run_mckey(host, service, o, r);
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
