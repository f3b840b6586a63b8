// SPDX-License-Identifier: Apache-2.0
// The block that gives a datagram for a multicast group to each queue pair that is attached.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/flow/flow_table.h"
#include "model/icm/context_cache.h"
#include "model/icm/group_walk.h"
#include "model/icm/icm_map.h"
#include "model/payload/frame.h"
#include "model/register_bus/cr_space.h"
#include "model/register_bus/reset_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/parameter.h"
#include "model/sim/ring.h"
#include "model/sim/server.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"

namespace rnic::transport {

struct multicast_config {
  unsigned bytes_per_cycle = 16;  ///< the datapath's: adapter.datapath_bytes
  icm::context_cache_config groups{64, 4, 1, 0, 1, "design: multicast group table"};
  flow::flow_table_config flows;
  /// Datagrams that wait for the copies of the one before them.
  sim::parameter<unsigned> waiting{16, {1, 4096, "datagrams", "design"}};

  void list(sim::fields& are) {
    are("groups", groups);
    are("flows", flows);
    are("waiting", waiting);
  }
};

/// Data sheet of the multicast fan-out (adapter data plane A.9.4, B.6).
///
/// Ports, each of one item a cycle: datagrams in, whose ICRC was checked (wire::is_for_group); copies out, to the
/// responder, whose receive check takes them in turn with requests and plain frames, so that a group with many members
/// keeps nobody out; DMA of the cache of groups (reads only); registers. Store and forward: a datagram has come whole,
/// and a copy is handed on when its last beat is there.
///
/// In a cycle: the cache of groups; take; then copy, search or accept. So a datagram that is taken in the cycle of an
/// accept finds that one's place in the queue still in use.
///
/// Stages, for one datagram at a time: take, into the queue of those that wait, and accept, with the hash of its GID,
/// when the one before is done (cycle 0 for both, when nobody is in front); search, an entry of the chain a cycle, from
/// cycle 1, or, with device-managed flow steering, a word of the flow table a cycle (flow::flow_table); copy, from the
/// cycle behind the search: a copy takes as many cycles as its frame has beats of the datapath, and the next one begins
/// in the cycle in which it ends; it is seen by the responder in that cycle. The next datagram is accepted in the cycle
/// in which the last copy ends, and behind a search without result a cycle later. Copies leave in the order of the
/// datagrams and, for one datagram, in that of the group's entry; each has the number of its queue pair as
/// packet.bth.dest_qp. The last one is the datagram's own frame; the others are new ones with its bytes, headers, port,
/// loopback, priority, GID index, function and stamp. A copy has its place in the channel from the cycle in which it
/// begins. Datagrams to a group and to a queue pair may pass each other.
///
/// Members are those of the cycle in which the entry was found. What the own port has sent does not go to members that
/// do not want it: they are masked out in that cycle, and the copier goes from one that is not to the next (a priority
/// encoder over the members of an entry).
///
/// Memories: the queue (`waiting` frames); the datagram (one frame, read once a copy); the group table
/// (icm::group_walk); the flow table.
///
/// Stalls: search, for an entry that is not on chip; copy, while the channel of copies is full. Take never does: a
/// datagram that finds the queue full is dropped (counter drop.full), so that what is behind it in the ICRC check, the
/// responses among it, does not wait for the members of a group.
///
/// Counters: datagrams, all that are taken; copies, when they begin; drop.full; drop.no_group, of a search without
/// result or with no member that wants it; drop.reset.
///
/// Registers: transport_cr.h, offsets from cr_base::transport + multicast_offset. A search that is under way when the
/// flow table is switched on or off begins anew, in the other table.
class multicast final : public sim::clocked_block,
                        public register_bus::cr_target_if,
                        public register_bus::reset_target_if {
 public:
  /// Throws sim::config_error for values that cannot work.
  multicast(const std::string& name, sim::clock_domain& domain, const multicast_config& config, const icm::icm_map& map,
            payload::frame_pool& frames, sim::span_recorder& spans, sim::statistics& stats);

  sim::fifo_in<payload::frame_ptr> in{*this};
  sim::fifo_out<payload::frame_ptr> out{*this};
  /// Its DMA port is to be bound.
  icm::context_cache<icm::multicast_group>& groups() { return walk_.groups(); }

  std::uint32_t cr_read(std::uint32_t offset) override;
  void cr_write(std::uint32_t offset, std::uint32_t value) override;
  /// All groups are empty, and the datagram that is inside is dropped (drop.reset), but those in the queue are searched
  /// for in empty tables. A copy that has begun goes on to its end.
  void device_reset() override;

 private:
  enum class state : std::uint8_t { idle, searching, copying };

  void tick() override;
  void take();
  void accept();
  void search();
  void begin_search();
  void write_flows(std::uint32_t offset, std::uint32_t value);
  icm::group_walk::result ask_table();
  bool is_own() const { return frame_->loopback != payload::frame::loopback_none; }
  void mask_members();
  void copy();
  payload::frame_ptr next_copy();
  void end();

  const unsigned bytes_per_cycle_;
  payload::frame_pool& frames_;
  sim::span_recorder& spans_;
  icm::group_walk walk_;
  flow::flow_table flows_;
  sim::server copier_{*this, "copier"};

  state state_ = state::idle;
  sim::ring<payload::frame_ptr> waiting_;
  payload::frame_ptr frame_;
  std::vector<std::uint32_t> members_;  // that get a copy
  std::size_t next_ = 0;                // of these
  bool missed_ = false, blocked_ = false, flow_asked_ = false;
  std::uint64_t datagrams_ = 0, copies_ = 0, drop_no_group_ = 0, drop_reset_ = 0, drop_full_ = 0;
};

}  // namespace rnic::transport
