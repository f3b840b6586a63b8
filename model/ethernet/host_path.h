// SPDX-License-Identifier: Apache-2.0
// Plain Ethernet frames between the ports and software of the host.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/gid/gid_table.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/statistics.h"
#include "model/sim/timed_inbox.h"
#include "model/transport/transport_if.h"
#include "tlm/frame.h"

namespace rnic::ethernet {

/// Software that takes frames. Called inside a tick: it may keep the frame and notify through sim::timebase.
class frame_client_if {
 public:
  virtual ~frame_client_if() = default;
  virtual void frame_received(unsigned port, tlm::frame_ptr frame) = 0;
};

/// Takes what the parsers find not to be RoCE and is for an address of the port (MAC table, broadcast, multicast), and
/// sends frames of software through the same egress queues as everybody, as transport::egress_source::ethernet.
///
/// Approximation: stands in the place of raw Ethernet queue pairs: no descriptors and no DMA, a frame reaches software
/// and leaves it after a fixed time and without load on PCI Express.
class host_path : public sim::clocked_block {
 public:
  static constexpr unsigned ports = 2;
  struct config {
    std::uint32_t to_host_ns = 1'500;   ///< frame to software (design: DMA write and completion on an idle link)
    std::uint32_t from_host_ns = 800;   ///< software to egress (design: doorbell, descriptor and payload fetch)
    std::uint32_t receive_frames = 64;  ///< under way to software; more are dropped (design: a small receive ring)
    std::uint32_t send_frames = 64;     ///< given by software and not sent yet (design: a small send ring)
    std::uint32_t egress_frames = 8;    ///< credits per port and priority to begin with: mac config egress_frames
  };

  /// `gids`: the address tables of the ports. `pool` gives the frames that software sends.
  host_path(std::string name, sim::clock_domain& domain, const config& cfg,
            const std::array<const gid::gid_table*, ports>& gids, tlm::frame_pool& pool, sim::statistics& stats);

  std::array<sim::fifo_in<tlm::frame_ptr>, ports> rx_in;                ///< from the parsers
  std::array<sim::fifo_in<transport::egress_credit>, ports> credit_in;  ///< from the ports
  sim::fifo_out<tlm::frame_ptr> tx_out;                                 ///< through icrc insert to the ports

  /// Nobody there: frames are counted and dropped.
  void set_client(frame_client_if* client) { client_ = client; }
  /// Sends `length` bytes from the DMAC to before the FCS. Not to be called inside a tick. False, and counted, when the
  /// ring is full or the length is not 14 to the capacity of a frame.
  bool send(unsigned port, unsigned priority, const std::uint8_t* frame, std::size_t length);

  struct counters {
    std::uint64_t received = 0, sent = 0;
    std::uint64_t drop_not_our_mac = 0, drop_no_client = 0, drop_receive_full = 0, drop_send_full = 0;
  };
  const counters& count() const { return counters_; }

 private:
  struct waiting {
    tlm::frame_ptr frame;
    sim::cycle_t due = 0;
  };
  void tick() override;
  void take();
  void hand_over();
  void transmit();

  config config_;
  std::array<const gid::gid_table*, ports> gids_;
  tlm::frame_pool& pool_;
  frame_client_if* client_ = nullptr;
  sim::timed_inbox<tlm::frame_ptr> from_host_;
  std::vector<waiting> to_host_;  // ring
  std::size_t head_ = 0, count_ = 0;
  sim::cycle_t to_host_cycles_;
  std::array<std::array<std::uint32_t, 8>, ports> credits_{};
  counters counters_;
};

}  // namespace rnic::ethernet
