// SPDX-License-Identifier: Apache-2.0
// Answers that leave the chip with their queue pair.
#pragma once

#include "model/transport/responder/types.h"

namespace rnic::transport {

/// Part of the responder. An answer that waits behind requests in host memory would keep its queue pair's place on chip
/// until these have been answered, which may take as long as the peer likes. All that was accepted of the queue pair is
/// committed then, so its kind (responder_context::owed) is enough to make it again from the context: an ACK of all of
/// that, or a NAK of what is expected next, behind all requests that wait. Of a queue pair in error that is not so; its
/// answer stays where it is.

/// Whether the answers of a queue pair for which nothing else is to be done may leave with its context.
bool may_owe(const responder_flow& f);
/// They do.
void owe(responder_flow& f);
/// What was owed is pending again. The context has just come; what waits in host memory has been counted. Where that is
/// nothing the context is not what was written: the peer will ask again.
void bring_owed(responder_flow& f);

}  // namespace rnic::transport
