// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/flow_set.h"

#include <random>
#include <utility>

namespace rnic::bench {

flow_set::flow_set(hosts::network& system, std::vector<flow_config> flows, const hosts::connection_options& common,
                   std::uint64_t seed, workloads::onlooker_if* onlooker)
    : system_(system), common_(common), processes_(system) {
  processes_.expect_senders(static_cast<unsigned>(flows.size()));
  std::mt19937_64 random(seed);
  for (flow_config& f : flows) {
    f.seed = random();
    f.start += random() % (f.spread + 1);
    flows_.push_back(std::make_unique<flow>(system, f, onlooker));
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

void flow_set::start(unsigned host, sim::time_ps begin, sim::time_ps deadline) {
  for (auto& f : flows_) {
    if (f->config().to == host && f->receives()) processes_.spawn(host, [&f, deadline] { f->receive(deadline); });
    if (f->config().from != host) continue;
    processes_.spawn_sender(host, [&f, begin, deadline] { f->send(begin, deadline); });
  }
}

void flow_set::join(unsigned host) { processes_.join(host); }

void flow_set::stop() {
  for (auto& f : flows_) f->stop();
}

}  // namespace rnic::bench
