// SPDX-License-Identifier: Apache-2.0
// READs and atomics that were accepted and have no place on chip: they wait in their QP's ring in host memory.
#pragma once

#include <cstdint>
#include <vector>

#include "model/transport/responder/history_memory.h"
#include "model/transport/responder/read_commands.h"
#include "model/transport/responder/types.h"

namespace rnic::transport {

/// Part of the responder. A READ or an atomic that finds no place in the generator is written into its QP's entries of
/// the RDMA resource table (icm::rdma_resources), which are as many as the QP may have requests under way; so accepting
/// one never waits for another QP's responses, and what is behind it at the receive side, a response that the peer
/// waits for, goes on. Its QP gives up its place on chip and stands in a list, in the order in which the QPs began to
/// wait; each in turn has one request fetched when the generator has a place.
///
/// Those that wait are the youngest requests of their QP. What they may touch is looked up once more when they are
/// fetched: a key may have lost its meaning.
///
/// Memories: the rings, through a port of history_memory each time; on chip a QP's link in the list, of 24 bits, and a
/// bit for whether its oldest one that waits is an atomic, which will need its ring's place on chip.
class read_backlog {
 public:
  enum class result : std::uint8_t {
    done,
    pending,   ///< the ring is being fetched; the owner is ticked when it is there
    no_port,   ///< not in this cycle; the owner is ticked in the next
    no_memory  ///< software gave the QP no entries, or not enough
  };

  explicit read_backlog(history_memory& rings) : rings_(rings) {}

  /// What waits of a flow whose context has just been found. Until done, nothing of the flow may be checked.
  result open(responder_flow& f);
  /// Puts a new request behind those that wait.
  result keep(responder_flow& f, const read_command& r);
  /// Takes out the oldest that waits: what the check knew of it, without its flow and translation. There must be one.
  /// The ring of an atomic is pinned.
  result fetch(responder_flow& f, read_command& out);
  /// What waits of the flow is given up, and answers behind it go behind nothing of it. Its entries are found to be
  /// free when the next request is put aside.
  static void forget(responder_flow& f);

  /// QPs with requests that wait, longest first.
  bool empty() const { return count_ == 0; }
  std::uint32_t front() const { return head_; }
  void pop();
  /// The QP stands at the end, unless it is in the list.
  void list(std::uint32_t qpn);
  /// Forgets the list.
  void clear();
  /// The oldest request of the QP that waits is an atomic. Some must wait.
  bool first_is_atomic(std::uint32_t qpn) const { return atomic_[qpn]; }

  /// Requests that were put aside so far.
  const std::uint64_t& kept() const { return kept_; }

 private:
  static unsigned oldest(const icm::rdma_resources& ring);
  void set_oldest(responder_flow& f, const icm::rdma_resources::entry& e);

  history_memory& rings_;
  std::vector<std::uint32_t> link_;  // by QPN: the next in the list, itself when last, or not_listed
  std::vector<bool> atomic_;         // by QPN: first_is_atomic()
  std::uint32_t head_ = 0, tail_ = 0;
  std::size_t count_ = 0;
  std::uint64_t kept_ = 0;
};

}  // namespace rnic::transport
