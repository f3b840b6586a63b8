// SPDX-License-Identifier: Apache-2.0
// One Ethernet port: framing, FCS, egress arbitration, flow control, ingress buffers, counters.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "model/mac/egress.h"
#include "model/mac/eth_stats.h"
#include "model/mac/flow_control.h"
#include "model/mac/ingress.h"
#include "model/payload/frame_port.h"
#include "model/register_bus/cr_space.h"
#include "model/register_bus/notice.h"
#include "model/register_bus/reset_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/parameter.h"
#include "model/sim/server.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/sim/timed_inbox.h"
#include "model/transport/transport_if.h"

namespace rnic::mac {

/// Transmit: frames come in with frame.priority and frame.source set, wait in the queue of their priority, and start on
/// the line one after the other without a gap: the arbiter decides at the last edge at which the line is still busy,
/// as a MAC does that has one frame's worth of buffer between core clock and line clock. A frame that still comes in,
/// beat by beat, starts when no byte of it can be late for the line (cut-through). The first bit leaves mac_tx_ns
/// after the start. Short frames are padded to 64 bytes. When a frame starts, its source gets a credit. Frames with
/// frame.loopback set take their turn on the line's timing but go to the own ingress buffers instead of the cable.
///
/// Receive: mac_rx_ns after its last bit a frame is checked, put into the ingress buffer of its priority (PCP, or
/// default_priority when untagged), and read out round robin over the priorities, datapath_bytes a cycle: it is handed
/// on with its first beat, and the next one follows its last. From the line to the buffer is store-and-forward: nothing
/// of a frame whose FCS is wrong is handed on. Its room in the buffer it has until `departures` say that it leaves what
/// is behind; with none of them bound it leaves when it is handed on. MAC control frames end here: pause frames are
/// obeyed at once, the others discarded.
///
/// Span marks: "egress queue" (waited: pause or arbitration), "mac tx", "wire" (wait::wire), "rs-fec"
/// where the line has it, "mac rx", and "ingress buffer" when the block behind did not take the frame at once.
class port : public sim::clocked_block,
             public register_bus::cr_target_if,
             public register_bus::reset_target_if,
             public payload::frame_sink_if,
             public payload::frame_port_if {
 public:
  struct config {
    std::uint8_t index = 0;  ///< 0-based number of the port
    sim::parameter<std::uint32_t> rate_mbps{40'000, {1000, 400'000, "Mb/s", "calibration 2.5: 10, 40, 56 Gb/s"}};
    /// Start of a frame to its first bit on the line.
    sim::parameter<std::uint32_t> mac_tx_ns{60, {1, sim::many, "ns", "calibration 5: MAC, PCS and PHY"}};
    /// Last bit of a frame to its check.
    sim::parameter<std::uint32_t> mac_rx_ns{80, {1, sim::many, "ns", "calibration 5: MAC, PCS and PHY"}};
    /// Reed-Solomon FEC on the line (IEEE 802.3 clauses 91 and 108): bytes come out when the code word that they are in
    /// is complete and decoded.
    enum class line_code : std::uint8_t { none, rs_528_514 };
    sim::parameter<line_code> fec{line_code::none, {"none, rs_528_514", "calibration 5: 40GBASE-R4 has none"}};
    /// Of a code word.
    sim::parameter<std::uint32_t> fec_decode_ns{
        49, {0, sim::many, "ns", "calibration 5: 100 ns, 51.2 of them to gather a code word"}};
    unsigned datapath_bytes = 16;  ///< a cycle of the core clock, to and from the line's side (adapter.datapath_bytes)
    /// The credits a source begins with.
    sim::parameter<std::uint32_t> egress_frames{16, {1, 512, "frames", "design: of each source and priority"}};
    /// Buffer of each priority.
    sim::parameter<std::uint32_t> ingress_bytes{65'536, {4096, 1u << 26, "bytes", "design"}};
    /// Stop the peer above this.
    sim::parameter<std::uint32_t> xoff_bytes{65'536 - pfc_headroom_bytes(40'000, 100, 4'200),
                                             {0, 1u << 30, "bytes", "adapter data plane E.5"}};
    /// XOFF - MTU.
    sim::parameter<std::uint32_t> xon_bytes{65'536 - pfc_headroom_bytes(40'000, 100, 4'200) - 4'200,
                                            {0, 1u << 30, "bytes", "adapter data plane E.5"}};
    /// Time asked for in a pause frame; a quantum is 512 bit times.
    sim::parameter<std::uint16_t> pause_quanta{0xffff, {1, 65535, "quanta", "IEEE 802.3 annex 31B"}};
    /// Of that time, after which a pause is repeated.
    sim::parameter<std::uint32_t> pause_refresh_percent{50, {1, 99, "% of the pause", "design"}};
    /// Longest frame, FCS included.
    sim::parameter<std::uint16_t> mtu{9'216, {64, 10'000, "bytes", "design: until firmware sets another"}};
    /// Of untagged received frames, until firmware sets another.
    sim::parameter<std::uint8_t> default_priority{0, {0, 7, "", "adapter data plane E.3"}};
    /// Lateness behind other classes that a limited one makes up for.
    sim::parameter<std::uint32_t> class_catch_up_ns{4'000,
                                                    {0, sim::many, "ns", "design: what other classes' frames take"}};
    sim::parameter<arbitration> egress_arbitration{
        arbitration::round_robin, {"strict, round_robin, ets", "IEEE 802.1Q 8.6.8, until firmware sets another"}};

    void list(sim::fields& are) {
      are("rate_mbps", rate_mbps);
      are("mac_tx_ns", mac_tx_ns);
      are("mac_rx_ns", mac_rx_ns);
      are("fec", fec);
      are("fec_decode_ns", fec_decode_ns);
      are("egress_frames", egress_frames);
      are("ingress_bytes", ingress_bytes);
      are("xoff_bytes", xoff_bytes);
      are("xon_bytes", xon_bytes);
      are("pause_quanta", pause_quanta);
      are("pause_refresh_percent", pause_refresh_percent);
      are("mtu", mtu);
      are("default_priority", default_priority);
      are("class_catch_up_ns", class_catch_up_ns);
      are("egress_arbitration", egress_arbitration);
    }
  };

