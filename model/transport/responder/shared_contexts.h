// SPDX-License-Identifier: Apache-2.0
// Contexts of shared receive queues on chip, and the ports through which the parts of the responder get at them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/icm/context_cache.h"
#include "model/icm/contexts.h"
#include "model/sim/clocked_block.h"
#include "model/sim/memory_ports.h"
#include "model/transport/responder/receive_wqe.h"
#include "model/transport/responder/types.h"

namespace rnic::transport {

/// Who reads and writes contexts of shared receive queues.
enum class srq_user : std::uint8_t {
  limits,  ///< a queue whose limit may have been passed
  check    ///< a packet that takes a descriptor, or finds that there is none
};

/// Part of the responder: what is kept on chip of shared receive queues but for their entries (shared_receive.h), and
/// firmware's halts of them.
///
/// Memory: contexts behind the cache adapter.responder.srqs. Ports: `srq_ports` accesses a cycle, each a read that may
/// be written back, by users with names (srq_user); who is refused has a port of the next cycle first. What a user does
/// with one context in a cycle is one access. Who looks for a context compares tags, and that a reading is under way is
/// seen at the queue's line: neither costs a port. Fills and write-backs have a port of their own.
/// Halts of firmware are done one queue after the other, each until its context is in ICM.
/// Stalls: a context that is being fetched, a port that is taken, a queue that is halted: `pending`, and the owner is
/// ticked. Counters: srq_memory.<user>.waits.
class shared_contexts {
 public:
  using result = receive_result;
  using cache = icm::context_cache<icm::srq_context>;

  shared_contexts(const std::string& name, sim::clocked_block& owner, const responder_config& cfg,
                  const icm::icm_map& map);

  cache& on_chip() { return contexts_; }
  const sim::memory_ports& ports() const { return ports_; }

  /// `ready`: `ctx` is that of a queue that works. `failed`: there is none, or it is in error.
  result open(std::uint32_t srqn, srq_user user, icm::srq_context*& ctx);
  /// Whether the user may access a context that is on chip in this cycle; to be asked when all else that it needs is
  /// there. Refused, the owner is ticked in the next.
  bool may_access(std::uint32_t srqn, srq_user user);
  /// Does, behind may_access().
  void access(std::uint32_t srqn, srq_user user);
  void mark_dirty(std::uint32_t srqn) { contexts_.mark_dirty(srqn); }

  /// XRC: whether there is such a queue of this function in this domain (`failed`: not), and the queue's protection
  /// domain.
  result in_domain(std::uint32_t srqn, std::uint16_t domain, std::uint16_t function, std::uint32_t& pd);
  /// The packet goes on for which that was ready in this tick, or which takes a descriptor.
  void used(std::uint32_t srqn);
  /// Of a queue for which in_domain() was ready in this tick.
  std::uint32_t completion_queue(std::uint32_t srqn) { return contexts_.peek(srqn)->cqn; }

  /// The queue cannot be used any more; software is told once.
  void fail(icm::srq_context& c);
  /// An event of the queue, for software.
  void tell(std::uint8_t event, const icm::srq_context& c);
  bool has_notice() const { return !notices_.empty(); }
  struct notice {
    std::uint8_t event;
    std::uint16_t function;
    std::uint32_t srqn;
  };
  /// The oldest of these; one a cycle.
  notice take_notice();

  /// Firmware stops a queue: its context goes to ICM (`discard`: is forgotten), and who needs it waits for release().
  void halt(std::uint32_t srqn, bool discard);
  void release(std::uint32_t srqn);
  bool halting(std::uint32_t srqn) const;  ///< something of it is still on chip
  /// Goes on with the oldest halt that is not done; `forget(srqn)` is asked to forget what else is on chip, and says
  /// whether that is so.
  template <class Forget>
  void work_halts(Forget forget) {
    for (stopped& s : stopped_) {
      if (s.done) continue;
      owner_.wake_next();  // what holds the queue ends with an answer of memory; then the next one
      if (forget(s.srqn)) write_back(s);
      return;
    }
  }
  void drop_all();

 private:
  struct stopped {
    std::uint32_t srqn;
    bool discard, done;
  };
  bool accessed(std::uint32_t srqn, srq_user user) const {
    return accessed_at_ == owner_.now() && accessed_ == srqn && accessed_by_ == user;
  }
  std::vector<stopped>::iterator find_halt(std::uint32_t srqn);
  void forget_halt(std::uint32_t srqn);
  void write_back(stopped& s);

  sim::clocked_block& owner_;
  const unsigned line_bytes_;
  cache contexts_;
  sim::memory_ports ports_;
  sim::cycle_t accessed_at_ = sim::never;  // the last access: when, to which, by whom
  std::uint32_t accessed_ = 0;
  srq_user accessed_by_ = srq_user::limits;
  std::vector<notice> notices_;
  std::vector<stopped> stopped_;
};

}  // namespace rnic::transport
