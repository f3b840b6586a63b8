// SPDX-License-Identifier: Apache-2.0
#include "testbenches/system/conformance/frames.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "model/wire/icrc.h"

namespace rnic::conformance {

namespace {

constexpr std::uint32_t beyond_table = 0xabcdef, unused_number = 0xff0;
constexpr std::size_t trailer_bytes = 1500;

wire::transport class_of(service s) {
  switch (s) {
    case service::rc:
      return wire::transport::rc;
    case service::uc:
      return wire::transport::uc;
    case service::ud:
      return wire::transport::ud;
    default:
      return wire::transport::xrc;
  }
}

std::uint32_t destination(const packet& p, const subject& to) {
  if (p.to == target::absent) return unused_number;
  return p.to == target::nobody_at_all ? beyond_table : to.destination();
}

void put_headers(const packet& p, const subject& to, wire::packet& w) {
  rig& r = rig::instance();
  const estate& e = estate::instance();
  w.dmac = r.at().mac;
  w.smac = r.peer().mac;
  w.encap = r.network();
  w.sgid = r.peer().gid;
  if (p.from == source::stranger) w.sgid[15] ^= 0x40;
  w.dgid = r.at().gid;
  w.udp_source = 0xc123;
  w.bth.opcode = opcode_of(p, to.on());
  w.bth.version = p.harm == damage::version ? 1 : 0;
  w.bth.pkey = p.pkey;
  w.bth.dest_qp = destination(p, to);
  w.bth.psn = wire::psn_t(wire_psn(p, to.on(), true));
  const wire::opcode_traits& t = wire::traits(w.bth.opcode);
  w.bth.ack_request = p.asks && (t.request || !t.known);
  w.reth = {e.target.address(p.place), to.key_of(p.rkey), p.dma >= 0 ? static_cast<std::uint32_t>(p.dma) : p.length};
  w.atomic.va = e.target.address(p.place);
  w.atomic.rkey = to.key_of(p.rkey);
  w.atomic.swap_add = 1;
  w.aeth = {p.syndrome, p.msn};
  w.atomic_original = 0x0102030405060708;
  w.immediate = 0x11223344;
  w.invalidate_rkey = to.key_of(p.rkey);
  w.deth = {datagram_qkey + p.qkey_offset, 0, to.peer_qpn()};
  w.xrceth = p.foreign_queue ? e.foreign_srq->srqn : to.srqn();
  w.payload_length = t.payload || !t.known || p.carries ? p.length : 0;
}

}  // namespace

std::uint8_t opcode_of(const packet& p, service s) {
  return p.raw_opcode >= 0 ? static_cast<std::uint8_t>(p.raw_opcode) : wire::make_opcode(class_of(s), p.op);
}

std::uint32_t wire_psn(const packet& p, service s, bool injected) {
  const bool response = wire::traits(opcode_of(p, s)).response;
  const std::uint32_t base = injected != response ? first_request_in : first_request_out;
  return (base + static_cast<std::uint32_t>(p.psn)) & 0xffffff;
}

std::vector<std::uint8_t> payload_of(const packet& p) {
  std::vector<std::uint8_t> bytes(p.length);
  for (std::uint32_t i = 0; i < p.length; ++i)
    bytes[i] = static_cast<std::uint8_t>(i * 7 + (i >> 8) + static_cast<std::uint32_t>(p.psn) * 31 + 0x61);
  return bytes;
}

std::vector<std::uint8_t> frame_of(const packet& p, const subject& to) {
  wire::packet w;
  put_headers(p, to, w);
  std::array<std::uint8_t, 8192> room{};
  constexpr std::size_t headers = 256;
  const std::vector<std::uint8_t> payload = payload_of(p);
  std::copy(payload.begin(), payload.end(), room.begin() + headers);
  std::uint8_t* const first = wire::build(w, room.data() + headers);
  if (p.harm == damage::pad_excess) first[w.bth_offset + 1] |= 0x30;
  const std::uint32_t crc = wire::icrc(first, w);
  for (unsigned i = 0; i < 4; ++i) first[w.icrc_offset + i] = static_cast<std::uint8_t>(crc >> (8 * i));
  if (p.harm == damage::icrc) first[w.icrc_offset] ^= 0x40;
  std::vector<std::uint8_t> frame(first, first + w.icrc_offset + 4);
  if (p.harm == damage::truncated) frame.resize(frame.size() - 16);
  if (p.harm == damage::trailer) frame.resize(frame.size() + trailer_bytes, 0xa5);
  return frame;
}

std::string describe(const wire::packet& p) {
  const wire::opcode_traits& t = wire::traits(p.bth.opcode);
  std::string text = std::string(t.name) + " PSN " + std::to_string(p.bth.psn.value());
  if (t.aeth) text += " syndrome " + std::to_string(p.aeth.syndrome) + " MSN " + std::to_string(p.aeth.msn);
  return text + " payload " + std::to_string(p.payload_length);
}

std::string as_json(const packet& p, service s) {
  const wire::opcode_traits& t = wire::traits(opcode_of(p, s));
  std::string text = "{\"opcode\":" + std::to_string(opcode_of(p, s)) +
                     ",\"psn\":" + std::to_string(wire_psn(p, s, false)) + ",\"bytes\":" + std::to_string(p.length);
  if (t.aeth) text += ",\"syndrome\":" + std::to_string(p.syndrome) + ",\"msn\":" + std::to_string(p.msn);
  return text + "}";
}

namespace {

/// An answer that acknowledges says how many receives are left, or, for a shared queue, that they are not counted. How
/// many it knows of is the adapter's; more than were posted and not used it must not say.
void expect_syndrome(const packet& p, std::uint8_t syndrome, const subject& by) {
  constexpr unsigned uncounted = 0x1f;
  if (p.syndrome != uncounted || by.is_shared()) {
    EXPECT_EQ(unsigned{syndrome}, unsigned{p.syndrome});
    return;
  }
  EXPECT_EQ(syndrome >> 5, 0);
  const unsigned code = syndrome & 0x1fu;
  // 0 1 2 3 4 6 8 12 16 ... (IBA table 46)
  const unsigned credits = code < 4 ? code : (2 + code % 2) << (code / 2 - 1);
  EXPECT_LE(credits, by.receives_posted());
}

}  // namespace

void expect_heard(const packet& p, const heard_frame& heard, const subject& by) {
  const wire::packet& h = heard.packet;
  const rig& r = rig::instance();
  const estate& e = estate::instance();
  SCOPED_TRACE("heard: " + describe(h));
  const wire::opcode_traits& t = wire::traits(h.bth.opcode);
  EXPECT_EQ(unsigned{h.bth.opcode}, unsigned{opcode_of(p, by.on())});
  EXPECT_EQ(h.bth.psn.value(), wire_psn(p, by.on(), false));
  EXPECT_EQ(h.bth.dest_qp, by.peer_qpn());
  EXPECT_EQ(h.bth.pkey, 0xffff);
  EXPECT_EQ(h.bth.solicited, false);
  EXPECT_EQ(h.dmac, r.peer().mac);
  EXPECT_EQ(h.dgid, r.peer().gid);
  EXPECT_EQ(heard.payload.size(), p.length);
  EXPECT_EQ(h.bth.ack_request, t.request && p.asks);
  if (t.aeth) {
    expect_syndrome(p, h.aeth.syndrome, by);
    EXPECT_EQ(h.aeth.msn, p.msn);
  }
  if (t.reth) {
    EXPECT_EQ(h.reth.va, e.target.address(p.place));
    EXPECT_EQ(h.reth.rkey, e.rkey(key::good));
    EXPECT_EQ(h.reth.length, p.dma >= 0 ? static_cast<std::uint32_t>(p.dma) : p.length);
  }
  if (t.atomic_ack_eth) {
    std::uint64_t original = 0;
    for (unsigned i = 8; i-- != 0;) original = original << 8 | pattern_of_target(static_cast<unsigned>(p.place) + i);
    EXPECT_EQ(h.atomic_original, original + p.adds);
  }
  if (t.payload && p.length != 0 && p.length == heard.payload.size()) {
    const hosts::buffer& from = t.response ? e.target : e.origin;
    EXPECT_EQ(
        std::memcmp(heard.payload.data(),
                    from.at(p.source_place >= 0 ? static_cast<std::uint64_t>(p.source_place) : p.place), p.length),
        0)
        << "payload";
  }
}

}  // namespace rnic::conformance
