// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/flow_set.h"

#include <random>
#include <utility>

namespace rnic::bench {

flow_set::flow_set(hosts::network& system, std::vector<flow_config> flows, const hosts::connection_options& common,
                   std::uint64_t seed)
    : system_(system), common_(common), processes_(system.hosts()), sending_(static_cast<unsigned>(flows.size())) {
  std::mt19937_64 random(seed);
  for (flow_config& f : flows) {
    f.seed = random();
    f.start += random() % (f.spread + 1);
    flows_.push_back(std::make_unique<flow>(system, f));
  }
}

void flow_set::set_up(unsigned host) {
  hosts::set_address(system_.end(host), common_, host + 1);
  system_.meet();
  for (auto& f : flows_) f->create(host);
  system_.meet();
  for (auto& f : flows_) f->connect(host);
  system_.meet();
}

template <class What>
void flow_set::spawn(unsigned host, What what) {
  processes_[host].push_back(sc_core::sc_spawn([this, what] {
    try {
      what();
    } catch (...) {
      if (!failure_) failure_ = std::current_exception();
    }
  }));
}

void flow_set::start(unsigned host, sim::time_ps begin, sim::time_ps deadline) {
  for (auto& f : flows_) {
    if (f->config().to == host && f->receives()) spawn(host, [&f, deadline] { f->receive(deadline); });
    if (f->config().from != host) continue;
    spawn(host, [&f, this, begin, deadline] {
      f->send(begin, deadline);
      --sending_;
    });
  }
}

void flow_set::join(unsigned host) {
  for (sc_core::sc_process_handle& p : processes_[host])
    if (!p.terminated()) sc_core::wait(p.terminated_event());
  if (failure_) std::rethrow_exception(failure_);
}

void flow_set::stop() {
  for (auto& f : flows_) f->stop();
}

}  // namespace rnic::bench
