// SPDX-License-Identifier: Apache-2.0
#include "host_driver/cm/messages.h"

#include <algorithm>

#include "model/abi/endian.h"

namespace rnic::host_driver::cm {

namespace {

using abi::bits32;
using abi::bits8;
using abi::get;
using abi::set;
using abi::u16;
using abi::u32;
using abi::u64;
using abi::u8;

constexpr std::uint8_t base_version = 1, class_cm = 0x07, class_version = 2, method_send = 3;

// Header common to all management datagrams, 24 bytes.
constexpr auto f_base = u8(0), f_class = u8(1), f_class_version = u8(2), f_method = u8(3);
constexpr auto f_transaction = u64(8);
constexpr auto f_attribute = u16(16);

// Fields of the messages, from the start of the datagram (IBA volume 1, 12.6).
constexpr auto local_id = u32(24), remote_id = u32(28);
namespace req {
constexpr auto service_id = u64(32), ca_guid = u64(40);
constexpr auto qkey = u32(52), qpn = bits32(56, 31, 8), psn = bits32(68, 31, 8);
constexpr auto responder_resources = u8(59), initiator_depth = u8(63);
constexpr auto remote_timeout = bits8(67, 7, 3), transport = bits8(67, 2, 1), flow_control = bits8(67, 0, 0);
constexpr auto local_timeout = bits8(71, 7, 3), retry = bits8(71, 2, 0);
constexpr auto pkey = u16(72);
constexpr auto mtu = bits8(74, 7, 4), rnr_retry = bits8(74, 2, 0);
constexpr auto max_retries = bits8(75, 7, 4), srq = bits8(75, 3, 3);
constexpr auto local_lid = u16(76), remote_lid = u16(78);
constexpr std::size_t local_gid = 80, remote_gid = 96;
constexpr auto flow_label = bits32(112, 31, 12);
constexpr auto rate = bits8(115, 5, 0), traffic_class = u8(116), hop_limit = u8(117), service_level = bits8(118, 7, 4),
               subnet_local = bits8(118, 3, 3), ack_timeout = bits8(119, 7, 3);
constexpr std::uint16_t permissive_lid = 0xffff;
}  // namespace req
namespace rep {
constexpr auto qkey = u32(32), qpn = bits32(36, 31, 8), psn = bits32(44, 31, 8);
constexpr auto responder_resources = u8(48), initiator_depth = u8(49);
constexpr auto ack_delay = bits8(50, 7, 3), flow_control = bits8(50, 0, 0);
constexpr auto rnr_retry = bits8(51, 7, 5), srq = bits8(51, 4, 4);
constexpr auto ca_guid = u64(52);
}  // namespace rep
constexpr auto subject = bits8(32, 7, 6), mra_timeout = bits8(33, 7, 3);
constexpr auto rej_reason = u16(34);
constexpr auto dreq_qpn = bits32(32, 31, 8);
namespace sidr {
constexpr auto pkey = u16(28);
constexpr auto service_id = u64(32);
constexpr auto status = u8(28);
constexpr auto qpn = bits32(32, 31, 8), qkey = u32(44);
constexpr auto reply_service = u64(36);
}  // namespace sidr

struct room {
  std::size_t at, bytes;
};
room private_room(message kind) {
  switch (kind) {
    case message::req:
      return {164, 92};
    case message::mra:
      return {34, 222};
    case message::rej:
      return {108, 148};
    case message::rep:
      return {60, 196};
    case message::rtu:
    case message::drep:
      return {32, 224};
    case message::dreq:
      return {36, 220};
    case message::sidr_req:
      return {40, 216};
    default:
      return {120, 136};
  }
}

void put_request(std::uint8_t* m, const connection_data& c) {
  set(m, req::service_id, c.service_id);
  set(m, req::ca_guid, c.ca_guid);
  set(m, req::qkey, c.qkey);
  set(m, req::qpn, c.qpn);
  set(m, req::psn, c.psn);
  set(m, req::responder_resources, c.responder_resources);
  set(m, req::initiator_depth, c.initiator_depth);
  set(m, req::remote_timeout, c.remote_cm_timeout);
  set(m, req::transport, c.transport);
  set(m, req::flow_control, c.flow_control ? 1 : 0);
  set(m, req::local_timeout, c.local_cm_timeout);
  set(m, req::retry, c.retry_count);
  set(m, req::pkey, c.pkey);
  set(m, req::mtu, c.mtu_code);
  set(m, req::rnr_retry, c.rnr_retry_count);
  set(m, req::max_retries, c.max_cm_retries);
  set(m, req::srq, c.shared_receive_queue ? 1 : 0);
  const path_record& p = c.path;
  const bool one_subnet = p.hop_limit <= 1;
  set(m, req::local_lid, one_subnet ? 0 : req::permissive_lid);
  set(m, req::remote_lid, one_subnet ? 0 : req::permissive_lid);
  std::copy(p.local.begin(), p.local.end(), m + req::local_gid);
  std::copy(p.remote.begin(), p.remote.end(), m + req::remote_gid);
  set(m, req::flow_label, p.flow_label);
  set(m, req::rate, p.rate);
  set(m, req::traffic_class, p.traffic_class);
  set(m, req::hop_limit, p.hop_limit);
  set(m, req::service_level, p.service_level);
  set(m, req::subnet_local, one_subnet ? 1 : 0);
  set(m, req::ack_timeout, p.ack_timeout);
}

void take_request(const std::uint8_t* m, connection_data& c) {
  c.service_id = get(m, req::service_id);
  c.ca_guid = get(m, req::ca_guid);
  c.qkey = get(m, req::qkey);
  c.qpn = get(m, req::qpn);
  c.psn = get(m, req::psn);
  c.responder_resources = get(m, req::responder_resources);
  c.initiator_depth = get(m, req::initiator_depth);
  c.remote_cm_timeout = get(m, req::remote_timeout);
  c.transport = get(m, req::transport);
  c.flow_control = get(m, req::flow_control) != 0;
  c.local_cm_timeout = get(m, req::local_timeout);
  c.retry_count = get(m, req::retry);
  c.pkey = get(m, req::pkey);
  c.mtu_code = get(m, req::mtu);
  c.rnr_retry_count = get(m, req::rnr_retry);
  c.max_cm_retries = get(m, req::max_retries);
  c.shared_receive_queue = get(m, req::srq) != 0;
  path_record& p = c.path;
  std::copy_n(m + req::local_gid, p.local.size(), p.local.begin());
  std::copy_n(m + req::remote_gid, p.remote.size(), p.remote.begin());
  p.flow_label = get(m, req::flow_label);
  p.rate = get(m, req::rate);
  p.traffic_class = get(m, req::traffic_class);
  p.hop_limit = get(m, req::hop_limit);
  p.service_level = get(m, req::service_level);
  p.ack_timeout = get(m, req::ack_timeout);
}

void put_reply(std::uint8_t* m, const connection_data& c) {
  set(m, rep::qkey, c.qkey);
  set(m, rep::qpn, c.qpn);
  set(m, rep::psn, c.psn);
  set(m, rep::responder_resources, c.responder_resources);
  set(m, rep::initiator_depth, c.initiator_depth);
  set(m, rep::ack_delay, c.target_ack_delay);
  set(m, rep::flow_control, c.flow_control ? 1 : 0);
  set(m, rep::rnr_retry, c.rnr_retry_count);
  set(m, rep::srq, c.shared_receive_queue ? 1 : 0);
  set(m, rep::ca_guid, c.ca_guid);
}

void take_reply(const std::uint8_t* m, connection_data& c) {
  c.qkey = get(m, rep::qkey);
  c.qpn = get(m, rep::qpn);
  c.psn = get(m, rep::psn);
  c.responder_resources = get(m, rep::responder_resources);
  c.initiator_depth = get(m, rep::initiator_depth);
  c.target_ack_delay = get(m, rep::ack_delay);
  c.flow_control = get(m, rep::flow_control) != 0;
  c.rnr_retry_count = get(m, rep::rnr_retry);
  c.shared_receive_queue = get(m, rep::srq) != 0;
  c.ca_guid = get(m, rep::ca_guid);
}

void put_service(std::uint8_t* m, const contents& c) {
  const service_data& s = c.service;
  if (c.kind == message::sidr_req) {
    set(m, local_id, c.local_id);
    set(m, sidr::pkey, s.pkey);
    set(m, sidr::service_id, s.service_id);
    return;
  }
  set(m, local_id, c.remote_id);
  set(m, sidr::status, s.status);
  set(m, sidr::qpn, s.qpn);
  set(m, sidr::reply_service, s.service_id);
  set(m, sidr::qkey, s.qkey);
}

void take_service(const std::uint8_t* m, contents& c) {
  service_data& s = c.service;
  if (c.kind == message::sidr_req) {
    c.local_id = get(m, local_id);
    s.pkey = get(m, sidr::pkey);
    s.service_id = get(m, sidr::service_id);
    return;
  }
  c.remote_id = get(m, local_id);
  s.status = get(m, sidr::status);
  s.qpn = get(m, sidr::qpn);
  s.service_id = get(m, sidr::reply_service);
  s.qkey = get(m, sidr::qkey);
}

bool known(std::uint16_t attribute) {
  return attribute >= static_cast<std::uint16_t>(message::req) &&
         attribute <= static_cast<std::uint16_t>(message::sidr_rep);
}

bool is_service(message kind) { return kind == message::sidr_req || kind == message::sidr_rep; }

}  // namespace

std::size_t private_bytes(message kind) { return private_room(kind).bytes; }

mad encode(const contents& c) {
  mad m{};
  set(m.data(), f_base, base_version);
  set(m.data(), f_class, class_cm);
  set(m.data(), f_class_version, class_version);
  set(m.data(), f_method, method_send);
  set(m.data(), f_transaction, c.transaction);
  set(m.data(), f_attribute, static_cast<std::uint16_t>(c.kind));
  if (is_service(c.kind)) {
    put_service(m.data(), c);
  } else {
    set(m.data(), local_id, c.local_id);
    if (c.kind != message::req) set(m.data(), remote_id, c.remote_id);
  }
  if (c.kind == message::req) put_request(m.data(), c.connection);
  if (c.kind == message::rep) put_reply(m.data(), c.connection);
  if (c.kind == message::dreq) set(m.data(), dreq_qpn, c.remote_qpn);
  if (c.kind == message::mra || c.kind == message::rej) set(m.data(), subject, static_cast<std::uint8_t>(c.subject));
  if (c.kind == message::mra) set(m.data(), mra_timeout, c.service_timeout);
  if (c.kind == message::rej) set(m.data(), rej_reason, static_cast<std::uint16_t>(c.why));
  const room r = private_room(c.kind);
  std::copy_n(c.private_data.begin(), r.bytes, m.begin() + static_cast<std::ptrdiff_t>(r.at));
  return m;
}

std::optional<contents> decode(const std::uint8_t* m, std::size_t length) {
  if (length != mad_length || get(m, f_base) != base_version || get(m, f_class) != class_cm ||
      get(m, f_class_version) != class_version || get(m, f_method) != method_send || !known(get(m, f_attribute)))
    return std::nullopt;
  contents c;
  c.kind = static_cast<message>(get(m, f_attribute));
  c.transaction = get(m, f_transaction);
  if (is_service(c.kind)) {
    take_service(m, c);
  } else {
    c.local_id = get(m, local_id);
    if (c.kind != message::req) c.remote_id = get(m, remote_id);
  }
  if (c.kind == message::req) take_request(m, c.connection);
  if (c.kind == message::rep) take_reply(m, c.connection);
  if (c.kind == message::dreq) c.remote_qpn = get(m, dreq_qpn);
  if (c.kind == message::mra || c.kind == message::rej) c.subject = static_cast<about>(get(m, subject));
  if (c.kind == message::mra) c.service_timeout = get(m, mra_timeout);
  if (c.kind == message::rej) c.why = static_cast<reason>(get(m, rej_reason));
  const room r = private_room(c.kind);
  std::copy_n(m + r.at, r.bytes, c.private_data.begin());
  return c;
}

namespace {
constexpr auto ip_version = bits8(1, 7, 4);
constexpr auto ip_port = u16(2);
constexpr std::size_t ip_source = 4, ip_destination = 20, ipv4_at = 12;
constexpr gid_bytes mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0};

gid_bytes address_at(const std::uint8_t* from, bool v4) {
  gid_bytes g = mapped;
  const std::size_t skip = v4 ? ipv4_at : 0;
  std::copy(from + skip, from + g.size(), g.begin() + static_cast<std::ptrdiff_t>(skip));
  return g;
}
}  // namespace

void put_ip_header(const ip_header& h, std::uint8_t* to) {
  const bool v4 = is_ipv4(h.destination);
  std::fill_n(to, ip_header::bytes, std::uint8_t{0});
  set(to, ip_version, v4 ? 4 : 6);
  set(to, ip_port, h.source_port);
  const std::size_t skip = v4 ? ipv4_at : 0;
  std::copy(h.source.begin() + static_cast<std::ptrdiff_t>(skip), h.source.end(), to + ip_source + skip);
  std::copy(h.destination.begin() + static_cast<std::ptrdiff_t>(skip), h.destination.end(), to + ip_destination + skip);
}

std::optional<ip_header> get_ip_header(const std::uint8_t* from) {
  const std::uint8_t version = get(from, ip_version);
  if (from[0] != 0 || (version != 4 && version != 6)) return std::nullopt;
  ip_header h;
  h.source_port = get(from, ip_port);
  h.source = address_at(from + ip_source, version == 4);
  h.destination = address_at(from + ip_destination, version == 4);
  return h;
}

}  // namespace rnic::host_driver::cm
