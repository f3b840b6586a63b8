// SPDX-License-Identifier: Apache-2.0
// Ingress buffers: room, XOFF and XON.
#include "model/mac/ingress.h"

#include <algorithm>
#include <utility>

namespace rnic::mac {

namespace {
constexpr std::uint32_t smallest_frame = 64;
}

ingress::ingress(std::uint32_t bytes, std::uint32_t xoff, std::uint32_t xon) : bytes_(bytes), xoff_(xoff), xon_(xon) {
  for (buffer& b : buffers_) b.slots.resize(bytes / smallest_frame + 1);
}

bool ingress::admit(payload::frame_ptr frame, std::uint32_t size) {
  const unsigned priority = frame->priority & 7u;
  buffer& b = buffers_[priority];
  if (b.bytes + size > bytes_ || b.count == b.slots.size()) return false;
  b.slots[(b.head + b.count) % b.slots.size()] = {std::move(frame), size};
  ++b.count;
  b.bytes += size;
  b.max_bytes = std::max(b.max_bytes, b.bytes);
  const auto bit = static_cast<std::uint8_t>(1u << priority);
  waiting_ |= bit;
  if (b.bytes > xoff_) above_ |= bit;
  return true;
}

payload::frame_ptr ingress::take() {
  const auto priority = static_cast<unsigned>(turn_.pick(waiting_));
  buffer& b = buffers_[priority];
  slot& s = b.slots[b.head];
  payload::frame_ptr frame = std::move(s.frame);
  b.bytes -= s.size;
  b.head = (b.head + 1) % b.slots.size();
  const auto others = static_cast<std::uint8_t>(~(1u << priority));
  if (--b.count == 0) waiting_ &= others;
  if (b.bytes <= xon_) above_ &= others;
  return frame;
}

}  // namespace rnic::mac
