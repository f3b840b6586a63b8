// SPDX-License-Identifier: Apache-2.0
// Frames for tests of captures.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <cstdint>

#include "model/payload/frame.h"

namespace rnic::tlm::test {

/// A frame of `length` bytes `fill`, with a right FCS.
inline payload::frame_ptr frame_of(payload::frame_pool& pool, std::uint32_t length, std::uint8_t fill) {
  payload::frame_ptr f = pool.get();
  f->begin = payload::frame::payload_start;
  f->length = length;
  std::fill_n(f->data(), length, fill);
  f->fcs = static_cast<std::uint32_t>(::crc32(0, f->data(), length));
  return f;
}

}  // namespace rnic::tlm::test
