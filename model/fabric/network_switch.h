// SPDX-License-Identifier: Apache-2.0
// An Ethernet switch: cut-through, with a queue at each output and PAUSE towards who fills it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/mac/flow_control.h"
#include "model/payload/frame_port.h"
#include "model/sim/clocked_block.h"
#include "model/sim/statistics.h"
#include "model/sim/timed_inbox.h"

namespace rnic::fabric {

/// Learns on which port an address lives from what it sends; frames to other addresses go out of all ports but their
/// own (IEEE 802.1D, 7.7 and 7.8). All ports have one rate. At an edge each input gives one frame, in the order of
/// their ports, and each output begins one. VLANs are not looked at, and a bad FCS goes on with its frame, as
/// cut-through cannot help.
class network_switch final : public sim::clocked_block {
 public:
  struct config {
    unsigned ports = 2;
    std::uint32_t rate_mbps = 40'000;
    std::uint32_t hop_ps = 250'000;       ///< from bit to bit, without other traffic (calibration 5)
    std::uint32_t xoff_bytes = 64 << 10;  ///< in the queue of an output: design, a few round trips of a cable
    std::uint32_t xon_bytes = 32 << 10;
    std::uint16_t pause_quanta = 0xffff;
    unsigned pause_refresh_percent = 50;
  };
  struct counters {
    std::uint64_t frames = 0, flooded = 0, pauses_received = 0, pauses_sent = 0;
  };

  network_switch(std::string name, sim::clock_domain& domain, const config& cfg, payload::frame_pool& pool,
                 sim::statistics& stats);

  payload::frame_port_if& port(unsigned i) { return *ports_[i]; }
  const counters& count() const { return count_; }

 private:
  struct queued {
    payload::frame_ptr frame;
    sim::time_ps arrival = 0;
  };
  /// A ring that grows to the most it ever holds.
  class frame_queue {
   public:
    bool empty() const { return count_ == 0; }
    std::uint64_t bytes() const { return bytes_; }
    void push(queued q);
    queued pop();

   private:
    std::vector<queued> slots_ = std::vector<queued>(64);  // a power of two
    std::size_t head_ = 0, count_ = 0;
    std::uint64_t bytes_ = 0;
  };
  struct port_state final : payload::frame_port_if, payload::frame_sink_if {
    port_state(const std::string& name, network_switch& owner, std::uint32_t rate_mbps)
        : inbox(name, owner), flow(rate_mbps) {}
    payload::frame_sink_if& receiver() override { return *this; }
    void attach(payload::frame_sink_if& to) override { line = &to; }
    void deliver(payload::frame_ptr frame, sim::time_ps arrival) override { inbox.push(std::move(frame), arrival); }

    sim::timed_inbox<payload::frame_ptr> inbox;
    mac::flow_control flow;
    payload::frame_sink_if* line = nullptr;
    frame_queue queue;
    bool full = false;  // above XOFF, and not yet below XON again
    sim::time_ps line_free = 0;
  };

  void tick() override;
  void take(unsigned from, payload::frame_ptr frame, sim::time_ps arrival);
  void queue(unsigned to, payload::frame_ptr frame, sim::time_ps arrival);
  void serve(port_state& p, std::uint8_t above);
  void send(port_state& p, payload::frame_ptr frame, sim::time_ps earliest_end);
  void tell(port_state& p, std::uint8_t above);
  std::uint8_t above(unsigned from) const;
  int port_of(const std::uint8_t* address) const;
  void learn(const std::uint8_t* address, unsigned from);
  sim::time_ps duration_of(const payload::frame& f) const;
  sim::time_ps line_time(std::uint64_t bytes) const { return bytes * 8 * sim::ps_per_us / config_.rate_mbps; }

  config config_;
  payload::frame_pool& pool_;
  std::vector<std::unique_ptr<port_state>> ports_;
  struct place {
    wire::mac_address address{};
    unsigned port = 0;
  };
  std::vector<place> places_;
  counters count_;
};

}  // namespace rnic::fabric
