// SPDX-License-Identifier: Apache-2.0
#include "model/transport/congestion/cnm_receiver.h"

#include <optional>
#include <utility>

#include "model/transport/congestion/qcn_cr.h"
#include "model/wire/bytes.h"

namespace rnic::transport {

namespace {

/// The BTH in what a CNM gives back, which begins with the EtherType; nothing: it is no packet of RoCE, or cut off.
const std::uint8_t* bth_of(const wire::cnm& m, std::uint16_t roce_v2_port) {
  constexpr std::size_t type_bytes = 2, grh_bytes = 40, ipv6_bytes = 40, udp_bytes = 8, bth_bytes = 12;
  constexpr std::uint8_t udp = 17;
  const std::uint8_t* d = m.msdu.data();
  const std::size_t length = m.msdu_bytes;
  if (length < type_bytes) return nullptr;
  const auto at = [&](std::size_t bth) { return length >= bth + bth_bytes ? d + bth : nullptr; };
  const auto behind_udp = [&](std::size_t header, bool is_udp) {
    const bool port = is_udp && length >= header + udp_bytes && wire::load_be16(d + header + 2) == roce_v2_port;
    return port ? at(header + udp_bytes) : nullptr;
  };
  switch (wire::load_be16(d)) {
    case static_cast<std::uint16_t>(wire::ether_type::roce_v1):
      return at(type_bytes + grh_bytes);
    case static_cast<std::uint16_t>(wire::ether_type::ipv4):
      return length > type_bytes + 9 ? behind_udp(type_bytes + (d[type_bytes] & 0xfu) * 4, d[type_bytes + 9] == udp)
                                     : nullptr;
    case static_cast<std::uint16_t>(wire::ether_type::ipv6):
      return length > type_bytes + 6 ? behind_udp(type_bytes + ipv6_bytes, d[type_bytes + 6] == udp) : nullptr;
    default:
      return nullptr;
  }
}

/// The half of the transport that sends packets of this opcode at a rate of their queue pair; nothing: answers that are
/// no READ responses, and CNPs.
std::optional<cnm_receiver::half> half_of(std::uint8_t opcode) {
  constexpr std::uint8_t operation_mask = 0x1f, first_read_response = 0x0d, last_read_response = 0x10,
                         last_answer = 0x12, manufacturer = 0x80, xrc = 0xa0;
  if (opcode >= manufacturer && opcode < xrc) return std::nullopt;
  const std::uint8_t operation = opcode & operation_mask;
  if (operation >= first_read_response && operation <= last_read_response) return cnm_receiver::responses;
  if (operation > last_read_response && operation <= last_answer) return std::nullopt;
  return cnm_receiver::requests;
}

}  // namespace

cnm_receiver::cnm_receiver(std::string name, sim::clock_domain& domain, const qcn_config& config,
                           const gid_tables& gids, const std::uint16_t& roce_v2_port, sim::statistics& stats)
    : clocked_block(name, domain),
      config_(sim::checked(config, this->name())),
      gids_(gids),
      roce_v2_port_(roce_v2_port) {
  const std::pair<const char*, const std::uint64_t*> all[] = {
      {"received", &count_.received},    {"notices", &count_.notices},
      {"drop_version", &count_.version}, {"drop_malformed", &count_.malformed},
      {"drop_address", &count_.address}, {"drop_empty", &count_.empty},
      {"drop_flow", &count_.flow}};
  for (const auto& [n, counter] : all) stats.add(this->name() + "." + n, *counter);
}

void cnm_receiver::tick() {
  if (!engine_.is_free()) return engine_.await();
  if (waits_) {
    if (!notices[to_].claim()) return engine_.blocked("notices");
    notices[to_].push(notice_);
    waits_ = false;
    ++count_.notices;
  }
  if (take()) engine_.await();
}

bool cnm_receiver::take() {
  for (const unsigned port : {next_port_, next_port_ ^ 1}) {
    if (!cnms[port].can_pop()) continue;
    next_port_ = port ^ 1;
    const payload::frame_ptr f = cnms[port].pop();
    ++count_.received;
    examine(*f, port);
    engine_.start(config_.cnm_cycles);
    return true;
  }
  return false;
}

void cnm_receiver::examine(const payload::frame& f, unsigned port) {
  wire::cnm m;
  const wire::cnm_kind kind = wire::decode_cnm(f.data(), f.length, m);
  if (!is_acceptable(m, kind, port)) return;
  const std::uint8_t* bth = bth_of(m, roce_v2_port_);
  const auto sender = bth != nullptr ? half_of(bth[0]) : std::nullopt;
  if (!sender) {
    ++count_.flow;
    ++ignored_[qcn_group_of(port, m.priority)];
    return;
  }
  notice_.port = static_cast<std::uint8_t>(port);
  notice_.priority = m.priority;
  notice_.feedback = m.feedback;
  notice_.dmac = m.sampled_dmac;
  constexpr std::size_t dest_qp_at = 4;
  constexpr std::uint32_t qpn_mask = 0xffffff;
  notice_.dest_qp = wire::load_be32(bth + dest_qp_at) & qpn_mask;
  to_ = *sender;
  waits_ = true;
}

bool cnm_receiver::is_ours(const wire::cnm& m, unsigned port) {
  mac_table_.access_own(0);
  return gids_[port]->owns(m.dmac);
}

bool cnm_receiver::is_acceptable(const wire::cnm& m, wire::cnm_kind kind, unsigned port) {
  std::uint64_t* const drop = kind == wire::cnm_kind::unsupported ? &count_.version
                              : kind != wire::cnm_kind::message   ? &count_.malformed
                              : !is_ours(m, port)                 ? &count_.address
                              : m.feedback == 0                   ? &count_.empty
                                                                  : nullptr;
  if (drop != nullptr) ++*drop;
  return drop == nullptr;
}

std::uint32_t cnm_receiver::cr_read(std::uint32_t offset) {
  const std::uint32_t word = (offset - cr::cnm_ignored) / 4;
  return word < ignored_.size() ? ignored_[word] : 0;
}

void cnm_receiver::device_reset() {
  ignored_.fill(0);
  waits_ = false;
  engine_.idle();
  wake_next();  // what is behind the notice that has waited
}

}  // namespace rnic::transport
