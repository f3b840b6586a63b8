// SPDX-License-Identifier: Apache-2.0
// Responder: datagrams to a multicast group, a copy to each queue pair that is attached (adapter data plane A.9.4,
// B.6).
#include <algorithm>

#include "model/icm/mgid_hash.h"
#include "model/payload/frame_copy.h"
#include "model/transport/responder/responder.h"
#include "model/wire/bytes.h"

namespace rnic::transport {
namespace {

constexpr std::size_t next_offset = 0x00, count_offset = 0x04, gid_offset = 0x10, members_offset = 0x20;
constexpr std::uint32_t next_shift = 6, count_mask = 0xffffff, protocol_shift = 30;
constexpr std::uint32_t member_qpn = 0xffffff, member_no_loopback = 1u << 30;
constexpr unsigned longest_chain = 64;

}  // namespace

bool responder::is_multicast(const payload::frame& f) {
  return f.packet.bth.dest_qp == multicast_qpn && wire::transport_of(f.packet.bth.opcode) == wire::transport::ud;
}

void responder::begin_multicast(payload::frame_ptr frame) {
  fanout_.index = icm::mgid_hash(frame->packet.dgid.data(), std::clamp(mcg_hash_bits_, 1u, 16u));
  fanout_.frame = std::move(frame);
  fanout_.steps = 0;
  fanout_.members.clear();
  fanout_.next = 0;
  fanout_.searching = true;
  ++count_.multicasts;
}

/// Goes along the chain of the group's bucket. False: not now.
bool responder::search_group() {
  using result = icm::context_cache<icm::multicast_group>::result;
  const wire::packet& p = fanout_.frame->packet;
  for (; fanout_.steps < longest_chain; ++fanout_.steps) {
    if (fanout_.index >= groups_written_.size() || !groups_written_[fanout_.index]) break;
    icm::multicast_group* g = nullptr;
    const result found = groups_.lookup(fanout_.index, g);
    if (found == result::pending) return false;
    if (found == result::refused) break;
    const std::uint32_t word = wire::load_be32(g->bytes + count_offset);
    if (word >> protocol_shift == 0 && std::equal(p.dgid.begin(), p.dgid.end(), g->bytes + gid_offset)) {
      const std::size_t room = (map_.layout(icm::table::mcg).entry_bytes - members_offset) / 4;
      const std::size_t count = std::min<std::size_t>({word & count_mask, room, icm::multicast_group::max_members});
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t member = wire::load_be32(g->bytes + members_offset + 4 * i);
        if (fanout_.frame->loopback == 0 || (member & member_no_loopback) == 0)
          fanout_.members.push_back(member & member_qpn);
      }
      break;
    }
    fanout_.index = wire::load_be32(g->bytes + next_offset) >> next_shift;
    if (fanout_.index == 0) break;
  }
  fanout_.searching = false;
  return true;
}

/// Hands on one copy.
void responder::work_multicast() {
  if (fanout_.searching && !search_group()) return;
  if (fanout_.next == fanout_.members.size()) {
    if (fanout_.members.empty()) ++count_.drop_no_group;
    fanout_.frame.reset();
    check_.start(1);
    return;
  }
  if (!fanout_.copy) {
    const payload::frame& from = *fanout_.frame;
    fanout_.copy = frames_.get();
    payload::frame& to = *fanout_.copy;
    payload::copy_contents(to, from);
    to.port = from.port;
    to.loopback = from.loopback;
    to.gid_index = from.gid_index;
    to.packet = from.packet;
  }
  if (!admit(fanout_.copy, fanout_.members[fanout_.next])) return;
  fanout_.copy.reset();
  ++fanout_.next;
}

}  // namespace rnic::transport
