// SPDX-License-Identifier: Apache-2.0
// The receiver of congestion notification messages (IEEE 802.1Q clause 31.2, 33.4), for both halves of the transport.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "model/gid/gid_table.h"
#include "model/payload/frame.h"
#include "model/register_bus/cr_space.h"
#include "model/register_bus/reset_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/memory_ports.h"
#include "model/sim/server.h"
#include "model/sim/statistics.h"
#include "model/transport/congestion/notice.h"
#include "model/transport/congestion/qcn_group.h"
#include "model/wire/cnm.h"

namespace rnic::transport {

/// Data sheet.
///
/// Ports: CNMs that the ports have taken out of what they receive, of the two in turn; notices to the requester, about
/// requests, and to the READ generator, about READ responses.
///
/// Stages: a CNM that is taken in cycle n (engine `cnms`) is judged in n, and its notice is pushed in n +
/// `qcn.cnm_cycles`, in which the next one is taken. It makes one if it is whole, of version 0, for a unicast address
/// of the port's MAC table, with feedback, and if what it gives back of the sampled frame is a packet of RoCE v1, or of
/// v2 by the UDP port that is set, of an operation that has a rate. All others are counted by the first of these that
/// is not so, and do nothing.
///
/// Of the sampled frame these are looked at: the EtherType, in front; 0x8915, and the BTH is at byte 42; 0x0800 with
/// protocol 17, and the UDP header is behind 4 * IHL bytes; 0x86dd with next header 17, and it is at 42; the UDP port
/// of the destination; and that all 12 bytes of the BTH, 8 behind the UDP header, are there. Its operation, bits 4:0 of
/// the opcode, is the same for all services: 0x0d to 0x10 READ responses; 0x11 and 0x12, and all of opcodes 0x80 to
/// 0x9f, nothing that has a rate; all others requests.
///
/// Memories: CNMs about other frames (drop_flow), by port and priority of the sampled frame (word 8 * port + priority).
/// Read beside: the MAC tables (a port of its own each), the register of the UDP port.
///
/// Stalls: a notice whose channel is full waits (engine blocked by "notices"), and with it all CNMs behind, of which
/// one is taken in the cycle in which it is pushed; the ports drop what then finds no room.
///
/// Counters: received, and drop_version, drop_malformed, drop_address, drop_empty (no feedback), drop_flow (not RoCE,
/// or an answer that has no rate), when taken; notices, when pushed. Reset: the words by port and priority are 0, and a
/// notice that waits is gone; the engine's time, the turn and the CNMs in the channels stay.
class cnm_receiver : public sim::clocked_block,
                     public register_bus::cr_target_if,
                     public register_bus::reset_target_if {
 public:
  using gid_tables = std::array<const gid::gid_table*, qcn_ports>;
  cnm_receiver(std::string name, sim::clock_domain& domain, const qcn_config& config, const gid_tables& gids,
               const std::uint16_t& roce_v2_port, sim::statistics& stats);

  std::array<sim::fifo_in<payload::frame_ptr>, qcn_ports> cnms{sim::fifo_in<payload::frame_ptr>(*this),
                                                               sim::fifo_in<payload::frame_ptr>(*this)};
  enum half : unsigned { requests, responses, halves };
  std::array<sim::fifo_out<cnm_notice>, halves> notices{sim::fifo_out<cnm_notice>(*this),
                                                        sim::fifo_out<cnm_notice>(*this)};

  std::uint32_t cr_read(std::uint32_t offset) override;
  void cr_write(std::uint32_t, std::uint32_t) override {}
  void device_reset() override;

 private:
  void tick() override;
  bool take();
  void examine(const payload::frame& f, unsigned port);
  bool is_ours(const wire::cnm& m, unsigned port);
  bool is_acceptable(const wire::cnm& m, wire::cnm_kind kind, unsigned port);

  const qcn_config config_;
  const gid_tables gids_;
  const std::uint16_t& roce_v2_port_;
  sim::server engine_{*this, "cnms"};
  sim::memory_ports mac_table_{
      *this, "mac_table", sim::port_each{}, {{"cnms", sim::access_kind::read}}};  // of the CNM's port
  unsigned next_port_ = 0;
  bool waits_ = false;  // notice_ is there, for the half `to_`
  half to_ = requests;
  cnm_notice notice_;
  std::array<std::uint32_t, qcn_groups> ignored_{};
  struct {
    std::uint64_t received = 0, notices = 0, version = 0, malformed = 0, address = 0, empty = 0, flow = 0;
  } count_;
};

}  // namespace rnic::transport
