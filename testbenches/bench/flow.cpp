// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/flow.h"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace rnic::bench {

namespace {
constexpr sim::time_ps quiet_time = 1'000 * sim::ps_per_us;  // behind which nothing is expected any more
}  // namespace

flow::flow(hosts::network& system, const flow_config& config, workloads::onlooker_if* onlooker)
    : system_(system),
      config_(config),
      onlooker_(onlooker),
      at_{&system.end(config.from), &system.end(config.to)},
      random_(config.seed) {
  config_.connection.send_depth = config.depth + 1;
  config_.connection.receive_depth = config.what->receives ? 2 * config.depth : 1;
  config_.connection.inline_bytes = 0;
  config_.connection.rd_atomic = 16;
  headroom_ = config.connection.type == IBV_QPT_UD ? workloads::datagram_headroom : 0;
  stride_ = headroom_ + (std::uint64_t{std::max(config.size, 64u)} + 63) / 64 * 64;
  lanes_.resize(config.qps);
  under_way_.resize(std::size_t{config.qps} * config.depth);
}

hosts::endpoint& flow::at(unsigned end, std::size_t index) {
  const unsigned host = end == 0 ? config_.from : config_.to;
  return config_.ports.empty() ? *at_[end] : system_.end(host, config_.ports[index % config_.ports.size()]);
}

void flow::create(unsigned host) {
  for (const unsigned end : {0u, 1u}) {
    if ((end == 0 ? config_.from : config_.to) != host) continue;
    hosts::endpoint& first = *at_[end];
    memory_[end] = hosts::make_buffer(first, headroom_ + stride_ * lanes_.size());
    const std::uint64_t entries = std::uint64_t{config_.qps} * config_.depth * 2 + 16;
    (end == 0 ? send_cq_ : receive_cq_) = workloads::new_cq(first, entries);
    unused_[end] = workloads::new_cq(first, 16);
    for (std::size_t i = 0; i < lanes_.size(); ++i)
      lanes_[i].ends[end].create(at(end, i), config_.connection, *(end == 0 ? send_cq_ : unused_[1]),
                                 *(end == 0 ? unused_[0] : receive_cq_));
    for (const lane& l : lanes_)
      if (end == 0 && onlooker_ != nullptr) onlooker_->sends(host, l.ends[0].sender_number(), config_.name);
  }
}

void flow::connect(unsigned host) {
  for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
    workloads::link_end* const ends = lanes_[i].ends;
    if (config_.from == host) ends[0].connect(ends[1], i, i);
    if (config_.to != host) continue;
    ends[1].connect(ends[0], i, i);
    for (unsigned n = 0; receives() && n < 2 * config_.depth; ++n) post_receive(i);
  }
}

void flow::post_receive(std::uint32_t index) {
  lanes_[index].ends[1].post_receive(memory_[1].address(place(index)), config_.size, memory_[1].region->lkey, index);
}

/// When the next message is due.
sim::time_ps flow::due() const {
  if (config_.rate_kbps == 0) return 0;
  const double bits = static_cast<double>(bytes_posted_) * 8;
  return result_.begin + static_cast<sim::time_ps>(bits * 1e9 / static_cast<double>(config_.rate_kbps));
}

bool flow::may_post() const {
  if (config_.messages != 0 && result_.posted == config_.messages) return false;
  const lane& l = lanes_[turn_];
  return l.posted - l.completed < config_.depth && system_.now_ps() >= due();
}

void flow::post(std::uint32_t index) {
  lane& l = lanes_[index];
  const std::uint64_t slot = index * std::uint64_t{config_.depth} + l.posted % config_.depth;
  const std::uint32_t bytes = config_.sizes.empty() ? config_.size : config_.sizes[random_() % config_.sizes.size()];
  under_way_[slot] = {system_.now_ps(), bytes};
  bytes_posted_ += bytes;
  hosts::message_segments segments(memory_[0].address(place(index)), bytes, memory_[0].region->lkey);
  host_driver::masked_atomic_wr wr(host_driver::driver_opcode::masked_compare_swap);  // or a plain request
  wr.wr_id = index;
  wr.sg_list = segments.list.data();
  wr.num_sge = segments.count;
  wr.send_flags = IBV_SEND_SIGNALED;
  workloads::make_message(wr, *config_.what, memory_[1].address(place(index)), memory_[1].region->rkey, l.operations);
  if (config_.what->atomic) ++l.operations;
  l.ends[0].aim(wr);
  l.ends[0].post_send(wr);
  ++l.posted;
  ++result_.posted;
}

