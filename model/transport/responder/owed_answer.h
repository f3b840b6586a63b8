// SPDX-License-Identifier: Apache-2.0
// Answers that leave the chip with their queue pair.
#pragma once

#include "model/transport/responder/types.h"

namespace rnic::transport {

/// Part of the responder. An answer that waits behind requests in host memory, or for a port that is paused, would keep
/// its queue pair's place on chip for as long as the peer likes. All that was accepted of the queue pair is committed
/// then, so its kind (responder_context::owed) is enough to make it again from the context: an ACK of all of that, or a
/// NAK of what is expected next, behind all requests that wait. Of a queue pair in error that is not so; its answer
/// stays where it is.

/// Nothing of it is left on chip but an answer that stands in its line and could be made again from the context.
bool has_nothing_but_answer(const responder_flow& f);
/// Nothing of it is left on chip but answers, if any, that leave with the context: behind requests in host memory, or
/// parked (parked_answers).
bool may_leave(const responder_flow& f);
/// They do.
void owe(responder_flow& f);
/// What was owed is pending again, if anything. The context has just come; what waits in host memory has been counted.
bool bring_owed(responder_flow& f);

}  // namespace rnic::transport
