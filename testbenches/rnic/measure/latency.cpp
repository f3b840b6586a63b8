// SPDX-License-Identifier: Apache-2.0
// `rnic latency`: ping-pong of one message at a time, as perftest's latency tests do it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "host_driver/workloads/link_end.h"
#include "testbenches/rnic/json_output.h"
#include "testbenches/rnic/measure/experiment.h"
#include "testbenches/rnic/measure/measured_system.h"
#include "testbenches/rnic/results.h"

namespace rnic::program {

namespace {

using host_driver::completion_queue;

constexpr std::uint64_t receives_ahead = 64;                   // posted before the first message, as perftest does
constexpr std::size_t spans_kept = 4096;                       // of the first measured messages
constexpr sim::time_ps patience = 10 * sim::ps_per_us * 1000;  // for a message that may have been lost for good
constexpr std::uint64_t salt_ping = 0x5a, salt_pong = 0xa5;

/// One host's end of the experiment.
struct end {
  hosts::endpoint* at = nullptr;
  hosts::buffer out_memory, in_memory;
  std::uint64_t headroom = 0;  // before a message that is received
  completion_queue* send_cq = nullptr;
  completion_queue* receive_cq = nullptr;
  workloads::link_end link;
  std::uint64_t salt_out = 0, salt_in = 0;

  std::uint8_t* out() const { return out_memory.at(); }
  std::uint8_t* in() const { return in_memory.at(headroom); }
};

/// Hands the span of the next message of a queue pair to the driver: a flow beside them may post on the same device.
class next_span final : public host_driver::span_source_if {
 public:
  void set(sim::span_id id, std::uint32_t qpn) {
    id_ = id;
    qpn_ = qpn;
  }
  /// Who is told of what the host posts.
  void tell(bench::single_messages* who, unsigned host) {
    who_ = who;
    host_ = host;
  }
  std::uint32_t span_for(const ibv_qp& qp, const posted& requests) override {
    if (qp.qp_num != qpn_) return 0;
    if (who_ != nullptr && id_ != 0) who_->posted(host_, qp, requests);
    return std::exchange(id_, 0);
  }

 private:
  sim::span_id id_ = 0;
  std::uint32_t qpn_ = 0;
  bench::single_messages* who_ = nullptr;
  unsigned host_ = 0;
};

struct latency_row {
  std::uint32_t size = 0;
  sample_summary half;
  sim::span typical;
  nlohmann::json statistics;  // what the messages of this size added, those to warm up too
  std::vector<bench::share> shares;
};

class latency_run {
 public:
  explicit latency_run(const latency_options& o, const measured_network* network = nullptr)
      : options_(o), network_(network), verb_(verb_of(o.traffic)), sizes_(sizes_from(o.traffic)) {
    if (verb_.opcode == IBV_WR_RDMA_WRITE)
      for (const std::uint32_t s : sizes_)
        if (s == 0)
          throw usage_error("--sizes: 0 bytes cannot be waited for with --verb write, expected 1 to 2147483648");
    connection_ = connection_from(o.traffic);
  }

  std::vector<latency_row> run(std::string* effective) {
    const std::uint64_t largest = *std::max_element(sizes_.begin(), sizes_.end());
    const auto segments = hosts::message_segments::needed(static_cast<std::uint32_t>(largest));
    connection_.send_sges = connection_.receive_sges = segments;
    measured_system system({options_.common, options_.traffic, options_.faults, options_.trace}, {1, 4 * largest},
                           network_, effective);
    watch_ = system.follow_singly(flows());
    measured_ = &system;
    system_ = &system.pair();
    system_->spans().enable(true);
    for (unsigned side = 0; side < 2; ++side) processors_[side] = system_->name(side) + ".processor";
    progress shown(options_.common, "latency", sizes_.size() * (std::uint64_t{options_.iterations} + options_.warm_up));
    progress_ = &shown;
    system.run([this] { host_a(); }, [this] { host_b(); });
    results_ = system.results();
    return std::move(rows_);
  }
  /// After the run.
  const system_results& results() const { return results_; }

 private:
  void set_up(end& e, hosts::endpoint& at, unsigned side, std::uint64_t salt_out, std::uint64_t salt_in) {
    e.at = &at;
    e.salt_out = salt_out;
    e.salt_in = salt_in;
    hosts::set_address(at, connection_, system_->number(side));
    std::uint32_t largest = 64;
    for (const std::uint32_t s : sizes_) largest = std::max(largest, s);
    e.headroom = connection_.type == IBV_QPT_UD ? workloads::datagram_headroom : 0;
    e.out_memory = hosts::make_buffer(at, largest);
    e.in_memory = hosts::make_buffer(at, e.headroom + largest);
    e.send_cq = hosts::require_made(*at.device, at.device->create_cq(256), "create_cq");
    e.receive_cq = hosts::require_made(*at.device, at.device->create_cq(256), "create_cq");
    e.link.create(at, connection_, *e.send_cq, *e.receive_cq);
    system_->meet();
    const end& peer = &e == &a_ ? b_ : a_;
    e.link.connect(peer.link, static_cast<std::uint32_t>(e.salt_out), static_cast<std::uint32_t>(e.salt_in));
    system_->meet();
  }

