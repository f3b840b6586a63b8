// SPDX-License-Identifier: Apache-2.0
#include "host_driver/workloads/workload.h"

#include <algorithm>

#include "host_driver/workloads/ping_pong.h"
#include "host_driver/workloads/workload_receiver.h"
#include "host_driver/workloads/workload_sender.h"

namespace rnic::workloads {

workload::workload(hosts::network& system, const workload_config& config, onlooker_if* onlooker)
    : system_(system), config_(config), onlooker_(onlooker), memory_(system.hosts()) {
  hosts::connection_options& o = config_.connection;
  o.send_depth = config.depth + 1;
  o.receive_depth = takes_receives() ? 2 * config.depth : 1;
  for (const unsigned from : config_.from)
    for (const unsigned to : config_.to) {
      if (to == from) continue;
      results_.emplace_back();
      results_.back().from = from;
      results_.back().to = to;
    }
  std::uint32_t lanes = 0;
  if (config_.ping_pong) {
    o.send_depth = o.receive_depth = hosts::connection_options{}.send_depth;
    for (const unsigned from : config_.from)
      for (unsigned t = 0; t < config_.threads; ++t) {
        ping_pongs_.push_back(std::make_unique<workloads::ping_pong>(*this, from, t, lanes));
        lanes += static_cast<std::uint32_t>(ping_pongs_.back()->lanes());
      }
    return;
  }
  for (const unsigned from : config_.from)
    for (unsigned t = 0; t < config_.threads; ++t) {
      senders_.push_back(std::make_unique<workload_sender>(*this, from, t, lanes));
      lanes += static_cast<std::uint32_t>(senders_.back()->lanes().size());
    }
  for (const unsigned to : config_.to) receivers_.push_back(std::make_unique<workload_receiver>(*this, to, senders_));
}

workload::~workload() = default;

bool workload::takes_receives() const {
  return std::any_of(config_.verbs.begin(), config_.verbs.end(), [](const auto& v) { return v.what->receives; });
}

hosts::endpoint& workload::at(unsigned host, std::size_t nth) {
  return config_.ports.empty() ? system_.end(host) : system_.end(host, config_.ports[nth % config_.ports.size()]);
}

std::size_t workload::pair_of(unsigned from, unsigned to) const {
  const auto at = std::find_if(results_.begin(), results_.end(),
                               [&](const workload_result& r) { return r.from == from && r.to == to; });
  return static_cast<std::size_t>(at - results_.begin());
}

std::uint64_t workload::share_of_messages(unsigned thread) const {
  const std::uint64_t all = config_.messages;
  return all == 0 ? ~std::uint64_t{0} : all / config_.threads + (thread < all % config_.threads ? 1 : 0);
}

void workload::create(unsigned host) {
  for (auto& p : ping_pongs_) p->create(host);
  if (config_.ping_pong) return;
  const auto has_part = [host](const std::vector<unsigned>& hosts) {
    return std::find(hosts.begin(), hosts.end(), host) != hosts.end();
  };
  if (!has_part(config_.from) && !has_part(config_.to)) return;
  memory_[host] = std::make_unique<host_regions>(system_.end(host), config_.memory);
  for (auto& s : senders_)
    if (s->host() == host) s->create();
  for (auto& r : receivers_)
    if (r->host() == host) r->create();
}

void workload::connect(unsigned host) {
  for (auto& p : ping_pongs_) p->connect(host);
  for (auto& s : senders_)
    if (s->host() == host) s->connect();
  for (auto& r : receivers_)
    if (r->host() == host) r->connect();
}

unsigned workload::senders_of(unsigned host) const {
  const auto is_its = [host](const auto& s) { return s->host() == host; };
  return static_cast<unsigned>(std::count_if(senders_.begin(), senders_.end(), is_its) +
                               std::count_if(ping_pongs_.begin(), ping_pongs_.end(), is_its));
}

void workload::ping(unsigned host, unsigned thread, const workload_times& t) {
  const auto first =
      std::find_if(ping_pongs_.begin(), ping_pongs_.end(), [host](const auto& p) { return p->host() == host; });
  workloads::ping_pong& p = **(first + thread);
  p.send(t);
  for (const unsigned to : config_.to) {
    if (!p.answers_at(to)) continue;
    system_.wait_until(system_.now_ps() + system_.lookahead(), to, hosts::network::turn::rank::visitor);
    p.sender_has_ended(to);
  }
}

void workload::send(unsigned host, unsigned thread, const workload_times& t) {
  if (config_.ping_pong) return ping(host, thread, t);
  const auto first =
      std::find_if(senders_.begin(), senders_.end(), [host](const auto& s) { return s->host() == host; });
  workload_sender& s = **(first + thread);
  s.run(t);
  s.settle();
  if (!takes_receives()) return;
  // What it says to receivers of other hosts they may know after a while; it comes behind what they do by themselves.
  for (auto& r : receivers_) {
    system_.wait_until(system_.now_ps() + system_.lookahead(), r->host(), hosts::network::turn::rank::visitor);
    r->sender_has_ended();
  }
}

unsigned workload::receivers_of(unsigned host) const {
  if (config_.ping_pong)
    return static_cast<unsigned>(
        std::count_if(ping_pongs_.begin(), ping_pongs_.end(), [host](const auto& p) { return p->answers_at(host); }));
  return takes_receives() && std::find(config_.to.begin(), config_.to.end(), host) != config_.to.end() ? 1 : 0;
}

void workload::receive(unsigned host, unsigned nth, const workload_times& t) {
  for (auto& p : ping_pongs_)
    if (p->answers_at(host) && nth-- == 0) return p->answer(host);
  for (auto& r : receivers_)
    if (r->host() == host) r->run(t);
}

void workload::failed(unsigned from, unsigned to, const std::string& why) {
  const auto& names = system_.config().shape.hosts();
  if (failure_.empty()) failure_ = names[from] + " to " + names[to] + ": " + why;
}

std::uint64_t workload::most_waiting() const {
  std::uint64_t most = 0;
  for (const auto& s : senders_) most = std::max(most, s->most_waiting());
  return most;
}

}  // namespace rnic::workloads
