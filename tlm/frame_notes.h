// SPDX-License-Identifier: Apache-2.0
// What is known of a frame beside its bytes.
#pragma once

#include <string>

#include "model/payload/frame.h"
#include "model/sim/types.h"

namespace rnic::tlm {

class frame_notes_if {
 public:
  virtual ~frame_notes_if() = default;
  /// Of a frame whose first bit is at its sender at `first_bit`, and at the place of the capture `cable` later.
  /// Replaces `text`; empty: nothing is known. Called when the frame is sent, and once more when it goes on to the
  /// receiver.
  virtual void describe(const payload::frame& f, sim::time_ps first_bit, sim::time_ps cable, std::string& text) = 0;
};

}  // namespace rnic::tlm
