// SPDX-License-Identifier: Apache-2.0
// An Ethernet switch with a queue for each priority at each output, and a buffer that all share.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/fabric/congestion_marker.h"
#include "model/fabric/congestion_point.h"
#include "model/fabric/edge_arrivals.h"
#include "model/fabric/forwarding_table.h"
#include "model/fabric/output_queues.h"
#include "model/fabric/shared_buffer.h"
#include "model/fabric/switch_config.h"
#include "model/mac/flow_control.h"
#include "model/mac/pause_gauges.h"
#include "model/payload/frame_port.h"
#include "model/sim/clocked_block.h"
#include "model/sim/gauge.h"
#include "model/sim/ring.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/sim/timed_inbox.h"

namespace rnic::fabric {

/// Data sheet.
///
/// Stages of a frame: its last bit is in; at the next edge (one frame of an input an edge) it is classified (VLAN,
/// priority), its address is learnt and that of its destination looked up, and it is admitted to the buffer
/// (shared_buffer) and put into the queue of its priority at its output (output_queues), or dropped; its packet may be
/// marked (congestion_marker). Of frames that come at one edge inputs and outputs take turns (edge_arrivals). An output
/// chooses its next frame when its line will be free within `hop_ps` / 2, among those that can be on it by then, and
/// that is what a frame takes from there to the line: one that a pause has held back, too, is chosen when that ends. A
/// frame has its room until its last bit has left.
///
/// Cut-through: the last bit leaves `hop_ps` behind the one that came in, or as much later as the output's line is
/// slower; a wrong FCS goes on with its frame. Store-and-forward: the first bit leaves `hop_ps` behind the last one
/// that came in, and a frame with a wrong FCS is dropped.
///
/// Flow control: an input's priority that is above XOFF stops its peer, with PAUSE or PFC as the buffer's parameters
/// say, and lets it go on at XON; the same frames of peers are obeyed at the output, PFC for each priority. Inputs that
/// have nothing in the buffer are never stopped for others. A pause frame goes before all that waits; there is one at a
/// time, so what changes until it is on the line is told behind it.
///
/// Stages in the spans of messages (follow()), of a frame's first bit: `store`, until as many of its bytes are here as
/// must be; `forward`, hop_ps; `queue`, behind others and for pauses.
///
/// A congestion point (congestion_point) of an output's priority tells the source of a frame that it has sampled: the
/// CNM goes out of the input that the frame came in by, in the queue of `qcn.cnm_priority`, and from there by the
/// source's address. There is none about frames from a group's address, and none about CNMs.
///
/// Frames that come in or are to be queued while the cable is pulled out are dropped; those in its queues leave, and
/// are lost there. Pauses of either side end with the cable's: what is above XOFF when it is back is told anew.
///
/// Frames to a group, and to addresses that nobody knows, go to all other ports of their VLAN where it floods, and are
/// dropped where it does not (networks with loops); each copy has room of its own. Those to the addresses of bridges
/// (01:80:c2:00:00:00 to 0f: LLDP, LACP), MAC control that is no pause, those that would leave where they came in, and
/// those for a VLAN in which nobody else is, end here.
///
/// All frames are accounted for: the sum of rx_frames, of cnms and the copies is that of tx_frames, the drops, `ended`,
/// and what is in the queues.
///
/// Approximation: outputs are chosen for in the order in which last bits come in, and a frame counts in the buffer from
/// then on; a cut-through switch decides with the header, and counts cells.
class network_switch final : public sim::clocked_block {
 public:
  struct port_counters {
    std::uint64_t rx_frames = 0, tx_frames = 0;    ///< without pauses
    std::uint64_t rx_bytes = 0, tx_bytes = 0;      ///< FCS included
    std::uint64_t rx_pause = 0, tx_pause = 0;      ///< pause frames of either kind
    std::uint64_t marked = 0;                      ///< at this output
    std::uint64_t sampled = 0, sampled_bytes = 0;  ///< by its congestion points; lengths of the queue then, together
    std::uint64_t cnms = 0;                        ///< that these have sent
    std::uint64_t drop_queue = 0;                  ///< this output's queue, or the buffer, was full
    std::uint64_t drop_headroom = 0;               ///< lossless, of this input, whose headroom was full
    std::uint64_t drop_vlan = 0, drop_unknown = 0, drop_fcs = 0;  ///< of this input
    std::uint64_t ended = 0;         ///< of this input: it was for the switch itself, or for nobody else
    std::uint64_t drop_no_line = 0;  ///< nothing is plugged into this output, or the cable of this port was pulled out
  };
  struct counters {
    std::uint64_t frames = 0, flooded = 0;
    std::uint64_t copies = 0;  ///< of flooded frames, beside the frame itself
  };

  /// Counters are `name`.frames, `name`.port<n>.rx_frames, ... Throws sim::config_error that names a parameter below
  /// `parameters`.
  network_switch(const std::string& name, sim::clock_domain& domain, const switch_config& cfg,
                 payload::frame_pool& pool, sim::statistics& stats, const std::string& parameters = "switch");

  payload::frame_port_if& port(unsigned i) { return *ports_[i]; }
  unsigned num_ports() const { return static_cast<unsigned>(ports_.size()); }
  /// An address is behind one of several equal ports; not to be learnt any more.
  void route(std::uint16_t vlan, const wire::mac_address& address, std::vector<unsigned> ports) {
    forwarding_.give(vlan, address, std::move(ports));
  }

  /// Messages' spans tell of their time here from now on.
  void follow(sim::span_recorder& spans) { spans_ = &spans; }