  /// `pool` gives the pause frames. Throws sim::config_error for values that cannot work.
  port(std::string name, sim::clock_domain& domain, const config& cfg, payload::frame_pool& pool,
       sim::span_recorder& spans);

  sim::fifo_in<payload::frame_ptr> tx_in;
  sim::fifo_out<payload::frame_ptr> rx_out;
  /// Credits by transport::egress_source; those of sources that do not exist stay unbound.
  std::array<sim::fifo_out<transport::egress_credit>, 2> credits_out;
  /// What leaves the ingress buffers: a channel for each that takes frames off the way behind them.
  std::array<sim::fifo_in<payload::departure>, ingress::takers> departures;

  // The connector.
  void deliver(payload::frame_ptr frame, sim::time_ps arrival) override;
  payload::frame_sink_if& receiver() override { return *this; }
  void attach(payload::frame_sink_if& line) override { line_ = &line; }
  bool attached() const { return line_ != nullptr; }
  /// Frames that were on the line when the carrier went are lost.
  void carrier(bool up, sim::time_ps at) override { carrier_changes_.push(up, at); }
  /// Firmware's interrupt inputs (firmware_port::notices), moved `delay_ps` after a change of the carrier. Unbound:
  /// nobody is told.
  void bind_firmware(sim::timed_inbox<register_bus::notice>& inbox, sim::time_ps delay_ps) {
    firmware_ = &inbox;
    notice_ps_ = delay_ps;
  }

  // Registers: mac_cr.h.
  std::uint32_t cr_read(std::uint32_t offset) override;
  void cr_write(std::uint32_t offset, std::uint32_t value) override;
  /// The port goes down, and all settings and the counters that software reads are as after power-up.
  void device_reset() override;