/// False: the flow has failed.
bool flow::take_completions(sim::time_ps timeout) {
  std::array<ibv_wc, workloads::poll_batch> wc{};
  const int n = at_[0]->device->wait_cq(send_cq_, workloads::poll_batch, wc.data(), std::max<sim::time_ps>(timeout, 1));
  hosts::require(n, "poll_cq");
  for (int i = 0; i < n; ++i) {
    const ibv_wc& c = wc[static_cast<std::size_t>(i)];
    if (c.status != IBV_WC_SUCCESS) {
      result_.failure = hosts::to_string(c.status);
      return false;
    }
    lane& l = lanes_[c.wr_id];
    result_.end = system_.now_ps();
    const message& m = under_way_[c.wr_id * config_.depth + l.completed % config_.depth];
    result_.times.push_back(result_.end - m.at);
    result_.bytes += m.bytes;
    ++l.completed;
    ++result_.completed;
  }
  return true;
}

/// A message of each queue pair that has room, round and round until none has, or none is due.
void flow::post_in_turn(sim::time_ps deadline) {
  std::size_t passed = 0;  // since a message was posted
  while (passed < lanes_.size() && !stopped_ && system_.now_ps() < deadline) {
    ++passed;
    if (may_post()) {
      post(turn_);
      passed = 0;
    }
    turn_ = (turn_ + 1) % static_cast<std::uint32_t>(lanes_.size());
  }
}

void flow::send(sim::time_ps begin, sim::time_ps deadline) {
  using rank = hosts::network::turn::rank;
  if (!stopped_) system_.wait_until(std::min(begin + config_.start, deadline), config_.from, rank::own, &stop_);
  result_.begin = system_.now_ps();
  while (!stopped_ && system_.now_ps() < deadline && (config_.messages == 0 || result_.completed < config_.messages)) {
    post_in_turn(deadline);
    const sim::time_ps now = system_.now_ps(), next = due();
    if (stopped_ || now >= deadline) break;
    if (!take_completions(std::min(deadline, next > now ? next : deadline) - now)) break;
  }
  if (!receives()) return;
  const sim::time_ps known = system_.now_ps() + system_.lookahead();
  if (known > deadline) return;  // the receiver ends by itself then
  system_.wait_until(known, config_.to, rank::visitor);
  over_ = true;
  over_at_ = system_.now_ps();
  at_[1]->device->end_wait(receive_cq_);
}

void flow::stop() {
  stopped_ = true;
  stop_.ring(system_.base());
  if (send_cq_ != nullptr) at_[0]->device->end_wait(send_cq_);
}

/// The sender is done, and nothing more is to come: `since` is when something came last.
bool flow::has_all(sim::time_ps since) const {
  if (!over_) return false;
  if (!unreliable() || stopped_ || result_.arrived == result_.completed) return true;
  return system_.now_ps() >= std::max(since, over_at_) + quiet_time;
}

void flow::receive(sim::time_ps deadline) {
  std::array<ibv_wc, workloads::poll_batch> wc{};
  const std::uint32_t header = config_.connection.type == IBV_QPT_UD ? workloads::datagram_header : 0;
  while (!has_all(result_.last_arrival) && system_.now_ps() < deadline) {
    const sim::time_ps rest = deadline - system_.now_ps();
    const int n = at_[1]->device->wait_cq(receive_cq_, workloads::poll_batch, wc.data(),
                                          over_ ? std::min(rest, quiet_time) : rest);
    hosts::require(n, "poll_cq");
    for (int i = 0; i < n; ++i) {
      const ibv_wc& c = wc[static_cast<std::size_t>(i)];
      if (c.status != IBV_WC_SUCCESS) return;  // its queue pair has ended, as the sender's has or will
      ++result_.arrived;
      result_.arrived_bytes += c.byte_len - header;
      result_.last_arrival = system_.now_ps();
      post_receive(static_cast<std::uint32_t>(c.wr_id));
    }
  }
}

}  // namespace rnic::bench
