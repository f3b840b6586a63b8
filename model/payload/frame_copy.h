// SPDX-License-Identifier: Apache-2.0
// A frame twice.
#pragma once

#include <cstring>

#include "model/payload/frame.h"

namespace rnic::payload {

/// What of a frame is on a cable: its bytes, its FCS, and what tells ports how to treat it.
inline frame_ptr copy_on_cable(frame_pool& pool, const frame& f) {
  frame_ptr copy = pool.get();
  copy->begin = f.begin;
  copy->length = f.length;
  copy->fcs = f.fcs;
  copy->priority = f.priority;
  copy->control = f.control;
  copy->stamp = f.stamp;
  std::memcpy(copy->data(), f.data(), f.length);
  return copy;
}

}  // namespace rnic::payload
