// SPDX-License-Identifier: Apache-2.0
// `rnic latency`: ping-pong of one message at a time, as perftest's latency tests do it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "testbenches/bench/two_nodes.h"
#include "testbenches/rnic/experiment.h"
#include "testbenches/rnic/results.h"

namespace rnic::program {

namespace {

using host_driver::bus_if;
using host_driver::completion_queue;
using host_driver::queue_pair;

constexpr unsigned warm_up = 4;               // messages before the measured ones: caches on chip are filled
constexpr std::uint64_t receives_ahead = 64;  // posted before the first message, as perftest does
constexpr std::size_t spans_kept = 4096;      // of the first measured messages
constexpr std::uint64_t salt_ping = 0x5a, salt_pong = 0xa5;

/// One host's end of the experiment.
struct end {
  bench::endpoint* at = nullptr;
  bench::buffer out, in;
  completion_queue* send_cq = nullptr;
  completion_queue* receive_cq = nullptr;
  queue_pair* qp = nullptr;
  std::uint64_t salt_out = 0, salt_in = 0;
};

struct row {
  std::uint32_t size = 0;
  sample_summary half;
  sim::span typical;
};

class latency_run {
 public:
  explicit latency_run(const latency_options& o) : options_(o), sizes_(sizes_from(o.traffic)) {
    if (o.traffic.verb == "write")
      for (const std::uint32_t s : sizes_)
        if (s == 0)
          throw usage_error("--sizes: 0 bytes cannot be waited for with --verb write, expected 1 to 2147483648");
    connection_ = connection_from(o.traffic);
  }

  std::vector<row> run(std::string* effective) {
    const std::uint64_t largest = *std::max_element(sizes_.begin(), sizes_.end());
    const auto segments = bench::message_segments::needed(static_cast<std::uint32_t>(largest));
    connection_.send_sges = connection_.receive_sges = segments;
    bench::two_nodes_config config = system_from(options_.common, options_.traffic, {1, 4 * largest}, effective);
    add_faults(config, options_.common, options_.faults);
    bench::two_nodes system(config);
    system_ = &system;
    system.spans().enable(true);
    progress shown(options_.common, "latency", sizes_.size() * (options_.iterations + warm_up));
    progress_ = &shown;
    system.run([this] { host_a(); }, [this] { host_b(); });
    faults_ = faults_json(system);
    return std::move(rows_);
  }
  const nlohmann::json& faults() const { return faults_; }

 private:
  void set_up(end& e, bench::endpoint& at, unsigned host, std::uint64_t salt_out, std::uint64_t salt_in) {
    e.at = &at;
    e.salt_out = salt_out;
    e.salt_in = salt_in;
    bench::set_address(at, connection_, host);
    std::uint32_t largest = 64;
    for (const std::uint32_t s : sizes_) largest = std::max(largest, s);
    e.out = bench::make_buffer(at, largest);
    e.in = bench::make_buffer(at, largest);
    e.send_cq = at.device->create_cq(256);
    e.receive_cq = at.device->create_cq(256);
    if (e.send_cq == nullptr || e.receive_cq == nullptr) throw std::runtime_error("create_cq failed");
    e.qp = bench::make_qp(at, connection_, *e.send_cq, *e.receive_cq);
    system_->meet();
    const end& peer = &e == &a_ ? b_ : a_;
    bench::connect(at, connection_, *e.qp, *peer.at, peer.qp->qp_num, static_cast<std::uint32_t>(e.salt_out),
                   static_cast<std::uint32_t>(e.salt_in));
    system_->meet();
  }

  void host_a() {
    set_up(a_, system_->a(), 1, salt_ping, salt_pong);
    a_.at->device->set_span_source(&spans_);
    for (const std::uint32_t size : sizes_) {
      if (is_round_trip(options_.traffic))
        round_trips(size);
      else
        pings(size);
      system_->meet();
    }
  }

  void host_b() {
    set_up(b_, system_->b(), 2, salt_pong, salt_ping);
    for (const std::uint32_t size : sizes_) {
      if (is_round_trip(options_.traffic)) {
        if (atomic())
          std::memset(b_.out.at(), 0, size);
        else
          fill_pattern(b_.out.at(), size, size, salt_pong);
        system_->meet();
      } else {
        pongs(size);
      }
      system_->meet();
    }
  }

