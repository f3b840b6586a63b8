// SPDX-License-Identifier: Apache-2.0
// The responder's way out: egress credits, the transmit pipeline, headers of answers.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/gid/gid_table.h"
#include "model/sim/fifo.h"
#include "model/sim/pipeline.h"
#include "model/transport/responder/types.h"
#include "model/transport/transport_if.h"

namespace rnic::transport {

/// Part of the responder. One credit is spent for each frame; frames leave in the order of send().
class responder_sender {
 public:
  responder_sender(sim::clocked_block& owner, const responder_config& cfg, const std::array<gid::gid_table*, 2>& gids,
                   payload::frame_pool& frames, sim::span_recorder& spans, const std::uint16_t& roce_v2_port);

  sim::fifo_out<payload::frame_ptr> tx_out;
  std::array<sim::fifo_in<egress_credit>, 2> credit_in;  ///< by port

  /// Takes returned credits and moves frames whose pipeline time is over to tx_out.
  void work();
  /// Whether send() is possible for a frame of this QP now.
  bool ready(const icm::responder_context& ctx) const { return ready(ctx.dest.port & 1, ctx.dest.priority & 7); }
  bool ready(unsigned port, unsigned priority) const;
  /// A frame whose payload is at frame::payload_start, `payload` bytes (0 for ACKs), to be completed with headers.
  /// `original`: of an atomic acknowledgement.
  /// Returns the frame's length; 0: it goes nowhere, since the path's source is no entry of the GID table that the QP's
  /// owner may send with.
  std::uint32_t send(const icm::responder_context& ctx, payload::frame_ptr frame, std::uint8_t opcode,
                     std::uint32_t psn, std::uint8_t syndrome, std::uint32_t msn, std::uint32_t payload,
                     std::uint64_t original = 0);
  /// Syndrome of an answer that acknowledges: with the receives that are known of (IBA 9.7.7.2). They are counted after
  /// all messages that were accepted, of which the answer's MSN may be an earlier one: never more than there are.
  static std::uint8_t acknowledgement(const icm::responder_context& ctx);
  /// A frame that is complete but for its ICRC.
  void launch(payload::frame_ptr frame);
  payload::frame_ptr new_frame() { return frames_.get(); }

  /// Answers that went nowhere.
  const std::uint64_t& sourceless() const { return sourceless_; }

 private:
  struct entry {
    payload::frame_ptr frame;
    sim::cycle_t ready = 0;
  };
  void address(const icm::responder_context& ctx, payload::frame& f) const;

  sim::clocked_block& owner_;
  const sim::pipeline pipeline_;
  std::uint8_t ect_priorities_;
  const std::array<gid::gid_table*, 2>& gids_;
  payload::frame_pool& frames_;
  sim::span_recorder& spans_;
  const std::uint16_t& roce_v2_port_;
  std::vector<entry> queue_;
  std::size_t head_ = 0, count_ = 0;
  std::array<std::array<std::uint16_t, 8>, 2> credits_{};
  std::uint64_t sourceless_ = 0;
};

}  // namespace rnic::transport
