// SPDX-License-Identifier: Apache-2.0
// What a peer on the line can do to an adapter.
#include <algorithm>
#include <tuple>
#include <utility>

#include "model/wire/icrc.h"
#include "model/wire/pause.h"
#include "testbenches/fuzz/attack.h"

namespace rnic::fuzz {

using namespace conformance;

namespace {

constexpr std::uint32_t path_mtu = 256;
constexpr std::size_t longest_frame = 4400;
constexpr std::uint32_t lengths[] = {0, 1, 4, 8, 64, 255, 256, 257, 512, 1024, 2048, 4096};

}  // namespace

/// Mostly a length at which something changes.
std::uint32_t attack::length() {
  const unsigned which = in_.below(16);
  return which < std::size(lengths) ? lengths[which] : in_.u16() % 4100;
}

/// Mostly the right one.
conformance::key attack::key() {
  const unsigned which = in_.below(32);
  return which <= static_cast<unsigned>(key::window) ? static_cast<conformance::key>(which) : key::good;
}

/// Sends a frame, with what the input wants to be other in it; the ICRC is right, mostly.
void attack::put(std::vector<std::uint8_t> frame) {
  const std::uint8_t how = in_.u8();
  for (unsigned i = (how & 7) == 7 ? 1 + in_.below(4) : 0; i != 0 && !frame.empty(); --i) {
    const std::size_t at = in_.u8() % frame.size();
    frame[at] ^= in_.u8();
  }
  if ((how & 0x38) == 0x38) frame.resize(std::min<std::size_t>(in_.u16() % longest_frame, longest_frame));
  wire::packet p;
  if ((how & 0xc0) != 0xc0 && wire::decode(frame.data(), frame.size(), p) == wire::decode_error::none) {
    const std::uint32_t crc = wire::icrc(frame.data(), p);
    for (unsigned i = 0; i < 4; ++i) frame[p.icrc_offset + i] = static_cast<std::uint8_t>(crc >> (8 * i));
  }
  last_ = frame;
  r_.inject(frame);
}

void attack::step_of_peer(unsigned what) {
  switch (what) {
    case 0:
    case 1:
    case 2:
      return request(pick());
    case 3:
    case 6:
      return answer_read(pick());
    case 4:
    case 7:
      return answer(pick());
    case 5:
      return process_ || in_.bit() ? request(pick()) : plain_frame();
    default:
      if (in_.below(4) == 0) return pause();
      for (unsigned i = in_.below(32); i != 0 && !last_.empty(); --i) r_.inject(last_);
  }
}

/// A request as a peer of this queue pair would send it next.
void attack::request(actor& a) {
  const std::uint8_t op = in_.u8(), order = in_.u8();
  packet p(static_cast<wire::operation>(op % 24), static_cast<int>(a.next_in));
  if (op >= 240) p.raw_opcode = in_.u8();
  if (order >= 0xe0) p.psn += static_cast<std::int8_t>(in_.u8());
  p.length = length();
  p.rkey = key();
  const std::uint8_t more = in_.u8();
  p.asks = (more & 1) == 0;
  p.place = (more & 2) != 0 ? in_.u16() % 9000 : 0;
  if ((more & 4) != 0) p.dma = in_.u16();
  if ((more & 8) != 0) p.dma = in_.u32();
  if ((more & 0x30) == 0x30) p.to = static_cast<target>(in_.below(3));
  if ((more & 0xc0) == 0xc0) p.from = source::stranger;
  p.foreign_queue = more == 0xa4;
  if (p.op == wire::operation::write_first && p.dma < 0) p.dma = 4 * path_mtu;
  put(frame_of(p, *a.qp));
  if (order < 0xe0) {  // a READ takes a number for each packet of its answer
    const std::uint64_t bytes = p.dma >= 0 ? static_cast<std::uint64_t>(p.dma) : p.length;
    const bool read = p.op == wire::operation::read_request;
    a.next_in += read ? static_cast<std::uint32_t>(std::max<std::uint64_t>(1, (bytes + path_mtu - 1) / path_mtu)) : 1;
  }
}

void attack::put_answer(actor& a, const heard_frame& to, wire::operation op, std::uint32_t ahead, std::uint32_t bytes,
                        std::uint8_t syndrome) {
  packet p(op, static_cast<int>((to.packet.bth.psn.value() + ahead - first_request_out) & 0xffffff));
  p.length = bytes;
  p.syndrome = syndrome;
  p.msn = 1;
  put(frame_of(p, *a.qp));
}

/// An acknowledgement of any kind for one of the last requests, or for none.
void attack::answer(actor& a) {
  listen();
  heard_frame none;
  none.packet.bth.psn = wire::psn_t(first_request_out);
  const heard_frame to = a.asked.empty() ? none : a.asked[in_.below(static_cast<unsigned>(a.asked.size()))];
  static constexpr std::uint8_t syndromes[] = {0x1f, 0x1f, 0x00, 0x21, 0x3f, 0x60, 0x61, 0x62, 0x63, 0x64, 0x65};
  const std::uint8_t which = in_.u8();
  const std::uint8_t syndrome = which < 0xf0 ? syndromes[which % std::size(syndromes)] : in_.u8();
  const bool atomic = to.packet.bth.opcode % 32 >= 0x13 && to.packet.bth.opcode % 32 <= 0x14;
  const std::uint8_t place = in_.u8();
  const std::uint32_t ahead = place < 0xc0 ? 0 : (place & 0x3f) - 8u;
  put_answer(a, to, atomic ? wire::operation::atomic_acknowledge : wire::operation::acknowledge, ahead, 0, syndrome);
}

/// Packets of the answer to one of the last READs: from the start or not, as many as it takes or others, without a
/// pause.
void attack::answer_read(actor& a) {
  listen();
  std::vector<heard_frame> reads;
  for (const heard_frame& h : a.asked)
    if (h.packet.bth.opcode % 32 == 0x0c) reads.push_back(h);
  if (reads.empty()) return;
  const heard_frame& to = reads[in_.below(static_cast<unsigned>(reads.size()))];
  const std::uint32_t total = to.packet.reth.length, packets = std::max(1u, (total + path_mtu - 1) / path_mtu);
  const std::uint8_t how = in_.u8();
  const std::uint32_t first = (how & 0xc0) == 0xc0 ? in_.below(16) : 0;
  const std::uint32_t end = (how & 0x30) == 0x30 ? first + in_.below(20) : std::min(packets, first + 20);
  for (std::uint32_t i = first; i < end; ++i) {
    const bool last = i + 1 >= packets;
    const std::uint32_t bytes = last && total != 0 ? total - std::min(total, i * path_mtu) : std::min(total, path_mtu);
    const wire::operation op = packets == 1 ? wire::operation::read_response_only
                               : i == 0     ? wire::operation::read_response_first
                               : last       ? wire::operation::read_response_last
                                            : wire::operation::read_response_middle;
    put_answer(a, to, op, i, std::min(bytes, path_mtu), 0x1f);
  }
}

/// Bytes of the input, for this adapter or whomever; with a type that is looked at.
void attack::plain_frame() {
  const std::uint8_t how = in_.u8();
  std::vector<std::uint8_t> frame = in_.bytes(in_.u16() % 600);
  constexpr std::size_t addresses = 12, header = 14;
  if (frame.size() < header) frame.resize(header);
  if ((how & 1) == 0) std::copy(r_.at().mac.begin(), r_.at().mac.end(), frame.begin());
  static constexpr std::pair<std::uint8_t, std::uint8_t> types[] = {
      {0x08, 0x00}, {0x86, 0xdd}, {0x89, 0x15}, {0x81, 0x00}, {0x88, 0xa8}, {0x88, 0x08}, {0x08, 0x06}};
  if ((how & 2) == 0) std::tie(frame[addresses], frame[addresses + 1]) = types[(how >> 2) % std::size(types)];
  put(std::move(frame));
}

/// Short pauses: long ones only make a run longer.
void attack::pause() {
  wire::pause_frame p;
  p.per_priority = in_.bit();
  p.enabled = in_.u8();
  for (std::uint16_t& q : p.quanta) q = in_.u16() % 0x2000;
  std::vector<std::uint8_t> frame(wire::pause_frame_length);
  wire::encode_pause(p, r_.peer().mac, frame.data());
  r_.inject(frame);
}

}  // namespace rnic::fuzz
