// SPDX-License-Identifier: Apache-2.0
#include "testbenches/block/responder/random/request_frame.h"

#include <algorithm>

#include "testbenches/block/responder/bench.h"

namespace rnic::transport::random_test {

payload::frame_ptr frame_of(payload::frame_pool& frames, const queue_pair& q, const request& r) {
  wire::packet p;
  p.dmac = {2, 0, 0, 0, 0, 1};
  p.smac = {2, 0, 0, 0, 0, 2};
  p.encap = wire::encapsulation::roce_v2_ipv4;
  p.sgid = test::bench::peer_gid();
  if (r.from_stranger) ++p.sgid.back();
  p.dgid = test::bench::own_gid();
  p.udp_source = 0xc000;
  p.bth.opcode = wire::make_opcode(r.transport, r.operation);
  p.bth.dest_qp = r.destination;
  p.bth.psn = r.psn;
  p.bth.pkey = r.pkey;
  p.bth.ack_request = r.wants_acknowledgement;
  p.reth = r.reth;
  p.atomic = r.atomic;
  p.immediate = r.immediate;
  p.invalidate_rkey = r.invalidated;
  p.xrceth = r.shared_queue;
  p.deth = {r.qkey, 0, q.peer()};
  p.payload_length = static_cast<std::uint32_t>(r.payload.size());
  payload::frame_ptr f = frames.get();
  std::copy(r.payload.begin(), r.payload.end(), f->buffer.begin() + payload::frame::payload_start);
  const std::uint8_t* const first = wire::build(p, f->buffer.data() + payload::frame::payload_start);
  f->begin = static_cast<std::uint32_t>(first - f->buffer.data());
  f->length = p.icrc_offset + 4;
  f->gid_index = 2;
  if (wire::decode(f->data(), f->length, f->packet) != wire::decode_error::none) f.reset();
  return f;
}

payload::frame_ptr frame_of(payload::frame_pool& frames, std::uint32_t qpn, const octets& bytes) {
  payload::frame_ptr f = frames.get();
  f->plain = true;
  f->length = static_cast<std::uint32_t>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), f->data());
  f->packet = wire::packet{};
  f->packet.bth.opcode = wire::make_opcode(wire::transport::ud, wire::operation::send_only);
  f->packet.bth.dest_qp = qpn;
  f->packet.payload_length = f->length;
  return f;
}

}  // namespace rnic::transport::random_test