  void host_a() {
    set_up(a_, system_->a(), 0, salt_ping, salt_pong);
    follow(a_, spans_[0]);
    measured_->begin_watch();
    for (const std::uint32_t size : sizes_) {
      const rest before = at_rest();
      if (verb_.reads)
        round_trips(size);
      else
        pings(size);
      const rest after = at_rest();
      rows_.back().shares = bench::shares_between(before.used, after.used);
      rows_.back().statistics = increase(before.statistics, after.statistics);
    }
  }

  struct rest {
    nlohmann::json statistics;
    bench::utilisation used;
  };
  /// While both hosts wait for each other, so that what one does next is not among them; empty for the second host.
  rest at_rest(bool first = true) {
    system_->meet();
    rest r;
    if (first) r = {statistics_json(system_->statistics()), bench::measure_utilisation(*system_)};
    system_->meet();
    return r;
  }

  void host_b() {
    set_up(b_, system_->b(), 1, salt_pong, salt_ping);
    if (watch_ != nullptr) follow(b_, spans_[1]);
    for (const std::uint32_t size : sizes_) {
      at_rest(false);
      if (verb_.reads) {
        if (verb_.atomic)
          std::memset(b_.out(), 0, size);
        else
          fill_pattern(b_.out(), size, size, salt_pong);
        system_->meet();
      } else {
        pongs(size);
      }
      at_rest(false);
    }
  }

  std::uint64_t messages() const { return std::uint64_t{options_.iterations} + options_.warm_up; }
  void post_receives(end& e, std::uint32_t size) {
    if (!verb_.receives) return;
    for (std::uint64_t n = 0; n < std::min(receives_ahead, messages()); ++n) post_receive(e, size);
  }

  void post_receive(end& e, std::uint32_t size) {
    e.link.post_receive(e.in_memory.address(e.headroom), size, e.in_memory.region->lkey);
  }

  /// Message `n`; an atomic finds the counter at n - 1 and leaves it at n.
  void post(end& e, const end& peer, std::uint32_t size, std::uint64_t n) {
    const std::uint64_t in = e.in_memory.address(e.headroom), out = e.out_memory.address();
    const hosts::buffer& far = verb_.reads ? peer.out_memory : peer.in_memory;
    hosts::message_segments segments(verb_.reads ? in : out, size,
                                     (verb_.reads ? e.in_memory : e.out_memory).region->lkey);
    host_driver::masked_atomic_wr wr(host_driver::driver_opcode::masked_compare_swap);  // or a plain request
    wr.sg_list = segments.list.data();
    wr.num_sge = segments.count;
    wr.send_flags = IBV_SEND_SIGNALED;
    if (!verb_.reads && size <= options_.traffic.inline_bytes) wr.send_flags |= IBV_SEND_INLINE;
    wr.imm_data = immediate(n);
    workloads::make_message(wr, verb_, far.address(), far.region->rkey, n - 1);
    e.link.aim(wr);
    e.link.post_send(wr);
  }

  static std::uint32_t immediate(std::uint64_t n) { return __builtin_bswap32(static_cast<std::uint32_t>(n)); }
  sim::time_ps longest_wait() const { return is_unreliable(options_.traffic) ? patience : 0; }
  [[noreturn]] void lost(std::uint32_t size, std::uint64_t n) const {
    throw hosts::message_failed(fmt::format("message {} of {} bytes did not arrive, and {} does not send again", n,
                                            size, options_.traffic.transport));
  }

  /// False: nothing came over a transport that may lose it.
  bool completed(end& e, completion_queue& cq, ibv_wc& wc) {
    const int n = e.at->device->wait_cq(&cq, 1, &wc, longest_wait());
    hosts::require(n, "poll_cq");
    if (n == 0 || wc.status == IBV_WC_SUCCESS) return n != 0;
    // The sender is told what has failed, and ends the run.
    if (wc.status == IBV_WC_WR_FLUSH_ERR && !is_unreliable(options_.traffic)) e.at->bus->spend_ps(patience);
    throw hosts::message_failed(wc);
  }

  void sent(end& e) {
    ibv_wc wc{};
    if (!completed(e, *e.send_cq, wc)) throw std::runtime_error("a message that was posted does not complete");
  }

