// SPDX-License-Identifier: Apache-2.0
#include "model/wire/cnm.h"

#include <algorithm>

#include "model/wire/bytes.h"

namespace rnic::wire {

namespace {

constexpr std::size_t addresses = 12, type_bytes = 2, tag_bytes = 4, pdu_bytes = 24;
// In the PDU.
constexpr std::size_t cpid_at = 2, offset_at = 10, delta_at = 12, priority_at = 14, dmac_at = 16, msdu_length_at = 22,
                      msdu_at = 24;
constexpr unsigned version_shift = 12, priority_shift = 13;

/// Where the EtherType behind the tags is, and what the tags say.
struct tags {
  std::size_t type_at = addresses;
  std::optional<std::uint16_t> vlan_tci, flow;
};

tags tags_of(const std::uint8_t* frame, std::size_t length) {
  tags t;
  const auto take = [&](std::uint16_t type, std::optional<std::uint16_t>& value) {
    if (length < t.type_at + tag_bytes + type_bytes || load_be16(frame + t.type_at) != type) return;
    value = load_be16(frame + t.type_at + type_bytes);
    t.type_at += tag_bytes;
  };
  take(static_cast<std::uint16_t>(ether_type::vlan), t.vlan_tci);
  take(ether_type_cn_tag, t.flow);
  return t;
}

bool has_type(const std::uint8_t* frame, std::size_t length, const tags& t) {
  return length >= t.type_at + type_bytes && load_be16(frame + t.type_at) == ether_type_cnm;
}

}  // namespace

bool is_cnm(const std::uint8_t* frame, std::size_t length) { return has_type(frame, length, tags_of(frame, length)); }

cnm_kind decode_cnm(const std::uint8_t* frame, std::size_t length, cnm& out) {
  const tags t = tags_of(frame, length);
  if (!has_type(frame, length, t)) return cnm_kind::none;
  const std::size_t at = t.type_at + type_bytes;
  if (length < at + type_bytes) return cnm_kind::malformed;
  const std::uint8_t* p = frame + at;
  const std::uint16_t head = load_be16(p);
  if (head >> version_shift != 0) return cnm_kind::unsupported;
  if (length < at + pdu_bytes) return cnm_kind::malformed;
  const std::uint16_t bytes = load_be16(p + msdu_length_at);
  if (bytes > cnm_most_msdu || length < at + pdu_bytes + bytes) return cnm_kind::malformed;
  out = cnm{};
  std::copy_n(frame, out.dmac.size(), out.dmac.begin());
  std::copy_n(frame + out.dmac.size(), out.smac.size(), out.smac.begin());
  out.vlan_tci = t.vlan_tci;
  out.flow = t.flow;
  out.feedback = head & cnm_most_feedback;
  out.cpid = load_be64(p + cpid_at);
  out.q_offset = static_cast<std::int16_t>(load_be16(p + offset_at));
  out.q_delta = static_cast<std::int16_t>(load_be16(p + delta_at));
  out.priority = static_cast<std::uint8_t>(load_be16(p + priority_at) >> priority_shift);
  std::copy_n(p + dmac_at, out.sampled_dmac.size(), out.sampled_dmac.begin());
  out.msdu_bytes = static_cast<std::uint8_t>(bytes);
  std::copy_n(p + msdu_at, bytes, out.msdu.begin());
  return cnm_kind::message;
}

std::size_t encode_cnm(const cnm& m, std::uint8_t* to) {
  std::copy(m.dmac.begin(), m.dmac.end(), to);
  std::copy(m.smac.begin(), m.smac.end(), to + m.dmac.size());
  std::size_t at = addresses;
  const auto put16 = [&](std::uint16_t v) {
    store_be16(to + at, v);
    at += sizeof v;
  };
  const auto put_tag = [&](std::uint16_t type, std::optional<std::uint16_t> value) {
    if (!value) return;
    put16(type);
    put16(*value);
  };
  put_tag(static_cast<std::uint16_t>(ether_type::vlan), m.vlan_tci);
  put_tag(ether_type_cn_tag, m.flow);
  put16(ether_type_cnm);
  put16(m.feedback & cnm_most_feedback);
  store_be64(to + at, m.cpid);
  at += sizeof m.cpid;
  put16(static_cast<std::uint16_t>(m.q_offset));
  put16(static_cast<std::uint16_t>(m.q_delta));
  put16(static_cast<std::uint16_t>(m.priority << priority_shift));
  std::copy(m.sampled_dmac.begin(), m.sampled_dmac.end(), to + at);
  at += m.sampled_dmac.size();
  const std::size_t bytes = std::min<std::size_t>(m.msdu_bytes, cnm_most_msdu);
  put16(static_cast<std::uint16_t>(bytes));
  std::copy_n(m.msdu.begin(), bytes, to + at);
  return at + bytes;
}

}  // namespace rnic::wire
