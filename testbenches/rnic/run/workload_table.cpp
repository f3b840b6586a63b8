// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/run/workload_table.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "host_driver/workloads/limits.h"
#include "testbenches/rnic/named_files.h"
#include "testbenches/rnic/options.h"

namespace rnic::program {

namespace {

using section = sim::toml_section;
using workloads::message_sizes;
using workloads::workload_config;

using workloads::longest_message;

const workloads::verb* verb_at(const section& s, const toml::node& at, const std::string& key, const std::string& name,
                               const hosts::connection_options& c) {
  const workloads::verb* v = workloads::find_verb(name);
  std::string legal;
  for (const workloads::verb& known : workloads::verbs())
    if (!known.masked && workloads::carries(c.type, known))
      legal += (legal.empty() ? "" : ", ") + std::string(known.name);
  if (v == nullptr || v->masked || !workloads::carries(c.type, *v))
    s.fail(at, key + ": " + name + " is not legal in this transport, expected one of " + legal);
  return v;
}

/// verb = "write", or verbs = { write = 70, read = 30 } with weights.
void read_verbs(const section& s, workload_config& w) {
  std::string verb = "write";
  if (s.text("verb", verb) || !s.has("verbs")) {
    const toml::node* at = s.find(s.has("verb") ? "verb" : "transport");
    if (s.has("verbs")) s.fail(*s.find("verbs"), "verbs: expected that or verb");
    if (w.connection.type == IBV_QPT_UD && !s.has("verb")) verb = "send";
    w.verbs = {{at != nullptr ? verb_at(s, *at, "verb", verb, w.connection) : workloads::find_verb(verb), 1}};
    return;
  }
  const toml::node& node = *s.find("verbs");
  const toml::table* table = node.as_table();
  if (table == nullptr || table->empty())
    s.fail(node, "verbs: expected a table of verbs and weights, as in { write = 70, read = 30 }");
  w.verbs.clear();
  for (const auto& [key, value] : *table) {
    const auto* weight = value.as_integer();
    if (weight == nullptr || weight->get() < 1 || weight->get() > 1'000'000)
      s.fail(value, "verbs: " + std::string(key.str()) + ": " + section::shown(value) +
                        " is not legal, expected 1 to 1000000");
    w.verbs.push_back(
        {verb_at(s, value, "verbs", std::string(key.str()), w.connection), static_cast<unsigned>(weight->get())});
  }
}

std::uint32_t size_of(const section& s, const toml::node& at, const char* key) {
  const auto* v = at.as_integer();
  if (v == nullptr || v->get() < 0 || v->get() > longest_message)
    s.fail(at, std::string(key) + ": " + section::shown(at) + " is not legal, expected 0 to " +
                   std::to_string(longest_message));
  return static_cast<std::uint32_t>(v->get());
}

/// sizes = [64, 4096], each as often as the others, or [[64, 9], [4096, 1]] with weights.
message_sizes listed_sizes(const section& s, const toml::node& node) {
  const toml::array* list = node.as_array();
  if (list == nullptr || list->empty()) s.fail(node, "sizes: expected a list of sizes, or of [size, weight]");
  std::vector<message_sizes::point> points;
  for (const toml::node& each : *list) {
    const toml::array* pair = each.as_array();
    if (pair == nullptr) {
      points.push_back({size_of(s, each, "sizes"), 1});
      continue;
    }
    const auto weight = pair->size() == 2 ? pair->get(1)->value<double>() : std::nullopt;
    if (!weight || !pair->get(1)->is_number() || !(*weight > 0 && *weight <= 1e9))
      s.fail(each, "sizes: expected [size, weight], the weight above 0 and 1000000000 at most");
    points.push_back({size_of(s, *pair->get(0), "sizes"), *weight});
  }
  return message_sizes::list(std::move(points));
}

/// size_cdf: a published distribution, or a file with a size and the per cent of messages up to it in each line.
message_sizes distributed_sizes(const section& s, const toml::node& node, const std::string& name) {
  try {
    std::ifstream in(name);
    if (!in) return message_sizes::published(name);
    name_input(name);
    std::vector<message_sizes::point> points;
    double bytes = 0, percent = 0;
    while (in >> bytes >> percent) {
      if (!(bytes >= 0 && bytes <= longest_message))
        throw std::invalid_argument("a size is not within 0 to 1073741824");
      points.push_back({static_cast<std::uint32_t>(bytes), percent / 100});
    }
    if (!in.eof()) throw std::invalid_argument("expected two numbers in each line, bytes and per cent");
    return message_sizes::cdf(std::move(points));
  } catch (const std::invalid_argument& e) {
    s.fail(node, "size_cdf: " + name + ": " + e.what());
  }
}

void read_sizes(const section& s, workload_config& w) {
  const auto given = static_cast<int>(s.has("size")) + s.has("sizes") + s.has("size_cdf");
  const bool datagrams = w.connection.type == IBV_QPT_UD;
  const char* key = s.has("sizes") ? "sizes" : s.has("size_cdf") ? "size_cdf" : "size";
  if (given > 1) s.fail(*s.find(key), std::string(key) + ": expected one of size, sizes and size_cdf");
  std::uint32_t size = datagrams ? w.connection.mtu : 65'536;
  s.number("size", 0, longest_message, size);
  w.sizes = message_sizes(size);
  if (const toml::node* sizes = s.find("sizes")) w.sizes = listed_sizes(s, *sizes);
  std::string name;
  if (s.text("size_cdf", name)) w.sizes = distributed_sizes(s, *s.find("size_cdf"), name);
  if (given != 0) check_datagram(s, key, w.sizes.largest(), w.connection);
}

double number_at(const section& s, const char* key, double most) {
  const toml::node* n = s.find(key);
  if (n == nullptr) return 0;
  const auto v = n->value<double>();
  if (!n->is_number() || !v || !(*v > 0 && *v <= most))
    s.fail(*n, std::string(key) + ": " + section::shown(*n) + " is not legal, expected above 0, " +
                   std::to_string(static_cast<std::uint64_t>(most)) + " at most");
  return *v;
}

/// Of a message on average, atomics with theirs.
double mean_bytes(const workload_config& w) {
  double sum = 0, weights = 0;
  for (const workload_config::verb_part& v : w.verbs) {
    sum += v.weight * (v.what->atomic ? double{hosts::atomic_bytes} : w.sizes.mean());
    weights += v.weight;
  }
  return sum / weights;
}

/// arrivals and what belongs to them: an open loop.
void read_arrivals(const section& s, const toml::node& node, workload_config& w) {
  unsigned kind = 0;
  const bool open = s.word("arrivals", {"poisson", "deterministic", "on-off"}, kind);
  for (const char* key : {"rate_mpps", "load_gbps", "on_us", "off_us"})
    if (!open && s.has(key)) s.fail(*s.find(key), std::string(key) + ": only with arrivals, of an open loop");
  if (!open) return;
  for (const char* key : {"batch", "signal_every"})
    if (s.has(key)) s.fail(*s.find(key), std::string(key) + ": only without arrivals, in a closed loop");
  workloads::arrival_config a;
  a.kind = static_cast<workloads::arrival_config::process>(kind);
  const double rate = number_at(s, "rate_mpps", 1000), load = number_at(s, "load_gbps", 400);
  if ((rate != 0) == (load != 0)) s.fail(node, "rate_mpps: expected that or load_gbps beside arrivals");
  if (load != 0 && mean_bytes(w) == 0) s.fail(*s.find("load_gbps"), "load_gbps: messages have no bytes");
  a.gap_ps = rate != 0 ? 1e6 / rate : mean_bytes(w) * 8e3 / load;
  if (constexpr double longest_gap_ps = 1e15; a.gap_ps > longest_gap_ps) {
    const char* const key = rate != 0 ? "rate_mpps" : "load_gbps";
    s.fail(*s.find(key), std::string(key) + ": " + section::shown(*s.find(key)) +
                             " is not legal, expected a message in 1000 s or more");
  }
  const bool bursts = a.kind == workloads::arrival_config::process::on_off;
  for (const char* key : {"on_us", "off_us"}) {
    if (!bursts && s.has(key)) s.fail(*s.find(key), std::string(key) + R"(: only with arrivals = "on-off")");
    if (bursts && !s.has(key)) s.fail(node, std::string(key) + ": is missing, the time of a burst or a silence");
  }
  a.on_ps = number_at(s, "on_us", 1e9) * sim::ps_per_us;
  a.off_ps = number_at(s, "off_us", 1e9) * sim::ps_per_us;
  w.open = a;
}

/// loop = "ping-pong": messages that are answered, one at a time.
void read_loop(const section& s, const toml::node& node, workload_config& w) {
  unsigned word = 0;
  w.ping_pong = s.word("loop", {"closed", "ping-pong"}, word) && word == 1;
  if (!w.ping_pong) {
    if (s.has("loop") && w.open) s.fail(*s.find("loop"), "loop: closed, but arrivals make an open one");
    return;
  }
  for (const char* key : {"arrivals", "verbs", "size_cdf", "sizes", "depth", "batch", "signal_every", "queue_pairs",
                          "regions", "region_bytes", "addresses"})
    if (s.has(key))
      s.fail(*s.find(key), std::string(key) + R"(: only without loop = "ping-pong", which has one message at a time)");
  w.depth = 1;
  const workloads::verb& v = *w.verbs.front().what;
  const toml::node& at = s.has("verb") ? *s.find("verb") : node;
  if (v.reads) s.fail(at, std::string("verb: ") + v.name + R"( has its answer, expected without loop = "ping-pong")");
  if (!v.receives && w.sizes.smallest() == 0)
    s.fail(*s.find("size"), std::string("size: 0 bytes cannot be waited for with ") + v.name + ", expected 1 or more");
}

/// Windows, doorbells and completions of a closed loop must leave room for a batch.
void check_window(const section& s, const toml::node& node, const workload_config& w) {
  if (w.depth >= workloads::least_depth(w)) return;
  s.fail(node, "depth: " + std::to_string(w.depth) + " is too small, expected " +
                   std::to_string(workloads::least_depth(w)) +
                   " or more: a batch must fit in beside the messages without a completion");
}

void read_memory(const section& s, workload_config& w) {
  unsigned word = 0;
  const std::uint32_t largest = std::max(w.sizes.largest(), 64u);
  w.memory.bytes = (std::uint64_t{largest} + 63) / 64 * 64;
  s.number("regions", 1, workloads::most_regions, w.memory.number);
  s.number("region_bytes", largest, workloads::longest_region, w.memory.bytes);
  if (s.word("addresses", {"turn", "random"}, word)) w.memory.random_addresses = word == 1;
}

}  // namespace

workloads::workload_config read_workload(const section& s, const toml::node& node, std::size_t number,
                                         const experiment_file& e) {
  s.allow({"name",        "from",          "to",           "verb",       "verbs",     "size",
           "sizes",       "size_cdf",      "arrivals",     "rate_mpps",  "load_gbps", "on_us",
           "off_us",      "threads",       "qps",          "depth",      "batch",     "signal_every",
           "queue_pairs", "regions",       "region_bytes", "addresses",  "inline",    "inline_receive",
           "messages",    "start_us",      "end_us",       "background", "ports",     "transport",
           "priority",    "traffic_class", "ack_timeout",  "mtu",        "loop"});
  workload_config w;
  w.name = std::to_string(number);
  s.text("name", w.name);
  const auto has_its_name = [&w](const workload_config& other) { return other.name == w.name; };
  if (std::any_of(e.workloads.begin(), e.workloads.end(), has_its_name))
    s.fail(node, "name: " + w.name + " is that of another workload");
  w.connection = e.common;
  read_packets(s, w.connection);
  check_priority(s, node, w.connection);
  w.from = read_hosts(s, node, "from", e.shape);
  w.to = read_hosts(s, node, "to", e.shape);
  for (auto* hosts : {&w.from, &w.to}) {
    std::vector<unsigned> once = *hosts;
    std::sort(once.begin(), once.end());
    if (std::adjacent_find(once.begin(), once.end()) != once.end())
      s.fail(node, hosts == &w.from ? "from: a host is there twice" : "to: a host is there twice");
  }
  if (w.to.size() == 1 && std::find(w.from.begin(), w.from.end(), w.to.front()) != w.from.end())
    s.fail(node, "to: " + e.shape.hosts()[w.to.front()] + " is where it comes from, expected another host");
  w.ports = read_ports(s);
  check_ports(s, w.ports, w.from, e.shape);
  check_ports(s, w.ports, w.to, e.shape);
  for (const unsigned a : w.from)
    for (const unsigned b : w.to)
      if (a != b) check_way(s, node, w.ports, a, b, e.shape);
  read_verbs(s, w);
  read_sizes(s, w);
  read_arrivals(s, node, w);
  read_loop(s, node, w);
  s.number("threads", 1, workloads::most_threads, w.threads);
  s.number("qps", 1, workloads::most_qps, w.qps);
  s.number("depth", 1, workloads::most_depth, w.depth);
  s.number("batch", 1, workloads::most_batch, w.batch);
  s.number("signal_every", 1, workloads::most_depth, w.signal_every);
  check_window(s, node, w);
  if (const std::string lack = workloads::lacks_memory(w); !lack.empty())
    s.fail(node, "threads, qps and depth: " + lack);
  unsigned word = 0;
  if (s.word("queue_pairs", {"turn", "random"}, word)) w.random_queue_pairs = word == 1;
  read_memory(s, w);
  // perftest's, in its tests of latency at any size; room for it makes each descriptor longer.
  const unsigned usual_inline = traffic_options{}.inline_bytes;
  w.connection.inline_bytes = w.ping_pong || w.sizes.smallest() <= usual_inline ? usual_inline : 0;
  s.number("inline", 0, w.connection.type == IBV_QPT_UD ? workloads::most_inline_of_datagrams : workloads::most_inline,
           w.connection.inline_bytes);
  s.number("inline_receive", 0, w.connection.type == IBV_QPT_XRC_SEND ? 0 : workloads::most_inline_receive,
           w.connection.inline_receive);
  s.number("messages", 1, 1'000'000'000'000, w.messages);
  const std::uint64_t start = read_start(s, e.duration_us);
  w.start = start * sim::ps_per_us;
  std::uint64_t n = 0;
  if (s.number("end_us", start + 1, longest_us, n)) w.end = n * sim::ps_per_us;
  s.boolean("background", w.background);
  if (w.messages == 0 && w.end == 0 && e.duration_us == 0)
    s.fail(node, "messages: is missing, and so are end_us and duration_us of the file: one of them ends the workload");
  return w;
}

}  // namespace rnic::program
