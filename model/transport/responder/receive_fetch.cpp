// SPDX-License-Identifier: Apache-2.0
#include "model/transport/responder/receive_fetch.h"

#include <utility>

#include "model/sim/check.h"

namespace rnic::transport {

receive_fetch::receive_fetch(std::string name, sim::clock_domain& domain, unsigned fetches, receive_memory& memory,
                             sim::statistics& stats)
    : clocked_block(name, domain),
      memory_(memory),
      fetches_(fetches),
      free_(fetches),
      asking_(fetches),
      records_(fetches),
      ended_(fetches) {
  for (unsigned i = 0; i != fetches; ++i) free_.push(i);
  const std::pair<const char*, const std::uint64_t*> all[] = {{"fetches", &descriptor_fetches_},
                                                              {"bytes", &bytes_},
                                                              {"records", &record_fetches_},
                                                              {"failed", &failed_},
                                                              {"translation_misses", &translation_misses_}};
  for (const auto& [n, counter] : all) stats.add(this->name() + "." + n, *counter);
}

void receive_fetch::tick() {
  take_memory();
  accept();
  read();
  if (!ended_.empty()) end_one();
  if (!asking_.empty()) ask();
}

void receive_fetch::take_memory() {
  if (!dma.response.can_pop()) return;
  const pcie::dma_response d = dma.response.pop();
  const auto of = static_cast<std::uint32_t>(d.tag);
  if (d.status != pcie::dma_status::ok) fetches_[of].failed = true;
  answered(of);
}

void receive_fetch::accept() {
  if (free_.empty() || !job_in.can_pop()) return;
  const std::uint32_t of = free_.pop();
  fetch& f = fetches_[of];
  f.job = job_in.pop();
  f.pending = 1;
  f.failed = false;
  RNIC_ASSERT(f.job.bytes != 0 && f.job.bytes <= memory_.bytes_of(f.job.place), name() + ": a job beyond its place");
  const bool record = is_record(f.job.place);
  ++(record ? record_fetches_ : descriptor_fetches_);
  (record ? records_ : asking_).push(of);
}

// The address in front, whose ever it is, or a record.
void receive_fetch::read() {
  bool address = translate.response.can_pop();
  if (address) {
    const icm::translate_response& a = translate.response.front();
    if (a.status != icm::translate_status::ok || a.count == 0) {
      const auto of = static_cast<std::uint32_t>(a.tag);
      fetches_[of].failed = true;
      if (a.missed) ++translation_misses_;
      translate.response.drop();
      answered(of);
      address = false;  // one answer a cycle
    }
  }
  if ((!address && records_.empty()) || !dma.request.claim()) return;
  if (!address || (record_next_ && !records_.empty())) {
    read_record();
    if (address || !records_.empty()) wake_next();
  } else {
    read_part();
    if (parts_ != 0 || !records_.empty()) wake_next();
  }
}

void receive_fetch::read_record() {
  const std::uint32_t of = records_.pop();
  request(of, fetches_[of].job.at, 0, fetches_[of].job.bytes);
  --fetches_[of].pending;  // it has needed no address
  record_next_ = false;
}

void receive_fetch::read_part() {
  const icm::translate_response& a = translate.response.front();
  const auto of = static_cast<std::uint32_t>(a.tag);
  const auto& part = a.segments[parts_];
  request(of, part.address, parts_ == 0 ? 0 : a.segments[0].length, part.length);
  bytes_ += part.length;
  record_next_ = true;
  if (++parts_ != a.count) return;
  parts_ = 0;
  --fetches_[of].pending;
  if (a.missed) ++translation_misses_;
  translate.response.drop();
}

void receive_fetch::request(std::uint32_t of, std::uint64_t address, std::uint32_t offset, std::uint32_t length) {
  fetch& f = fetches_[of];
  pcie::dma_request d;
  d.length = length;
  d.address = address;
  d.tag = of;
  d.destination = memory_.write(f.job.place) + offset;
  d.function = f.job.function;
  dma.request.push(std::move(d));
  ++f.pending;
}

void receive_fetch::answered(std::uint32_t of) {
  if (--fetches_[of].pending == 0) ended_.push(of);
}

void receive_fetch::end_one() {
  if (!result_out.claim()) return;
  const std::uint32_t of = ended_.pop();
  const fetch& f = fetches_[of];
  if (f.failed) ++failed_;
  result_out.push({f.job.place, !f.failed});
  const bool full = free_.empty();
  free_.push(of);
  if (!ended_.empty() || (full && job_in.can_pop())) wake_next();
}

void receive_fetch::ask() {
  if (!translate.request.claim()) return;
  const std::uint32_t of = asking_.pop();
  const receive_job& j = fetches_[of].job;
  icm::translate_request t;
  t.what = icm::translate_request::kind::buffer;
  t.log_page = j.log_page;
  t.buffer_mtt = j.mtt;
  t.va = j.at;
  t.length = j.bytes;
  t.tag = of;
  translate.request.push(t);
  if (!asking_.empty()) wake_next();
}

}  // namespace rnic::transport
