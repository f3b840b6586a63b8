// SPDX-License-Identifier: Apache-2.0
// A frame twice.
#pragma once

#include <cstring>

#include "model/payload/frame.h"

namespace rnic::payload {

/// Gives `to` the bytes and the FCS of a frame, its priority and its stamp. What else goes along is for whom the copy
/// is.
inline void copy_contents(frame& to, const frame& from) {
  to.begin = from.begin;
  to.length = from.length;
  to.fcs = from.fcs;
  to.priority = from.priority;
  to.stamp = from.stamp;
  std::memcpy(to.data(), from.data(), from.length);
}

/// What of a frame is on a cable: its bytes, its FCS, and what tells ports how to treat it.
inline frame_ptr copy_on_cable(frame_pool& pool, const frame& f) {
  frame_ptr copy = pool.get();
  copy_contents(*copy, f);
  copy->control = f.control;
  return copy;
}

}  // namespace rnic::payload
