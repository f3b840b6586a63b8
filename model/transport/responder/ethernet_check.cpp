// SPDX-License-Identifier: Apache-2.0
#include "model/transport/responder/ethernet_check.h"

#include <algorithm>
#include <utility>

#include "model/transport/responder/rules.h"
#include "model/wire/bytes.h"
#include "model/wire/internet.h"

namespace rnic::transport {

namespace {

constexpr std::uint32_t cqe_ctag = 1u << 29, cqe_stag = 1u << 30;  // A.5.2, word 0
enum : unsigned {                                                  // A.5.2, status
  status_ipv4 = 1u << 6,
  status_fragment = 1u << 7,
  status_ipv6 = 1u << 8,
  status_options = 1u << 9,
  status_tcp = 1u << 10,
  status_udp = 1u << 11,
  status_ip_ok = 1u << 12
};
constexpr unsigned encoding_llc = 1, encoding_snap = 2, encoding_l4_ok = 4, encoding_bad_fcs = 16;
constexpr std::uint16_t right_sum = 0xffff, longest_llc = 1500;
constexpr std::uint32_t fcs_bytes = 4, qpn_mask = 0xffffff;
constexpr std::uint32_t was_spread =
    1u << 16;  // with the function below, in the place of a header that frames have not

/// What the frame's completion says of its checksums. `sums`: also of packets that are neither TCP nor UDP.
responder_slot::ethernet_result result_of(const payload::frame& f, const wire::frame_view& v, bool sums) {
  responder_slot::ethernet_result r;
  unsigned status = 0, encoding = f.fcs_ok ? 0 : encoding_bad_fcs;
  const bool ip_ok = v.ipv6 || (v.ipv4 && wire::ipv4_header_sum(f.data(), v) == right_sum);
  if (v.ipv4) status |= status_ipv4 | (v.options ? status_options : 0u);
  if (v.ipv6) status |= status_ipv6;
  if (v.ipv4 && v.fragment) status |= status_fragment;
  if (ip_ok) status |= status_ip_ok;
  if (v.tcp || v.udp) {
    status |= v.tcp ? status_tcp : status_udp;
    r.checksum = wire::l4_sum(f.data(), v);
    const bool absent = v.udp && wire::load_be16(f.data() + v.l4 + 6) == 0;
    if (absent) r.checksum = 0;  // nothing that could be right
    if (ip_ok && r.checksum == right_sum) encoding |= encoding_l4_ok;
  } else if (sums && (v.ipv4 || v.ipv6)) {
    r.checksum = wire::packet_sum(f.data(), v);
  }
  if (!v.ipv4 && !v.ipv6 && v.l3 + 3 <= f.length && wire::load_be16(f.data() + v.l3 - 2) <= longest_llc) {
    const std::uint8_t* llc = f.data() + v.l3;
    encoding |= llc[0] == 0xaa && llc[1] == 0xaa && llc[2] == 0x03 ? encoding_snap : encoding_llc;
  }
  r.status = static_cast<std::uint16_t>(status);
  r.encoding = static_cast<std::uint8_t>(encoding);
  r.extensions = v.extensions;
  if (v.ctag || v.stag) {
    r.qpn_flags = v.stag ? cqe_stag : cqe_ctag;
    r.tci = v.tci;
  }
  return r;
}

/// Approximation: the adapter's XOR hash is not published; all bytes of the flow are folded into one.
std::uint32_t xor_hash(const std::uint8_t* from, std::size_t bytes) {
  std::uint8_t h = 0;
  for (std::size_t i = 0; i < bytes; ++i) h = static_cast<std::uint8_t>(h ^ from[i]);
  return h;
}

struct choice {
  std::uint32_t qpn, hash;
};

/// Where a spreading QP sends a frame (A.8.3): by addresses and ports where the kind of frame is enabled, by addresses
/// where only these are, else to the default.
choice choose(const icm::rss_rules& r, const payload::frame& f) {
  const wire::frame_view v = wire::inspect(f.data(), f.length);
  const auto enabled = [&](std::uint8_t ipv4, std::uint8_t ipv6) {
    return (r.flags & (v.ipv4 ? ipv4 : v.ipv6 ? ipv6 : 0)) != 0;
  };
  const bool udp = v.udp && enabled(icm::rss_flag_udp_ipv4, icm::rss_flag_udp_ipv6);
  const bool ports = udp || (v.tcp && enabled(icm::rss_flag_tcp_ipv4, icm::rss_flag_tcp_ipv6));
  if (!ports && !enabled(icm::rss_flag_ipv4, icm::rss_flag_ipv6)) return {r.default_qpn & qpn_mask, 0};
  std::uint8_t flow[36];
  const std::size_t bytes = wire::flow_bytes(f.data(), v, ports, flow);
  wire::toeplitz_key key;
  std::copy_n(r.key, key.size(), key.begin());
  const std::uint32_t hash = r.toeplitz != 0 ? wire::toeplitz(key, flow, bytes) : xor_hash(flow, bytes);
  const std::uint32_t base = udp ? r.base_qpn_udp : r.base_qpn;
  return {(base + (hash & ((1u << std::min<unsigned>(r.log_size, 23)) - 1))) & qpn_mask, hash};
}

}  // namespace

ethernet_check::ethernet_check(sim::clocked_block& owner, const responder_registers& registers, const gid_tables& gids,
                               flow_table::contexts& contexts, flow_table& flows, packet_intake& intake,
                               receive_descriptors& receives, drop_counters& drops)
    : registers_(registers),
      gids_(gids),
      contexts_(contexts),
      flows_(flows),
      intake_(intake),
      receives_(receives),
      drops_(drops),
      vlan_table_(owner, "vlan_table", sim::port_each{}, {{"ethernet_check", sim::access_kind::read}}) {}

void ethernet_check::announce(sim::statistics& to, const std::string& name) const {
  to.add(name + ".ethernet", received_);
}

bool ethernet_check::spread(payload::frame& frame) {
  const std::uint32_t qpn = frame.packet.bth.dest_qp;
  if (qpn == 0 || flows_.halts().halted(qpn)) return true;
  if (!flows_.may_access(context_user::check)) return false;
  const std::uint16_t open = flows_.find(qpn);
  icm::responder_context* ctx = open != no_link ? std::as_const(flows_)[open].ctx : nullptr;
  if (ctx == nullptr) {
    using result = flow_table::contexts::result;
    const result found = contexts_.lookup(qpn, ctx);
    if (found == result::pending) return false;
    if (found == result::refused) return true;
  }
  flows_.access(context_user::check);
  if (ctx->qpn != qpn || ctx->type != icm::service::rss) return true;
  const bool receives = ctx->state == icm::qp_state::rtr || ctx->state == icm::qp_state::rts;
  const choice to = receives ? choose(icm::rss_of(*ctx), frame) : choice{0, 0};
  frame.packet.bth.dest_qp = to.qpn;
  frame.packet.immediate = to.hash;
  frame.packet.xrceth = was_spread | ctx->function;
  return true;
}

verdict ethernet_check::check(responder_flow& f, payload::frame_ptr& frame) {
  icm::responder_context& ctx = *f.ctx;
  passed_ = false;
  if (!receives(ctx.state)) return drop(ctx.state == icm::qp_state::error ? drops_.error : drops_.state);
  if (ctx.type != icm::service::ethernet) return drop(drops_.service);
  if (!registers_.ports.may_arrive(frame->port, ctx.dest)) return drop(drops_.address);
  // The numbers in a spreading QP are its owner's choice: they reach that function's queue pairs and no others.
  const std::uint32_t spread_by = frame->packet.xrceth;
  if (spread_by != 0 && spread_by != (was_spread | ctx.function)) return drop(drops_.ethernet_function);
  const wire::frame_view v = wire::inspect(frame->data(), frame->length);
  const icm::ethernet_rules rules = icm::rules_of(ctx.dest);
  const bool tagged = v.ctag || v.stag;
  const unsigned vid = tagged ? v.tci & 0xfffu : 0u;
  const unsigned kind = !tagged ? 1u : vid == 0 ? 2u : 4u;
  const bool one_vlan = (rules.flags & icm::ethernet_rule_own_vlan) != 0;
  const bool wrong_vlan = one_vlan && vid != gids_[ctx.dest.port & 1]->vlan(ctx.dest.vlan_index).value_or(0);
  const auto read_vlan = [&] {
    if (one_vlan) vlan_table_.access_own(0);
  };
  if (wrong_vlan || (rules.vlan_control & kind) != 0) {
    read_vlan();
    return drop(drops_.ethernet_vlan);
  }
  if (!has_receive_queue(ctx)) {
    read_vlan();
    return drop(drops_.ethernet_no_wqe);
  }
  receive_descriptors::entry entry;
  const auto found = receives_.find(ctx, true, true, entry);
  if (found == receive_descriptors::result::pending) return verdict::wait;
  read_vlan();
  if (found == receive_descriptors::result::empty) return drop(drops_.ethernet_no_wqe);
  if (found == receive_descriptors::result::failed) return intake_.refuse(f, frame, memory_unreachable);

  ++received_;
  passed_ = true;
  responder_slot& s = intake_.begin(f, frame, responder_slot::action::write);
  payload::frame& in = *s.frame;
  s.completion.comm_est = false;
  s.ethernet = result_of(in, v, registers_.sums_packets);
  if ((rules.flags & icm::ethernet_rule_hide_vlan) != 0) s.ethernet.qpn_flags = s.ethernet.tci = 0;
  if (tagged && (rules.flags & icm::ethernet_rule_keep_vlan) == 0) {
    wire::remove_tag(in.data());
    in.begin += wire::vlan_tag_bytes;
    in.length -= wire::vlan_tag_bytes;
  }
  if ((rules.flags & icm::ethernet_rule_keep_fcs) != 0 &&
      in.begin + in.length + fcs_bytes <= payload::frame::capacity) {
    wire::store_le32(in.data() + in.length, in.fcs);
    in.length += fcs_bytes;
  }
  s.place.source = in.begin;
  return intake_.receive_whole(f, s, entry, cqe_send, in.length, false);
}

}  // namespace rnic::transport
