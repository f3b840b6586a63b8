// SPDX-License-Identifier: Apache-2.0
// Which Ethernet queue pairs a received plain frame is for.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <vector>

#include "model/ethernet/steering_cr.h"
#include "model/flow/flow_table.h"
#include "model/gid/gid_table.h"
#include "model/icm/context_cache.h"
#include "model/icm/contexts.h"
#include "model/icm/group_walk.h"
#include "model/icm/icm_map.h"
#include "model/payload/frame.h"
#include "model/payload/frame_stream.h"
#include "model/register_bus/cr_space.h"
#include "model/register_bus/reset_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/memory_ports.h"
#include "model/sim/parameter.h"
#include "model/sim/ring.h"
#include "model/sim/server.h"
#include "model/sim/statistics.h"

namespace rnic::ethernet {

/// Data sheet.
///
/// Takes what the parsers find not to be RoCE, or RoCE that no GID takes; filters VLANs and group addresses; looks the
/// destination address up (adapter control plane 4.18, 3.7; data plane A.8.5) and hands a copy to each queue pair of
/// the entry, with `plain` and packet.bth.dest_qp set. Queue pairs that spread frames are the responder's matter.
///
/// B0: the address is a group identifier of protocol Ethernet in the multicast group table, unicast as well; what is
/// not in the table goes to the port's default entry of its kind. A0: unicast by place in the MAC table, which has a
/// comparator for each entry, for one frame at a time, and an encoder that takes the lowest. Device-managed (DMFS):
/// rules over Ethernet, VLAN, IPv4 and TCP or UDP headers (flow::flow_table); of no rule: dropped. The filters are in
/// front of all three.
///
/// A frame comes beat by beat. Its first byte is handed on pipeline_cycles after its header was there, with DMFS up to
/// the ports of TCP or UDP; the others follow, and the responder gets it whole; the next one is taken when its bytes
/// have gone through. An entry behind the first of its chain (icm::group_walk) costs a cycle, as does a word of the
/// flow table behind the first, a copy behind the first the beats of its length.
///
/// Ports, each of one frame a cycle, cut-through: an input a parser, in turn; one output to the responder; departures,
/// as frames are taken; DMA of the group table. Stages: input, an interval of frame_cycles or the beats of the frame;
/// headers and filters, pipeline_cycles behind the header bytes or the edge at which the frame is taken, whichever is
/// later, by the mode of that edge; search, of the frame in front; output, a copy in its beats. Memories: `frames`
/// frames inside, a group list and 4096 VLAN bits a port, groups on chip (icm::context_cache), words of the flow table;
/// read beside: the MAC tables, one look a frame (memory `mac_table`). Stalls: input, by "pipeline", while `frames` are
/// inside (all that a server counts); search, by an entry that is not on chip; output, by the responder. Departures are
/// pushed without asking for room. group_steering and rqp_multicast count from the cycle behind their change, for
/// a search under way too; flows.enable moves it to the other table, where it begins anew. Reset: what is inside is
/// drop.reset, of some of which copies have left; engines and the turn of the ports stay. Counters: frames, copies,
/// drop.vlan_filtered, .group_filtered, .no_match, .reset.
class steering : public sim::clocked_block, public register_bus::cr_parts, public register_bus::reset_target_if {
 public:
  static constexpr unsigned ports = 2;
  struct config {
    /// Headers, filters, search of a cached entry.
    sim::parameter<unsigned> pipeline_cycles{16, {1, sim::many, "cycles", "design: share of the receive pipeline"}};
    /// Smallest interval between two frames: 53 M frames/s.
    sim::parameter<unsigned> frame_cycles{8, {1, sim::many, "cycles", "design: above line rate of 64-byte frames"}};
    unsigned bytes_per_cycle = 16;  ///< width of the datapath (adapter.datapath_bytes)
    /// Inside at once; more wait in front of the block.
    sim::parameter<unsigned> frames{16, {1, 1024, "frames", "design"}};
    icm::context_cache_config groups{64, 4, 1, 0, 1, "design: group table of Ethernet addresses"};
    flow::flow_table_config flows;

