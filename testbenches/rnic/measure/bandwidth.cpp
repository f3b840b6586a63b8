// SPDX-License-Identifier: Apache-2.0
// `rnic bandwidth`: many messages under way on one or many queue pairs, in one or both directions.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "host_driver/workloads/limits.h"
#include "testbenches/bench/stream.h"
#include "testbenches/bench/utilisation.h"
#include "testbenches/rnic/explain/resources.h"
#include "testbenches/rnic/json_output.h"
#include "testbenches/rnic/measure/experiment.h"
#include "testbenches/rnic/measure/measured_system.h"
#include "testbenches/rnic/results.h"

namespace rnic::program {

namespace {

/// What a part of a run cost the simulator, in units that do not depend on the machine.
struct simulation_cost {
  std::uint64_t ticks = 0;        ///< of blocks of both adapters
  std::uint64_t activations = 0;  ///< of the kernel's method
};

struct bandwidth_row {
  std::uint32_t size = 0;
  std::uint64_t messages = 0, lost = 0;
  double rate_mpps = 0, goodput_gbps = 0;
  std::string limited_by, more_by;
  std::vector<bench::share> shares;                           ///< the most busy resource first
  std::vector<std::pair<std::string, double>> standstills{};  ///< of queue pairs, the longest first
  sim::time_ps elapsed = 0;                                   // from the first post to the last completion
  simulation_cost cost;
};

class bandwidth_run {
 public:
  explicit bandwidth_run(const bandwidth_options& o, const measured_network* network = nullptr)
      : options_(o), network_(network), sizes_(sizes_from(o.traffic)) {
    connection_ = connection_from(o.traffic);
    connection_.send_depth = o.depth;
    connection_.rd_atomic = o.reads;
    // More than a queue pair's share of the messages are never posted.
    const unsigned receives = verb_of(o.traffic).receives ? o.receive_depth : 1;
    const std::uint64_t most = messages_of(o, *std::min_element(sizes_.begin(), sizes_.end()));
    connection_.receive_depth = std::clamp<unsigned>(receives, 1, static_cast<unsigned>((most + o.qps - 1) / o.qps));
    if (const std::string lack = workloads::lacks_memory(o.qps, o.depth); !lack.empty())
      throw usage_error("--qps, --depth: " + lack);
    stream_.verb = &verb_of(o.traffic);
    stream_.qps = o.qps;
    stream_.depth = o.depth;
    if (o.signal_every > o.depth)
      throw usage_error(fmt::format("--cq-mod: {}: expected 0 to {}, which --depth is", o.signal_every, o.depth));
    stream_.signal_every = o.signal_every;
    stream_.inline_bytes = o.traffic.inline_bytes;
    stream_.largest = *std::max_element(sizes_.begin(), sizes_.end());
  }

  std::vector<bandwidth_row> run(std::string* effective) {
    const std::uint64_t pairs = std::uint64_t{options_.qps} * (options_.bidirectional ? 2 : 1);
    const demand d{pairs, pairs * *std::max_element(sizes_.begin(), sizes_.end())};
    measured_system system({options_.common, options_.traffic, options_.faults, options_.trace, "bandwidth"}, d,
                           network_, effective);
    measured_ = &system;
    system_ = &system.pair();
    progress shown(options_.common, "bandwidth", sizes_.size());
    progress_ = &shown;
    to_b_ = std::make_unique<bench::stream>(*system_, system_->a(), system_->b(), connection_, stream_);
    if (options_.bidirectional)
      to_a_ = std::make_unique<bench::stream>(*system_, system_->b(), system_->a(), connection_, stream_);
    system.run([this] { host(true); }, [this] { host(false); });
    results_ = system.results();
    return std::move(rows_);
  }
  /// After the run.
  const system_results& results() const { return results_; }

 private:
  void host(bool first) {
    hosts::endpoint& e = first ? system_->a() : system_->b();
    hosts::set_address(e, connection_, system_->number(first ? 0 : 1));
    system_->meet();
    to_b_->set_up(e);
    if (to_a_) to_a_->set_up(e);
    if (first) measured_->begin_watch();
    for (const std::uint32_t size : sizes_) {
      bench::stream* sends = first ? to_b_.get() : to_a_.get();
      bench::stream* receives = first ? to_a_.get() : to_b_.get();
      bench::stream::work work{sends, receives, size, messages_of(options_, size)};
      if (receives != nullptr) receives->forget_content(size);
      bench::stream::prepare(work);
      system_->meet();
      const bench::utilisation before = use_so_far();
      const simulation_cost spent = cost_so_far();
      bench::stream::run_host(e, work);
      if (sends != nullptr)  // the receiver of what may be lost waits for longer
        after_ = use_so_far();
      system_->meet();
      if (first) keep(size, before, spent);
      if (receives != nullptr) receives->check_content(size);
      system_->meet();
      if (first) keep_lost();
      system_->meet();
    }
  }

