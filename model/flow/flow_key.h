// SPDX-License-Identifier: Apache-2.0
// What a flow table compares of a packet.
#pragma once

#include <array>
#include <cstdint>

#include "model/flow/flow_cr.h"
#include "model/payload/frame.h"

namespace rnic::flow {

using flow_key = std::array<std::uint32_t, cr::key_words>;

/// Of a plain frame: flow_cr.h, frame_key. Wires only: what the headers say, as far as they are whole.
flow_key key_of_frame(const payload::frame& f);
/// So many bytes of the frame must be there for its key: to the end of the last header that is in it.
std::uint32_t key_bytes(const payload::frame& f);
/// Of a RoCE datagram whose headers are decoded.
flow_key key_of_datagram(const payload::frame& f);

}  // namespace rnic::flow
