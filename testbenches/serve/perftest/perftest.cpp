// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/perftest/perftest.h"

#include <fmt/format.h>

#include "host_driver/hosts/connection.h"
#include "testbenches/serve/perftest/messages.h"
#include "testbenches/serve/perftest/one_sided.h"

namespace rnic::serve {

namespace {

// What the tools take.
constexpr std::uint32_t bandwidth_bytes = 65536, latency_bytes = 2, largest_bytes = 8u << 20;
constexpr unsigned usual_messages = 1000, write_messages = 5000;

}  // namespace

std::uint32_t perftest_options::message_bytes() const {
  if (verb == perftest_verb::atomic) return hosts::atomic_bytes;
  if (all_sizes) return type == IBV_QPT_UD ? mtu : largest_bytes;
  if (size != 0) return size;
  return latency ? latency_bytes : type == IBV_QPT_UD ? mtu : bandwidth_bytes;
}

std::uint64_t perftest_options::messages() const {
  constexpr std::uint64_t more_than_anybody_sends = std::uint64_t{1} << 40;
  if (seconds != 0) return more_than_anybody_sends;
  if (iterations != 0) return iterations;
  return verb == perftest_verb::write && !latency ? write_messages : usual_messages;
}

std::optional<perftest_options> find_perftest(const std::string& tool) {
  constexpr struct {
    const char* name;
    perftest_verb verb;
  } verbs[] = {{"write", perftest_verb::write},
               {"read", perftest_verb::read},
               {"send", perftest_verb::send},
               {"atomic", perftest_verb::atomic}};
  for (const auto& v : verbs) {
    for (const bool latency : {false, true}) {
      if (tool != fmt::format("ib_{}_{}", v.name, latency ? "lat" : "bw")) continue;
      perftest_options o;
      o.verb = v.verb;
      o.latency = latency;
      return o;
    }
  }
  return std::nullopt;
}

application_result run_perftest(served_host& host, address_exchange& socket, cm_service* service, reception* clients,
                                const perftest_options& options) {
  application_result r;
  try {
    if (options.verb == perftest_verb::send)
      perftest::messages(host, socket, service, clients, options).run(r);
    else if (options.verb == perftest_verb::write && options.latency)
      perftest::write_latency(host, socket, service, clients, options).run(r);
    else
      perftest::one_sided(host, socket, service, clients, options).run(r);
    r.ok = r.wrong_bytes == 0;
    if (!r.ok) r.error = fmt::format("{} bytes of counters are not what they should be", r.wrong_bytes);
  } catch (const peer_failure& e) {
    r.error = e.what();
  }
  return r;
}

}  // namespace rnic::serve