  const switch_config::port& config_of(unsigned i) const { return config_.ports[i]; }
  const counters& count() const { return count_; }
  const port_counters& count(unsigned i) const { return ports_[i]->count; }
  const shared_buffer& buffer() const { return buffer_; }
  /// Priorities of an output that have frames and are paused by the peer, now.
  std::uint8_t held(unsigned out) const { return ports_[out]->queues.waiting() & ports_[out]->flow.paused(now_ps()); }
  /// Frames of a priority that an output has sent.
  std::uint64_t sent(unsigned out, unsigned priority) const { return ports_[out]->sent[priority]; }
  /// Priorities that an input's peer has been told to stop.
  std::uint8_t stopped(unsigned in) const { return ports_[in]->above; }

 private:
  struct leaving {
    sim::time_ps at = 0;  // its last bit
    unsigned in = 0, priority = 0;
    std::uint32_t bytes = 0;
  };
  struct port_state final : payload::frame_port_if, payload::frame_sink_if {
    port_state(const std::string& name, network_switch& of, const switch_config::port& cfg, unsigned number);
    payload::frame_sink_if& receiver() override { return *this; }
    void attach(payload::frame_sink_if& to) override { line = &to; }
    void deliver(payload::frame_ptr frame, sim::time_ps arrival) override {
      if (inbox.empty()) owner.arrives_[number] = arrival;
      inbox.push(std::move(frame), arrival);
      owner.coming_ |= bit();
    }
    void carrier(bool up, sim::time_ps at) override {
      (up ? back_at : lost_at) = at;
      if (!up) back_at = ~sim::time_ps{0};
      changes.push(up, at);
      owner.changing_ |= bit();
    }
    /// Whether there was no cable at any time from the one to the other.
    bool cut(sim::time_ps from, sim::time_ps to) const { return from < back_at && lost_at < to; }
    std::uint64_t bit() const { return std::uint64_t{1} << number; }
    /// Time or others may give it something to do.
    bool is_busy() const {
      return queues.waiting() != 0 || !leaves.empty() || above != 0 || flow.wanted(above) != 0 ||
             flow.refresh_at() != ~sim::time_ps{0};
    }

    /// What a tick has changed in its queues.
    void tell_gauges();

    network_switch& owner;

    const switch_config::port& config;
    const unsigned number;
    sim::timed_inbox<payload::frame_ptr> inbox;
    sim::timed_inbox<bool> changes;  // of the cable: it is back
    mac::flow_control flow;
    output_queues queues;
    std::vector<congestion_marker> markers;  // by priority
    std::vector<congestion_point> points;    // by priority; none where no priority has one
    sim::ring<leaving> leaves{most_leaving};
    payload::frame_sink_if* line = nullptr;
    sim::time_ps line_free = 0;
    sim::time_ps pause_begins = 0;  // the last pause frame: until then it waits for the line, and is the only one
    sim::time_ps lost_at = 0, back_at = 0;  // last time without a cable; back at ~0: it lasts
    std::uint8_t above = 0;
    port_counters count;
    std::array<std::uint64_t, priorities> sent{};
    std::array<sim::gauge, priorities> queued;
    mac::pause_gauges pauses;
  };
  static constexpr unsigned most_leaving = 32;

  void tick() override;
  void take_change(port_state& p);
  void take(port_state& from, payload::frame_ptr frame, sim::time_ps arrival);
  bool consume_pause(port_state& from, const payload::frame& f);
  void flood(port_state& from, payload::frame_ptr frame, std::uint16_t vlan, unsigned priority, sim::time_ps arrival);
  void queue(port_state& from, port_state& to, payload::frame_ptr frame, std::uint16_t vlan, unsigned priority,
             sim::time_ps arrival);
  void sample(port_state& from, port_state& to, const payload::frame& f, std::uint16_t vlan, unsigned priority,
              sim::time_ps arrival);
  unsigned priority_of(const payload::frame& f) const;
  sim::time_ps earliest_begin(sim::time_ps came_in_for, sim::time_ps leaves_for, sim::time_ps arrival) const;
  void release_what_left(port_state& p);
  void serve(port_state& p);
  void transmit(port_state& p);
  sim::time_ps put(port_state& p, payload::frame_ptr frame, sim::time_ps earliest_end);
  void note_way(sim::span_id span, sim::time_ps ready, sim::time_ps begun, sim::wait why);
  void tell(port_state& p);
  sim::time_ps due(const port_state& p) const;
  void look_at_room();
  void announce(sim::statistics& stats);

  template <class What>
  void for_each(std::uint64_t mask, What what) {
    for (; mask != 0; mask &= mask - 1) what(*ports_[static_cast<unsigned>(__builtin_ctzll(mask))]);
  }

  const switch_config config_;
  payload::frame_pool& pool_;
  forwarding_table forwarding_;
  edge_arrivals arrivals_;
  shared_buffer buffer_;
  std::vector<std::unique_ptr<port_state>> ports_;
  // By port, and side by side, as each tick looks at all that have any.
  std::vector<sim::time_ps> arrives_;  // when the first of the frames that come in is here
  std::vector<sim::time_ps> dues_;     // when time alone gives it something to do; ~0: never
  counters count_;
  sim::span_recorder* spans_ = nullptr;
  // Ports that have frames coming in, those with anything to do, and of these those for which it may be something now:
  // the others are not looked at.
  std::uint64_t coming_ = 0, busy_ = 0, touched_ = 0;
  std::uint64_t changing_ = 0;  // ports of whose cables there is news
};

}  // namespace rnic::fabric
