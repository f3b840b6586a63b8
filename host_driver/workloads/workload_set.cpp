// SPDX-License-Identifier: Apache-2.0
#include "host_driver/workloads/workload_set.h"

#include <random>
#include <utility>

namespace rnic::workloads {

workload_set::workload_set(hosts::network& system, std::vector<workload_config> workloads,
                           const hosts::connection_options& common, std::uint64_t seed, onlooker_if* onlooker)
    : system_(system), common_(common), processes_(system) {
  std::mt19937_64 random(seed);
  for (workload_config& w : workloads) {
    w.seed = random();
    all_.push_back(std::make_unique<workload>(system, w, onlooker));
    for (unsigned host = 0; host < system.hosts(); ++host) processes_.expect_senders(all_.back()->senders_of(host));
  }
}

void workload_set::set_up(unsigned host) {
  hosts::set_address(system_.end(host), common_, host + 1);
  system_.meet();
  for (auto& w : all_) w->create(host);
  system_.meet();
  for (auto& w : all_) w->connect(host);
  system_.meet();
}

void workload_set::start(unsigned host, const workload_times& t) {
  for (auto& each : all_) {
    workload* const w = each.get();
    for (unsigned nth = 0; nth < w->receivers_of(host); ++nth)
      processes_.spawn(host, [w, host, nth, t] { w->receive(host, nth, t); });
    for (unsigned thread = 0; thread < w->senders_of(host); ++thread)
      processes_.spawn_sender(host, [w, host, thread, t] { w->send(host, thread, t); });
  }
}

}  // namespace rnic::workloads
