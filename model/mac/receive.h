// SPDX-License-Identifier: Apache-2.0
// The receive direction of a port: checks, ingress buffers, and how they are read out.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <utility>

#include "model/mac/carrier.h"
#include "model/mac/ingress.h"
#include "model/mac/port_state.h"
#include "model/payload/frame.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/server.h"
#include "model/sim/timed_inbox.h"

namespace rnic::mac {

/// Data sheet. Part of a port.
///
/// Stages, from a frame's last bit on, in the line's time (receive_path): PMA; where the line has FEC its code word is
/// gathered, errors are located and corrected; PCS; MAC. Then check, as many frames a cycle as the line can bring,
/// those of the line before looped ones, which have no FCS; into the ingress buffer of its priority in the same cycle,
/// or dropped; read, round robin over the priorities, `datapath_bytes` a cycle (server `ingress_read`): the block
/// behind gets a frame with its first beat, a cycle after its check at the earliest. Room is given back as departures
/// say. MAC control frames end at the check: pause frames are obeyed at once. So do CNMs where firmware has them taken
/// out: they need no buffer, go to their receiver at once, one a cycle, and are dropped when that has no room.
///
/// Memories: eight buffers in bytes (ingress); what is on its way from the line and from the own transmitter.
///
/// Stalls: read, by the block behind. The line cannot wait: a frame that finds its buffer full is dropped.
///
/// Departures tick the port only while somebody is to be paused or is, or a looped frame waits.
///
/// Span marks: "wire" (wait::wire), "pma rx", "rs-fec word" (wait::wire), "rs-fec locate" and "rs-fec correct" where
/// the line has it, "pcs rx", "mac rx" (to the edge of the check), and "ingress buffer" (arbitration) when the block
/// behind did not take the frame at once.
///
/// Counters: rx_frames, rx_bytes, rx_pause, drop_fcs, drop_runt, drop_too_long, drop_overflow, drop_link_down,
/// drop_control, rx_cnm, drop_cnm.
class receive_side {
 public:
  using departure_ports = std::array<sim::fifo_in<payload::departure>, ingress::takers>;

  receive_side(sim::clocked_block& owner, const port_common& common, const sim::fifo_out<payload::frame_ptr>& out,
               const sim::fifo_out<payload::frame_ptr>& cnm_out, departure_ports& departures,
               const carrier_sense& carrier);

  /// The last bit of a frame of the peer is here at that time.
  void deliver(payload::frame_ptr frame, sim::time_ps arrival) {
    from_line_.push(std::move(frame), arrival + path_.mac);
  }
  /// A frame of the own transmitter begins its way to the check: its room is kept from now on.
  void expect_looped(const payload::frame& f) {
    const unsigned priority = priority_of(f);
    kept_.push_back({priority, ingress_.keep(priority, f.length + fcs_bytes, owner_.now())});
  }
  /// It is there at edge `when`, in the future.
  void loop(payload::frame_ptr frame, sim::cycle_t when) {
    looped_.push(std::move(frame), owner_.domain().edge_time(when));
  }
  /// Whether the buffer to which the frame would come is above XOFF, or would be with it.
  bool would_be_above_xoff(const payload::frame& f) {
    return !ingress_.stays_below_xoff(priority_of(f), f.length + fcs_bytes, owner_.now());
  }

  /// To be called in each tick, before the transmit direction.
  void work(bool link_up) {
    take_departures();
    receive(link_up);
    hand_out();
  }
  /// Behind the transmit direction.
  void watch_departures(bool turnaround_waits);
  /// Priorities whose peer is to be paused.
  std::uint8_t above() const { return ingress_.above(); }
  const ingress& buffers() const { return ingress_; }

 private:
  void receive(bool link_up);
  void take_from_line(bool link_up);
  [[gnu::noinline, gnu::cold]] void take_looped(bool link_up);
  unsigned note_arrival(payload::frame& f, sim::time_ps arrival) const;
  void admit(payload::frame_ptr frame);
  unsigned priority_of(const payload::frame& f) const {
    const unsigned column = column_of(f);
    return column == eth_stats::untagged ? to_.set.default_priority : column;
  }
  void note_path(sim::span_id span, sim::time_ps arrival);
  void note_buffer(const payload::frame& f);
  bool passes_fcs(payload::frame& f, unsigned column);
  bool is_short_enough(const payload::frame& f);
  bool consume_control(const payload::frame& f);
  bool consume_cnm(payload::frame_ptr& frame);
  void take_departures();
  void hand_out();

  sim::clocked_block& owner_;
  port_common to_;
  const sim::fifo_out<payload::frame_ptr>&out_, &cnm_out_;
  departure_ports& departures_;
  const carrier_sense& carrier_;
  const receive_path path_;
  const unsigned width_;  // frames a cycle
  sim::timed_inbox<payload::frame_ptr> from_line_, looped_;
  ingress ingress_;
  struct kept {
    unsigned priority;
    std::uint32_t bytes;
  };
  std::deque<kept> kept_;       // room of looped frames on their way, in their order
  std::uint64_t departed_ = 0;  // bit n: departures[n] holds something
  sim::server read_;
  bool watches_ = true;  // departures tick the port; quiet from its first tick on, until somebody is to be paused
};

}  // namespace rnic::mac
