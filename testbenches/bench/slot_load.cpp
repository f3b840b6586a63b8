// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/slot_load.h"

#include <stdexcept>
#include <vector>

#include "testbenches/bench/slot.h"

namespace rnic::bench {

namespace {

/// Asks for `count` transfers as fast as the DMA engine takes them and the data of each is there.
class dma_source : public sim::clocked_block {
 public:
  dma_source(sim::clock_domain& domain, pcie::dma_engine::client_port& engine)
      : clocked_block("source", domain),
        port_(*this),
        requests_("source.request", domain, 8),
        responses_("source.response", domain, 4) {
    port_.request.bind(requests_);
    port_.response.bind(responses_);
    engine.request.bind(requests_);
    engine.response.bind(responses_);
  }
  /// `fetch_ps`: of a transfer's data, one after the other.
  void start(const pcie::dma_request& r, unsigned count, std::uint64_t stride, sim::time_ps fetch_ps) {
    request_ = r;
    left_ = total_ = count;
    stride_ = stride;
    fetch_ps_ = fetch_ps;
    fetched_at_ = now_ps() + fetch_ps;
    wake_next();
  }
  bool done() const { return ended_ == total_; }
  sim::time_ps asked_last = 0, answered_first = 0, answered_last = 0;
  unsigned skip = 0;  ///< answers before the one from which time counts

 private:
  void tick() override {
    while (port_.response.can_pop()) {
      if (port_.response.pop().status != pcie::dma_status::ok) throw std::runtime_error("a DMA transfer failed");
      if (ended_ == skip) answered_first = now_ps();
      answered_last = now_ps();
      ++ended_;
    }
    if (left_ == 0) return;
    if (fetched_at_ > now_ps()) return wake_at(domain().edge_at_or_after(fetched_at_));
    if (!port_.request.can_push()) {
      fetched_at_ = now_ps() + 1;  // it waits with its data, and the next fetch does not begin
      return;
    }
    asked_last = now_ps();
    port_.request.push(request_);
    request_.address += stride_;
    fetched_at_ += fetch_ps_;
    if (--left_ != 0) wake_next();
  }
  pcie::dma_port port_;
  sim::fifo<pcie::dma_request> requests_;
  sim::fifo<pcie::dma_response> responses_;
  pcie::dma_request request_;
  unsigned left_ = 0, total_ = 0, ended_ = 0;
  std::uint64_t stride_ = 0;
  sim::time_ps fetch_ps_ = 0, fetched_at_ = 0;
};

/// Writes a random place of a window and reads it at once, one pair after the other.
class pair_source : public sim::clocked_block {
 public:
  pair_source(sim::clock_domain& domain, pcie::dma_engine::client_port& engine, std::uint32_t bytes)
      : clocked_block("pairs", domain),
        port_(*this),
        requests_("pairs.request", domain, 2),
        responses_("pairs.response", domain, 2),
        data_(bytes, 0x5a) {
    port_.request.bind(requests_);
    port_.response.bind(responses_);
    engine.request.bind(requests_);
    engine.response.bind(responses_);
  }
  /// `count` pairs, of which the last `counted` give mean_ps().
  void start(std::uint64_t address, std::uint64_t window, unsigned count, unsigned counted) {
    address_ = address;
    places_ = window / 64;
    left_ = count;
    counted_ = counted;
    sum_ps_ = 0;
    begin();
  }
  bool done() const { return left_ == 0; }
  sim::time_ps mean_ps() const { return sum_ps_ / counted_; }

 private:
  void begin() {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    request_.address = address_ + (random_ >> 33) % places_ * 64;
    request_.length = static_cast<std::uint32_t>(data_.size());
    request_.source = request_.destination = data_.data();
    request_.op = pcie::dma_request::kind::write;
    to_ask_ = 2;
    wake_next();
  }
  void tick() override {
    if (port_.response.can_pop()) {
      if (port_.response.pop().status != pcie::dma_status::ok) throw std::runtime_error("a DMA transfer failed");
      if (left_ <= counted_) sum_ps_ += now_ps() - asked_;
      if (--left_ != 0) begin();
    } else if (to_ask_ != 0 && port_.request.can_push()) {
      if (to_ask_ == 2) asked_ = now_ps();
      port_.request.push(request_);
      request_.op = pcie::dma_request::kind::read;
      if (--to_ask_ != 0) wake_next();
    }
  }
  pcie::dma_port port_;
  sim::fifo<pcie::dma_request> requests_;
  sim::fifo<pcie::dma_response> responses_;
  std::vector<std::uint8_t> data_;
  pcie::dma_request request_;
  std::uint64_t address_ = 0, places_ = 1, random_ = 1;
  unsigned left_ = 0, counted_ = 1, to_ask_ = 0;
  sim::time_ps asked_ = 0, sum_ps_ = 0;
};

struct loaded_slot : slot {
  explicit loaded_slot(const hosts::node_config& c, std::uint32_t pair_bytes = 64)
      : slot(c), source(core, endpoint.dma().client(0)), pairs(core, endpoint.dma().client(1), pair_bytes) {
    bring_up();
  }
  dma_source source;
  pair_source pairs;
};

}  // namespace

double dma_write_gbps(const hosts::node_config& config, const write_load& load) {
  loaded_slot s(config);
  // Each begins `offset` bytes behind a line of its own, as the program that was published does it.
  const std::uint64_t stride = (load.offset + load.bytes + 63) / 64 * 64;
  const auto buffer = s.memory.allocate(stride * load.writes);
  const std::vector<std::uint8_t> content(load.bytes, 0x5a);
  pcie::dma_request r;
  r.op = pcie::dma_request::kind::write;
  r.notify = true;
  r.address = buffer.address + load.offset;
  r.length = load.bytes;
  r.source = content.data();
  s.source.skip = load.writes / 4;  // from here on every buffer on the way is full
  s.source.start(r, load.writes, stride, load.fetch.time(load.bytes));
  s.finish(s.source);
  const double counted = static_cast<double>(load.bytes) * (load.writes - s.source.skip - 1);
  return counted * 8000.0 / static_cast<double>(s.source.answered_last - s.source.answered_first);
}

sim::time_ps dma_read_ps(const hosts::node_config& config, std::uint32_t bytes) {
  loaded_slot s(config);
  const auto buffer = s.memory.allocate(bytes);
  std::vector<std::uint8_t> destination(bytes);
  pcie::dma_request r;
  r.address = buffer.address;
  r.length = bytes;
  r.destination = destination.data();
  s.source.start(r, 1, 0, 0);
  s.finish(s.source);
  return s.source.answered_last - s.source.asked_last;
}

double dma_write_read_extra_ns(const hosts::node_config& config, std::uint32_t bytes, std::uint64_t window,
                               host::memory_class where) {
  constexpr std::uint64_t small = 4096;
  loaded_slot s(config, bytes);
  const auto buffer = s.memory.allocate(window, host::host_memory::page_bytes, where);
  s.pairs.start(buffer.address, small, 2000, 1000);
  s.finish(s.pairs);
  const sim::time_ps least = s.pairs.mean_ps();
  s.pairs.start(buffer.address, window, 120'000, 30'000);  // the first ones fill what caches there are
  s.finish(s.pairs);
  return (static_cast<double>(s.pairs.mean_ps()) - static_cast<double>(least)) / 1000;
}

}  // namespace rnic::bench
