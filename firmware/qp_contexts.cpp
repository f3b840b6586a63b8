// SPDX-License-Identifier: Apache-2.0
// QP contexts: merging what a transition brings (adapter control plane 6.8), and translation to the hardware's form.
#include <algorithm>
#include <cstring>

#include "firmware/firmware.h"
#include "firmware/limits.h"

namespace rnic::firmware {

using icm::qp_state;
namespace q = abi::qpc;
namespace p = abi::path;
namespace mailbox = abi::qp_mailbox;

namespace {

template <class T>
void copy(std::uint8_t* to, const std::uint8_t* from, abi::field<T> f) {
  abi::set(to, f, abi::get(from, f));
}

constexpr std::uint16_t default_udp_source = 0xc000;  // until RTR2RTS brings the entropy (data plane A.10.4)

icm::path path_of(const std::uint8_t* stored) {
  const std::uint8_t* from = stored + q::primary_path;
  icm::path to{};
  std::memcpy(to.dmac, from + p::dmac, sizeof to.dmac);
  std::memcpy(to.remote_gid, from + p::remote_gid, sizeof to.remote_gid);
  to.smac_index = abi::get(from, p::mac_index);
  to.gid_index = abi::get(from, p::gid_index);
  to.hop_limit = abi::get(from, p::hop_limit);
  to.traffic_class = static_cast<std::uint8_t>(abi::get(from, p::traffic_class));
  to.vlan_index = abi::get(from, p::vlan_index);
  const bool vlan = (abi::get(from, p::feup) & p::feup_force_vlan) != 0 || (abi::get(from, p::fl) & p::fl_cvlan) != 0;
  const bool v2 = abi::get(stored, q::roce_mode) == q::roce_mode_v2;
  const bool loopback = (abi::get(from, p::fl) & p::fl_loopback) != 0;
  const bool own_vlan = (abi::get(from, p::fvl_rx) & p::fvl_rx_enforce) != 0;
  const bool physical = abi::get(stored, q::force_physical_port) != 0;
  to.flags = static_cast<std::uint8_t>(
      (vlan ? icm::path_flag_vlan : 0) | (v2 ? icm::path_flag_roce_v2 : 0) | (loopback ? icm::path_flag_loopback : 0) |
      (own_vlan ? icm::path_flag_own_vlan : 0) | (physical ? icm::path_flag_physical_port : 0));
  to.flow_label = abi::get(from, p::flow_label);
  const std::uint16_t entropy = abi::get(stored, q::roce_entropy);
  to.udp_source = entropy != 0 ? entropy : default_udp_source;
  to.priority = abi::get(from, p::priority);
  to.port = abi::get(from, p::port);
  to.pkey_index = abi::get(from, p::pkey_index);
  to.static_rate = abi::get(from, p::static_rate);
  to.counter_index = abi::get(from, p::counter_index);
  const std::uint8_t mtu = abi::get(stored, q::mtu);
  to.mtu_code = mtu >= 1 && mtu <= largest_mtu_code ? mtu : largest_mtu_code;
  return to;
}

/// What an Ethernet QP's path has in the place of the remote GID.
icm::ethernet_rules rules_of(const std::uint8_t* stored) {
  const std::uint8_t* from = stored + q::primary_path;
  const auto flag = [](bool on, std::uint8_t bit) { return on ? unsigned{bit} : 0u; };
  const unsigned flags = flag(abi::get(stored, q::vlan_strip_disable) != 0, icm::ethernet_rule_keep_vlan) |
                         flag(abi::get(stored, q::keep_fcs) != 0, icm::ethernet_rule_keep_fcs) |
                         flag((abi::get(from, p::feup) & p::feup_force_smac) != 0, icm::ethernet_rule_own_source) |
                         flag((abi::get(from, p::fvl_rx) & p::fvl_rx_enforce) != 0, icm::ethernet_rule_own_vlan) |
                         flag((abi::get(from, p::fl) & p::fl_hide_vlan) != 0, icm::ethernet_rule_hide_vlan);
  return {static_cast<std::uint8_t>(flags), abi::get(from, p::vlan_control)};
}

icm::rss_rules rss_of(const std::uint8_t* stored) {
  namespace r = abi::rss;
  const std::uint8_t* from = stored + q::rss_context;
  icm::rss_rules to{};
  to.base_qpn = abi::get(from, r::base_qpn);
  to.base_qpn_udp = abi::get(from, r::base_qpn_udp);
  to.default_qpn = abi::get(from, r::default_qpn);
  to.log_size = static_cast<std::uint8_t>(abi::get(from, r::log_size));
  to.toeplitz = abi::get(from, r::hash_function) == r::hash_toeplitz ? 1 : 0;
  to.flags = abi::get(from, r::flags) & r::flags_mask;
  std::memcpy(to.key, from + r::key, sizeof to.key);
  return to;
}

}  // namespace

/// Fields outside of a transition's set arrive as zero and must not overwrite what is stored.
void firmware::merge_qp_context(std::uint8_t* stored, abi::opcode op) const {
  const std::uint8_t* from = in_.data() + mailbox::context;
  const std::uint32_t optional = in(mailbox::optional);
  // Spreading is set up once; the fields that it lies over say nothing later (mlx4_ib leaves them zero).
  if (abi::get(stored, q::rss) != 0) return;
  switch (op) {
    case abi::opcode::rst2init_qp:
      std::copy_n(from, q::bytes, stored);
      return;
    case abi::opcode::init2rtr_qp:
      copy(stored, from, q::remote_qpn);
      if (abi::get(from, q::mtu_msgmax) != 0) copy(stored, from, q::mtu_msgmax);
      copy(stored, from, q::min_rnr_timer);
      copy(stored, from, q::next_receive_psn);
      copy(stored, from, q::responder_rdma);
      copy(stored, from, q::roce_mode);
      copy(stored, from, q::force_physical_port);
      std::copy_n(from + q::primary_path, p::bytes, stored + q::primary_path);
      merge_optional(stored, optional & ~(mailbox::opt_primary_path | mailbox::opt_ack_timeout | mailbox::opt_rra_max));
      return;
    case abi::opcode::rtr2rts_qp:
      copy(stored, from, q::next_send_psn);
      copy(stored, from, q::ack_request);
      copy(stored, from, q::fast_reg);
      copy(stored, from, q::requester_rdma);
      copy(stored, from, q::retry_count);
      copy(stored, from, q::rnr_retry);
      copy(stored, from, q::roce_entropy);
      copy(stored, from, abi::at(q::primary_path, p::ack_timeout));
      merge_optional(stored, optional & ~(mailbox::opt_retry | mailbox::opt_rnr_retry | mailbox::opt_sra_max |
                                          mailbox::opt_ack_timeout));
      return;
    case abi::opcode::to_err_qp:
      return;  // only the state matters
    default:
      merge_optional(stored, optional);
      return;
  }
}

void firmware::merge_optional(std::uint8_t* stored, std::uint32_t optional) const {
  const std::uint8_t* from = in_.data() + mailbox::context;
  const auto take = [&](std::uint32_t bit, auto field) {
    if ((optional & bit) != 0) copy(stored, from, field);
  };
  const auto path = [](auto field) { return abi::at(q::primary_path, field); };
  if ((optional & mailbox::opt_primary_path) != 0)
    std::copy_n(from + q::primary_path, p::bytes, stored + q::primary_path);
  take(mailbox::opt_rre, q::remote_read);
  take(mailbox::opt_rae, q::remote_atomic);
  take(mailbox::opt_rwe, q::remote_write);
  take(mailbox::opt_pkey, path(p::pkey_index));
  take(mailbox::opt_qkey, q::qkey);
  take(mailbox::opt_rnr_timer, q::min_rnr_timer);
  take(mailbox::opt_sra_max, q::requester_rdma);
  take(mailbox::opt_rra_max, q::responder_rdma);
  take(mailbox::opt_retry, q::retry_count);
  take(mailbox::opt_rnr_retry, q::rnr_retry);
  take(mailbox::opt_ack_timeout, path(p::ack_timeout));
  take(mailbox::opt_sched_queue, path(p::sched_queue));
  take(mailbox::opt_counter, path(p::counter_index));
  take(mailbox::opt_vlan_strip, q::vlan_strip_disable);
}

/// Everything of both halves that follows from the published context and is not changed by hardware.
void firmware::fill_static(const std::uint8_t* stored, qp_pair& qp) const {
  icm::requester_context& rq = qp.requester;
  icm::responder_context& rs = qp.responder;
  const icm::service service = service_of(stored);
  rq.qpn = rs.qpn = abi::get(stored, q::local_qpn);
  rq.remote_qpn = rs.remote_qpn = abi::get(stored, q::remote_qpn);
  rq.type = rs.type = service;
  rq.dest = rs.dest = path_of(stored);
  // An XRC message under way keeps the queue that it has named, and what comes with that.
  const bool named = service == icm::service::xrc && rs.in_message != 0;
  const std::uint32_t named_pd = rs.pd, named_cqn = rs.cqn, named_srqn = rs.srqn;
  rq.pd = rs.pd = functions::domain_of(abi::get(stored, q::pd), rq.function).value_or(0);
  rq.qkey = rs.qkey = abi::get(stored, q::qkey);
  rq.uar = abi::get(stored, q::uar);
  rq.cqn = abi::get(stored, q::send_cqn);
  rs.cqn = abi::get(stored, q::receive_cqn);
  rs.srqn = abi::get(stored, q::srq_valid) << 24 | abi::get(stored, q::srqn);
  if (service == icm::service::xrc) {
    rs.qkey = abi::get(stored, q::xrcd);
    rs.srqn = 0;
  }
  if (named) {
    rs.pd = named_pd;
    rs.cqn = named_cqn;
    rs.srqn = named_srqn;
  }
  rs.db_record = abi::get(stored, q::db_record);
  rq.sq_address = rs.rq_address = abi::load_mtt(stored, q::mtt_high, q::mtt_low);
  rq.log_page = rs.log_page = static_cast<std::uint8_t>(abi::get(stored, q::log_page) + 12);

  // Geometry of the buffer (data plane A.3.1): the queue with the larger stride comes first. Without a receive queue
  // of its own the QP's receive size is garbage.
  rq.log_sq_size = abi::get(stored, q::log_sq_size);
  rq.log_sq_stride = static_cast<std::uint8_t>(abi::get(stored, q::log_sq_stride) + 4);
  // Size and stride of one entry of 16 bytes are 0 as well; what tells them apart is the doorbell record.
  const bool has_rq = abi::get(stored, q::srq_valid) == 0 && service != icm::service::xrc &&
                      service != icm::service::rss &&
                      (abi::get(stored, q::rq_size_stride) != 0 || abi::get(stored, q::db_record) != 0);
  rs.log_rq_size = has_rq ? abi::get(stored, q::log_rq_size) : std::uint8_t{0};
  rs.log_rq_stride = has_rq ? static_cast<std::uint8_t>(abi::get(stored, q::log_rq_stride) + 4) : std::uint8_t{0};
  const std::uint32_t start = abi::get(stored, q::page_offset) * 64;
  const bool rq_first = has_rq && rs.log_rq_stride > rq.log_sq_stride;
  rq.sq_offset = start + (rq_first ? 1u << (rs.log_rq_size + rs.log_rq_stride) : 0);
  rs.rq_offset = start + (has_rq && !rq_first ? 1u << (rq.log_sq_size + rq.log_sq_stride) : 0);

  rq.ack_timeout = abi::get(stored, abi::at(q::primary_path, p::ack_timeout));
  rq.retry_limit = static_cast<std::uint8_t>(abi::get(stored, q::retry_count));
  rq.rnr_retry_limit = static_cast<std::uint8_t>(abi::get(stored, q::rnr_retry));
  rq.log_max_rd_atomic = static_cast<std::uint8_t>(abi::get(stored, q::requester_rdma));
  rq.rate_limit = abi::get(stored, q::rate_limit);
  rq.vport = abi::get(stored, q::qos_vport);
  rq.ack_request_log = static_cast<std::uint8_t>(abi::get(stored, q::ack_request));
  const bool reserved_lkey = abi::get(stored, q::reserved_lkey) != 0;
  const bool fast_reg = abi::get(stored, q::fast_reg) != 0;
  rq.flags = static_cast<std::uint8_t>((rq.flags & icm::requester_flag_unlimited) |
                                       (reserved_lkey ? icm::requester_flag_reserved_lkey : 0) |
                                       (fast_reg ? icm::requester_flag_fast_reg : 0));
  const bool inline_receive = has_rq && abi::get(stored, q::inline_receive) != 0;
  constexpr unsigned configured =
      icm::responder_flag_reserved_lkey | icm::responder_flag_inline_receive | icm::responder_flag_no_credits;
  const bool no_credits = abi::get(stored, q::no_credits) != 0;
  rs.flags = static_cast<std::uint8_t>(
      (rs.flags & ~configured) | (reserved_lkey ? icm::responder_flag_reserved_lkey : 0) |
      (inline_receive ? icm::responder_flag_inline_receive : 0) | (no_credits ? icm::responder_flag_no_credits : 0));
  rs.access = static_cast<std::uint8_t>((abi::get(stored, q::remote_write) != 0 ? icm::responder_access_write : 0) |
                                        (abi::get(stored, q::remote_read) != 0 ? icm::responder_access_read : 0) |
                                        (abi::get(stored, q::remote_atomic) != 0 ? icm::responder_access_atomic : 0));
  rs.rnr_timer = static_cast<std::uint8_t>(abi::get(stored, q::min_rnr_timer));
  rs.log_max_rd_atomic = static_cast<std::uint8_t>(abi::get(stored, q::responder_rdma));

  if (service == icm::service::ethernet) {
    icm::set_rules(rq.dest, rules_of(stored));
    icm::set_rules(rs.dest, rules_of(stored));
  } else if (service == icm::service::rss) {
    rs.srqn = 0;
    icm::set_rss(rs, rss_of(stored));
  }
}

/// MLX queue pairs are of three kinds (adapter control plane 6.6): those that spread frames, Ethernet ones, which a
/// path of Ethernet link type tells, and special ones with headers of software's making.
icm::service firmware::service_of(const std::uint8_t* stored) const {
  const auto service = static_cast<icm::service>(abi::get(stored, q::service));
  if (service != icm::service::mlx) return service;
  if (abi::get(stored, q::rss) != 0) return icm::service::rss;
  const std::uint32_t qpn = abi::get(stored, q::local_qpn);
  const bool special = special_qp_base_ != 0 && qpn - special_qp_base_ < 8;
  const bool ethernet = abi::get(stored, abi::at(q::primary_path, p::link_type)) == p::link_ethernet;
  return ethernet && !special ? icm::service::ethernet : service;
}

/// State, and the fields with which hardware starts.
void firmware::fill_live(const std::uint8_t* stored, abi::opcode op, icm::qp_state to, qp_pair& qp) const {
  icm::requester_context& rq = qp.requester;
  icm::responder_context& rs = qp.responder;
  rq.state = to;
  const bool send_side_only = to == qp_state::sqd;
  rs.state = send_side_only ? qp_state::rts : to;
  if (op == abi::opcode::init2rtr_qp) {
    rs.expected_psn = abi::get(stored, q::next_receive_psn);
    rs.msn = 0;
  }
  if (op == abi::opcode::rtr2rts_qp) {
    rq.next_psn = rq.unacked_psn = abi::get(stored, q::next_send_psn);
    rq.receives_told = rq.receives_used = 0;  // IBA 9.7.7.2: none are known of at first
    rq.flags = static_cast<std::uint8_t>(rq.flags & ~icm::requester_flag_unlimited);
    rq.retries_left = rq.retry_limit;
    rq.rnr_retries_left = rq.rnr_retry_limit;
  }
}

/// The stored context with what hardware has changed since.
void firmware::publish_qp(const qp_pair& qp, std::uint8_t* stored) const {
  const icm::requester_context& rq = qp.requester;
  const icm::responder_context& rs = qp.responder;
  constexpr std::uint32_t psn_mask = 0xffffff;
  abi::set(stored, q::state, static_cast<std::uint32_t>(state_of(qp)));
  abi::set(stored, q::next_send_psn, rq.next_psn);
  abi::set(stored, q::last_acked_psn, (rq.unacked_psn - 1) & psn_mask);
  abi::set(stored, q::ssn, rq.next_wqe & psn_mask);
  abi::set(stored, q::next_receive_psn, rs.expected_psn);
  abi::set(stored, q::msn, rs.msn);
  abi::set(stored, q::rq_counter, rs.rq_consumed);
  abi::set(stored, q::sq_counter, static_cast<std::uint16_t>(rq.next_wqe));
}

}  // namespace rnic::firmware
