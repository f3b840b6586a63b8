// SPDX-License-Identifier: Apache-2.0
#include "model/transport/requester/descriptor_fetch.h"

#include <algorithm>
#include <utility>

#include "model/sim/check.h"

namespace rnic::transport {

namespace {
constexpr unsigned unit_shift = 16;  // of a tag; below: place in the unit's memory
unsigned unit_of(std::uint64_t tag) { return static_cast<unsigned>(tag >> unit_shift); }
}  // namespace

descriptor_fetch::descriptor_fetch(std::string name, sim::clock_domain& domain, descriptor_memory& memory,
                                   sim::span_recorder& spans, sim::statistics& stats)
    : clocked_block(name, domain), memory_(memory), spans_(spans), units_(memory.units()) {
  RNIC_ASSERT(units_.size() <= 32, this->name() + ": more than 32 units");
  const std::pair<const char*, const std::uint64_t*> all[] = {{"fetches", &fetches_},
                                                              {"bytes", &bytes_},
                                                              {"failed", &failed_},
                                                              {"cut", &cut_},
                                                              {"translation_misses", &translation_misses_}};
  for (const auto& [n, counter] : all) stats.add(this->name() + "." + n, *counter);
}

void descriptor_fetch::tick() {
  take_memory();
  take_address();
  if (ended_ != 0) end_one();
  accept();
  if (asking_ != 0) ask();
}

void descriptor_fetch::take_memory() {
  if (!dma.response.can_pop()) return;
  const pcie::dma_response d = dma.response.pop();
  const unsigned unit = unit_of(d.tag);
  reading& r = units_[unit];
  if (d.status != pcie::dma_status::ok) r.failed = true;
  --r.pending;
  ends(unit);
}

// The answer in front, which may be that of any unit: one read a cycle.
void descriptor_fetch::take_address() {
  if (!translate.response.can_pop()) return;
  const icm::translate_response& a = translate.response.front();
  const unsigned unit = unit_of(a.tag);
  reading& r = units_[unit];
  const bool ok = a.status == icm::translate_status::ok;
  const unsigned reads = ok && !(r.cut && parts_ == 0) ? a.count : 0;
  if (parts_ != reads) {
    if (!dma.request.claim()) return;
    const auto& part = a.segments[parts_];
    const std::uint32_t place = static_cast<std::uint16_t>(a.tag) + (parts_ == 0 ? 0 : a.segments[0].length);
    dma.request.push_made([&](pcie::dma_request& d) {
      d.renew(pcie::dma_request::kind::read);
      d.length = part.length;
      d.address = part.address;
      d.tag = a.tag;
      d.destination = memory_.write(unit, place);
      d.function = r.job.function;
    });
    bytes_ += part.length;
    ++r.pending;
    if (++parts_ != reads) return wake_next();
  }
  parts_ = 0;
  if (a.missed) {
    ++translation_misses_;
    r.missed = true;
  }
  if (!ok) r.failed = true;
  --r.pending;
  if ((asking_ >> unit & 1) == 0) {
    const auto why = r.missed ? sim::wait::translation_miss : sim::wait::none;
    spans_.leave(r.job.span, name(), "address", now_ps(), why);
  }
  translate.response.drop();
  ends(unit);
}

// After everything that may have been the last that a job waited for.
void descriptor_fetch::ends(unsigned unit) {
  if (units_[unit].pending == 0 && (asking_ >> unit & 1) == 0) ended_ |= 1u << unit;
}

void descriptor_fetch::end_one() {
  if (!result_out.claim()) return;
  const auto unit = static_cast<unsigned>(end_turn_.pick(ended_));
  reading& r = units_[unit];
  const bool whole = !r.failed && !r.cut;
  if (r.failed) ++failed_;
  spans_.leave(r.job.span, name(), "read", now_ps(), sim::wait::descriptor_fetch);
  result_out.push({r.job.qpn, r.job.generation, r.job.bytes, r.job.unit, whole});
  const std::uint32_t bit = 1u << unit;
  ended_ &= ~bit;
  under_way_ &= ~bit;
  if ((waiting_ & bit) != 0) {
    waiting_ &= ~bit;
    r.job = r.behind;
    begin(unit);
  }
  if (ended_ != 0) wake_next();
}

void descriptor_fetch::accept() {
  if (!job_in.can_pop()) return;
  const descriptor_job& j = job_in.front();
  RNIC_ASSERT(j.unit < units_.size() && j.bytes != 0 && j.place + j.bytes <= descriptor_memory::unit_bytes,
              name() + ": a job outside of the descriptor memory");
  const unsigned unit = j.unit;
  const std::uint32_t bit = 1u << unit;
  reading& r = units_[unit];
  if ((under_way_ & bit) == 0) {
    r.job = job_in.pop();
    return begin(unit);
  }
  if ((waiting_ & bit) != 0) return;
  r.behind = job_in.pop();
  waiting_ |= bit;
  if ((ended_ & bit) != 0) return;
  r.cut = true;
  ++cut_;
  asking_ &= ~bit;
  ends(unit);
  // An address of it that has waited for room in the channel to the DMA engine leaves now.
  const bool in_front = translate.response.can_pop() && unit_of(translate.response.front().tag) == unit;
  if ((ended_ & bit) != 0 || in_front) wake_next();
}

void descriptor_fetch::begin(unsigned unit) {
  reading& r = units_[unit];
  r.asked = 0;
  r.failed = r.cut = r.missed = false;
  under_way_ |= 1u << unit;
  asking_ |= 1u << unit;
  ++fetches_;
}

// The part of a job up to its end or the end of the ring.
void descriptor_fetch::ask() {
  if (!translate.request.claim()) return;
  const auto unit = static_cast<unsigned>(ask_turn_.pick(asking_));
  reading& r = units_[unit];
  const descriptor_job& j = r.job;
  const std::uint64_t ring = std::uint64_t{1} << j.log_ring, at = (j.at + r.asked) & (ring - 1);
  const auto length = static_cast<std::uint32_t>(std::min<std::uint64_t>(j.bytes - r.asked, ring - at));
  translate.request.push_made([&](icm::translate_request& t) {
    t = {};
    t.what = icm::translate_request::kind::buffer;
    t.log_page = j.log_page;
    t.buffer_mtt = j.mtt;
    t.va = j.offset + at;
    t.length = length;
    t.tag = std::uint64_t{unit} << unit_shift | (j.place + r.asked);
    t.span = j.span;
  });
  r.asked += length;
  ++r.pending;
  if (r.asked == j.bytes) asking_ &= ~(1u << unit);
  if (asking_ != 0) wake_next();
}

}  // namespace rnic::transport
