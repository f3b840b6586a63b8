// SPDX-License-Identifier: Apache-2.0
// The look-up of a queue's context, for who may have to ask again, and software's index in it.
#pragma once

#include <cstdint>

#include "model/completion/settings.h"
#include "model/icm/context_cache.h"
#include "model/icm/contexts.h"

namespace rnic::completion {

inline std::uint32_t number_of(const icm::cq_context& cq) { return cq.cqn; }
inline std::uint32_t number_of(const icm::eq_context& eq) { return eq.eqn; }

/// The queue's context, or nullptr: then it is either to be waited for (`wait`) or not there. `seen`: it was found
/// before for the same request, which counts as one use. A number beyond the table, which shares an entry with another,
/// is nobody's: it is not looked up.
template <class Context>
Context* find_context(icm::context_cache<Context>& cache, std::uint32_t number, bool& seen, bool& wait) {
  wait = false;
  if (cache.is_beyond_table(number)) return nullptr;
  Context* queue = seen ? cache.peek(number) : nullptr;
  if (queue == nullptr) {
    using result = typename icm::context_cache<Context>::result;
    const result r = cache.lookup(number, queue);
    wait = r == result::pending;
    if (r != result::hit) return nullptr;
    seen = true;
  }
  return queue->valid == 0 || number_of(*queue) != number ? nullptr : queue;
}

/// Takes software's consumer index, unless it is beyond what was produced: it is not believed blindly.
template <class Context>
void take_consumer(Context& queue, std::uint32_t index) {
  index &= index_mask;
  if (((index - queue.consumer) & index_mask) <= ((queue.producer - queue.consumer) & index_mask))
    queue.consumer = index;
}

}  // namespace rnic::completion