  bench::utilisation use_so_far() const {
    bench::utilisation u = bench::measure_utilisation(*system_);
    for (unsigned end = 0; end < 2; ++end) {
      u.spare_ps[end] += to_b_->spare_ps(end);
      if (to_a_) u.spare_ps[1 - end] += to_a_->spare_ps(end);
    }
    return u;
  }

  simulation_cost cost_so_far() const {
    return {system_->node_a().nic().clock().ticks() + system_->node_b().nic().clock().ticks(),
            system_->base().kernel_activations()};
  }

  void keep(std::uint32_t size, const bench::utilisation& before, const simulation_cost& spent) {
    bandwidth_row r;
    const sim::time_ps elapsed = after_.at - before.at;
    r.size = size;
    r.messages = messages_of(options_, size) * (options_.bidirectional ? 2 : 1);
    r.elapsed = elapsed;
    r.rate_mpps = static_cast<double>(r.messages) * 1e6 / static_cast<double>(elapsed);
    r.goodput_gbps = static_cast<double>(r.messages) * size * 8e3 / static_cast<double>(elapsed);
    r.limited_by =
        bench::limited_by(*system_, before, after_, {options_.qps, options_.depth, verb_of(options_.traffic).reads});
    if (network_ == nullptr)
      r.more_by = what_gives_more(r.limited_by);
    else
      r.more_by = what_gives_more(r.limited_by, [this](const std::string& line) { return rate_of(line); });
    // A WQE takes more of its queue the more may lie in it, and fewer of them come with a fetch.
    if (options_.traffic.inline_bytes != 0 && r.limited_by.rfind("descriptor fetch", 0) == 0)
      r.more_by += ", less --inline";
    r.shares = bench::shares_between(before, after_);
    r.standstills = bench::standstills_between(before, after_);
    const simulation_cost now = cost_so_far();
    r.cost = {now.ticks - spent.ticks, now.activations - spent.activations};
    rows_.push_back(r);
    progress_->at(rows_.size());
  }

  /// The field of the topology that says the rate of a line.
  std::string rate_of(const std::string& line) const {
    const fabric_file& file = network_->file;
    if (file.kind == "custom") return "rate_mbps of its cable";
    const std::vector<std::string>& switches = file.shape.switches();
    const std::string ends = line.substr(0, line.find(" at port"));
    const auto is_end = [&ends](const std::string& name) {
      const std::string behind = " to " + name;
      return ends.rfind("wire, " + name + " to ", 0) == 0 ||
             (ends.size() > behind.size() && ends.compare(ends.size() - behind.size(), behind.size(), behind) == 0);
    };
    const bool is_trunk = std::count_if(switches.begin(), switches.end(), is_end) == 2;
    return is_trunk ? "trunk_rate_mbps of the topology" : "rate_mbps of the topology";
  }

  /// What was lost is no goodput.
  void keep_lost() {
    bandwidth_row& r = rows_.back();
    for (const bench::stream* s : {to_b_.get(), to_a_.get()})
      if (s != nullptr) r.lost += s->lost();
    r.goodput_gbps *= static_cast<double>(r.messages - std::min(r.lost, r.messages)) / static_cast<double>(r.messages);
  }

