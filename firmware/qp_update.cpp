// SPDX-License-Identifier: Apache-2.0
// UPDATE_QP: single fields of a queue pair in any state (adapter control plane 4.16).
#include <algorithm>

#include "firmware/context_access.h"
#include "firmware/firmware.h"

namespace rnic::firmware {

using icm::qp_state;
using icm::table;
namespace q = abi::qpc;
namespace u = abi::update_qp;

namespace {

constexpr std::uint16_t any_state = 0xff & ~(1u << static_cast<unsigned>(qp_state::reset));
constexpr std::uint64_t bit(unsigned n) { return std::uint64_t{1} << n; }

/// The kernel's driver names the service VLAN, too, for each running queue pair of a function whose settings change
/// (net/resource_tracker.c: mlx4_vf_immed_vlan_work_handler), with or without SVLAN_BY_QP.
constexpr std::uint64_t known_path_bits() {
  std::uint64_t known = bit(u::service_vlan_bit);
  for (const u::path_field& f : u::path_fields) known |= bit(f.bit);
  return known;
}

}  // namespace

/// Unit 0 takes the limit away and has no value; the others have one.
bool firmware::rate_limit_ok(std::uint16_t limit) {
  const unsigned unit = limit >> abi::qp_rate::unit_shift, value = limit & abi::qp_rate::value_mask;
  return (limit & abi::qp_rate::reserved) == 0 && (unit == abi::qp_rate::none) == (value == 0);
}

abi::status firmware::update_qp(command_request& r) {
  const std::uint32_t qpn = r.modifier & 0xffffff;
  if (const status s = read_mailbox(r, u::context + q::bytes); s != status::ok) return s;
  if (find_qp(qpn) == nullptr) return qps_.count(qp_index(qpn)) != 0 ? status::bad_index : status::bad_qp_state;
  const std::uint64_t path = in(u::path_mask), fields = in(u::qp_mask);
  constexpr std::uint64_t known_fields = bit(u::vlan_strip_bit) | bit(u::qos_vport_bit) | bit(u::rate_limit_bit);
  if ((path & ~known_path_bits()) != 0 || (fields & ~known_fields) != 0 || in(u::alternate_path_mask) != 0)
    return status::bad_param;
  if ((fields & bit(u::rate_limit_bit)) != 0 && !rate_limit_ok(in(q::rate_limit, u::context))) return status::bad_param;
  const bool service_vlan = (in_[u::context + q::primary_path] & abi::path::fl_svlan) != 0;
  if ((path & bit(u::service_vlan_bit)) != 0 && service_vlan) return status::bad_param;  // SVLAN_BY_QP is not announced

  std::array<std::uint8_t, q::bytes> stored{};
  qp_pair qp{};
  if (!chip_.publish_qp(qpn)) return status::internal_error;
  if (!load_context(table::qpc, qp_index(qpn), qp) || !load_context(table::altc, qp_index(qpn), stored))
    return status::icm_error;
  if (qp.requester.type == icm::service::rss) return status::bad_param;  // another thing lies in these fields
  if (const status s = merge_update(path, fields, stored.data()); s != status::ok) return s;
  return hand_over({abi::opcode::update_qp, any_state, qp_state::reset}, qp_index(qpn), stored.data(), qp);
}

abi::status firmware::merge_update(std::uint64_t path, std::uint64_t fields, std::uint8_t* stored) const {
  namespace p = abi::path;
  const std::uint8_t* from = in_.data() + u::context;
  for (const u::path_field& f : u::path_fields) {
    if ((path & bit(f.bit)) == 0) continue;
    std::uint8_t& to = stored[q::primary_path + f.byte];
    to = static_cast<std::uint8_t>((to & ~f.mask) | (from[q::primary_path + f.byte] & f.mask));
  }
  if ((fields & bit(u::vlan_strip_bit)) != 0)
    abi::set(stored, q::vlan_strip_disable, in(q::vlan_strip_disable, u::context));
  if ((fields & bit(u::qos_vport_bit)) != 0) abi::set(stored, q::qos_vport, in(q::qos_vport, u::context));
  if ((fields & bit(u::rate_limit_bit)) != 0) abi::set(stored, q::rate_limit, in(q::rate_limit, u::context));
  constexpr unsigned table_size = 128;
  const std::uint8_t* primary = stored + q::primary_path;
  const bool fits = abi::get(primary, p::vlan_index) < table_size && abi::get(primary, p::port) < config_.num_ports;
  return fits ? status::ok : status::bad_param;
}

}  // namespace rnic::firmware
