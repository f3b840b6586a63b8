// SPDX-License-Identifier: Apache-2.0
// Decoder of everything that software writes to BAR2: doorbells and BlueFlame buffers.
#include "model/doorbell/doorbell.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "model/abi/queues.h"
#include "model/doorbell/doorbell_cr.h"

namespace rnic::doorbell {

namespace {

constexpr std::uint64_t send_offset = 0x14, arm_offset = 0x20, eq_offset = 0x800;
std::uint32_t descriptor_bytes(const scheduler::blueflame_wqe& d) {
  return abi::get(d.bytes.data(), abi::wqe::control::size) * static_cast<std::uint32_t>(abi::wqe::unit);
}
/// Words of 8 bytes of a descriptor of so many bytes: whole lines of 64.
std::uint32_t words_of(std::uint32_t bytes) {
  return static_cast<std::uint32_t>((std::uint64_t{1} << ((bytes + 63) / 64 * 8)) - 1);
}

constexpr std::uint64_t eq_pages = 128, eqs_per_page = 4;

}  // namespace

doorbell::doorbell(std::string name, sim::clock_domain& domain, const config& cfg, sim::span_recorder& spans,
                   sim::statistics& stats)
    : clocked_block(name, domain),
      config_(sim::checked(cfg, this->name())),
      spans_(spans),
      gathers_(cfg.bf_gathers),
      remainders_(cfg.bf_gathers) {
  if (cfg.bf_gathers == 0) throw sim::config_error("doorbell: bf_gathers must be at least 1");
  if (cfg.log_bf_reg_size != 9) throw sim::config_error("doorbell: log_bf_reg_size must be 9");
  const std::string prefix = this->name() + ".";
  stats.add(prefix + "sends", sends_);
  stats.add(prefix + "blueflames", blueflames_);
  stats.add(prefix + "cq_arms", arms_);
  stats.add(prefix + "eq_updates", eq_updates_);
  stats.add(prefix + "bad_offset", bad_offset_);
  stats.add(prefix + "bad_length", bad_length_);
  stats.add(prefix + "blueflame_partial", bf_partial_);
  stats.add(prefix + "blueflame_disabled", bf_disabled_);
  stats.add(prefix + "blueflame_bad", bf_bad_);
}

void doorbell::tick() {
  if (!in.can_pop()) return;
  if (!decoder_.is_free()) return decoder_.await();
  const pcie::mmio_write& w = in.front();
  const std::uint64_t bf_base = std::uint64_t{1} << (log_uars_ + page_shift_);
  const bool bf = w.offset >= bf_base;
  if (!decode(w)) return;
  decoder_.start(bf ? std::max(1u, (w.length + 63) / 64) * config_.bf_line_cycles : config_.decode_cycles);
  in.drop();  // what follows in the channel ticks us
}

void doorbell::device_reset() {
  for (gather& g : gathers_) {
    g.busy = false;
    g.wqe.reset();
  }
  halves_.fill({});
  for (remainder& r : remainders_) r.words = 0;
  remainders_wanted_ = false;
  page_shift_ = 12;
  log_uars_ = 0;
  blueflame_on_ = false;
  closed_ = true;
}

// False: an output is full, try the same write again.
bool doorbell::decode(const pcie::mmio_write& w) {
  if (closed_) {
    ++bad_offset_;
    return true;
  }
  const std::uint64_t page = w.offset >> page_shift_;
  const std::uint64_t pages = std::uint64_t{1} << log_uars_;
  if (page < pages) return decode_register(w, page, w.offset & ((std::uint64_t{1} << page_shift_) - 1));
  if (page < 2 * pages) return blueflame(w, w.offset - (pages << page_shift_));
  ++bad_offset_;
  return true;
}

bool doorbell::decode_register(const pcie::mmio_write& w, std::uint64_t page, std::uint64_t offset) {
  if (offset == send_offset) return ring_send(w, page);
  if (offset == arm_offset || offset == arm_offset + 4) return arm_cq(w, page, offset);
  if (offset >= eq_offset && offset < eq_offset + 8 * eqs_per_page && offset % 8 == 0 && page < eq_pages)
    return update_eq(w, page, offset);
  ++bad_offset_;
  return true;
}

bool doorbell::ring_send(const pcie::mmio_write& w, std::uint64_t page) {
  if (w.length != 4) {
    ++bad_length_;
    return true;
  }
  if (!has_room(send_out, "scheduler")) return false;
  scheduler::send_doorbell d;
  d.qpn = abi::load32(w.data.data()) >> 8;
  d.uar = static_cast<std::uint32_t>(page);
  d.function = w.function;
  d.span = w.span;
  spans_.leave(w.span, name(), "doorbell", now_ps());
  send_out.push(std::move(d));
  ++sends_;
  return true;
}

bool doorbell::arm_cq(const pcie::mmio_write& w, std::uint64_t page, std::uint64_t offset) {
  arm_half& half = halves_[page % arm_halves];
  if (offset == arm_offset && w.length == 8) {
    if (!has_room(queue_out, "completion")) return false;
    push_arm(w, abi::load32(w.data.data()), abi::load32(w.data.data(), 4));
  } else if (offset == arm_offset && w.length == 4) {
    half = {true, w.function, page, abi::load32(w.data.data())};
  } else if (offset == arm_offset + 4 && w.length == 4 && half.valid && half.page == page &&
             half.function == w.function) {
    if (!has_room(queue_out, "completion")) return false;
    half.valid = false;
    push_arm(w, half.word, abi::load32(w.data.data()));
  } else {
    ++bad_length_;
  }
  return true;
}

void doorbell::push_arm(const pcie::mmio_write& w, std::uint32_t first, std::uint32_t second) {
  completion::queue_doorbell d;
  d.what = completion::queue_doorbell::kind::cq_arm;
  d.number = first & 0xffffff;
  d.index = second & 0xffffff;
  d.command = static_cast<std::uint8_t>((first >> 24) & 7);
  d.sequence = static_cast<std::uint8_t>((first >> 28) & 3);
  d.function = w.function;
  queue_out.push(d);
  ++arms_;
}

bool doorbell::update_eq(const pcie::mmio_write& w, std::uint64_t page, std::uint64_t offset) {
  if (w.length != 4) {
    ++bad_length_;
    return true;
  }
  if (!has_room(queue_out, "completion")) return false;
  const std::uint32_t word = abi::load32(w.data.data());
  completion::queue_doorbell d;
  d.what = completion::queue_doorbell::kind::eq_update;
  d.number = static_cast<std::uint32_t>(page * eqs_per_page + (offset - eq_offset) / 8);
  d.index = word & 0xffffff;
  d.arm = (word >> 31) != 0;
  d.function = w.function;
  queue_out.push(d);
  ++eq_updates_;
  return true;
}

bool doorbell::blueflame(const pcie::mmio_write& w, std::uint64_t offset) {
  if (!blueflame_on_) {
    ++bf_disabled_;
    return true;
  }
  const std::uint32_t at = static_cast<std::uint32_t>(offset % bf_buffer_bytes);
  if (w.length == 0 || w.length > w.data.size() || w.length % 8 != 0 || at % 8 != 0 ||
      at + w.length > bf_buffer_bytes) {
    ++bad_length_;
    return true;
  }
  if (!has_room(send_out, "scheduler")) return false;
  const std::uint64_t buffer = offset / bf_buffer_bytes;
  const std::uint32_t words = static_cast<std::uint32_t>(((std::uint64_t{1} << (w.length / 8)) - 1) << (at / 8));
  if (remainders_wanted_ && drop_remainder(w.function, buffer, words)) return true;
  gather* const g = open_gather(w.function, buffer);
  if (g == nullptr) return again();
  if ((g->arrived & words) != 0) {  // the next descriptor, and the last one is not complete
    close_gather(*g, false);
    return again();
  }
  std::memcpy(g->wqe->bytes.data() + at, w.data.data(), w.length);
  g->arrived |= words;
  if (w.span != 0) g->span = w.span;
  finish_if_complete(*g);
  return true;
}

// The doorbell of a buffer that had to go took this cycle's place in the output: the write goes on in the next one.
bool doorbell::again() {
  wake_next();
  return false;
}

// nullptr: the oldest one had to go first.
doorbell::gather* doorbell::open_gather(std::uint16_t function, std::uint64_t buffer) {
  gather* oldest = nullptr;
  gather* unused = nullptr;
  for (gather& g : gathers_) {
    if (g.busy && g.buffer == buffer && g.function == function) return &g;
    if (!g.busy) unused = &g;
    if (g.busy && (oldest == nullptr || g.order < oldest->order)) oldest = &g;
  }
  if (unused == nullptr) {
    evict(*oldest);
    return nullptr;
  }
  *unused = gather{};
  unused->busy = true;
  unused->function = function;
  unused->buffer = buffer;
  unused->order = ++order_;
  unused->wqe = pool_.get();
  return unused;
}

/// The buffer's place is needed. When its length is known, so is what of it is still to come.
void doorbell::evict(gather& g) {
  if ((g.arrived & 1) != 0) {
    const std::uint32_t bytes = descriptor_bytes(*g.wqe);
    remainders_[next_remainder_] = {g.function, g.buffer, words_of(bytes) & ~g.arrived};
    next_remainder_ = (next_remainder_ + 1) % remainders_.size();
    remainders_wanted_ = true;
  }
  close_gather(g, false);
}

/// Whether the words are the rest of a descriptor that has lost its place. The first bytes of the next one end that.
bool doorbell::drop_remainder(std::uint16_t function, std::uint64_t buffer, std::uint32_t words) {
  bool late = false;
  bool any = false;
  for (remainder& r : remainders_) {
    if (r.function == function && r.buffer == buffer) {
      late = late || (words & ~r.words) == 0;
      r.words &= (words & 1) != 0 ? 0 : ~words;
    }
    any = any || r.words != 0;
  }
  remainders_wanted_ = any;
  return late;
}

// The first 8 bytes name the QP and the length: without them the doorbell is lost, as on hardware.
void doorbell::close_gather(gather& g, bool with_descriptor) {
  if (!with_descriptor) ++bf_partial_;
  if ((g.arrived & 1) != 0) {
    const std::uint8_t* bytes = g.wqe->bytes.data();
    scheduler::send_doorbell d;
    d.qpn = abi::get(bytes, abi::wqe::control::qpn);
    d.uar = static_cast<std::uint32_t>((g.buffer * bf_buffer_bytes) >> page_shift_);
    d.function = g.function;
    d.span = g.span;
    if (with_descriptor) {
      g.wqe->index = static_cast<std::uint16_t>(abi::get(bytes, abi::wqe::control::index));
      d.descriptor = std::move(g.wqe);
      ++blueflames_;
    }
    spans_.leave(g.span, name(), "doorbell", now_ps());
    send_out.push(std::move(d));
  }
  g.wqe.reset();
  g.busy = false;
}

void doorbell::finish_if_complete(gather& g) {
  if ((g.arrived & 1) == 0) return;
  const std::uint32_t bytes = descriptor_bytes(*g.wqe);
  if (bytes == 0 || bytes > bf_buffer_bytes) {
    ++bf_bad_;
    close_gather(g, false);
    return;
  }
  const std::uint32_t wanted = words_of(bytes);
  if ((g.arrived & wanted) != wanted) return;
  g.wqe->length = (bytes + 63) / 64 * 64;
  close_gather(g, true);
}

std::uint32_t doorbell::cr_read(std::uint32_t offset) {
  switch (offset) {
    case cr::uar_page_shift:
      return page_shift_;
    case cr::log_num_uars:
      return log_uars_;
    case cr::blueflame_enable:
      return blueflame_on_ ? 1 : 0;
    case cr::log_bf_reg_size:
      return config_.log_bf_reg_size;
    default:
      return 0;
  }
}

void doorbell::cr_write(std::uint32_t offset, std::uint32_t value) {
  if (offset == cr::uar_page_shift && value >= 12 && value <= 20) page_shift_ = value;
  if (offset == cr::log_num_uars && value <= 20) {
    log_uars_ = value;
    closed_ = false;
  }
  if (offset == cr::blueflame_enable) blueflame_on_ = value != 0;
}

}  // namespace rnic::doorbell
