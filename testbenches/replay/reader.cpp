// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/reader.h"

#include <algorithm>
#include <optional>

#include "model/wire/packet.h"
#include "testbenches/replay/crossings.h"
#include "testbenches/replay/held_side.h"
#include "testbenches/replay/holes.h"

namespace rnic::replay {

namespace {

std::uint32_t mtu_for(std::uint32_t payload) {
  std::uint32_t mtu = 256;
  while (mtu < payload && mtu < 4096) mtu *= 2;
  return mtu;
}

/// The largest packet that is not the last of its message has one MTU of payload.
std::uint32_t mtu_of(const plan& p, const std::vector<std::size_t>& frames, bool& known) {
  std::uint32_t full = 0, largest = 0;
  for (const std::size_t i : frames) {
    const wire::packet& x = p.frames[i].packet;
    const wire::opcode_traits& t = wire::traits(x.bth.opcode);
    if (t.payload && !t.last) full = std::max(full, x.payload_length);
    largest = std::max(largest, x.payload_length);
  }
  known = full != 0;
  return known ? mtu_for(full) : std::max(1024u, mtu_for(largest));
}

/// Tells packets of messages that began before the capture, and answers to them.
class beginning {
 public:
  bool is_behind(const captured_frame& f) {
    const wire::opcode_traits& t = wire::traits(f.packet.bth.opcode);
    const wire::psn_t psn = f.packet.bth.psn;
    std::optional<wire::psn_t>& own = f.from_held ? held_ : peer_;
    const std::optional<wire::psn_t>& other = f.from_held ? peer_ : held_;
    if (!t.request) return other && !psn.before(*other);
    if (!own && t.first) own = psn;
    return own && !psn.before(*own);
  }

 private:
  std::optional<wire::psn_t> held_, peer_;
};

}  // namespace

void read_connection(plan& p, std::size_t index, const std::vector<std::size_t>& frames, asked_memory& asked) {
  connection& c = p.connections[index];
  c.mtu = mtu_of(p, frames, c.mtu_known);
  packet_maker maker(p, static_cast<int>(index));
  held_reader held(p, c, maker);
  peer_reader peer(p, c, maker, asked);
  beginning begun;
  std::vector<std::size_t> kept;
  for (const std::size_t i : frames) {
    captured_frame& f = p.frames[i];
    if (!begun.is_behind(f)) {
      ++p.rejected["belongs to something before the capture"];
      f.connection = -1;
      continue;
    }
    kept.push_back(i);
    const bool request = wire::traits(f.packet.bth.opcode).request;
    if (request)
      f.from_held ? held.request(i) : peer.request(i);
    else
      f.from_held ? peer.answer(i) : held.answer(i);
  }
  held.finish();
  peer.finish();
  c.order = maker.merge(kept);
  let_cross(p, c);
}

}  // namespace rnic::replay
