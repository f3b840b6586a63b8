// SPDX-License-Identifier: Apache-2.0
// READs and atomics that wait in host memory.
#include "model/transport/responder/read_backlog.h"

#include <algorithm>
#include <functional>
#include <iterator>

#include "model/wire/psn.h"

namespace rnic::transport {
namespace {

using icm::rdma_resources;
using kind = rdma_resources::kind;

constexpr std::uint32_t not_listed = ~std::uint32_t{0};

kind kind_of(const read_command& r) {
  if (r.what == read_command::kind::read) return kind::read;
  return r.operation.what == atomic_operation::kind::fetch_add ? kind::fetch_add : kind::compare_swap;
}

void put_operation(rdma_resources::entry& e, const atomic_operation& o) {
  e.swap_add = o.swap_add;
  e.compare = o.what == atomic_operation::kind::fetch_add ? o.boundaries : o.compare;
  e.swap_mask = o.swap_mask;
  e.compare_mask = o.compare_mask;
}

atomic_operation operation_in(const rdma_resources::entry& e) {
  atomic_operation o;
  const bool adds = e.is(kind::fetch_add);
  o.what = adds ? atomic_operation::kind::fetch_add : atomic_operation::kind::compare_swap;
  o.swap_add = e.swap_add;
  (adds ? o.boundaries : o.compare) = e.compare;
  o.swap_mask = e.swap_mask;
  o.compare_mask = e.compare_mask;
  return o;
}

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

/// Requests that were given up are in the ring as if they waited.
void remove_stale(rdma_resources& ring) {
  for (rdma_resources::entry& e : ring.entries)
    if (e.waits()) e.what = static_cast<std::uint32_t>(kind::none);
}

}  // namespace

/// Of those that wait the one with the first PSN: all that a peer has under way lie within half of their range.
unsigned read_backlog::oldest(const rdma_resources& ring) {
  unsigned first = rdma_resources::depth;
  for (unsigned at = 0; at < rdma_resources::depth; ++at) {
    const rdma_resources::entry& e = ring.entries[at];
    if (!e.waits()) continue;
    if (first == rdma_resources::depth || wire::psn_t(e.psn).before(wire::psn_t(ring.entries[first].psn))) first = at;
  }
  return first;
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
  set_oldest(f, ring->entries[at]);
  f.requests.held = static_cast<std::uint32_t>(
      std::count_if(std::begin(ring->entries), std::end(ring->entries), std::mem_fn(&rdma_resources::entry::waits)));
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
    f.ctx->flags |= icm::responder_flag_reads_held;
    f.ctx->flags &= static_cast<std::uint8_t>(~icm::responder_flag_reads_late);
    list(f.qpn);
  }
  rdma_resources::entry& e = *ring->take();
  e.psn = r.psn & 0xffffff;  // width of the field
  e.msn = r.msn & 0xffffff;
  e.what = static_cast<std::uint8_t>(kind_of(r));
  if (e.is_atomic()) put_operation(e, r.operation);
  e.key = r.key;
  e.length = r.length;
  e.value = r.va;
  e.pd = r.pd & 0xffffff;
  e.span = r.span;
  if (f.requests.held == 0) set_oldest(f, e);
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
  if (e.is_atomic()) {
    out.what = read_command::kind::atomic;
    out.operation = operation_in(e);
    rings_.pin(f.qpn);
  }
  e.what = static_cast<std::uint32_t>(kind::none);
  f.dirty = true;
  if (--f.requests.held == 0)
    forget(f);
  else if (const unsigned next = oldest(*ring); next != rdma_resources::depth) {
    set_oldest(f, ring->entries[next]);
  }
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

void read_backlog::set_oldest(responder_flow& f, const rdma_resources::entry& e) {
  f.requests.held_psn = e.psn;
  if (f.qpn >= atomic_.size()) atomic_.resize(std::max<std::size_t>(2 * atomic_.size(), f.qpn + 1));
  atomic_[f.qpn] = e.is_atomic();
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