  void received(end& e, std::uint32_t size, std::uint64_t n) {
    ibv_wc wc{};
    if (!completed(e, *e.receive_cq, wc)) lost(size, n);
    if (wc.opcode != verb_.received || (verb_.immediate && wc.imm_data != immediate(n)))
      throw std::runtime_error(fmt::format("message {} came with another opcode or immediate than was sent", n));
    e.link.take_out(wc, e.in());
  }

  void written(end& e, std::uint32_t size, std::uint64_t n) {
    const volatile std::uint8_t* last = e.in() + size - 1;
    const std::uint8_t expected = last_pattern_byte(size, n, e.salt_in);
    while (*last != expected)
      if (!e.at->bus->wait_for_write(e.in_memory.memory.bus_address + e.headroom + size - 1, 1, longest_wait()))
        lost(size, n);
    e.at->bus->spend_ps(e.at->device->settings().poll_ns * sim::ps_per_ns);
  }

  /// Waits until message `n` is here, and compares every byte.
  void await(end& e, std::uint32_t size, std::uint64_t n) {
    if (verb_.receives)
      received(e, size, n);
    else
      written(e, size, n);
    check_pattern(e.in(), size, n, e.salt_in);
  }

  // ---- spans: those of pings are always followed, those of pongs when somebody looks on.

  unsigned side_of(const end& e) const { return &e == &a_ ? 0 : 1; }
  unsigned host_number(unsigned side) const { return system_->number(side) - 1; }
  const std::string& processor(const end& e) const { return processors_[side_of(e)]; }
  /// Two for each size.
  std::vector<std::string> flows() const {
    std::vector<std::string> names;
    for (const std::uint32_t s : sizes_)
      for (const char* what : {"", ", to warm up"}) names.push_back(fmt::format("{} B{}", s, what));
    return names;
  }

  void follow(end& e, next_span& spans) {
    const unsigned side = side_of(e);
    spans.tell(watch_, host_number(side));
    e.at->device->set_span_source(&spans);
  }

  /// Of message `n`, which is posted now.
  sim::span_id open_span(const end& e, std::uint32_t size, std::uint64_t n) {
    const unsigned side = side_of(e);
    const sim::time_ps start = system_->now_ps();
    const sim::span_id id = system_->spans().open(start);
    spans_[side].set(id, e.link.sender_number());
    const auto nth = static_cast<unsigned>(std::find(sizes_.begin(), sizes_.end(), size) - sizes_.begin());
    if (watch_ != nullptr) watch_->open(host_number(side), 2 * nth + (n > options_.warm_up ? 0 : 1), start, id);
    return id;
  }

  /// Host `by` has the message of `of`.
  void polled(const end& by, const end& of, sim::span_id id) {
    const sim::time_ps now = system_->now_ps();
    system_->spans().leave(id, processor(by), "poll", now, sim::wait::software);
    if (watch_ != nullptr) watch_->arrived(host_number(side_of(of)), now);
  }

  void pings(std::uint32_t size) {
    std::vector<sim::time_ps> samples;
    std::vector<sim::span> kept;
    post_receives(a_, size);
    system_->meet();  // the other side is ready to receive
    for (std::uint64_t n = 1; n <= messages(); ++n) {
      fill_pattern(a_.out(), size, n, salt_ping);
      const sim::time_ps start = system_->now_ps();
      current_span_ = open_span(a_, size, n);
      post(a_, b_, size, n);
      sent(a_);
      await(a_, size, n);
      const sim::time_ps end = system_->now_ps();
      if (watch_ != nullptr) polled(a_, b_, pong_span_);
      if (verb_.receives && n + receives_ahead <= messages()) post_receive(a_, size);
      if (n > options_.warm_up) {
        samples.push_back((end - start) / 2);
        if (kept.size() < spans_kept) kept.push_back(system_->spans()[current_span_]);
      }
      progress_->at(++done_);
    }
    keep(size, samples, kept);
  }

  void pongs(std::uint32_t size) {
    post_receives(b_, size);
    system_->meet();
    for (std::uint64_t n = 1; n <= messages(); ++n) {
      await(b_, size, n);
      polled(b_, a_, current_span_);
      fill_pattern(b_.out(), size, n, salt_pong);
      if (watch_ != nullptr) pong_span_ = open_span(b_, size, n);
      if (verb_.receives && n + receives_ahead <= messages()) post_receive(b_, size);
      system_->spans().wait_until(pong_span_, processor(b_), "post receive", system_->now_ps(), sim::wait::software);
      post(b_, a_, size, n);
      sent(b_);
    }
  }

