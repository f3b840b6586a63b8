// SPDX-License-Identifier: Apache-2.0
// Notification point of the responder: marked packets and the CNPs that answer them.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "model/payload/frame.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/ring.h"
#include "model/sim/statistics.h"
#include "model/transport/congestion/notice.h"
#include "model/transport/congestion/notification_point.h"
#include "model/transport/responder/answer_port.h"
#include "model/transport/responder/read_port.h"
#include "model/transport/responder/types.h"

namespace rnic::transport {

/// Part of the responder (adapter data plane C.9, E.8): which marked packets are answered, and the CNPs on their way to
/// answer_transmit, for the requester's half as well.
///
/// Ports: one packet under check; one notice of the requester a cycle; one CNP a cycle out, of the ports in turn.
/// Memory: a queue of notification.queue CNPs a port, so a port that is paused holds up no other; one that finds it
/// full is lost and counted, and its queue pair's next marked packet makes another.
/// Stalls: a CNP waits while answer_transmit has no place for its port and priority; a notice for the READ generator,
/// while the way there is full.
/// Counters: np_ecn_marked_roce_packets, np_cnp_sent, np_cnp_lost.
class cnp_sender {
 public:
  cnp_sender(sim::clocked_block& owner, const responder_config& cfg, payload::frame_pool& frames, answer_port& out,
             read_port& reads);
  void announce(sim::statistics& to, const std::string& name) const;

  /// Whether the packet under check is to be told of, if its queue pair takes it.
  bool answers(const payload::frame& f) const;
  /// Keeps what a CNP needs of it: execution may take the frame away.
  void keep(const payload::frame& f);
  /// The packet that was kept was one for this queue pair.
  void note(const responder_flow& f);
  /// Takes a notice of the requester; `ignore`: for nobody.
  void take(sim::fifo_in<congestion_notice>& in, bool ignore);
  /// Hands one on; in each tick.
  void work();
  /// All queue pairs are gone.
  void clear();

 private:
  void queue(std::uint32_t qpn, payload::frame_ptr frame);
  bool send(unsigned port);

  sim::clocked_block& owner_;
  payload::frame_pool& frames_;
  answer_port& out_;
  read_port& reads_;
  notification_point point_;
  struct {
    wire::packet packet;
    std::uint8_t port = 0;
    std::uint16_t gid_index = 0;
  } kept_;
  std::array<sim::ring<payload::frame_ptr>, 2> waiting_;  // by port
  unsigned turn_ = 0;
  std::uint64_t marked_ = 0, sent_ = 0, lost_ = 0;
};

}  // namespace rnic::transport
