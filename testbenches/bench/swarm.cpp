// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/swarm.h"

#include <algorithm>
#include <array>
#include <exception>
#include <stdexcept>

namespace rnic::bench {

namespace {

constexpr unsigned poll_batch = 16;
constexpr unsigned largest_batch = 16;

std::uint64_t next_random(std::uint64_t& state) {  // xorshift64* (Marsaglia, Vigna)
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 0x2545f4914f6cdd1dULL >> 16;
}

}  // namespace

swarm::swarm(hosts::hosts_if& system, const hosts::connection_options& connection, const swarm_config& config)
    : system_(system), connection_(connection), config_(config) {
  config_.threads = std::clamp(config.threads, 1u, config.qps);
  config_.batch = std::clamp(config.batch, 1u, largest_batch);
  for (unsigned i = 0; i < 2; ++i) {
    const unsigned hosts = system.hosts(i);
    if (config_.qps % hosts != 0 || config_.threads % hosts != 0)
      throw std::runtime_error("queue pairs and threads cannot be spread evenly over the hosts");
    sides_[i].lanes.resize(config_.qps);
    sides_[i].cqs.resize(config_.threads);
    sides_[i].memories.resize(hosts);
  }
}

std::pair<unsigned, unsigned> swarm::place_of(const hosts::endpoint& e) const {
  for (unsigned s = 0; s < 2; ++s)
    for (unsigned i = 0; i < system_.hosts(s); ++i)
      if (&system_.host(s, i) == &e) return {s, i};
  throw std::runtime_error("a host that is not one of the system's");
}

void swarm::set_up(hosts::endpoint& at) {
  const auto [number, host] = place_of(at);
  side& s = sides_[number];
  const std::uint64_t stride = std::max(config_.stride, config_.size);
  const std::uint64_t places = config_.random_bytes != 0 ? config_.random_bytes : stride * config_.qps;
  s.memories[host] = {hosts::make_buffer(at, places), hosts::make_buffer(at, places)};
  const unsigned per_thread = connection_.send_depth * (config_.qps / config_.threads + 1);
  host_driver::completion_queue* const unused = at.device->create_cq(16);
  for (unsigned t = 0; t < config_.threads; ++t) {
    if (host_of(number, first_lane(t)) != host) continue;
    s.cqs[t] = at.device->create_cq(static_cast<int>(per_thread + 16));
    if (s.cqs[t] == nullptr || unused == nullptr) throw std::runtime_error("create_cq failed");
    for (unsigned i = first_lane(t); i < first_lane(t + 1); ++i)
      s.lanes[i].qp = hosts::make_qp(at, connection_, *s.cqs[t], *unused);
  }
  system_.meet();
  for (std::uint32_t i = 0; i < config_.qps; ++i)
    if (host_of(number, i) == host)
      hosts::connect(at, connection_, *s.lanes[i].qp, system_.host(1 - number, host_of(1 - number, i)),
                     sides_[1 - number].lanes[i].qp->qp_num, i, i);
  system_.meet();
}

void swarm::post(hosts::endpoint& e, unsigned from, std::uint32_t index, std::uint64_t& random) {
  lane& l = sides_[from].lanes[index];
  const hosts::buffer& local = sides_[from].memories[host_of(from, index)].local;
  const hosts::buffer& remote = sides_[1 - from].memories[host_of(1 - from, index)].remote;
  std::array<ibv_send_wr, largest_batch> wr;
  std::array<ibv_sge, largest_batch> sge;
  const std::uint64_t stride = std::max(config_.stride, config_.size);
  for (unsigned k = 0; k < config_.batch; ++k) {
    const auto choose = [&] {
      if (config_.random_bytes == 0) return index * stride;
      return next_random(random) % (config_.random_bytes / stride) * stride;
    };
    const std::uint64_t place = choose();
    sge[k] = {local.address(choose()), config_.size, local.region->lkey};
    wr[k] = {};
    wr[k].wr_id = index;
    wr[k].sg_list = &sge[k];
    wr[k].num_sge = 1;
    wr[k].next = k + 1 < config_.batch ? &wr[k + 1] : nullptr;
    wr[k].opcode = config_.opcode;
    wr[k].wr.rdma.remote_addr = remote.address(place);
    wr[k].wr.rdma.rkey = remote.region->rkey;
    if (config_.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || config_.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
      hosts::make_atomic(wr[k], config_.opcode == IBV_WR_ATOMIC_CMP_AND_SWP, remote.address(place), remote.region->rkey,
                         0);
    if (config_.opcode == IBV_WR_RDMA_WRITE && config_.size <= connection_.inline_bytes)
      wr[k].send_flags |= IBV_SEND_INLINE;
    if (++l.unsignalled == config_.signal_every) {
      wr[k].send_flags |= IBV_SEND_SIGNALED;
      l.unsignalled = 0;
    }
    ++l.under_way;
  }
  ibv_send_wr* bad = nullptr;
  hosts::require(e.device->post_send(l.qp, wr.data(), &bad), "post_send");
}

void swarm::count(side& s, std::uint64_t messages) {
  const std::uint64_t before = s.completed;
  s.completed += messages;
  const auto crosses = [&](std::uint64_t mark) { return before < mark && s.completed >= mark; };
  if (crosses(s.warm_up)) s.begin = system_.now_ps();
  if (crosses(s.target)) {
    s.end = system_.now_ps();
    --measuring_;
  }
}

void swarm::work(hosts::endpoint& e, unsigned from, unsigned thread) {
  side& s = sides_[from];
  const unsigned first = first_lane(thread), lanes = first_lane(thread + 1) - first;
  // Of each side its own: two hosts whose threads take the same queue pairs at the same time are kinder to the caches.
  std::uint64_t random =
      config_.seed * 0x9e3779b97f4a7c15ULL + (thread + 1) * 0xbf58476d1ce4e5b9ULL + from * 0x94d049bb133111ebULL;
  unsigned turn = 0, under_way = 0;
  std::array<ibv_wc, poll_batch> wc{};
  while (measuring_ != 0) {
    while (under_way + config_.batch <= config_.window) {
      const unsigned begin = config_.random_qp ? static_cast<unsigned>(next_random(random) % lanes) : turn;
      unsigned skip = 0;
      while (skip < lanes && s.lanes[first + (begin + skip) % lanes].under_way + config_.batch > connection_.send_depth)
        ++skip;
      if (skip == lanes) break;
      const unsigned index = first + (begin + skip) % lanes;
      turn = (index - first + 1) % lanes;
      post(e, from, index, random);
      under_way += config_.batch;
    }
    const int n = e.device->wait_cq(s.cqs[thread], poll_batch, wc.data(), 20 * sim::ps_per_ns * 1000);
    hosts::require(n, "poll_cq");
    for (int i = 0; i < n; ++i) {
      const ibv_wc& c = wc[static_cast<std::size_t>(i)];
      if (c.status != IBV_WC_SUCCESS) throw hosts::message_failed(c);
      s.lanes[c.wr_id].under_way -= config_.signal_every;
      under_way -= config_.signal_every;
      count(s, config_.signal_every);
    }
  }
}

sim::time_ps swarm::run(hosts::endpoint& e, std::uint64_t warm_up, std::uint64_t messages) {
  const auto [number, host] = place_of(e);
  side& s = sides_[number];
  if (!s.measuring) {  // the first of its hosts
    s.measuring = true;
    s.warm_up = std::max<std::uint64_t>(warm_up, 1);
    s.target = s.warm_up + messages;
    ++measuring_;
  }
  std::exception_ptr failure;
  std::vector<sc_core::sc_process_handle> threads;
  for (unsigned t = 0; t < config_.threads; ++t) {
    if (host_of(number, first_lane(t)) != host) continue;
    threads.push_back(sc_core::sc_spawn([&, t, from = number] {
      try {
        work(e, from, t);
      } catch (...) {
        failure = std::current_exception();
        measuring_ = 0;
      }
    }));
  }
  for (sc_core::sc_process_handle& t : threads)
    if (!t.terminated()) sc_core::wait(t.terminated_event());
  if (failure) std::rethrow_exception(failure);
  return s.end - s.begin;
}

}  // namespace rnic::bench
