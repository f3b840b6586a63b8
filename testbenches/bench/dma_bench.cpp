// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/dma_bench.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "testbenches/bench/slot.h"

namespace rnic::bench {

namespace {

constexpr std::uint64_t line_bytes = 64;

std::uint64_t stride_of(const dma_load& load) {
  return (load.offset + load.bytes + line_bytes - 1) / line_bytes * line_bytes;
}

/// Asks for transfers and counts their answers: reads as one client of the DMA engine, writes as the other, but those
/// of lat_wrrd, which must stay in order, as the first one's.
class dma_traffic : public sim::clocked_block {
 public:
  explicit dma_traffic(slot& s) : clocked_block("dma", s.core) {
    for (std::size_t i = 0; i < 2; ++i) ways_[i].attach(*this, s, i);
  }
  /// `count` transfers in a buffer at `address`, of which the first `skip` do not count. Not before done().
  void start(const dma_load& load, std::uint64_t address, std::uint64_t count, std::uint64_t skip) {
    load_ = load;
    first_place_ = address + load.offset;
    places_ = dma_places(load);
    random_ = load.seed;
    data_.assign(load.bytes, 0x5a);
    place_ = ended_ = counted = failed = 0;
    total_ = count;
    skip_ = skip;
    for (way& w : ways_) {
      w.asked = 0;
      w.fetched_at = now_ps() + load.fetch.time(load.bytes);
    }
    wake_next();
  }
  bool done() const { return ended_ == total_; }
  std::uint64_t ended() const { return ended_; }
  workloads::latency_record latencies;
  sim::time_ps counted_from = 0, counted_to = 0;
  std::uint64_t counted = 0;  ///< answers between these two
  std::uint64_t failed = 0;

 private:
  struct way {
    void attach(dma_traffic& owner, slot& s, std::size_t client) {
      const std::string name = "dma.way" + std::to_string(client);
      port = std::make_unique<pcie::dma_port>(owner);
      requests = std::make_unique<sim::fifo<pcie::dma_request>>(name + ".request", s.core, 8);
      responses = std::make_unique<sim::fifo<pcie::dma_response>>(name + ".response", s.core, 4);
      port->request.bind(*requests);
      port->response.bind(*responses);
      s.endpoint.dma().client(static_cast<unsigned>(client)).request.bind(*requests);
      s.endpoint.dma().client(static_cast<unsigned>(client)).response.bind(*responses);
    }
    std::unique_ptr<pcie::dma_port> port;
    std::unique_ptr<sim::fifo<pcie::dma_request>> requests;
    std::unique_ptr<sim::fifo<pcie::dma_response>> responses;
    std::uint64_t asked = 0;
    sim::time_ps fetched_at = 0;
  };

  bool is_latency() const { return load_.test == dma_test::lat_rd || load_.test == dma_test::lat_wrrd; }
  std::uint64_t next_place() {
    if (load_.sequential) return place_++ % places_;
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return (random_ >> 33) % places_;
  }
  void tick() override {
    for (way& w : ways_)
      if (w.port->response.can_pop()) take(w.port->response.pop());
    if (done()) return;
    switch (load_.test) {
      case dma_test::lat_rd:
      case dma_test::lat_wrrd:
        return ask_one();
      case dma_test::bw_rd:
        return ask(ways_[0], pcie::dma_request::kind::read);
      case dma_test::bw_wr:
        return ask(ways_[1], pcie::dma_request::kind::write);
      case dma_test::bw_rdwr:
        // In turn: neither is more than one ahead.
        if (ways_[0].asked <= ways_[1].asked) ask(ways_[0], pcie::dma_request::kind::read);
        if (ways_[1].asked <= ways_[0].asked) ask(ways_[1], pcie::dma_request::kind::write);
        return;
    }
  }
  void take(const pcie::dma_response& r) {
    if (r.status != pcie::dma_status::ok) ++failed;
    if (is_latency()) {
      under_way_ = false;
      if (ended_ >= skip_) latencies.add(now_ps() - asked_at_);
    }
    if (ended_ == skip_)
      counted_from = now_ps();
    else if (ended_ > skip_)
      ++counted;
    counted_to = now_ps();
    ++ended_;
    wake_next();
  }
  /// The transfer of a latency, or the second one of its pair.
  void ask_one() {
    if (!under_way_) {
      under_way_ = true;
      asked_at_ = now_ps();
      request_.address = first_place_ + next_place() * stride_of(load_);
      if (load_.test == dma_test::lat_rd) return push(ways_[0], pcie::dma_request::kind::read);
      pairs_ = true;
      push(ways_[0], pcie::dma_request::kind::write);
      wake_next();
    } else if (pairs_ && ways_[0].port->request.can_push()) {
      pairs_ = false;
      push(ways_[0], pcie::dma_request::kind::read);
    }
  }
  void ask(way& w, pcie::dma_request::kind op) {
    if (w.asked == (load_.test == dma_test::bw_rdwr ? total_ / 2 : total_)) return;
    if (op == pcie::dma_request::kind::write && !fetched(w)) return;
    if (!w.port->request.can_push()) {
      w.fetched_at = now_ps() + 1;  // it waits with its data, and the next fetch does not begin
      return;
    }
    request_.address = first_place_ + next_place() * stride_of(load_);
    request_.notify = op == pcie::dma_request::kind::write;
    push(w, op);
    w.fetched_at += load_.fetch.time(load_.bytes);
    wake_next();
  }
  bool fetched(const way& w) {
    if (w.fetched_at <= now_ps()) return true;
    wake_at(domain().edge_at_or_after(w.fetched_at));
    return false;
  }
  void push(way& w, pcie::dma_request::kind op) {
    request_.op = op;
    request_.length = load_.bytes;
    request_.source = request_.destination = data_.data();
    w.port->request.push(request_);
    ++w.asked;
  }

