// SPDX-License-Identifier: Apache-2.0
#include "host_driver/workloads/limits.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "model/sim/check.h"

namespace rnic::workloads {

namespace {

[[noreturn]] void refuse(const workload_config& w, const std::string& what) {
  throw sim::config_error("workload " + w.name + ": " + what);
}

void check_range(const workload_config& w, const char* field, std::uint64_t value, std::uint64_t least,
                 std::uint64_t most) {
  if (value >= least && value <= most) return;
  refuse(w, std::string(field) + ": " + std::to_string(value) + " is not legal, expected " + std::to_string(least) +
                " to " + std::to_string(most));
}

void check_hosts(const workload_config& w, const char* field, std::vector<unsigned> hosts,
                 const fabric::topology& shape) {
  if (hosts.empty()) refuse(w, std::string(field) + ": is missing, expected a host at least");
  std::sort(hosts.begin(), hosts.end());
  if (std::adjacent_find(hosts.begin(), hosts.end()) != hosts.end())
    refuse(w, std::string(field) + ": a host is there twice");
  check_range(w, field, hosts.back(), 0, shape.hosts().size() - 1);
  for (const unsigned host : hosts) {
    if (shape.cabled(host) == 0) refuse(w, std::string(field) + ": " + shape.hosts()[host] + " has no cable");
    for (const unsigned port : w.ports) {
      check_range(w, "ports", port, 1, 2);
      if ((shape.cabled(host) >> (port - 1) & 1) == 0)
        refuse(w, "ports: port " + std::to_string(port) + " of " + shape.hosts()[host] + " has no cable");
    }
  }
}

void check_messages(const workload_config& w) {
  const ibv_qp_type transport = w.connection.type;
  if (w.verbs.empty()) refuse(w, "verbs: is empty, expected one at least");
  for (const workload_config::verb_part& v : w.verbs) {
    if (v.what == nullptr || v.what->masked || !carries(transport, *v.what))
      refuse(w,
             std::string("verbs: ") + (v.what == nullptr ? "none" : v.what->name) + " is not legal in this transport");
    check_range(w, "verbs: weight", v.weight, 1, 1'000'000);
  }
  const bool datagrams = transport == IBV_QPT_UD;
  check_range(w, "sizes", w.sizes.largest(), 0, datagrams ? w.connection.mtu : longest_message);
  check_range(w, "connection.inline_bytes", w.connection.inline_bytes, 0,
              datagrams ? most_inline_of_datagrams : most_inline);
  check_range(w, "connection.inline_receive", w.connection.inline_receive, 0,
              transport == IBV_QPT_XRC_SEND ? 0 : most_inline_receive);
}

void check_loop(const workload_config& w) {
  check_range(w, "threads", w.threads, 1, most_threads);
  check_range(w, "qps", w.qps, 1, most_qps);
  check_range(w, "depth", w.depth, 1, most_depth);
  check_range(w, "batch", w.batch, 1, most_batch);
  check_range(w, "signal_every", w.signal_every, 1, most_depth);
  check_range(w, "depth", w.depth, least_depth(w), most_depth);
  const std::string lack = lacks_memory(w);
  if (!lack.empty()) refuse(w, "threads, qps and depth: " + lack);
  if (w.open && !(w.open->gap_ps > 0)) refuse(w, "open.gap_ps: expected above 0");
  if (w.open && w.open->kind == arrival_config::process::on_off && !(w.open->on_ps > 0))
    refuse(w, "open.on_ps: expected above 0");
}

void check_ping_pong(const workload_config& w) {
  if (w.open) refuse(w, "open: an answered message is posted behind the answer before it, expected a closed loop");
  for (const auto& [field, value] :
       {std::pair{"depth", w.depth}, std::pair{"batch", w.batch}, std::pair{"signal_every", w.signal_every}})
    check_range(w, field, value, 1, 1);
  if (w.verbs.size() != 1) refuse(w, "verbs: expected one of messages that are answered");
  const verb& v = *w.verbs.front().what;
  if (v.reads) refuse(w, std::string("verbs: ") + v.name + " has its answer, expected one that sends or writes");
  if (w.sizes.smallest() != w.sizes.largest()) refuse(w, "sizes: expected one of messages that are answered");
  if (!v.receives) check_range(w, "sizes", w.sizes.smallest(), 1, longest_message);  // 0 bytes cannot be waited for
}

}  // namespace

std::string lacks_memory(std::uint64_t queue_pairs, std::uint64_t depth) {
  constexpr std::uint64_t descriptor = 64, gib = std::uint64_t{1} << 30;
  const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || bytes <= 0) return {};
  const std::uint64_t there = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(bytes);
  const std::uint64_t needed = queue_pairs * depth * descriptor;
  if (needed <= there) return {};
  return std::to_string(queue_pairs) + " queue pairs with " + std::to_string(depth) + " messages each take " +
         std::to_string(needed / gib) + " GiB of send queues, expected no more than the memory of this machine, " +
         std::to_string(there / gib) + " GiB";
}

std::string lacks_memory(const workload_config& w) {
  // A host that sends may be among the receivers.
  const std::uint64_t peers = std::max<std::size_t>(1, w.to.size() - 1);
  return lacks_memory(peers * w.from.size() * w.threads * w.qps, w.depth);
}

void check(const workload_config& w, const fabric::topology& shape, bool endless) {
  check_hosts(w, "from", w.from, shape);
  check_hosts(w, "to", w.to, shape);
  if (w.to.size() == 1 && std::find(w.from.begin(), w.from.end(), w.to.front()) != w.from.end())
    refuse(w, "to: " + shape.hosts()[w.to.front()] + " is where it comes from, expected another host");
  check_messages(w);
  check_loop(w);
  if (w.ping_pong) check_ping_pong(w);
  check_range(w, "memory.number", w.memory.number, 1, most_regions);
  check_range(w, "memory.bytes", w.memory.bytes, w.sizes.largest(), longest_region);
  if (w.end != 0 && w.end <= w.start) refuse(w, "end: is not behind start");
  if (w.messages == 0 && w.end == 0 && endless)
    refuse(w, "messages: is missing, and so are its end and the duration of the run: one of them ends the workload");
}

}  // namespace rnic::workloads
