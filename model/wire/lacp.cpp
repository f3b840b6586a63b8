// SPDX-License-Identifier: Apache-2.0
#include "model/wire/lacp.h"

#include <algorithm>

#include "model/wire/bytes.h"

namespace rnic::wire {

namespace {

constexpr std::uint8_t subtype_lacp = 1, subtype_marker = 2, last_subtype = 10;  // 802.3 table 57A-3
constexpr std::uint8_t version = 1;
constexpr std::size_t at_subtype = 0, at_version = 1;

struct tlv {
  std::size_t at;
  std::uint8_t type, length;  // with type and length themselves
};
constexpr tlv actor_information{2, 1, 20}, partner_information{22, 2, 20}, collector_information{42, 3, 16};
constexpr std::size_t at_marker = 2;
constexpr std::uint8_t marker_information = 1, marker_response = 2, marker_length = 16;

bool stands(const tlv& t, const std::uint8_t* body) { return body[t.at] == t.type && body[t.at + 1] == t.length; }

void begin(const tlv& t, std::uint8_t* body) {
  body[t.at] = t.type;
  body[t.at + 1] = t.length;
}

void store(const lacp_end& e, const tlv& t, std::uint8_t* body) {
  begin(t, body);
  std::uint8_t* to = body + t.at + 2;
  store_be16(to, e.system_priority);
  std::copy(e.system.begin(), e.system.end(), to + 2);
  store_be16(to + 8, e.key);
  store_be16(to + 10, e.port_priority);
  store_be16(to + 12, e.port);
  to[14] = e.state;
}

lacp_end load(const tlv& t, const std::uint8_t* body) {
  const std::uint8_t* from = body + t.at + 2;
  lacp_end e;
  e.system_priority = load_be16(from);
  std::copy_n(from + 2, e.system.size(), e.system.begin());
  e.key = load_be16(from + 8);
  e.port_priority = load_be16(from + 10);
  e.port = load_be16(from + 12);
  e.state = from[14];
  return e;
}

slow_protocol take_lacp(const std::uint8_t* body, lacp_unit& to) {
  if (body[at_version] == 0 || !stands(actor_information, body) || !stands(partner_information, body) ||
      !stands(collector_information, body))
    return slow_protocol::illegal;
  to = {load(actor_information, body), load(partner_information, body), load_be16(body + collector_information.at + 2)};
  return slow_protocol::lacp;
}

slow_protocol take_marker(const std::uint8_t* body, marker_unit& to) {
  const std::uint8_t type = body[at_marker];
  if (body[at_version] == 0 || (type != marker_information && type != marker_response) ||
      body[at_marker + 1] != marker_length)
    return slow_protocol::illegal;
  const std::uint8_t* from = body + at_marker + 2;
  to.response = type == marker_response;
  to.port = load_be16(from);
  std::copy_n(from + 2, to.system.size(), to.system.begin());
  to.transaction = load_be32(from + 8);
  return slow_protocol::marker;
}

}  // namespace

slow_protocol decode_slow_protocol(const std::uint8_t* body, std::size_t length, lacp_unit& lacp, marker_unit& marker) {
  if (length == 0 || body[at_subtype] == 0 || body[at_subtype] > last_subtype) return slow_protocol::illegal;
  if (body[at_subtype] > subtype_marker) return slow_protocol::unknown;
  if (length < slow_protocol_bytes) return slow_protocol::illegal;
  return body[at_subtype] == subtype_lacp ? take_lacp(body, lacp) : take_marker(body, marker);
}

std::vector<std::uint8_t> encode_lacp(const lacp_unit& unit) {
  std::vector<std::uint8_t> body(slow_protocol_bytes);
  body[at_subtype] = subtype_lacp;
  body[at_version] = version;
  store(unit.actor, actor_information, body.data());
  store(unit.partner, partner_information, body.data());
  begin(collector_information, body.data());
  store_be16(&body[collector_information.at + 2], unit.collector_max_delay);
  return body;  // a terminator is zero
}

std::vector<std::uint8_t> encode_marker(const marker_unit& unit) {
  std::vector<std::uint8_t> body(slow_protocol_bytes);
  body[at_subtype] = subtype_marker;
  body[at_version] = version;
  body[at_marker] = unit.response ? marker_response : marker_information;
  body[at_marker + 1] = marker_length;
  std::uint8_t* to = &body[at_marker + 2];
  store_be16(to, unit.port);
  std::copy(unit.system.begin(), unit.system.end(), to + 2);
  store_be32(to + 8, unit.transaction);
  return body;
}

}  // namespace rnic::wire
