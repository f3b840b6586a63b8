// SPDX-License-Identifier: Apache-2.0
#include "model/doorbell/blueflame.h"

#include <cstring>
#include <utility>

#include "model/abi/queue_entries.h"

namespace rnic::doorbell {

namespace {
std::uint32_t descriptor_bytes(const scheduler::blueflame_wqe& d) {
  return abi::get(d.bytes.data(), abi::wqe::control::size) * static_cast<std::uint32_t>(abi::wqe::unit);
}
/// Words of 8 bytes of a descriptor of so many bytes: whole lines of 64.
std::uint32_t words_of(std::uint32_t bytes) {
  return static_cast<std::uint32_t>((std::uint64_t{1} << ((bytes + 63) / 64 * 8)) - 1);
}
}  // namespace

bool blueflame_buffers::store(const pcie::mmio_write& w, std::uint64_t offset) {
  const std::uint32_t at = static_cast<std::uint32_t>(offset % bytes);
  const std::uint64_t buffer = offset / bytes;
  const std::uint32_t words = static_cast<std::uint32_t>(((std::uint64_t{1} << (w.length / 8)) - 1) << (at / 8));
  if (remainders_wanted_ && drop_remainder(w.function, buffer, words)) return true;
  gather* const g = open(w.function, buffer);
  if (g == nullptr) return false;
  if ((g->arrived & words) != 0) {  // the next descriptor, and the last one is not complete
    close(*g, false);
    return false;
  }
  std::memcpy(g->wqe->bytes.data() + at, w.data.data(), w.length);
  g->arrived |= words;
  if (w.span != 0) g->span = w.span;
  finish_if_complete(*g);
  return true;
}

// nullptr: the oldest one had to go first.
blueflame_buffers::gather* blueflame_buffers::open(std::uint16_t function, std::uint64_t buffer) {
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
void blueflame_buffers::evict(gather& g) {
  if ((g.arrived & 1) != 0) {
    const std::uint32_t size = descriptor_bytes(*g.wqe);
    remainders_[next_remainder_] = {g.function, g.buffer, words_of(size) & ~g.arrived};
    next_remainder_ = (next_remainder_ + 1) % remainders_.size();
    remainders_wanted_ = true;
  }
  close(g, false);
}

/// Whether the words are the rest of a descriptor that has lost its place. The first bytes of the next one end that.
bool blueflame_buffers::drop_remainder(std::uint16_t function, std::uint64_t buffer, std::uint32_t words) {
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
void blueflame_buffers::close(gather& g, bool with_descriptor) {
  if (!with_descriptor) ++counters_.bf_partial;
  if ((g.arrived & 1) != 0) {
    const std::uint8_t* wqe = g.wqe->bytes.data();
    scheduler::send_doorbell d;
    d.qpn = abi::get(wqe, abi::wqe::control::qpn);
    d.uar = scheduler::uar_of(g.function, static_cast<std::uint32_t>((g.buffer * bytes) >> pages_.page_shift));
    d.span = g.span;
    if (with_descriptor) {
      g.wqe->index = static_cast<std::uint16_t>(abi::get(wqe, abi::wqe::control::index));
      d.descriptor = std::move(g.wqe);
      ++counters_.blueflames;
    }
    spans_.leave(g.span, owner_.name(), "doorbell", owner_.now_ps());
    out_.push(std::move(d));
  }
  g.wqe.reset();
  g.busy = false;
}

void blueflame_buffers::finish_if_complete(gather& g) {
  if ((g.arrived & 1) == 0) return;
  const std::uint32_t size = descriptor_bytes(*g.wqe);
  if (size == 0 || size > bytes) {
    ++counters_.bf_bad;
    close(g, false);
    return;
  }
  const std::uint32_t wanted = words_of(size);
  if ((g.arrived & wanted) != wanted) return;
  g.wqe->length = (size + 63) / 64 * 64;
  close(g, true);
}

void blueflame_buffers::reset() {
  for (gather& g : gathers_) {
    g.busy = false;
    g.wqe.reset();
  }
  for (remainder& r : remainders_) r.words = 0;
  remainders_wanted_ = false;
}

}  // namespace rnic::doorbell
