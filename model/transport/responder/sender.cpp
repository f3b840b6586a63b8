// SPDX-License-Identifier: Apache-2.0
// The responder's way out.
#include "model/transport/responder/sender.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "model/transport/congestion/ecn.h"
#include "model/transport/credits.h"
#include "model/transport/responder/receive_wqe.h"

namespace rnic::transport {
namespace {

constexpr std::array<std::uint8_t, 12> ipv4_mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
/// Source port of answers while software has not set one (A.10.4: before RTR2RTS).
constexpr std::uint16_t default_udp_source = 0xc000;

}  // namespace

std::uint8_t responder_sender::acknowledgement(const icm::responder_context& ctx) {
  // A shared queue's receives are nobody's own; a context of an XRC target has no queue either.
  const bool counts = (ctx.flags & icm::responder_flag_no_credits) == 0 && ctx.log_rq_stride != 0;
  return counts ? credit_code(receives_left(ctx, ctx.rq_consumed)) : syndrome_ack;
}

responder_sender::responder_sender(sim::clocked_block& owner, const responder_config& cfg,
                                   const std::array<gid::gid_table*, 2>& gids, payload::frame_pool& frames,
                                   sim::span_recorder& spans, const std::uint16_t& roce_v2_port)
    : tx_out(owner),
      credit_in{sim::fifo_in<egress_credit>(owner), sim::fifo_in<egress_credit>(owner)},
      owner_(owner),
      pipeline_{{"answer path", cfg.answer.path},
                {"answer headers", cfg.answer.headers},
                {"answer hand-over", cfg.answer.hand_over}},
      ect_priorities_(cfg.congestion.reaction.priorities),
      gids_(gids),
      frames_(frames),
      spans_(spans),
      roce_v2_port_(roce_v2_port),
      queue_(cfg.response_queue) {
  if (cfg.response_queue == 0) throw sim::config_error(owner.name() + ".response_queue: must be 1 or more, not 0");
  for (auto& port : credits_) port.fill(static_cast<std::uint16_t>(cfg.egress_frames));
}

void responder_sender::work() {
  for (unsigned port = 0; port < credit_in.size(); ++port) {
    credit_in[port].take_due([&](const egress_credit& c) { ++credits_[port][c.priority & 7]; });
    credit_in[port].set_quiet(true);  // ready() says when somebody waits
  }
  if (count_ == 0) return;
  entry& e = queue_[head_];
  if (e.ready > owner_.now()) {
    owner_.wake_at(e.ready);
    return;
  }
  if (!tx_out.claim()) return;
  if (owner_.now() > e.ready)
    spans_.leave(e.frame->span, owner_.name(), "answer channel", owner_.now_ps(), sim::wait::arbitration);
  tx_out.push(std::move(e.frame));
  head_ = (head_ + 1) % queue_.size();
  if (--count_ != 0) owner_.wake_at(std::max(queue_[head_].ready, owner_.now() + 1));
}

bool responder_sender::ready(unsigned port, unsigned priority) const {
  if (credits_[port][priority] == 0) {
    credit_in[port].set_quiet(false);
    return false;
  }
  return count_ != queue_.size();
}

void responder_sender::address(const icm::responder_context& ctx, payload::frame& f) const {
  const icm::path& path = ctx.dest;
  const gid::gid_table& g = *gids_[path.port & 1];
  wire::packet& p = f.packet;
  std::copy_n(path.dmac, 6, p.dmac.begin());
  p.smac = g.mac(path.smac_index);
  p.sgid = g[path.gid_index].id;
  std::copy_n(path.remote_gid, 16, p.dgid.begin());
  if ((path.flags & icm::path_flag_vlan) != 0) {
    const auto vid = g.vlan(path.vlan_index);
    p.vlan_present = true;
    p.vlan_tci = static_cast<std::uint16_t>((path.priority & 7) << 13 | vid.value_or(0));
  }
  const bool v4 = std::memcmp(path.remote_gid, ipv4_mapped.data(), ipv4_mapped.size()) == 0;
  p.encap = (path.flags & icm::path_flag_roce_v2) == 0 ? wire::encapsulation::roce_v1
            : v4                                       ? wire::encapsulation::roce_v2_ipv4
                                                       : wire::encapsulation::roce_v2_ipv6;
  p.traffic_class = path.traffic_class;
  if ((path.flags & icm::path_flag_roce_v2) != 0 && (ect_priorities_ >> (path.priority & 7) & 1) != 0)
    p.traffic_class = ecn_capable(p.traffic_class);
  p.flow_label = path.flow_label & 0xfffff;
  p.hop_limit = path.hop_limit;
  p.udp_source = path.udp_source != 0 ? path.udp_source : default_udp_source;
  p.udp_dest = roce_v2_port_;
  f.priority = path.priority & 7;
  f.port = path.port & 1;
  const bool looped = (path.flags & icm::path_flag_loopback) != 0 || g.owns(p.dmac);
  f.loopback = looped ? payload::frame::loopback_only : payload::frame::loopback_none;
  f.gid_index = path.gid_index;
}

std::uint32_t responder_sender::send(const icm::responder_context& ctx, payload::frame_ptr frame, std::uint8_t opcode,
                                     std::uint32_t psn, std::uint8_t syndrome, std::uint32_t msn, std::uint32_t payload,
                                     std::uint64_t original) {
  const auto type = (ctx.dest.flags & icm::path_flag_roce_v2) != 0 ? gid::roce_type::v2 : gid::roce_type::v1;
  if (!gids_[ctx.dest.port & 1]->may_send(ctx.dest.gid_index, type, ctx.dest.remote_gid, ctx.function)) {
    ++sourceless_;
    return 0;
  }
  payload::frame& f = *frame;
  f.packet = wire::packet{};
  address(ctx, f);
  wire::packet& p = f.packet;
  p.bth.opcode = opcode;
  p.bth.dest_qp = ctx.remote_qpn;
  p.bth.psn = wire::psn_t(psn);
  p.aeth.syndrome = syndrome;
  p.aeth.msn = msn & 0xffffff;
  p.atomic_original = original;
  p.payload_length = payload;
  const std::uint8_t* first = wire::build(p, f.buffer.data() + payload::frame::payload_start);
  f.begin = static_cast<std::uint32_t>(first - f.buffer.data());
  f.length = p.icrc_offset + 4;
  f.insert_icrc = true;
  f.source = static_cast<std::uint8_t>(egress_source::responder);
  const std::uint32_t length = f.length;
  launch(std::move(frame));
  return length;
}

void responder_sender::launch(payload::frame_ptr frame) {
  payload::frame& f = *frame;
  --credits_[f.port][f.priority];
  pipeline_.mark(spans_, f.span, owner_, owner_.now());
  if (count_ == 0 && tx_out.can_push()) {
    tx_out.push_after(std::move(frame), pipeline_.cycles());
    return;
  }
  entry& e = queue_[(head_ + count_) % queue_.size()];
  e.frame = std::move(frame);
  e.ready = owner_.now() + pipeline_.cycles();
  ++count_;
  owner_.wake_at(e.ready);
}

}  // namespace rnic::transport