  std::uint64_t messages() const { return options_.iterations + warm_up; }
  bool sends() const { return options_.traffic.verb == "send"; }
  bool atomic() const { return is_atomic(options_.traffic); }

  void post_receives(end& e, std::uint32_t size) {
    if (!sends()) return;
    for (std::uint64_t n = 0; n < std::min(receives_ahead, messages()); ++n) post_receive(e, size);
  }

  void post_receive(end& e, std::uint32_t size) {
    bench::message_segments segments(e.in.address(), size, e.in.region->lkey);
    ibv_recv_wr wr{};
    wr.sg_list = segments.list.data();
    wr.num_sge = segments.count;
    ibv_recv_wr* bad = nullptr;
    bench::require(e.at->device->post_recv(e.qp, &wr, &bad), "post_recv");
  }

  /// Message `n`; an atomic finds the counter at n - 1 and leaves it at n.
  void post(end& e, const end& peer, std::uint32_t size, std::uint64_t n) {
    const bool fetches = is_round_trip(options_.traffic);
    const bench::buffer& near = fetches ? e.in : e.out;
    const bench::buffer& far = fetches ? peer.out : peer.in;
    bench::message_segments segments(near.address(), size, near.region->lkey);
    ibv_send_wr wr{};
    wr.sg_list = segments.list.data();
    wr.num_sge = segments.count;
    wr.send_flags = IBV_SEND_SIGNALED;
    if (!fetches && size <= options_.traffic.inline_bytes) wr.send_flags |= IBV_SEND_INLINE;
    wr.opcode = sends() ? IBV_WR_SEND : fetches ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
    wr.wr.rdma.remote_addr = far.address();
    wr.wr.rdma.rkey = far.region->rkey;
    if (atomic()) bench::make_atomic(wr, options_.traffic.verb == "cas", far.address(), far.region->rkey, n - 1);
    ibv_send_wr* bad = nullptr;
    bench::require(e.at->device->post_send(e.qp, &wr, &bad), "post_send");
  }

  void completed(end& e, completion_queue& cq) {
    ibv_wc wc{};
    bench::require(e.at->device->wait_cq(&cq, 1, &wc), "poll_cq");
    if (wc.status != IBV_WC_SUCCESS) throw bench::message_failed(wc);
  }

  /// Waits until message `n` is here, and compares every byte.
  void await(end& e, std::uint32_t size, std::uint64_t n) {
    if (sends()) {
      completed(e, *e.receive_cq);
    } else {
      const volatile std::uint8_t* last = e.in.at(size - 1);
      const std::uint8_t expected = last_pattern_byte(size, n, e.salt_in);
      while (*last != expected) e.at->bus->wait_for_write(e.in.memory.bus_address + size - 1, 1, 0);
      e.at->bus->spend_ps(e.at->device->settings().poll_ns * sim::ps_per_ns);
    }
    check_pattern(e.in.at(), size, n, e.salt_in);
  }

