// SPDX-License-Identifier: Apache-2.0
// Frames as parser and steering hand them to the responder.
#pragma once

#include <cstdint>

#include "model/payload/frame.h"
#include "testbenches/block/responder/random/reference.h"

namespace rnic::transport::random_test {

/// Null: the packet cannot be decoded.
payload::frame_ptr frame_of(payload::frame_pool& frames, const queue_pair& q, const request& r);
/// A plain frame that steering gives to queue pair `qpn`.
payload::frame_ptr frame_of(payload::frame_pool& frames, std::uint32_t qpn, const octets& bytes);

}  // namespace rnic::transport::random_test
