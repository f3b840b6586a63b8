// SPDX-License-Identifier: Apache-2.0
// A descriptor fetch by the data sheet of the model's alone.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "model/adapter/block_place.h"
#include "model/transport/requester/descriptor_fetch.h"

namespace rnic::system_test {

/// Ticked in each cycle in which a unit has a job, of which each has a list.
class own_descriptor_fetch final : public sim::clocked_block {
 public:
  explicit own_descriptor_fetch(adapter::block_place& place)
      : clocked_block(place.name() + ".own", place.clock()),
        memory_(place.beside().requester.descriptors),
        units_(memory_.units()) {
    place.bind("requester_to_descriptor_fetch_jobs", jobs_);
    place.bind("descriptor_fetch_to_requester_results", results_);
    place.bind("descriptor_fetch_to_translation_requests", "translation_to_descriptor_fetch_responses", addresses_);
    place.bind("descriptor_fetch_to_pcie_dma_requests", "pcie_to_descriptor_fetch_dma_responses", memory_reads_);
    const std::pair<const char*, const std::uint64_t*> all[] = {{"fetches", &fetches_},
                                                                {"bytes", &bytes_},
                                                                {"failed", &failed_},
                                                                {"cut", &cut_},
                                                                {"translation_misses", &misses_}};
    for (const auto& [n, c] : all) place.around().statistics.add(place.name() + "." + n, *c);
  }

 private:
  sim::fifo_in<transport::descriptor_job> jobs_{*this};
  sim::fifo_out<transport::descriptor_result> results_{*this};
  pcie::dma_port memory_reads_{*this};
  icm::translate_port addresses_{*this};

  struct part {
    std::uint64_t from = 0;
    std::uint32_t to = 0, length = 0;
  };
  struct work {
    transport::descriptor_job job;
    std::deque<part> to_ask;
    std::array<part, 2> parts;
    unsigned open = 0;  // addresses and reads that wait for an answer
    bool refused = false, replaced = false;
  };

  void tick() override {
    if (memory_reads_.response.can_pop()) {
      const pcie::dma_response r = memory_reads_.response.pop();
      work& w = units_[r.tag].front();
      --w.open;
      if (r.status != pcie::dma_status::ok) w.refused = true;
    }
    address();
    end();
    accept();
    ask();
    bool busy = jobs_.can_pop();
    for (const auto& u : units_) busy = busy || !u.empty();
    if (busy) wake_next();
  }

  void address() {
    if (!addresses_.response.can_pop()) return;
    icm::translate_response& r = addresses_.response.front();
    const unsigned unit = static_cast<unsigned>(r.tag >> 1);
    work& w = units_[unit].front();
    if (segment_ == 0) {
      if (r.missed && !std::exchange(counted_, true)) ++misses_;
      if (r.status != icm::translate_status::ok) w.refused = true;
    }
    // One whose first read was made has its second one; a read that memory has refused stops nothing.
    if (r.status == icm::translate_status::ok && (segment_ != 0 || !w.replaced)) {
      if (!memory_reads_.request.can_push()) return;
      part& p = w.parts[r.tag & 1];
      const auto& s = r.segments[segment_];
      pcie::dma_request q;
      q.op = pcie::dma_request::kind::read;
      q.function = w.job.function;
      q.address = s.address;
      q.length = s.length;
      q.tag = unit;
      q.destination = memory_.write(unit, p.to);
      memory_reads_.request.push(std::move(q));
      ++w.open;
      p.to += s.length;
      bytes_ += s.length;
      if (++segment_ < r.count) return;
    }
    segment_ = 0;
    counted_ = false;
    --w.open;
    addresses_.response.pop();
  }

  static bool ended(const work& w) { return w.open == 0 && (w.to_ask.empty() || w.replaced); }

  void end() {
    if (!results_.can_push()) return;
    for (unsigned i = 0; i < units_.size(); ++i) {
      const unsigned u = (end_turn_ + i) % static_cast<unsigned>(units_.size());
      if (units_[u].empty()) continue;
      work& w = units_[u].front();
      if (!ended(w)) continue;
      end_turn_ = u + 1;
      transport::descriptor_result r;
      r.qpn = w.job.qpn;
      r.generation = w.job.generation;
      r.bytes = w.job.bytes;
      r.unit = static_cast<std::uint8_t>(u);
      r.ok = !w.refused && !w.replaced;
      if (w.refused) ++failed_;
      results_.push(r);
      units_[u].pop_front();
      if (!units_[u].empty()) begin(units_[u].front());
      return;
    }
  }

  void accept() {
    if (!jobs_.can_pop()) return;
    const unsigned u = jobs_.front().unit;
    if (units_[u].size() == 2) return;
    work w;
    w.job = jobs_.pop();
    if (!units_[u].empty() && !ended(units_[u].front())) {
      units_[u].front().replaced = true;  // whatever its generation
      ++cut_;
    }

    units_[u].push_back(std::move(w));
    if (units_[u].size() == 1) begin(units_[u].front());
  }

  void begin(work& w) {
    ++fetches_;
    const std::uint64_t ring = std::uint64_t{1} << w.job.log_ring;
    const auto first = static_cast<std::uint32_t>(std::min<std::uint64_t>(w.job.bytes, ring - w.job.at));
    w.parts[0] = {w.job.offset + w.job.at, w.job.place, first};
    w.to_ask.push_back(w.parts[0]);
    if (first < w.job.bytes) {
      w.parts[1] = {w.job.offset, w.job.place + first, w.job.bytes - first};
      w.to_ask.push_back(w.parts[1]);
    }
  }

  void ask() {
    if (!addresses_.request.can_push()) return;
    for (unsigned i = 0; i < units_.size(); ++i) {
      const unsigned u = (ask_turn_ + i) % static_cast<unsigned>(units_.size());
      if (units_[u].empty()) continue;
      work& w = units_[u].front();
      if (w.to_ask.empty() || w.replaced) continue;
      ask_turn_ = u + 1;
      const part p = w.to_ask.front();
      w.to_ask.pop_front();
      icm::translate_request q;
      q.what = icm::translate_request::kind::buffer;
      q.access = icm::access::local_read;
      q.log_page = w.job.log_page;
      q.length = p.length;
      q.va = p.from;
      q.buffer_mtt = w.job.mtt;
      q.tag = u << 1 | (p.to == w.job.place ? 0 : 1);
      q.span = w.job.span;
      addresses_.request.push(q);
      ++w.open;
      return;
    }
  }

  transport::descriptor_memory& memory_;
  std::vector<std::deque<work>> units_;
  bool counted_ = false;
  unsigned ask_turn_ = 0, end_turn_ = 0, segment_ = 0;
  std::uint64_t fetches_ = 0, bytes_ = 0, failed_ = 0, cut_ = 0, misses_ = 0;
};
}  // namespace rnic::system_test
