// SPDX-License-Identifier: Apache-2.0
// One Ethernet port: framing, FCS, egress arbitration, flow control, ingress buffers, counters.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "model/mac/carrier.h"
#include "model/mac/credit_returns.h"
#include "model/mac/eth_stats.h"
#include "model/mac/flow_control.h"
#include "model/mac/ingress.h"
#include "model/mac/line.h"
#include "model/mac/pause_gauges.h"
#include "model/mac/port_config.h"
#include "model/mac/port_if.h"
#include "model/mac/port_state.h"
#include "model/mac/receive.h"
#include "model/mac/transmit.h"
#include "model/mac/turnaround.h"
#include "model/register_bus/cr_space.h"
#include "model/register_bus/interrupt_lines.h"
#include "model/register_bus/reset_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"

namespace rnic::mac {

/// Data sheet.
///
/// Ports, each of one item a cycle: frames to send (tx_in, cut-through) with their credits back to the sources; frames
/// received (rx_out, cut-through), CNMs beside them (cnm_out); what leaves the ingress buffers (departures, one channel
/// a taker); the line, a byte stream at rate_mbps with its carrier; notices to firmware; the internal register bus.
///
/// Transmit: frames come in with frame.priority and frame.source set, wait in the queue of their priority, and start on
/// the line one after the other without a gap. A frame that still comes in, beat by beat, starts when no byte of it can
/// be late for the line (cut-through). Short frames are padded to 64 bytes. Frames for the own port (frame.loopback)
/// turn around in front of the line.
///
/// Receive: a frame is checked, put into the ingress buffer of its priority (PCP, or default_priority when untagged),
/// and handed on with its first beat. From the line to the buffer is store-and-forward: nothing of a frame whose FCS is
/// wrong is handed on. Its room in the buffer it has until `departures` say that it leaves what is behind; with none of
/// them bound it leaves when it is handed on. MAC control frames end here, and CNMs leave by a way of their own.
///
/// Parts, each with a data sheet of its own, in the order in which they work in a cycle: `carrier_sense`; `line`, whose
/// open frame may be complete; `turnaround`, whose frame may be; `receive_side`, with `ingress`; `transmit_side`, with
/// `egress`, which gives frames to both. `flow_control` has no time of its own: whom we have paused and who has paused
/// us. The block has what firmware sets and what is counted (port_state.h, registers in port_registers.cpp).
///
/// Memories: `egress_frames` frames of each source and priority; `ingress_bytes` of each priority, written by the line,
/// read in turn of the priorities. Stalls: transmit, by a pause, by shares and limits of the traffic classes and while
/// the line is in use; a source, while it has no credit; receive, by a full rx_out (server `ingress_read`). The line
/// never waits: what finds no room is dropped and counted. Counters: eth_stats.h, `pause.prio<n>.*`.
class port : public sim::clocked_block,
             public register_bus::cr_target_if,
             public register_bus::reset_target_if,
             public payload::frame_sink_if,
             public port_if {
 public:
  using config = port_config;

  /// `pool` gives the pause frames. Throws sim::config_error for values that cannot work.
  port(std::string name, sim::clock_domain& domain, const config& cfg, payload::frame_pool& pool,
       sim::span_recorder& spans);

  sim::fifo_in<payload::frame_ptr> tx_in;
  sim::fifo_out<payload::frame_ptr> rx_out;
  /// Credits by transport::egress_source; those of sources that do not exist stay unbound.
  credit_ports credits_out;
  /// CNMs, where firmware has them taken out. May stay unbound: then they are dropped.
  sim::fifo_out<payload::frame_ptr> cnm_out;
  /// What leaves the ingress buffers: a channel for each that takes frames off the way behind them.
  std::array<sim::fifo_in<payload::departure>, ingress::takers> departures;

  // The connector.
  void deliver(payload::frame_ptr frame, sim::time_ps arrival) override { receive_.deliver(std::move(frame), arrival); }
  payload::frame_sink_if& receiver() override { return *this; }
  void attach(payload::frame_sink_if& line) override { line_.attach(line); }
  bool attached() const override { return line_.attached(); }
  /// Frames that were on the line when the carrier went are lost.
  void carrier(bool up, sim::time_ps at) override { carrier_.changes(up, at); }
  /// Firmware's interrupt inputs (firmware_port::notices), with a pulse `delay_ps` after a change of the carrier.
  /// Unbound: nobody is told.
  void bind_firmware(register_bus::interrupt_lines& lines, sim::time_ps delay_ps) {
    carrier_.bind_firmware(lines, delay_ps);
  }

  // Registers: mac_cr.h.
  std::uint32_t cr_read(std::uint32_t offset) override;
  void cr_write(std::uint32_t offset, std::uint32_t value) override;
  /// The port goes down, and all settings and the counters that software reads are as after power-up.
  void device_reset() override;

  using counters = port_counters;
  const counters& count() const { return counters_; }
  const ingress& buffers() const { return receive_.buffers(); }
  /// Announces all counters as "<name>.<counter>", and gauges: frames in the egress queues and bytes in the ingress
  /// buffers of all priorities, and pauses.
  void announce(sim::statistics& to);

 private:
  void tick() override;
  // Approximation: the link is up as soon as this side is enabled and a cable in working order is there; training and
  // the other side's state are not modelled. A peer that is down drops what it gets.
  bool link_up() const { return set_.up && line_.attached() && carrier_.there(); }
  std::uint32_t read_flow_stats(std::uint32_t offset);
  void set_up(bool up);
  void tell_gauges();

  config config_;
  port_settings set_;
  flow_control flow_;
  eth_stats stats_;
  counters counters_;
  carrier_sense carrier_;
  credit_returns credit_returns_;
  receive_side receive_;
  turnaround turnaround_;
  line line_;
  transmit_side transmit_;
  sim::gauge egress_frames_;
  std::array<sim::gauge, 8> ingress_bytes_;  // by priority
  pause_gauges pauses_;
};

}  // namespace rnic::mac
