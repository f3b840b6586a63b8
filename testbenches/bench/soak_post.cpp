// SPDX-License-Identifier: Apache-2.0
// Soak: drawing and posting messages.
#include <algorithm>
#include <array>

#include "host_driver/device.h"
#include "testbenches/bench/soak.h"
#include "testbenches/bench/soak_places.h"

namespace rnic::bench {

namespace {

constexpr sim::time_ps most_late = 30 * sim::ps_per_us;  // receives

std::uint64_t id_of(unsigned flow, std::uint64_t number, bool receive) {
  return (receive ? receive_id : 0) | std::uint64_t{flow} << flow_shift | number;
}

}  // namespace

std::uint32_t soak::draw_size(flow& f) {
  const std::uint32_t mtu = connection_.mtu;
  if (f.random.below(8) == 0) {  // the edges
    const std::array<std::uint32_t, 8> edges{0, 1, mtu - 1, mtu, mtu + 1, 2 * mtu, 3 * mtu - 1, config_.largest};
    return std::min(edges[f.random.below(edges.size())], config_.largest);
  }
  unsigned bits = 0;
  while (bits < 32 && config_.largest >> bits != 0) ++bits;
  const auto magnitude = static_cast<unsigned>(f.random.below(bits + 1));
  if (magnitude == 0) return 0;
  const std::uint32_t low = 1u << (magnitude - 1);
  return std::min(low + static_cast<std::uint32_t>(f.random.below(low)), config_.largest);
}

/// Decides what the next message is and takes a place for it. False: no room.
bool soak::draw(flow& f, message& m) {
  const soak_random before = f.random;
  m = message{};
  m.number = f.posted;
  m.verb = static_cast<unsigned>(f.random.below(verbs_.size()));
  m.size = verbs_[m.verb]->atomic ? hosts::atomic_bytes : draw_size(f);
  m.begin = guard + static_cast<std::uint32_t>(f.random.below(most_skew));
  m.span = m.begin + m.size + guard;
  m.place = f.places.take(m.span);
  if (m.place != place_ring::none) return true;
  f.random = before;
  return false;
}

bool soak::fill(flow& f) {
  bool any = false;
  while (!f.dead && !f.hung && f.posted < f.target && f.posted - f.over < config_.depth) {
    message& m = slot(f, f.posted);
    if (!draw(f, m)) break;
    for (unsigned host = 0; host < 2; ++host)
      if (wrong_fallow(at(f, m, host), m.span) != m.span)
        find(result_.duplicated, f, m, "the memory for it was written after the message before was over");
    const workloads::verb& v = *verbs_[m.verb];
    if (v.atomic)
      m.atomic = atomics_.draw(f.index, f.from, v.opcode == IBV_WR_ATOMIC_CMP_AND_SWP, f.random);
    else
      fill_content(at(f, m, source_of(f, m)) + m.begin, m.size, key_of(f, m.number));
    if (f.over == f.posted) f.sign_of_life = system_.now_ps();
    ++f.posted;
    post_receives(f, false);
    post(f, m);
    any = true;
  }
  return any;
}

void soak::post(flow& f, message& m) {
  const workloads::verb& v = *verbs_[m.verb];
  std::array<ibv_sge, most_sges> sges{};
  std::uint64_t address = memory_[f.from].address(f.ring + m.place + m.begin);
  std::uint32_t left = m.size;
  unsigned count = 0;
  const std::uint64_t pieces = 1 + (f.random.below(4) == 0 ? f.random.below(most_sges) : 0);
  while (left != 0) {
    const bool last = count + 1 == pieces || left == 1;
    const std::uint32_t length = last ? left : 1 + static_cast<std::uint32_t>(f.random.below(left - 1));
    sges[count++] = {address, length, memory_[f.from].region->lkey};
    address += length;
    left -= length;
  }
  ibv_send_wr wr{};
  wr.wr_id = id_of(f.index, m.number, false);
  wr.sg_list = sges.data();
  wr.num_sge = static_cast<int>(count);
  wr.opcode = v.opcode;
  wr.send_flags = IBV_SEND_SIGNALED;
  if (!v.reads && m.size <= connection_.inline_bytes && f.random.below(2) == 0) wr.send_flags |= IBV_SEND_INLINE;
  if (f.random.below(32) == 0) wr.send_flags |= IBV_SEND_FENCE;
  wr.imm_data = __builtin_bswap32(static_cast<std::uint32_t>(m.number));
  if (v.atomic) {
    wr.wr.atomic.remote_addr = m.atomic.address;
    wr.wr.atomic.rkey = m.atomic.rkey;
    wr.wr.atomic.compare_add = m.atomic.compare_add;
    wr.wr.atomic.swap = m.atomic.swap_value;
  } else if (v.writes() || v.reads) {
    wr.wr.rdma.remote_addr = memory_[1 - f.from].address(f.ring + m.place + m.begin);
    wr.wr.rdma.rkey = memory_[1 - f.from].region->rkey;
  }
  ibv_send_wr* bad = nullptr;
  hosts::require(end(f.from).device->post_send(f.qp[f.from], &wr, &bad), "post_send");
  ++result_.by_verb[static_cast<std::size_t>(&v - soak_verbs().data())];
  ++result_.posted;
}

/// Receives go in order; one that is late holds up those behind it.
void soak::post_receives(flow& f, bool late) {
  for (; f.receives < f.posted && !f.dead; ++f.receives, f.receive_at = 0) {
    const message& m = slot(f, f.receives);
    const workloads::verb& v = *verbs_[m.verb];
    if (!v.receives) continue;
    if (f.receive_at == 0 && config_.late_receives != 0 && f.random.below(config_.late_receives) == 0)
      f.receive_at = system_.now_ps() + f.random.below(most_late);
    if (f.receive_at != 0 && (!late || f.receive_at > system_.now_ps())) return;
    const unsigned host = 1 - f.from;
    ibv_sge sge{memory_[host].address(f.ring + m.place + m.begin), m.size, memory_[host].region->lkey};
    sge.length += static_cast<std::uint32_t>(f.random.below(guard));  // a buffer may be longer than what comes
    ibv_recv_wr wr{};
    wr.wr_id = id_of(f.index, m.number, true);
    wr.sg_list = &sge;
    wr.num_sge = v.writes() || sge.length == 0 ? 0 : 1;
    ibv_recv_wr* bad = nullptr;
    hosts::require(end(host).device->post_recv(f.qp[host], &wr, &bad), "post_recv");
  }
}

}  // namespace rnic::bench