  void pings(std::uint32_t size) {
    std::vector<sim::time_ps> samples;
    std::vector<sim::span> kept;
    post_receives(a_, size);
    system_->meet();  // the other side is ready to receive
    for (std::uint64_t n = 1; n <= messages(); ++n) {
      fill_pattern(a_.out.at(), size, n, salt_ping);
      const sim::time_ps start = system_->now_ps();
      current_span_ = system_->spans().open(start);
      spans_.set(current_span_);
      post(a_, b_, size, n);
      completed(a_, *a_.send_cq);
      await(a_, size, n);
      const sim::time_ps end = system_->now_ps();
      if (sends() && n + receives_ahead <= messages()) post_receive(a_, size);
      if (n > warm_up) {
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
      system_->spans().leave(current_span_, "processor poll", system_->now_ps(), sim::wait::software);
      fill_pattern(b_.out.at(), size, n, salt_pong);
      if (sends() && n + receives_ahead <= messages()) post_receive(b_, size);
      post(b_, a_, size, n);
      completed(b_, *b_.send_cq);
    }
  }

  void round_trips(std::uint32_t size) {
    std::vector<sim::time_ps> samples;
    std::vector<sim::span> kept;
    system_->meet();
    for (std::uint64_t n = 1; n <= messages(); ++n) {
      fill_pattern(a_.in.at(), size, n, salt_ping);
      const sim::time_ps start = system_->now_ps();
      current_span_ = system_->spans().open(start);
      spans_.set(current_span_);
      post(a_, b_, size, n);
      completed(a_, *a_.send_cq);
      system_->spans().leave(current_span_, "processor poll", system_->now_ps(), sim::wait::software);
      if (n > warm_up) {
        samples.push_back(system_->now_ps() - start);
        if (kept.size() < spans_kept) kept.push_back(system_->spans()[current_span_]);
      }
      if (atomic())
        check_counter(a_.in.at(), n - 1);
      else
        check_pattern(a_.in.at(), size, size, salt_pong);
      progress_->at(++done_);
    }
    keep(size, samples, kept);
  }

  static void check_counter(const std::uint8_t* result, std::uint64_t expected) {
    std::uint64_t found = 0;
    std::memcpy(&found, result, sizeof found);
    if (found != expected)
      throw std::runtime_error(fmt::format("an atomic found {} in memory instead of {}", found, expected));
  }

  void keep(std::uint32_t size, const std::vector<sim::time_ps>& samples, const std::vector<sim::span>& kept) {
    row r;
    r.size = size;
    r.half = summarise(samples);
    r.typical = kept[r.half.typical_sample < kept.size() ? r.half.typical_sample : 0];
    rows_.push_back(r);
  }

  const latency_options& options_;
  std::vector<std::uint32_t> sizes_;
  bench::connection_options connection_;
  bench::two_nodes* system_ = nullptr;
  progress* progress_ = nullptr;
  next_span spans_;
  sim::span_id current_span_ = 0;
  end a_, b_;
  std::uint64_t done_ = 0;
  std::vector<row> rows_;
  nlohmann::json faults_;
};

void print(const latency_options& o, const std::vector<row>& rows) {
  fmt::print("RDMA {} latency, {} RoCE {} over IPv{}, MTU {}, {} m of cable; {} iterations; microseconds ({})\n\n",
             o.traffic.verb, o.traffic.transport, o.traffic.roce, o.traffic.ip, o.traffic.mtu, o.traffic.cable_metres,
             o.iterations, is_round_trip(o.traffic) ? "round trip" : "half round trip");
  fmt::print("{:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "bytes", "iterations", "min", "typical", "average",
             "99 %", "max");
  for (const row& r : rows)
    fmt::print("{:>10} {:>10} {:>10} {:>10} {:>10.3f} {:>10} {:>10}\n", r.size, r.half.count,
               microseconds(r.half.minimum), microseconds(r.half.typical), r.half.average_ps() / 1e6,
               microseconds(r.half.p99), microseconds(r.half.maximum));
  for (const row& r : rows)
    fmt::print("\n    where the time of a typical message of {} bytes went:\n{}", r.size, stages_text(r.typical));
}

nlohmann::json to_json(const row& r) {
  return {{"size", r.size},
          {"iterations", r.half.count},
          {"min_us", to_us(r.half.minimum)},
          {"typical_us", to_us(r.half.typical)},
          {"avg_us", r.half.average_ps() / 1e6},
          {"p99_us", to_us(r.half.p99)},
          {"max_us", to_us(r.half.maximum)},
          {"end_to_end_ps", r.typical.end() - r.typical.start()},
          {"stages", stages_json(r.typical)}};
}

}  // namespace

double typical_latency_us(const latency_options& options) {
  return to_us(latency_run(options).run(nullptr).front().half.typical);
}

int run_latency(const latency_options& options) {
  check_writable(options.common, options.common.json_file);
  check_writable(options.common, options.common.pcap_file);
  latency_run experiment(options);
  std::string effective;
  const std::vector<row> rows = experiment.run(&effective);
  print(options, rows);
  if (!options.common.json_file.empty()) {
    nlohmann::json result = run_header("latency", options.common);
    result["verb"] = options.traffic.verb;
    result["parameters"] = effective;
    if (!experiment.faults().empty()) result["faults"] = experiment.faults();
    result["rows"] = nlohmann::json::array();
    for (const row& r : rows) result["rows"].push_back(to_json(r));
    write_text(options.common.json_file, result.dump(2) + "\n");
  }
  return 0;
}

}  // namespace rnic::program