  void round_trips(std::uint32_t size) {
    std::vector<sim::time_ps> samples;
    std::vector<sim::span> kept;
    system_->meet();
    for (std::uint64_t n = 1; n <= messages(); ++n) {
      fill_pattern(a_.in(), size, n, salt_ping);
      const sim::time_ps start = system_->now_ps();
      current_span_ = open_span(a_, size, n);
      post(a_, b_, size, n);
      sent(a_);
      polled(a_, a_, current_span_);
      if (n > options_.warm_up) {
        samples.push_back(system_->now_ps() - start);
        if (kept.size() < spans_kept) kept.push_back(system_->spans()[current_span_]);
      }
      if (verb_.atomic)
        check_counter(a_.in(), n - 1);
      else
        check_pattern(a_.in(), size, size, salt_pong);
      progress_->at(++done_);
    }
    keep(size, samples, kept);
  }

  static void check_counter(const std::uint8_t* result, std::uint64_t expected) {
    std::uint64_t found = 0;
    std::memcpy(&found, result, sizeof found);
    if (found != expected)
      throw hosts::content_differs(fmt::format("an atomic found {} in memory instead of {}", found, expected));
  }

  void keep(std::uint32_t size, const std::vector<sim::time_ps>& samples, const std::vector<sim::span>& kept) {
    latency_row r;
    r.size = size;
    r.half = summarise(samples);
    r.typical = kept[r.half.typical_sample < kept.size() ? r.half.typical_sample : 0];
    rows_.push_back(r);
  }

  const latency_options& options_;
  const measured_network* network_;
  const workloads::verb& verb_;
  std::vector<std::uint32_t> sizes_;
  hosts::connection_options connection_;
  hosts::pair_if* system_ = nullptr;
  progress* progress_ = nullptr;
  measured_system* measured_ = nullptr;
  bench::single_messages* watch_ = nullptr;  // nullptr: nobody looks on
  std::string processors_[2];
  next_span spans_[2];
  sim::span_id current_span_ = 0, pong_span_ = 0;
  end a_, b_;
  std::uint64_t done_ = 0;
  std::vector<latency_row> rows_;
  system_results results_;
};

void print(const latency_options& o, const std::vector<latency_row>& rows, const system_results& system) {
  fmt::print("{}, {}; {} iterations; microseconds ({})\n", title("latency", o.traffic), system.between, o.iterations,
             verb_of(o.traffic).reads ? "round trip" : "half round trip");
  print_way(system);
  fmt::print("\n");
  fmt::print("{:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "bytes", "iterations", "min", "typical", "average",
             "99 %", "max");
  for (const latency_row& r : rows)
    fmt::print("{:>10} {:>10} {:>10} {:>10} {:>10.3f} {:>10} {:>10}\n", r.size, r.half.count,
               microseconds(r.half.minimum), microseconds(r.half.typical), r.half.average_ps() / 1e6,
               microseconds(r.half.p99), microseconds(r.half.maximum));
  for (const latency_row& r : rows) {
    const bool is_half = r.typical.end() - r.typical.start() == r.half.typical;
    fmt::print("\n    where the time of a typical message of {} bytes went{}:\n{}", r.size,
               is_half ? "" : " (one way; above are halves of round trips)", stages_text(r.typical));
  }
  std::vector<usage_column> usage;
  for (const latency_row& r : rows) usage.push_back({r.size, r.shares});
  print_utilisation(usage, 0.05);
  print_system(system);
}

nlohmann::json to_json(const latency_row& r) {
  return {{"size", r.size},
          {"iterations", r.half.count},
          {"min_us", to_us(r.half.minimum)},
          {"typical_us", to_us(r.half.typical)},
          {"avg_us", r.half.average_ps() / 1e6},
          {"p99_us", to_us(r.half.p99)},
          {"max_us", to_us(r.half.maximum)},
          {"end_to_end_ps", r.typical.end() - r.typical.start()},
          {"stages", stages_json(r.typical)},
          {"utilisation", utilisation_json(r.shares)},
          {"blocked", blocked_json(r.shares)},
          {"kept_waiting", kept_waiting_json(r.shares)},
          {"statistics", r.statistics}};
}

}  // namespace

double typical_latency_us(const latency_options& options) {
  return to_us(latency_run(options).run(nullptr).front().half.typical);
}

int run_latency(const latency_options& given) {
  latency_options options = given;
  check_writable(options.common, options.common.json_file);
  check_writable(options.common, options.common.pcap_file);
  check_trace(options.common, options.trace, {});
  const auto network = network_of(options.traffic);
  latency_run experiment(options, network ? &*network : nullptr);
  std::string effective;
  const std::vector<latency_row> rows = experiment.run(&effective);
  print(options, rows, experiment.results());
  if (!options.common.json_file.empty()) {
    nlohmann::json result = run_header("latency", options.common);
    result["file"] = options.file;
    result["verb"] = options.traffic.verb;
    result["transport"] = options.traffic.transport;
    result["parameters"] = effective;
    result["rows"] = nlohmann::json::array();
    for (const latency_row& r : rows) result["rows"].push_back(to_json(r));
    add_to(result, experiment.results());
    write_json(options.common.json_file, result);
  }
  return 0;
}

}  // namespace rnic::program
