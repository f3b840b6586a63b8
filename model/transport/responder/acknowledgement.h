// SPDX-License-Identifier: Apache-2.0
// Acknowledgements, and the hand-over of READs and atomics to the READ generator, in one order.
#pragma once

#include <cstdint>
#include <string>

#include "model/payload/frame.h"
#include "model/sim/clocked_block.h"
#include "model/sim/ring.h"
#include "model/sim/seldom.h"
#include "model/sim/server.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/transport/responder/answer_lines.h"
#include "model/transport/responder/answer_port.h"
#include "model/transport/responder/flow_table.h"
#include "model/transport/responder/read_port.h"
#include "model/transport/responder/types.h"

namespace rnic::transport {

/// Part of the responder: one pending ACK and one pending NAK a queue pair, kept in its flow, and what goes before
/// them. An answer leaves to answer_transmit, or, behind READs, to the READ generator.
///
/// Ports: an access to the context of each answer or request that goes; from the commit one answer or one request a
/// cycle, from held_reads one request; to answer_transmit one answer in `ack_cycles` (the engine, "acknowledge"); to
/// the READ generator a request and the answers before it (read_port), and one answer more a cycle. Memories: the lines
/// of those that may leave (answer_lines) and a ring of those for the generator: a place a flow each. Stalls: an answer
/// waits while answer_transmit has no place for its port and priority, or READs before it are in host memory. An ACK
/// answers `ack_coalesce` requests where it could leave; where it could not, nothing waits for it. Counters: acks,
/// naks, those included that the generator has sent.
class acknowledgement {
 public:
  acknowledgement(sim::clocked_block& owner, const responder_config& cfg, flow_table& flows, answer_port& out,
                  read_port& reads, payload::frame_pool& frames, sim::span_recorder& spans);
  void announce(sim::statistics& to, const std::string& name) const;

  /// A packet that wants an answer waits until the pending ACK has left; the owner is ticked then.
  bool is_full(const responder_flow& f);
  /// `asked`: way of the packet that is answered.
  void set_ack(responder_flow& f, std::uint32_t psn, std::uint32_t msn, sim::span_id asked);
  void set_nak(responder_flow& f, std::uint8_t syndrome, std::uint32_t psn, std::uint32_t msn);
  /// Nobody will be answered.
  static void forget(responder_flow& f) { f.ack.pending = f.nak.pending = false; }

  /// Room for a request and the answers that go before it. Refused, the owner is ticked when one has gone.
  bool may_hand_over(const responder_flow& f) { return reads_.room(3) && flows_.may_access(f, context_user::answers); }
  /// A READ or an atomic that was accepted goes to the READ generator, behind the answers of what was before it. Where
  /// a repeated one goes before what an answer is for, that one waits for it. `held`: it was accepted before it was put
  /// aside.
  void hand_over(responder_flow& f, read_command r, bool held = false);
  /// What the READ generator and host memory have of it is given up. False: it cannot be told now.
  bool give_up(responder_flow& f);
  /// READs in host memory are given up; an answer that waited for them goes.
  void forget_held(responder_flow& f);
  /// The generator's word on answers that it was handed.
  void answered(responder_flow& f, const read_report& r);

  /// One may leave, but for a place at answer_transmit.
  bool has_ready() const { return !ready_.empty(); }
  /// Its answer leaves the line in which it stands.
  void take_out(responder_flow& f) {
    ready_.remove(f.number);
    f.answers.listed = false;
    let_go_on();
  }
  /// An answer has come back with the context, behind send().
  void go_on(responder_flow& f) {
    route(f);
    owner_.wake_next();
  }

  /// To answer_transmit; in each tick, behind the commit.
  void send();
  /// To the READ generator; in each tick, behind send().
  void hand();

 private:
  void route(responder_flow& f);
  void send_one(responder_flow& f);
  void hand_one(responder_flow& f, bool ack);
  /// Packets that is_full() has held up, in the next cycle.
  void let_go_on() {
    if (sim::seldom(awaited_)) owner_.wake_next();
    awaited_ = false;
  }

  sim::clocked_block& owner_;
  flow_table& flows_;
  answer_port& out_;
  read_port& reads_;
  payload::frame_pool& frames_;
  sim::span_recorder& spans_;
  const unsigned interval_, coalesce_;
  sim::server engine_;
  answer_lines ready_;              // flows with an answer that may leave,
  sim::ring<std::uint16_t> hands_;  // and with one that goes behind READs
  bool awaited_ = false;            // a packet waits until the ACK that it would be answered by has left
  std::uint64_t acks_ = 0, naks_ = 0;
};

}  // namespace rnic::transport
