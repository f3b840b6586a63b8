// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/soak.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <stdexcept>

#include "host_driver/device.h"
#include "testbenches/bench/soak_places.h"

namespace rnic::bench {

namespace {

constexpr unsigned polled_at_once = 32;
constexpr sim::time_ps first_slice = sim::ps_per_us, longest_slice = 50 * sim::ps_per_us;

}  // namespace

/// A verb whose effect is not a copy of bytes needs its own check in soak::check_content.
const std::vector<workloads::verb>& soak_verbs() {
  static const std::vector<workloads::verb> table = [] {
    std::vector<workloads::verb> known;
    std::copy_if(workloads::verbs().begin(), workloads::verbs().end(), std::back_inserter(known),
                 [](const workloads::verb& v) { return !v.masked; });
    return known;
  }();
  return table;
}

soak::soak(hosts::pair_if& system, const hosts::connection_options& connection, const soak_config& config)
    : system_(system), connection_(connection), config_(config), atomics_(config.qps * 2, config.seed) {
  const std::vector<workloads::verb>& known = soak_verbs();
  for (std::size_t i = 0; i < known.size(); ++i)
    if ((config.verbs >> i & 1) != 0) verbs_.push_back(&known[i]);
  if (verbs_.empty()) throw std::runtime_error("a soak needs a verb");
  ring_bytes_ = 2 * (config.largest + 2 * guard + 2 * most_skew + 64);
  connection_.send_depth = config.depth + 1;
  connection_.receive_depth = config.depth + 1;
  connection_.send_sges = most_sges;
  connection_.receive_sges = 1;
  connection_.inline_bytes = 64;
  flows_.resize(std::size_t{config.qps} * 2);
  for (unsigned i = 0; i < flows_.size(); ++i) {
    flow& f = flows_[i];
    f.from = i % 2;
    f.index = i;
    f.ring = std::uint64_t{i} * ring_bytes_;
    f.target = config.messages / flows_.size() + (i < config.messages % flows_.size() ? 1 : 0);
    f.places = place_ring(ring_bytes_);
    f.under_way.resize(config.depth);
    f.random = soak_random(content_key(config.seed, i, ~std::uint64_t{0}));
  }
  result_.by_verb.resize(known.size());
}

sim::time_ps soak::patience() const {
  const std::uint64_t packets = config_.largest / connection_.mtu + 2;
  const std::uint64_t timeout = (sim::time_ps{4'096'000} << connection_.ack_timeout) * 4;  // IBA 9.7.6.1.3
  std::uint64_t extra = 0;
  for (unsigned side = 0; connection_.retries == 7 && side < 2; ++side)
    extra = std::max<std::uint64_t>(extra, system_.built_from(side).adapter.requester.extra_retries);
  const std::uint64_t tries = connection_.retries + 1 + extra;
  return timeout * tries * packets;
}

void soak::set_up(unsigned host) {
  hosts::endpoint& e = end(host);
  hosts::set_address(e, connection_, system_.number(host));
  const std::size_t bytes = std::size_t{ring_bytes_} * flows_.size();
  memory_[host] = hosts::make_buffer(e, bytes);
  make_fallow(memory_[host].at(), bytes);
  atomics_.set_up(e, host);
  const std::uint64_t entries = std::uint64_t{config_.qps} * config_.depth * 2 + 64;
  cq_[host] = e.device->create_cq(static_cast<int>(entries));
  hosts::require_made(*e.device, cq_[host], "create_cq");
  for (std::size_t i = 0; i < flows_.size(); i += 2)
    flows_[i].qp[host] = flows_[i + 1].qp[host] =
        hosts::make_qp(hosts::in_turn(e, i / 2), connection_, *cq_[host], *cq_[host]);
  system_.meet();
  for (std::size_t i = 0; i < flows_.size(); i += 2) {
    // Packet numbers begin anywhere, some just before they wrap; the two ends know each other's.
    soak_random psns(content_key(config_.seed, i, ~std::uint64_t{1}));
    std::uint32_t first[2];
    for (std::uint32_t& psn : first)
      psn = psns.below(2) == 0 ? 0xffffff - static_cast<std::uint32_t>(psns.below(64))
                               : static_cast<std::uint32_t>(psns.below(1u << 24));
    hosts::connection_options options = connection_;
    options.priority = static_cast<unsigned>((connection_.priority + i / 2 % config_.priorities) % 8);
    hosts::connect(hosts::in_turn(e, i / 2), options, *flows_[i].qp[host], hosts::in_turn(end(1 - host), i / 2),
                   flows_[i].qp[1 - host]->qp_num, first[host], first[1 - host]);
  }
  system_.meet();
}

void soak::program_b() { set_up(1); }

void soak::program_a() {
  set_up(0);
  run();
}

void soak::run() {
  start_ = system_.now_ps();
  for (flow& f : flows_) f.sign_of_life = start_;
  next_look_ = start_ + look_interval;
  while (!all_finished()) {
    bool moved = false;
    for (flow& f : flows_) {
      if (f.receives < f.posted) post_receives(f, true);
      moved |= fill(f);
    }
    for (unsigned host = 0; host < 2; ++host) moved |= take_completions(host);
    if (moved) {
      slice_ = first_slice;
      result_.elapsed = system_.now_ps() - start_;
    } else {
      wait_a_little();
    }
    if (system_.now_ps() >= next_look_) look_for_hangs();
  }
  last_look();
}

bool soak::all_finished() const {
  return std::all_of(flows_.begin(), flows_.end(), [](const flow& f) { return f.hung || finished(f); });
}

/// The polling loop spins on one queue after the other, less often the longer nothing comes.
void soak::wait_a_little() {
  std::array<ibv_wc, 1> none{};
  for (unsigned host = 0; host < 2; ++host)
    if (end(host).device->wait_cq(cq_[host], 0, none.data(), slice_) != 0) break;
  slice_ = std::min(slice_ * 2, longest_slice);
}

// ---------------------------------------------------------------- completions

bool soak::take_completions(unsigned host) {
  std::array<ibv_wc, polled_at_once> wcs{};
  const int n = end(host).device->poll_cq(cq_[host], polled_at_once, wcs.data());
  hosts::require(n, "poll_cq");
  for (int i = 0; i < n; ++i) {
    const ibv_wc& wc = wcs[static_cast<unsigned>(i)];
    flow& f = flows_.at(wc.wr_id << 1 >> (flow_shift + 1));
    f.sign_of_life = system_.now_ps();
    if ((wc.wr_id & receive_id) != 0)
      take_received(f, wc);
    else
      take_sent(f, wc);
    retire(f);
  }
  return n > 0;
}

void soak::take_sent(flow& f, const ibv_wc& wc) {
  const std::uint64_t number = wc.wr_id & ((std::uint64_t{1} << flow_shift) - 1);
  message& m = slot(f, number);
  if (number >= f.posted || number < f.over || m.sent) {
    ++result_.duplicated;
    return note("flow " + std::to_string(f.index) + ": message " + std::to_string(number) + " completed again");
  }
  if (number != f.sent) find(result_.reordered, f, m, "completed before message " + std::to_string(f.sent));
  f.sent = number + 1;
  m.sent = true;
  if (wc.status != IBV_WC_SUCCESS) {
    m.failed = true;
    if (wc.status == IBV_WC_WR_FLUSH_ERR)
      ++result_.flushed;
    else
      find(
          result_.errors, f, m,
          std::string("ended with ") + hosts::to_string(wc.status) + ", vendor error " + std::to_string(wc.vendor_err));
    return die(f);
  }
  const workloads::verb& v = *verbs_[m.verb];
  if (wc.opcode != v.sent) find(result_.corrupted, f, m, "completed as another operation");
  if (v.reads && wc.byte_len != m.size) find(result_.corrupted, f, m, "completed with another length");
  if (!v.receives) check_content(f, m, "completed");
}

void soak::take_received(flow& f, const ibv_wc& wc) {
  const std::uint64_t number = wc.wr_id & ((std::uint64_t{1} << flow_shift) - 1);
  message& m = slot(f, number);
  if (wc.status == IBV_WC_WR_FLUSH_ERR) return die(f);
  if (number >= f.posted || number < f.over || m.received) {
    ++result_.duplicated;
    return note("flow " + std::to_string(f.index) + ": message " + std::to_string(number) + " was received again");
  }
  m.received = true;
  if (wc.status != IBV_WC_SUCCESS) {
    find(result_.errors, f, m, std::string("receive ended with ") + hosts::to_string(wc.status));
    return die(f);
  }
  for (; f.receive_scan < number; ++f.receive_scan) {
    const message& before = slot(f, f.receive_scan);
    if (f.receive_scan >= f.over && verbs_[before.verb]->receives && !before.received)
      find(result_.reordered, f, m, "was received before message " + std::to_string(f.receive_scan));
  }
  check_received(f, m, wc);
}

/// The oldest messages that are over lie fallow again.
void soak::retire(flow& f) {
  if (f.dead && !ending_) return;  // a receive's completion may still be on its way
  while (f.over < f.posted) {
    message& m = slot(f, f.over);
    const bool receives = verbs_[m.verb]->receives && !ending_;
    if (!m.sent || (receives && !m.received)) return;
    if (!m.failed && (m.received || !verbs_[m.verb]->receives)) {
      ++result_.completed;
      result_.bytes += m.size;
    } else if (!m.failed) {
      find(result_.lost, f, m, "was never received");
    }
    for (unsigned host = 0; host < 2; ++host) make_fallow(at(f, m, host), m.span);
    f.places.give(m.place, m.span);
    ++f.over;
    if (on_progress && result_.completed % 1024 == 0) on_progress(result_.completed);
  }
}

/// Its queue pairs are in error: nothing more is posted, and of what is under way only the sender's completions count.
void soak::die(flow& f) {
  for (const unsigned i : {f.index & ~1u, f.index | 1u}) {
    flows_[i].dead = true;
    atomics_.failed(i, flows_[i].from);
  }
}

}  // namespace rnic::bench