  dma_load load_;
  std::uint64_t first_place_ = 0, places_ = 1, random_ = 0, place_ = 0;
  std::array<way, 2> ways_;
  std::vector<std::uint8_t> data_;
  pcie::dma_request request_;
  std::uint64_t total_ = 0, skip_ = 0, ended_ = 0;
  bool under_way_ = false, pairs_ = false;
  sim::time_ps asked_at_ = 0;
};

/// The buffer, in the state that the load asks for.
std::uint64_t lay_out(slot& s, const dma_load& load) {
  const auto away = load.remote ? host::memory_class::remote : host::memory_class::dram;
  const auto buffer = s.memory.allocate(load.window, 2u << 20, away);
  if (buffer.pointer == nullptr)
    throw sim::config_error("host.memory.bytes: no room for a window of " + std::to_string(load.window) + " bytes");
  // What the host touched last is cached; by chance or round and round, the device finds as much of it either way.
  if (load.cache == cache_state::host_warm && !load.remote)
    s.memory.set_class(buffer.address, std::min(load.window, load.llc_bytes), host::memory_class::llc);
  return buffer.address;
}

/// The device writes the window; of a large one the end, which is more than stays in what it may allocate.
void write_window(slot& s, dma_traffic& traffic, const hosts::node_config& config, const dma_load& load,
                  std::uint64_t address) {
  const host::memory_timing_config& memory = config.root_complex.memory;
  const std::uint64_t stays = line_bytes * memory.io_cache_sets * memory.io_cache_ways;
  dma_load writes;
  writes.test = dma_test::bw_wr;
  writes.sequential = true;
  writes.bytes = line_bytes;
  writes.window = std::min(load.window, 2 * stays) / line_bytes * line_bytes;
  traffic.start(writes, address + load.window - writes.window, dma_places(writes), 0);
  s.finish(traffic);
}

}  // namespace

const std::vector<std::string>& dma_test_names() {
  static const std::vector<std::string> names{"lat_rd", "lat_wrrd", "bw_rd", "bw_wr", "bw_rdwr"};
  return names;
}

std::uint64_t dma_places(const dma_load& load) { return load.window / stride_of(load); }

dma_outcome run_dma(const hosts::node_config& config, const dma_load& load,
                    const std::function<void(std::uint64_t)>& at) {
  slot s(config);
  dma_traffic traffic(s);
  s.bring_up();
  const std::uint64_t address = lay_out(s, load);
  if (load.cache == cache_state::device_warm) write_window(s, traffic, config, load, address);
  const std::uint64_t skip = load.count / 4, both = load.test == dma_test::bw_rdwr ? 2 : 1;
  traffic.start(load, address, (load.count + skip) * both, skip * both);
  while (!traffic.done()) {
    s.pass(10 * sim::ps_per_us);
    if (at) at(traffic.ended());
  }
  dma_outcome o;
  o.latencies = traffic.latencies;
  o.failed = traffic.failed;
  if (traffic.counted != 0) {
    const double ps = static_cast<double>(traffic.counted_to - traffic.counted_from);
    const double transfers = static_cast<double>(traffic.counted) / static_cast<double>(both);
    o.mtps = transfers * 1e6 / ps;
    o.gbps = transfers * load.bytes * 8000.0 / ps;
  }
  for (const auto& [name, value] : s.statistics.all()) o.counters.emplace_back(name, *value);
  return o;
}

}  // namespace rnic::bench
