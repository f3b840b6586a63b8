// SPDX-License-Identifier: Apache-2.0
// Room in the packet buffer of a switch: who may still come in, and who is to be stopped.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/fabric/switch_config.h"

namespace rnic::fabric {

/// Bytes that can still come from a port's peer after it was told to stop (mac::most_after_stop).
std::uint32_t bytes_after_stop(const switch_config::port& port, std::uint32_t frame_bytes);

/// Data sheet. Part of a switch: it has no time of its own.
///
/// The buffer has three parts: bytes reserved for each input's lossless priority, headroom of each, and the rest, which
/// all share. A lossless frame takes what is reserved for its input and priority; then the shared part, up to
/// alpha * (what is free of it); then headroom, and the priority is above XOFF. From there on it takes headroom alone,
/// whatever else is free, until it falls to XON: when the headroom is empty and the shared bytes are xon_gap_bytes
/// below that threshold. Without headroom left a lossless frame is dropped: the headroom was too small for what comes
/// after XOFF. What leaves gives headroom back first, then the shared part, then what is reserved.
///
/// Any other frame takes the shared part, as long as the queue of its output, with it, is not above its alpha * (what
/// is free).
///
/// With PAUSE instead of PFC, all priorities of an input are one.
class shared_buffer {
 public:
  enum class verdict : std::uint8_t { stored, queue_full, no_headroom };

  /// Throws sim::config_error when what is reserved does not fit; `name` is that of the parameters.
  shared_buffer(const buffer_config& config, const std::vector<switch_config::port>& ports, const std::string& name);

  /// Takes a frame that goes from `in` to `out`, or refuses it.
  verdict admit(unsigned in, unsigned out, unsigned priority, std::uint32_t bytes);
  /// It has left.
  void release(unsigned in, unsigned out, unsigned priority, std::uint32_t bytes);
  /// Priorities of an input that are above XOFF, as of now: others' bytes move the threshold.
  std::uint8_t above(unsigned in);

  std::uint32_t shared_used() const { return shared_used_; }
  std::uint32_t most_shared() const { return most_shared_; }
  std::uint32_t headroom(unsigned in) const { return headroom_[in]; }
  std::uint32_t headroom_used(unsigned in, unsigned priority) const { return inputs_[in].of[group(priority)].headroom; }
  /// Bytes of an input that wait for an output.
  std::uint32_t between(unsigned in, unsigned out, unsigned priority) const {
    return between_[in * outputs_.size() + out][priority];
  }
  /// Bytes that wait for an output, and the most that ever did.
  std::uint32_t queued(unsigned out, unsigned priority) const { return outputs_[out].bytes[priority]; }
  std::uint32_t most_queued(unsigned out, unsigned priority) const { return outputs_[out].most[priority]; }

 private:
  struct account {
    std::uint32_t reserved = 0, shared = 0, headroom = 0;
  };
  struct input {
    std::array<account, priorities> of;
    unsigned xoff = 0;  // groups that are above it
  };
  struct output {
    std::array<std::uint32_t, priorities> bytes{}, most{};
  };
  bool is_lossless(unsigned priority) const { return (lossless_ >> priority & 1) != 0; }
  unsigned group(unsigned priority) const { return one_group_ ? 0 : priority; }
  std::uint64_t threshold(std::uint16_t alpha) const { return std::uint64_t{shared_ - shared_used_} * alpha / 64; }
  verdict admit_lossless(unsigned of, unsigned in, std::uint32_t bytes);
  void take_shared(std::uint32_t bytes);

  const buffer_config& config_;
  std::uint8_t lossless_;
  bool one_group_;
  std::uint32_t shared_ = 0, shared_used_ = 0, most_shared_ = 0;
  std::vector<std::uint32_t> headroom_;  // by input
  std::vector<input> inputs_;
  std::vector<output> outputs_;
  std::vector<std::array<std::uint32_t, priorities>> between_;  // by input and output
};

}  // namespace rnic::fabric
