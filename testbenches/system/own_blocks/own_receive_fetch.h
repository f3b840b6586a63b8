// SPDX-License-Identifier: Apache-2.0
// A receive fetch by the data sheet of the model's alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "model/adapter/block_place.h"
#include "model/transport/responder/receive_fetch.h"

namespace rnic::system_test {

/// Ticked in each cycle in which a job is under way, and kept in a map and lists.
class own_receive_fetch final : public sim::clocked_block {
 public:
  explicit own_receive_fetch(adapter::block_place& place)
      : clocked_block(place.name() + ".own", place.clock()),
        places_(place.parameters().responder.receive_fetches),
        memory_(place.beside().responder.received) {
    place.bind("responder_to_receive_fetch_jobs", jobs_in_);
    place.bind("receive_fetch_to_responder_results", results_);
    place.bind("receive_fetch_to_translation_requests", "translation_to_receive_fetch_responses", addresses_);
    place.bind("receive_fetch_to_pcie_dma_requests", "pcie_to_receive_fetch_dma_responses", memory_reads_);
    announce(place.name(), place.around().statistics);
  }

 private:
  sim::fifo_in<transport::receive_job> jobs_in_{*this};
  sim::fifo_out<transport::receive_fetch_result> results_{*this};
  pcie::dma_port memory_reads_{*this};
  icm::translate_port addresses_{*this};

  struct job {
    transport::receive_job of;
    unsigned reads = 0;  // not answered
    bool all_read = false, bad = false;
  };
  void announce(const std::string& name, sim::statistics& to) {
    for (unsigned n = 0; n < places_; ++n) free_.push_back(n);
    const std::pair<const char*, const std::uint64_t*> all[] = {{"fetches", &fetches_},
                                                                {"bytes", &bytes_},
                                                                {"records", &records_},
                                                                {"failed", &failed_},
                                                                {"translation_misses", &misses_}};
    for (const auto& [n, c] : all) to.add(name + "." + n, *c);
  }
  void tick() override {
    if (memory_reads_.response.can_pop()) {
      const pcie::dma_response r = memory_reads_.response.pop();
      job& j = jobs_.at(r.tag);
      j.bad |= r.status != pcie::dma_status::ok;
      --j.reads;
      maybe_end(r.tag);
    }
    if (jobs_in_.can_pop() && jobs_.size() < places_) {
      const std::uint64_t n = free_.front();  // the tag: places are used again in the order in which they came free
      free_.pop_front();
      jobs_[n].of = jobs_in_.pop();
      const bool record = is_record(jobs_[n].of.place);
      ++(record ? records_ : fetches_);
      (record ? to_read_ : to_ask_).push_back(n);
    }
    ask();
    read();
    end();
    if (!jobs_.empty() || jobs_in_.can_pop()) wake_next();
  }
  void ask() {
    if (to_ask_.empty() || !addresses_.request.can_push()) return;
    const transport::receive_job& j = jobs_.at(to_ask_.front()).of;
    icm::translate_request r;
    r.what = icm::translate_request::kind::buffer;
    r.log_page = j.log_page;
    r.length = j.bytes;
    r.va = j.at;
    r.buffer_mtt = j.mtt;
    r.tag = to_ask_.front();
    addresses_.request.push(r);
    to_ask_.pop_front();
  }
  void read() {
    // A refusal needs no read and no turn: it is taken in the cycle in which it comes, and a record may be read too.
    if (addresses_.response.can_pop() && addresses_.response.front().status != icm::translate_status::ok) {
      const auto a = addresses_.response.pop();
      misses_ += a.missed;
      job& j = jobs_.at(a.tag);
      j.bad = j.all_read = true;
      maybe_end(a.tag);
      if (!to_read_.empty() && memory_reads_.request.can_push()) read_record();
      return;
    }
    const bool descriptor = addresses_.response.can_pop(), record = !to_read_.empty();
    if (!memory_reads_.request.can_push() || (!descriptor && !record)) return;
    if (descriptor && (!record || !record_next_))
      read_part();
    else
      read_record();
  }
  void read_part() {
    const icm::translate_response a = addresses_.response.front();
    job& j = jobs_.at(a.tag);
    const auto& s = a.segments[part_];
    request(a.tag, s.address, part_ == 0 ? 0 : a.segments[0].length, s.length);
    bytes_ += s.length;
    record_next_ = true;  // a turn is one request, of either kind, whether the other waited or not
    if (++part_ < a.count) return;
    part_ = 0;
    misses_ += a.missed;
    j.all_read = true;
    addresses_.response.drop();
  }
  void read_record() {
    const std::uint64_t n = to_read_.front();
    to_read_.pop_front();
    job& j = jobs_.at(n);
    request(n, j.of.at, 0, j.of.bytes);
    j.all_read = true;
    record_next_ = false;
  }
  void request(std::uint64_t n, std::uint64_t address, std::uint32_t offset, std::uint32_t length) {
    job& j = jobs_.at(n);
    pcie::dma_request r;
    r.function = j.of.function;
    r.length = length;
    r.address = address;
    r.tag = n;
    r.destination = memory_.write(j.of.place) + offset;
    memory_reads_.request.push(std::move(r));
    ++j.reads;
  }
  void maybe_end(std::uint64_t n) {
    const job& j = jobs_.at(n);
    if (j.all_read && j.reads == 0) ended_.push_back(n);
  }
  void end() {
    if (ended_.empty() || !results_.can_push()) return;
    const job& j = jobs_.at(ended_.front());
    results_.push({j.of.place, !j.bad});
    failed_ += j.bad;
    jobs_.erase(ended_.front());
    free_.push_back(ended_.front());
    ended_.pop_front();
  }

  const unsigned places_;
  transport::receive_memory& memory_;
  std::map<std::uint64_t, job> jobs_;
  std::deque<std::uint64_t> free_, to_ask_, to_read_, ended_;
  unsigned part_ = 0;
  bool record_next_ = false;
  std::uint64_t fetches_ = 0, bytes_ = 0, records_ = 0, failed_ = 0, misses_ = 0;
};
}  // namespace rnic::system_test