  struct counters {
    std::uint64_t tx_frames = 0, tx_bytes = 0;  ///< on the line, FCS included, without pause frames
    std::uint64_t rx_frames = 0, rx_bytes = 0;  ///< good ones, without MAC control
    std::uint64_t tx_pause = 0, rx_pause = 0;   ///< pause frames of either kind
    std::uint64_t looped = 0;
    std::uint64_t drop_fcs = 0, drop_runt = 0, drop_too_long = 0, drop_overflow = 0, drop_link_down = 0;
    std::uint64_t drop_control = 0;  ///< MAC control frames with an unknown opcode
    std::uint64_t drop_tx_link_down = 0;
    std::uint64_t link_losses = 0;       ///< the carrier went away
    std::uint64_t blocked_by_pause = 0;  ///< frames that waited in a paused priority
  };
  const counters& count() const { return counters_; }
  const ingress& buffers() const { return ingress_; }
  /// Announces all counters as "<name>.<counter>".
  void announce(sim::statistics& to) const;

 private:
  void tick() override;
  bool accept();
  bool transmit();
  void transmit_pause();
  void transmit_frame(unsigned priority);
  void drop_for_link_down(std::uint8_t ready);
  sim::time_ps no_byte_late(const payload::frame& f) const;
  void put_on_line(payload::frame_ptr frame, sim::time_ps not_before);
  void send_away(payload::frame_ptr frame, sim::time_ps last_bit);
  std::uint8_t with_credit_room(std::uint8_t priorities);
  void return_credit(const payload::frame& f);
  void ask_for_wake();
  void receive();
  void receive_from(sim::timed_inbox<payload::frame_ptr>& inbox);
  void take_frame(payload::frame_ptr frame, sim::time_ps arrival);
  bool passes_checks(payload::frame& f, std::uint32_t size, unsigned column);
  bool consume_control(const payload::frame& f);
  void hand_out();
  void take_departures();
  void watch_departures();
  void take_carrier();
  // Approximation: the link is up as soon as this side is enabled and a cable in working order is there; training and
  // the other side's state are not modelled. A peer that is down drops what it gets.
  bool link_up() const { return up_ && line_ != nullptr && carrier_; }
  std::uint32_t read_flow_stats(std::uint32_t offset) const;
  void set_up(bool up);

  /// The receiver's time from the last bit of a frame on the line to its check; of it the FEC's share comes first.
  sim::time_ps fec_ps() const;

  config config_;
  sim::time_ps receive_ps_;
  unsigned receive_width_;  // frames a cycle
  sim::fast_divider by_rate_;
  bool never_late_;  // the datapath brings bytes at least as fast as the line wants them
  payload::frame_pool& pool_;
  sim::span_recorder& spans_;
  payload::frame_sink_if* line_ = nullptr;
  sim::timed_inbox<register_bus::notice>* firmware_ = nullptr;
  sim::time_ps notice_ps_ = 1;
  sim::timed_inbox<bool> carrier_changes_;
  bool carrier_ = true;
  sim::time_ps carrier_lost_at_ = 0, carrier_back_at_ = 0;  // last time without carrier; back at ~0: it lasts
  sim::timed_inbox<payload::frame_ptr> from_line_;
  sim::timed_inbox<payload::frame_ptr> looped_;
  egress egress_;
  ingress ingress_;
  flow_control flow_;
  std::uint64_t departed_ = 0;  // bit n: departures[n] holds something
  eth_stats stats_;
  counters counters_;

  sim::server read_;     // port of the ingress buffers
  bool watches_ = true;  // departures tick this port; quiet from its first tick on, until somebody is to be paused
  struct {
    payload::frame_ptr frame;
    sim::time_ps last_bit = 0;
    sim::cycle_t complete = 0;       // its last byte is there
  } open_;                           // on the line, and its last bytes are still being written (frame.open)
  sim::time_ps line_free_ = 0;       // start of the next frame's preamble, before the transmit latency
  std::uint64_t line_fraction_ = 0;  // what line_free_ was rounded down by, in 1 / rate_mbps ps
  sim::cycle_t choice_edge_ = 0;     // the next frame may be chosen: the line is free before the edge after it
  bool up_ = false;
  bool ignore_fcs_ = false;
  std::uint16_t mtu_;
  std::uint8_t default_priority_;
  wire::mac_address mac_{};
};

}  // namespace rnic::mac
