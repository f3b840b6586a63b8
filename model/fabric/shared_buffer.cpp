// SPDX-License-Identifier: Apache-2.0
#include "model/fabric/shared_buffer.h"

#include <algorithm>

#include "model/mac/headroom.h"
#include "model/sim/check.h"

namespace rnic::fabric {

std::uint32_t bytes_after_stop(const switch_config::port& port, std::uint32_t frame_bytes) {
  return mac::most_after_stop(port.rate_mbps, frame_bytes,
                              2 * std::uint64_t{port.metres} * port.ps_per_metre + port.stop_ps);
}

shared_buffer::shared_buffer(const buffer_config& config, const std::vector<switch_config::port>& ports,
                             const std::string& name)
    : config_(config),
      lossless_(config.lossless_mask()),
      one_group_(config.flow_control == lossless_by::pause),
      inputs_(ports.size()),
      outputs_(ports.size()),
      between_(ports.size() * ports.size()) {
  const unsigned groups = one_group_ ? 1 : static_cast<unsigned>(__builtin_popcount(lossless_));
  std::uint64_t taken = 0;
  for (const switch_config::port& p : ports) {
    const std::uint32_t computed = std::max(mac::pfc_headroom_bytes(p.rate_mbps, p.metres, config.frame_bytes),
                                            bytes_after_stop(p, config.frame_bytes));
    headroom_.push_back(config.headroom_bytes != 0 ? std::uint32_t{config.headroom_bytes} : computed);
    taken += groups * (std::uint64_t{headroom_.back()} + config.reserved_bytes);
  }
  if (taken >= config.bytes)
    throw sim::config_error(name + ".bytes: " + std::to_string(config.bytes) + ": of it " + std::to_string(taken) +
                            " are reserved and headroom of " + std::to_string(ports.size()) + " ports and " +
                            std::to_string(groups) + " lossless classes, expected more than that");
  shared_ = static_cast<std::uint32_t>(config.bytes - taken);
}

void shared_buffer::take_shared(std::uint32_t bytes) {
  shared_used_ += bytes;
  most_shared_ = std::max(most_shared_, shared_used_);
}

shared_buffer::verdict shared_buffer::admit(unsigned in, unsigned out, unsigned priority, std::uint32_t bytes) {
  output& o = outputs_[out];
  if (is_lossless(priority)) {
    const verdict v = admit_lossless(group(priority), in, bytes);
    if (v != verdict::stored) return v;
  } else {
    if (bytes > shared_ - shared_used_ || o.bytes[priority] + bytes > threshold(config_.lossy_alpha))
      return verdict::queue_full;
    take_shared(bytes);
  }
  o.bytes[priority] += bytes;
  between_[in * outputs_.size() + out][priority] += bytes;
  o.most[priority] = std::max(o.most[priority], o.bytes[priority]);
  return verdict::stored;
}

shared_buffer::verdict shared_buffer::admit_lossless(unsigned of, unsigned in, std::uint32_t bytes) {
  account& a = inputs_[in].of[of];
  const bool xoff = (inputs_[in].xoff >> of & 1) != 0;
  if (!xoff && a.reserved + bytes <= config_.reserved_bytes) {
    a.reserved += bytes;
    return verdict::stored;
  }
  if (!xoff && bytes <= shared_ - shared_used_ && a.shared + bytes <= threshold(config_.lossless_alpha)) {
    a.shared += bytes;
    take_shared(bytes);
    return verdict::stored;
  }
  inputs_[in].xoff |= 1u << of;
  if (a.headroom + bytes > headroom_[in]) return verdict::no_headroom;
  a.headroom += bytes;
  return verdict::stored;
}

/// What is above comes down first: headroom, then what is shared.
void shared_buffer::release(unsigned in, unsigned out, unsigned priority, std::uint32_t bytes) {
  outputs_[out].bytes[priority] -= bytes;
  between_[in * outputs_.size() + out][priority] -= bytes;
  if (!is_lossless(priority)) {
    shared_used_ -= bytes;
    return;
  }
  account& a = inputs_[in].of[group(priority)];
  const std::uint32_t of_headroom = std::min(a.headroom, bytes), of_shared = std::min(a.shared, bytes - of_headroom);
  a.headroom -= of_headroom;
  a.shared -= of_shared;
  shared_used_ -= of_shared;
  a.reserved -= bytes - of_headroom - of_shared;
}

std::uint8_t shared_buffer::above(unsigned in) {
  unsigned& xoff = inputs_[in].xoff;
  if (xoff == 0) return 0;
  const std::uint64_t limit = threshold(config_.lossless_alpha);
  for (unsigned left = xoff; left != 0; left &= left - 1) {
    const account& a = inputs_[in].of[static_cast<unsigned>(__builtin_ctz(left))];
    if (a.headroom == 0 && (a.shared == 0 || a.shared + config_.xon_gap_bytes <= limit)) xoff &= ~(left & -left);
  }
  return static_cast<std::uint8_t>(one_group_ && xoff != 0 ? 0xff : xoff);
}

}  // namespace rnic::fabric
