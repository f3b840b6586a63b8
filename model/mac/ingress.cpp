// SPDX-License-Identifier: Apache-2.0
// Ingress buffers: room, XOFF and XON.
#include "model/mac/ingress.h"

#include <algorithm>
#include <utility>

namespace rnic::mac {

namespace {
constexpr std::uint32_t smallest_frame = 64;
}  // namespace

ingress::ingress(std::uint32_t bytes, std::uint32_t xoff, std::uint32_t xon, unsigned width)
    : bytes_(bytes),
      xoff_(xoff),
      xon_(xon),
      width_(width),
      buffers_(8, buffer{sim::ring<payload::frame_ptr>(bytes / smallest_frame + 1)}) {}

bool ingress::admit(payload::frame_ptr frame, std::uint32_t size, sim::cycle_t now) {
  settle(now);
  const unsigned priority = frame->priority & 7u;
  buffer& b = buffers_[priority];
  if (b.bytes + size > bytes_ || b.frames.full()) return false;
  b.frames.push(std::move(frame));
  waiting_ |= static_cast<std::uint8_t>(1u << priority);
  occupy(priority, size);
  return true;
}

void ingress::occupy(unsigned priority, std::uint32_t bytes) {
  buffer& b = buffers_[priority];
  b.bytes += bytes;
  b.max_bytes = std::max(b.max_bytes, b.bytes);
  if (b.bytes > xoff_) above_ |= static_cast<std::uint8_t>(1u << priority);
}

std::uint32_t ingress::keep(unsigned priority, std::uint32_t size, sim::cycle_t now) {
  settle(now);
  if (buffers_[priority & 7u].bytes + size > bytes_) return 0;
  occupy(priority & 7u, size);
  return size;
}

void ingress::unkeep(unsigned priority, std::uint32_t kept, bool dropped) {
  if (dropped)
    release(priority, kept);
  else
    buffers_[priority & 7u].bytes -= kept;
}

payload::frame_ptr ingress::take() {
  const auto priority = static_cast<unsigned>(turn_.pick(waiting_));
  buffer& b = buffers_[priority];
  payload::frame_ptr frame = b.frames.pop();
  if (b.frames.empty()) waiting_ &= static_cast<std::uint8_t>(~(1u << priority));
  return frame;
}

void ingress::depart(unsigned taker, const payload::departure& d) {
  leaving& l = leaving_[taker];
  release(l.what.priority, l.what.bytes - l.gone);
  l = {d, 0};
  release(d.priority, fcs_bytes);
}

void ingress::settle(sim::cycle_t now) {
  settled_at_ = now;
  for (leaving& l : leaving_) {
    if (l.gone == l.what.bytes || now <= l.what.from) continue;
    const sim::cycle_t cycles = now - l.what.from;
    const std::uint32_t gone = cycles >= l.what.bytes
                                   ? l.what.bytes
                                   : static_cast<std::uint32_t>(std::min<std::uint64_t>(l.what.bytes, cycles * width_));
    release(l.what.priority, gone - l.gone);
    l.gone = gone;
  }
}

void ingress::release(unsigned priority, std::uint32_t bytes) {
  buffer& b = buffers_[priority & 7u];
  b.bytes -= bytes;
  if (b.bytes <= xon_) above_ &= static_cast<std::uint8_t>(~(1u << (priority & 7u)));
}

/// Streams of one priority that run at once are as quick as all of them while none has ended: an edge too early at
/// most.
sim::cycle_t ingress::falls_at() const {
  sim::cycle_t first = sim::never;
  for (unsigned left = above_; left != 0; left &= left - 1) {
    const auto priority = static_cast<unsigned>(__builtin_ctz(left));
    const std::uint32_t over = buffers_[priority].bytes - xon_;
    std::uint32_t leaves = 0, streams = 0;
    for (const leaving& l : leaving_) {
      if (l.gone == l.what.bytes || (l.what.priority & 7u) != priority) continue;
      leaves += l.what.bytes - l.gone;
      ++streams;
    }
    if (leaves >= over) first = std::min(first, settled_at_ + payload::beats_of(over, streams * width_));
  }
  return first;
}

}  // namespace rnic::mac