  const bandwidth_options& options_;
  const measured_network* network_;
  std::vector<std::uint32_t> sizes_;
  hosts::connection_options connection_;
  bench::stream_config stream_;
  measured_system* measured_ = nullptr;
  hosts::pair_if* system_ = nullptr;
  progress* progress_ = nullptr;
  std::unique_ptr<bench::stream> to_b_, to_a_;
  bench::utilisation after_;  // when the last host that sends had its last completion
  std::vector<bandwidth_row> rows_;
  system_results results_;
};

/// Each limit once, in the order of the rows.
void print_ways(const std::vector<bandwidth_row>& rows) {
  std::vector<std::string> told;
  fmt::print("\n");
  for (const bandwidth_row& r : rows) {
    if (r.more_by.empty() || std::find(told.begin(), told.end(), r.limited_by) != told.end()) continue;
    told.push_back(r.limited_by);
    fmt::print("    of {}: {}\n", r.limited_by, r.more_by);
  }
}

}  // namespace

std::uint64_t messages_of(const bandwidth_options& o, std::uint32_t size) {
  if (o.messages != 0) return o.messages;
  constexpr std::uint64_t usual = 1000, most = 4'000'000, under_way = 128, enough = 256 << 20;
  // What nobody acknowledges is complete when it has left gather: the last ones still queue at the port. So there are
  // many times what that holds.
  constexpr std::uint64_t unanswered = 10'000, unanswered_bytes = 16 << 20;
  const std::uint64_t least =
      is_unreliable(o.traffic) ? std::clamp(unanswered_bytes / std::max(size, 1u), usual, unanswered) : usual;
  const std::uint64_t full = usual * o.qps * o.depth / under_way;
  return std::clamp(std::min(full, enough / std::max(size, 1u)), least, most);
}

bandwidth_figures measure_bandwidth(const bandwidth_options& options) {
  const bandwidth_row r = bandwidth_run(options).run(nullptr).front();
  return {r.rate_mpps, r.goodput_gbps};
}

int run_bandwidth(const bandwidth_options& given) {
  bandwidth_options options = given;
  check_writable(options.common, options.common.json_file);
  check_writable(options.common, options.common.pcap_file);
  check_trace(options.common, options.trace, {});
  const auto network = network_of(options.traffic);
  bandwidth_run experiment(options, network ? &*network : nullptr);
  std::string effective;
  const std::vector<bandwidth_row> rows = experiment.run(&effective);
  const traffic_options& t = options.traffic;
  const bool may_lose = is_unreliable(t) && verb_of(t).receives;
  fmt::print("{}, {} queue pair(s), depth {}, {}\n", title("bandwidth", t), options.qps, options.depth,
             options.bidirectional ? "both directions" : "one direction");
  print_way(experiment.results());
  fmt::print("\n");
  fmt::print("{:>10} {:>10} {:>12} {:>14}  {}{}\n", "bytes", "messages", "rate Mpps", "goodput Gb/s",
             may_lose ? "      lost  " : "", "limited by");
  for (const bandwidth_row& r : rows)
    fmt::print("{:>10} {:>10} {:>12.3f} {:>14.3f}  {}{}\n", r.size, r.messages, r.rate_mpps, r.goodput_gbps,
               may_lose ? fmt::format("{:>10}  ", r.lost) : "", r.limited_by);
  const std::uint64_t under_way = std::uint64_t{options.qps} * options.depth;
  if (options.messages != 0 && options.messages < under_way)
    fmt::print("\n    --messages {}: fewer than the {} that may be under way, so beginning and end are most of it\n",
               options.messages, under_way);
  std::vector<usage_column> usage;
  for (const bandwidth_row& r : rows) usage.push_back({r.size, r.shares, r.standstills});
  print_utilisation(usage, 0.1);
  print_ways(rows);
  print_system(experiment.results());
  if (!options.common.json_file.empty()) {
    nlohmann::json result = run_header("bandwidth", options.common);
    result["file"] = options.file;
    result["verb"] = t.verb;
    result["transport"] = t.transport;
    result["bidirectional"] = options.bidirectional;
    result["parameters"] = effective;
    result["rows"] = nlohmann::json::array();
    const bool told = !is_unreliable(t) || verb_of(t).receives;  // else nobody knows what came
    for (const bandwidth_row& r : rows) {
      result["rows"].push_back({{"size", r.size},
                                {"qps", options.qps},
                                {"depth", options.depth},
                                {"rx_depth", options.receive_depth},
                                {"outs", options.reads},
                                {"messages", r.messages},
                                {"elapsed_ps", r.elapsed},
                                {"rate_mpps", r.rate_mpps},
                                {"goodput_gbps", r.goodput_gbps},
                                {"limited_by", r.limited_by},
                                {"more_by", r.more_by},
                                {"simulator", {{"ticks", r.cost.ticks}, {"activations", r.cost.activations}}},
                                {"utilisation", utilisation_json(r.shares)},
                                {"blocked", blocked_json(r.shares)},
                                {"kept_waiting", kept_waiting_json(r.shares)},
                                {"standstills", standstills_json(r.standstills)}});
      if (told) result["rows"].back()["lost"] = r.lost;
    }
    add_to(result, experiment.results());
    write_json(options.common.json_file, result);
  }
  return 0;
}

}  // namespace rnic::program
