// SPDX-License-Identifier: Apache-2.0
// Decoder of everything that software writes to BAR2: doorbells and BlueFlame buffers.
#include "model/doorbell/doorbell.h"

#include <algorithm>
#include <utility>

#include "model/abi/endian.h"
#include "model/doorbell/doorbell_cr.h"

namespace rnic::doorbell {

namespace {
constexpr std::uint64_t send_offset = 0x14;
}  // namespace

doorbell::doorbell(std::string name, sim::clock_domain& domain, const config& cfg, sim::span_recorder& spans,
                   sim::statistics& stats)
    : clocked_block(name, domain),
      config_(sim::checked(cfg, this->name())),
      spans_(spans),
      buffers_(*this, cfg.bf_gathers, send_out, pages_, spans, counters_),
      queues_(queue_out, pages_, counters_) {
  if (cfg.bf_gathers == 0) throw sim::config_error("doorbell: bf_gathers must be at least 1");
  if (cfg.log_bf_reg_size != 9) throw sim::config_error("doorbell: log_bf_reg_size must be 9");
  const std::string prefix = this->name() + ".";
  stats.add(prefix + "sends", counters_.sends);
  stats.add(prefix + "blueflames", counters_.blueflames);
  stats.add(prefix + "cq_arms", counters_.arms);
  stats.add(prefix + "eq_updates", counters_.eq_updates);
  stats.add(prefix + "bad_offset", counters_.bad_offset);
  stats.add(prefix + "bad_length", counters_.bad_length);
  stats.add(prefix + "blueflame_partial", counters_.bf_partial);
  stats.add(prefix + "blueflame_disabled", counters_.bf_disabled);
  stats.add(prefix + "blueflame_bad", counters_.bf_bad);
}

void doorbell::tick() {
  if (!in.can_pop()) return;
  if (!decoder_.is_free()) return decoder_.await();
  const pcie::mmio_write& w = in.front();
  const std::uint64_t bf_base = std::uint64_t{1} << (pages_.log_uars + pages_.page_shift);
  const bool bf = w.offset >= bf_base;
  if (!decode(w)) return;
  decoder_.start(bf ? std::max(1u, (w.length + 63) / 64) * config_.bf_line_cycles : config_.decode_cycles);
  in.drop();  // what follows in the channel ticks us
}

void doorbell::device_reset() {
  buffers_.reset();
  queues_.reset();
  pages_ = {};
  wake_next();  // what was held up may be no doorbell any more
}

// False: an output is full, try the same write again.
bool doorbell::decode(const pcie::mmio_write& w) {
  if (pages_.closed) {
    ++counters_.bad_offset;
    return true;
  }
  const std::uint64_t page = w.offset >> pages_.page_shift;
  const std::uint64_t pages = std::uint64_t{1} << pages_.log_uars;
  if (page < pages) return decode_register(w, page, w.offset & ((std::uint64_t{1} << pages_.page_shift) - 1));
  if (page < 2 * pages && w.function == 0) return blueflame(w, w.offset - (pages << pages_.page_shift));
  ++counters_.bad_offset;
  return true;
}

bool doorbell::decode_register(const pcie::mmio_write& w, std::uint64_t page, std::uint64_t offset) {
  if (offset == send_offset) return ring_send(w, page);
  using queues = queue_doorbells;
  if (offset == queues::arm_offset || offset == queues::arm_offset + 4)
    return queues_.arm_cq(w, page, offset) || blocked("completion");
  if (offset >= queues::eq_offset && offset < queues::eq_offset + 8 * queues::eqs_per_page && offset % 8 == 0 &&
      page < queues::eq_pages)
    return queues_.update_eq(w, page, offset) || blocked("completion");
  ++counters_.bad_offset;
  return true;
}

bool doorbell::ring_send(const pcie::mmio_write& w, std::uint64_t page) {
  if (w.length != 4) {
    ++counters_.bad_length;
    return true;
  }
  if (!send_out.claim()) return blocked("scheduler");
  scheduler::send_doorbell d;
  d.qpn = abi::load32(w.data.data()) >> 8;
  d.uar = scheduler::uar_of(w.function, static_cast<std::uint32_t>(page));
  d.span = w.span;
  spans_.leave(w.span, name(), "doorbell", now_ps());
  send_out.push(std::move(d));
  ++counters_.sends;
  return true;
}

bool doorbell::blueflame(const pcie::mmio_write& w, std::uint64_t offset) {
  if (!pages_.blueflame_on) {
    ++counters_.bf_disabled;
    return true;
  }
  const std::uint64_t at = offset % blueflame_buffers::bytes;
  if (w.length == 0 || w.length > w.data.size() || w.length % 8 != 0 || at % 8 != 0 ||
      at + w.length > blueflame_buffers::bytes) {
    ++counters_.bad_length;
    return true;
  }
  if (!send_out.claim()) return blocked("scheduler");
  if (buffers_.store(w, offset)) return true;
  // The doorbell of a buffer that had to go took this cycle's place in the output: the write goes on in the next one.
  wake_next();
  return false;
}

std::uint32_t doorbell::cr_read(std::uint32_t offset) {
  switch (offset) {
    case cr::uar_page_shift:
      return pages_.page_shift;
    case cr::log_num_uars:
      return pages_.log_uars;
    case cr::blueflame_enable:
      return pages_.blueflame_on ? 1 : 0;
    case cr::first_virtual_eq:
      return pages_.first_virtual_eq;
    case cr::eqs_of_virtual:
      return pages_.eqs_of_virtual;
    case cr::log_bf_reg_size:
      return config_.log_bf_reg_size;
    default:
      return 0;
  }
}

void doorbell::cr_write(std::uint32_t offset, std::uint32_t value) {
  if (offset == cr::uar_page_shift && value >= 12 && value <= 20) pages_.page_shift = value;
  if (offset == cr::log_num_uars && value <= 20) {
    pages_.log_uars = value;
    pages_.closed = false;
  }
  if (offset == cr::first_virtual_eq) pages_.first_virtual_eq = value & 0xffff;
  if (offset == cr::eqs_of_virtual) pages_.eqs_of_virtual = value & 0xffff;
  if (offset == cr::blueflame_enable) pages_.blueflame_on = value != 0;
  wake_next();
}

}  // namespace rnic::doorbell
