// SPDX-License-Identifier: Apache-2.0
// Receive descriptors of own and of shared queues, behind one interface.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/sim/ring.h"
#include "model/transport/responder/completion_port.h"
#include "model/transport/responder/receive_port.h"
#include "model/transport/responder/receive_wqe.h"
#include "model/transport/responder/shared_contexts.h"
#include "model/transport/responder/shared_receive.h"
#include "model/transport/responder/slot_table.h"
#include "model/transport/responder/types.h"

namespace rnic::transport {

/// Part of the responder: finds the descriptor for a packet, takes it for a message, gives it back.
///
/// Memories: lines of own queues (receive_wqe.h); of shared ones contexts (shared_contexts.h), lines and kept entries
/// (shared_receive.h);
/// descriptors of shared queues that an error leaves to be flushed: a ring of as many as there are packets between
/// check and commit, and one a queue pair beside. Ports: one question a cycle by the check; jobs for receive fetch and
/// its results (receive_port.h), one of either a cycle; one flush a cycle to the completions. Stalls: a descriptor that
/// has to be fetched, a doorbell record that has to be read, a shared queue that is halted: `pending`, and the owner is
/// ticked when it has come. A flush waits for room for its completion.
class receive_descriptors {
 public:
  using result = shared_receive::result;
  using entry = shared_receive::entry_view;

  receive_descriptors(const std::string& name, sim::clocked_block& owner, const responder_config& cfg,
                      const icm::icm_map& map, receive_port& port, completion_port& completions);

  shared_contexts& contexts() { return contexts_; }

  /// The descriptor for a message that begins (`first`) or goes on; its bytes, valid within this tick, only where
  /// `payload` needs them.
  result find(icm::responder_context& ctx, bool first, bool payload, entry& out);
  /// The message takes what find() has given in this tick. `keep`: its next packets will ask for it again.
  void take(icm::responder_context& ctx, const entry& e, bool keep);
  /// A message has come to its end: looks ahead for the next one.
  void look_ahead(const icm::responder_context& ctx);
  /// An unreliable message has lost its end. Its descriptor is used for the next one, or, of a shared queue, completed
  /// in error (C.7.2). False: not now.
  bool give_back(const responder_flow& f);

  /// XRC: the queue that a message names must be of the queue pair's domain (IBA annex A14). ready: `pd` is its
  /// protection domain, with which the message's keys are looked at.
  result in_domain(const icm::responder_context& ctx, std::uint32_t srqn, std::uint32_t& pd);
  /// The same, and the message ends in its completion queue.
  result choose(icm::responder_context& ctx, std::uint32_t srqn);
  /// The packet for which that was ready has gone on.
  void used(std::uint32_t srqn) { contexts_.used(srqn); }

  /// A number that changes when a question was more than a look at what is under way: who asked has read its context,
  /// and begun a reading or taken one over.
  std::uint64_t steps() const;
  /// A number that changes when a question is answered `pending`.
  std::uint64_t refusals() const { return refusals_; }

  /// What a queue pair in error has taken of a shared queue and not completed goes back to software as flushed. `done`:
  /// an entry that was completed in error just now, or none.
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  void flush(const responder_flow& f, slot_table& slots, std::uint32_t done);
  /// One of these in a cycle. Behind what completes.
  void work_flushes();
  bool flushing(std::uint32_t qpn) const;
  void drop_flushes(std::uint32_t qpn);

  /// Limits and events of shared queues, firmware's halts of them. In each tick.
  void work();
  /// A result of receive fetch for one of its places.
  void fetched(const receive_fetch_result& r);

  /// Forgets a queue pair; busy: a read of its queue is still under way.
  void drop(std::uint32_t qpn) { own_.drop(qpn); }
  bool busy(std::uint32_t qpn) const { return own_.busy(qpn); }
  /// Firmware stops a shared queue, and lets it go on.
  void halt_shared(std::uint32_t srqn, bool discard) { contexts_.halt(srqn, discard); }
  void release_shared(std::uint32_t srqn) { contexts_.release(srqn); }
  bool halting_shared(std::uint32_t srqn) const { return contexts_.halting(srqn); }
  /// Reset: own queues and flushes at its beginning, shared ones at its end.
  void drop_own();
  void drop_shared();

 private:
  using flushed = completion_port::receive;
  void add_flush(const flushed& x);
  result counted(result r) {
    if (r == result::pending) ++refusals_;
    return r;
  }

  sim::clocked_block& owner_;
  completion_port& completions_;
  receive_wqe_cache own_;
  shared_contexts contexts_;
  shared_receive shared_;
  std::vector<flushed> flushes_;
  std::uint64_t given_back_ = 0, refusals_ = 0;
};

}  // namespace rnic::transport