    void list(sim::fields& are) {
      are("pipeline_cycles", pipeline_cycles);
      are("frame_cycles", frame_cycles);
      are("frames", frames);
      are("groups", groups);
      are("flows", flows);
    }
  };
  struct counters {
    std::uint64_t frames = 0, copies = 0;
    std::uint64_t drop_vlan_filtered = 0, drop_group_filtered = 0, drop_no_match = 0, drop_reset = 0;
  };

  steering(std::string name, sim::clock_domain& domain, const config& cfg, const icm::icm_map& map,
           const std::array<const gid::gid_table*, ports>& gids, payload::frame_pool& frames, sim::statistics& stats);

  std::array<sim::fifo_in<payload::frame_ptr>, ports> rx_in;  ///< from the parsers
  sim::fifo_out<payload::frame_ptr> out;                      ///< to the responder
  /// By port: what leaves its ingress buffers. May stay unbound.
  std::array<sim::fifo_out<payload::departure>, ports> departures;
  icm::context_cache<icm::multicast_group>& groups() { return walk_.groups(); }
  const counters& count() const { return count_; }

  // registers(): of each port, steering_cr.h.
  void device_reset() override;

 private:
  enum : unsigned { to_groups = 0, to_unicast = 1 };  // kinds of addresses, as in default entries
  struct port_tables {
    std::bitset<4096> vlans;
    bool vlan_filter = false, group_filter = false;
    std::vector<std::uint64_t> groups;
    std::uint16_t group_high = 0;
    std::uint32_t base = 0, promiscuous = 0, multicast = 0;
    std::array<std::uint32_t, 2> default_count{};
    std::array<std::array<std::uint32_t, icm::multicast_group::max_members>, 2> defaults{};
  };
  class register_file final : public register_bus::cr_target_if {
   public:
    register_file(steering& owner, unsigned port) : owner_(owner), port_(port) {}
    std::uint32_t cr_read(std::uint32_t offset) override { return owner_.read(port_, offset); }
    void cr_write(std::uint32_t offset, std::uint32_t value) override { owner_.write(port_, offset, value); }

   private:
    steering& owner_;
    unsigned port_;
  };
  struct stage {
    payload::frame_ptr frame;
    sim::cycle_t ready = 0;
  };

  void tick() override;
  void deliver();
  void take();
  bool passes_filters(const payload::frame& f);
  bool find_members(const payload::frame& f);
  bool find_flow(const payload::frame& f);
  std::uint32_t header_bytes(const payload::frame& f) const;
  void begin_search(const payload::frame& f);
  void use_default(const payload::frame& f, unsigned kind);
  void add_member(const payload::frame& f, std::uint32_t member);
  payload::frame_ptr copy_of(const payload::frame& from);
  void hand_on(payload::frame_ptr frame, std::uint32_t qpn);
  std::uint32_t read(unsigned port, std::uint32_t offset) const;
  void write(unsigned port, std::uint32_t offset, std::uint32_t value);
  void write_device(std::uint32_t offset, std::uint32_t value);
  void write_flows(std::uint32_t offset, std::uint32_t value);

  config config_;
  std::array<const gid::gid_table*, ports> gids_;
  payload::frame_pool& frames_;
  icm::group_walk walk_;
  flow::flow_table flows_;
  std::array<register_file, ports> registers_;
  std::array<port_tables, ports> tables_;
  bool group_steering_ = false;

  sim::ring<stage> pipeline_;
  sim::server input_{*this, "input"};
  sim::server output_{*this, "output"};
  sim::memory_ports mac_table_{
      *this, "mac_table", sim::port_each{}, {{"search", sim::access_kind::read}}};  // of the frame's port
  unsigned last_port_ = 1;
  // Search for the frame in front, then its members
  enum class search : std::uint8_t { none, walking, done };
  search search_ = search::none;
  std::vector<std::uint32_t> members_;
  std::size_t next_member_ = 0;
  counters count_;
};

}  // namespace rnic::ethernet
