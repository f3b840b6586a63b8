// SPDX-License-Identifier: Apache-2.0
// READ requests that wait in host memory.
#include "model/transport/responder/read_backlog.h"

#include <algorithm>

namespace rnic::transport {
namespace {

using icm::rdma_resources;
using kind = rdma_resources::kind;

constexpr std::uint32_t not_listed = ~std::uint32_t{0};

bool waits(const rdma_resources::entry& e) { return e.is(kind::read); }

read_backlog::result result_of(history_memory::found f) {
  switch (f) {
    case history_memory::found::known:
      return read_backlog::result::done;
    case history_memory::found::pending:
      return read_backlog::result::pending;
    case history_memory::found::no_port:
      return read_backlog::result::no_port;
    case history_memory::found::none:
      break;
  }
  return read_backlog::result::no_memory;
}

/// READs that were given up are in the ring as if they waited.
void remove_stale(rdma_resources& ring) {
  for (rdma_resources::entry& e : ring.entries)
    if (waits(e)) e.what = static_cast<std::uint32_t>(kind::none);
}

}  // namespace

/// Of the entries in the order in which they were taken the first that waits.
unsigned read_backlog::oldest(const rdma_resources& ring) {
  for (unsigned n = 0; n < rdma_resources::depth; ++n) {
    const unsigned at = (ring.entries[0].next + n) % rdma_resources::depth;
    if (waits(ring.entries[at])) return at;
  }
  return rdma_resources::depth;
}

read_backlog::result read_backlog::open(responder_flow& f) {
  if ((f.ctx->flags & icm::responder_flag_reads_held) == 0) return result::done;
  rdma_resources* ring = nullptr;
  const result found = result_of(rings_.find(f.qpn, history_user::opening, ring));
  if (found == result::pending || found == result::no_port) return found;
  if (found == result::done) rings_.access(f.qpn, history_user::opening, false);
  const unsigned at = found == result::done ? oldest(*ring) : rdma_resources::depth;
  if (at == rdma_resources::depth) {  // not what was written: the peer will ask again
    f.ctx->flags &= static_cast<std::uint8_t>(~icm::responder_flag_reads_held);
    return result::done;
  }
  f.requests.held_psn = ring->entries[at].psn;
  f.requests.held =
      static_cast<std::uint32_t>(std::count_if(std::begin(ring->entries), std::end(ring->entries), waits));
  f.requests.accepted += f.requests.held;
  f.requests.fresh += f.requests.held;
  return result::done;
}

read_backlog::result read_backlog::keep(responder_flow& f, const read_command& r) {
  if (f.requests.held == rdma_resources::depth) return result::no_memory;
  rdma_resources* ring = nullptr;
  const result found = result_of(rings_.find(f.qpn, history_user::commit, ring));
  if (found != result::done) return found;
  rings_.access(f.qpn, history_user::commit, true);
  if (f.requests.held == 0) {
    remove_stale(*ring);
    f.requests.held_psn = r.psn;
    f.ctx->flags |= icm::responder_flag_reads_held;
    f.ctx->flags &= static_cast<std::uint8_t>(~icm::responder_flag_reads_late);
    list(f.qpn);
  }
  rdma_resources::entry& e = *ring->take();
  e.psn = r.psn & 0xffffff;  // width of the field
  e.msn = r.msn & 0xffffff;
  e.what = static_cast<std::uint32_t>(kind::read);
  e.key = r.key;
  e.length = r.length;
  e.value = r.va;
  e.pd = r.pd;
  e.span = r.span;
  ++f.requests.held;
  ++f.requests.accepted;
  f.dirty = true;
  ++kept_;
  return result::done;
}

read_backlog::result read_backlog::fetch(responder_flow& f, read_command& out) {
  rdma_resources* ring = nullptr;
  const result found = result_of(rings_.find(f.qpn, history_user::reads, ring));
  if (found != result::done) return found;
  const unsigned at = oldest(*ring);
  rings_.access(f.qpn, history_user::reads, at != rdma_resources::depth);
  if (at == rdma_resources::depth) return result::no_memory;
  rdma_resources::entry& e = ring->entries[at];
  out.qpn = f.qpn;
  out.psn = e.psn;
  // So many messages were completed by now, and no answer takes any back.
  out.msn = (f.ctx->flags & icm::responder_flag_reads_late) != 0 ? f.ctx->msn : std::uint32_t{e.msn};
  out.key = e.key;
  out.length = e.length;
  out.va = e.value;
  out.pd = e.pd;
  out.span = e.span;
  e.what = static_cast<std::uint32_t>(kind::none);
  f.dirty = true;
  if (--f.requests.held == 0)
    forget(f);
  else if (const unsigned next = oldest(*ring); next != rdma_resources::depth)
    f.requests.held_psn = ring->entries[next].psn;
  return result::done;
}

void read_backlog::forget(responder_flow& f) {
  if (f.ctx == nullptr || (f.ctx->flags & icm::responder_flag_reads_held) == 0) return;
  f.ctx->flags &= static_cast<std::uint8_t>(~(icm::responder_flag_reads_held | icm::responder_flag_reads_late));
  f.dirty = true;
  f.requests.accepted -= f.requests.held;
  for (std::uint32_t* after : {&f.ack.after, &f.nak.after})
    if (behind(*after, f.requests.accepted)) *after = f.requests.accepted;
  f.requests.fresh -= f.requests.held;
  f.requests.held = 0;
}

void read_backlog::list(std::uint32_t qpn) {
  if (qpn >= link_.size()) link_.resize(std::max<std::size_t>(2 * link_.size(), qpn + 1), not_listed);
  if (link_[qpn] != not_listed) return;
  link_[qpn] = qpn;
  (count_ == 0 ? head_ : link_[tail_]) = qpn;
  tail_ = qpn;
  ++count_;
}

void read_backlog::pop() {
  const std::uint32_t next = link_[head_];
  link_[head_] = not_listed;
  head_ = next;
  --count_;
}

void read_backlog::clear() {
  while (!empty()) pop();
}

}  // namespace rnic::transport
