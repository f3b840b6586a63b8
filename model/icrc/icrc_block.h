// SPDX-License-Identifier: Apache-2.0
// The ICRC engine between its neighbours: writes the ICRC on transmit, checks it on receive.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/icrc/engine_stage.h"
#include "model/icrc/icrc_if.h"
#include "model/payload/frame.h"
#include "model/payload/frame_stream.h"
#include "model/sim/arbiter.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"

namespace rnic::icrc {

/// Data sheet.
///
/// Transmit. Takes whole frames from its inputs in turn and gives them to the egress of their port. Frames with
/// insert_icrc get the ICRC written at packet.icrc_offset; others take the same way and time and are not touched.
/// Frames cut through: the first byte leaves pipeline_cycles after it entered, the others follow beat by beat, and the
/// ICRC is there when the last ones leave (frame.open until then, when the engine is clocked). Order is kept from each
/// input to each output; a full egress holds back everything behind it: the result waits in the engine, which stalls
/// one beat after the last of the next frame, and the frame leaves whole when there is room. The engine is then blocked
/// by "port 1" or "port 2".
///
/// Ports: an input a source, an output a port, one frame a cycle each. Stages: those of the engine (icrc_if.h, the
/// interface of its RTL as well), pipeline_cycles; initiation interval: the beats of a frame. Memories: the frames
/// inside (engine_stage). Counters: frames_inserted, frames_passed, beats.
class icrc_insert final : public sim::clocked_block {
 public:
  static constexpr unsigned ports = 2;
  struct statistics {
    std::uint64_t frames_inserted = 0;
    std::uint64_t frames_passed = 0;
    std::uint64_t beats = 0;  ///< cycles in which the engine took data
  };

  std::vector<sim::fifo_in<payload::frame_ptr>> inputs;          ///< requester, responder, ...
  std::array<sim::fifo_out<payload::frame_ptr>, ports> outputs;  ///< to the MAC, by frame.port; unbound: port not there

  /// `inputs_count` is 1..64. `engine` is the model or the RTL; both give the same frames in the same cycles.
  icrc_insert(std::string name, sim::clock_domain& domain, unsigned inputs_count,
              std::unique_ptr<icrc_engine_if> engine, sim::span_recorder& spans);
  const statistics& counters() const { return stats_; }
  void announce(sim::statistics& to) const;
  bool idle() const { return engine_.empty(); }

 private:
  void tick() override;
  void leave();
  void enter();
  void pass(payload::frame_ptr f, const sim::fifo_out<payload::frame_ptr>& out);
  static void finish(payload::frame& f, std::uint32_t crc);

  engine_stage engine_;
  sim::span_recorder& spans_;
  sim::round_robin turn_;
  statistics stats_;
};

/// Data sheet.
///
/// Receive. Takes RoCE frames with parsed headers, beat by beat as they come, and gives them whole to the responder
/// (requests) or to the requester's completer (responses) by opcode, datagrams to groups to the block that copies them.
/// The verdict is there pipeline_cycles after a frame's last covered beat and not before its last byte. A frame with a
/// wrong ICRC is dropped and counted, nobody is told (adapter data plane, table of receive errors). Order is kept; a
/// full output holds back everything behind it: the engine is blocked by "responder", "requester" or "multicast".
///
/// Ports: an input a parser (cut-through), three outputs (store-and-forward), one frame a cycle each; departures, as
/// frames are taken. Stages, interval and memories: as of the transmit side. Counters: frames_passed, bad_icrc by port,
/// beats.
class icrc_check final : public sim::clocked_block {
 public:
  static constexpr unsigned ports = 2;
  struct statistics {
    std::uint64_t frames_passed = 0;
    std::array<std::uint64_t, ports> bad_icrc{};  ///< dropped, by port
    std::uint64_t beats = 0;
  };

  std::vector<sim::fifo_in<payload::frame_ptr>> inputs;  ///< from the parsers of the ports
  sim::fifo_out<payload::frame_ptr> requests{*this};     ///< to the responder
  sim::fifo_out<payload::frame_ptr> responses{*this};    ///< to the completer
  sim::fifo_out<payload::frame_ptr> groups{*this};       ///< datagrams to groups, to multicast
  /// By port: what of the frames leaves the ingress buffers, whose room they have until then. May stay unbound.
  std::array<sim::fifo_out<payload::departure>, ports> departures{sim::fifo_out<payload::departure>(*this),
                                                                  sim::fifo_out<payload::departure>(*this)};

  /// `inputs_count` is 1..64, served in turn.
  icrc_check(std::string name, sim::clock_domain& domain, unsigned inputs_count, std::unique_ptr<icrc_engine_if> engine,
             sim::span_recorder& spans);
  const statistics& counters() const { return stats_; }
  void announce(sim::statistics& to) const;
  bool idle() const { return engine_.empty(); }

 private:
  void tick() override;
  void leave();
  void enter();
  struct way {
    const sim::fifo_out<payload::frame_ptr>& out;
    const char* to;
  };
  way way_of(const wire::packet& p) const;

  engine_stage engine_;
  sim::span_recorder& spans_;
  sim::round_robin turn_;
  statistics stats_;
};

}  // namespace rnic::icrc
