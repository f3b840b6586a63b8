// SPDX-License-Identifier: Apache-2.0
// Receive queue entries on chip.
#include "model/transport/responder/receive_wqe.h"

#include <algorithm>

#include "model/abi/queue_entries.h"

namespace rnic::transport {

std::uint16_t receives_left(const icm::responder_context& ctx, std::uint16_t index) {
  const auto left = static_cast<std::uint16_t>(ctx.rq_posted - index);
  return left > (1u << ctx.log_rq_size) ? std::uint16_t{0} : left;  // more than the ring holds: not a posting driver
}

bool read_segment(const std::uint8_t* wqe, std::uint32_t bytes, unsigned i, receive_segment& out) {
  if ((i + 1) * 16 > bytes) return false;
  const std::uint8_t* s = wqe + i * 16;
  out.length = abi::get(s, abi::wqe::data::byte_count);
  out.key = abi::get(s, abi::wqe::data::lkey);
  out.address = abi::get(s, abi::wqe::data::address);
  return out.key != abi::wqe::data::invalid_lkey;
}

receive_wqe_cache::receive_wqe_cache(const responder_config& cfg, receive_port& port)
    : prefetch_(cfg.receive_prefetch),
      line_bytes_(cfg.receive_line_bytes),
      port_(port),
      lines_(cfg.receive_lines),
      keys_(cfg.receive_lines) {}

receive_wqe_cache::line* receive_wqe_cache::find(std::uint32_t qpn) {
  for (std::size_t i = 0; i < keys_.size(); ++i)
    if (keys_[i] == qpn) return &lines_[i];
  return nullptr;
}

bool receive_wqe_cache::idle(const line& l) {
  return l.record != phase::asked && l.batches[0].state != phase::asked && l.batches[1].state != phase::asked;
}

receive_wqe_cache::line* receive_wqe_cache::find_or_take(std::uint32_t qpn) {
  line* l = find(qpn);
  if (l == nullptr) {
    for (line& c : lines_)
      if (idle(c) && (l == nullptr || c.used_at < l->used_at)) l = &c;
    if (l == nullptr) return nullptr;
    *l = line{};
    l->qpn = qpn;
    keys_[index_of(*l)] = qpn;
    l->used_at = ++uses_;
  }
  return l;
}

receive_wqe_cache::result receive_wqe_cache::available(icm::responder_context& ctx) {
  if (receives_left(ctx, ctx.rq_consumed) != 0) return result::ready;
  line* l = find_or_take(ctx.qpn);
  if (l == nullptr) return result::pending;
  if (l->record == phase::failed) {
    l->record = phase::idle;
    return result::failed;
  }
  if (l->record == phase::valid) {
    l->record = phase::idle;
    l->used_at = ++uses_;
    ++steps_;
    ctx.rq_posted = port_.posted(record_place(*l));
    if (receives_left(ctx, ctx.rq_consumed) != 0) return result::ready;
    if (l->on_demand) return result::empty;
  }
  if (l->record == phase::idle) read_record(*l, ctx, true);
  return result::pending;
}

receive_wqe_cache::result receive_wqe_cache::get(const icm::responder_context& ctx, std::uint16_t index,
                                                 const std::uint8_t*& wqe) {
  if ((1u << ctx.log_rq_stride) > line_bytes_ || ctx.log_rq_stride < 4) return result::failed;
  line* l = find_or_take(ctx.qpn);
  if (l == nullptr) return result::pending;
  for (unsigned b = 0; b < 2; ++b) {
    batch& x = l->batches[b];
    if (x.state == phase::idle || !x.holds(index)) continue;
    if (x.state == phase::failed) {
      x.state = phase::idle;
      return result::failed;
    }
    if (x.state != phase::valid) return result::pending;
    l->used_at = ++uses_;
    wqe = port_.read(batch_place(*l, b)) + (static_cast<std::uint16_t>(index - x.first) << ctx.log_rq_stride);
    return result::ready;
  }
  for (unsigned b = 0; b < 2; ++b) {
    if (l->batches[b].state == phase::asked) continue;
    fetch(*l, b, ctx, index);
    break;
  }
  return result::pending;
}

void receive_wqe_cache::look_ahead(const icm::responder_context& ctx) {
  line* l = find(ctx.qpn);
  if (l == nullptr) return;
  const std::uint16_t left = receives_left(ctx, ctx.rq_consumed);
  // Also in the middle of the ring, so that the credits told to the peer do not run out while software posts.
  const unsigned half_ring = (1u << ctx.log_rq_size) / 2;
  if (l->record == phase::idle && (left == 0 || left == prefetch_ / 2 || left == half_ring))
    read_record(*l, ctx, false);
  if (left == 0 || (1u << ctx.log_rq_stride) > line_bytes_) return;
  std::uint16_t next = ctx.rq_consumed;  // first WQE that is not in a batch
  for (unsigned pass = 0; pass < 2; ++pass)
    for (const batch& x : l->batches)
      if (x.state != phase::idle && x.state != phase::failed && x.holds(next))
        next = static_cast<std::uint16_t>(x.first + x.count);
  if (receives_left(ctx, next) == 0 || static_cast<std::uint16_t>(next - ctx.rq_consumed) >= left) return;
  for (unsigned b = 0; b < 2; ++b) {
    const batch& x = l->batches[b];
    const bool useful = x.state != phase::idle && x.state != phase::failed && x.count != 0 &&
                        static_cast<std::uint16_t>(x.first + x.count - 1 - ctx.rq_consumed) < left;
    if (useful || x.state == phase::asked) continue;
    fetch(*l, b, ctx, next);
    return;
  }
}

void receive_wqe_cache::read_record(line& l, const icm::responder_context& ctx, bool on_demand) {
  ++steps_;
  l.record = phase::asked;
  l.on_demand = on_demand;
  port_.ask_record(record_place(l), ctx.db_record, ctx.function);
}

void receive_wqe_cache::fetch(line& l, unsigned b, const icm::responder_context& ctx, std::uint16_t index) {
  batch& x = l.batches[b];
  ++steps_;
  const unsigned ring = 1u << ctx.log_rq_size;
  const unsigned slot = index & (ring - 1);
  const unsigned count = std::min({prefetch_ == 0 ? 1u : prefetch_, line_bytes_ >> ctx.log_rq_stride,
                                   std::max<unsigned>(1, receives_left(ctx, index)), ring - slot});
  x.first = index;
  x.count = static_cast<std::uint16_t>(count);
  x.state = phase::asked;
  receive_job j;
  j.place = batch_place(l, b);
  j.mtt = ctx.rq_address;
  j.at = std::uint64_t{ctx.rq_offset} + (std::uint64_t{slot} << ctx.log_rq_stride);
  j.bytes = count << ctx.log_rq_stride;
  j.function = ctx.function;
  j.log_page = ctx.log_page;
  port_.ask(j);
}

void receive_wqe_cache::fetched(const receive_fetch_result& r) {
  const bool record = is_record(r.place);
  line& l = lines_[record ? r.place.number : r.place.number / 2];
  (record ? l.record : l.batches[r.place.number % 2].state) = r.ok ? phase::valid : phase::failed;
  settle(l);
}

void receive_wqe_cache::settle(line& l) {
  if (l.doomed && idle(l)) l = line{};
}

void receive_wqe_cache::drop(std::uint32_t qpn) {
  line* l = find(qpn);
  if (l == nullptr) return;
  l->doomed = true;
  keys_[index_of(*l)] = 0;
  settle(*l);
}

void receive_wqe_cache::drop_all() {
  for (const std::uint32_t qpn : keys_)
    if (qpn != 0) drop(qpn);
}

bool receive_wqe_cache::busy(std::uint32_t qpn) const {
  return std::any_of(lines_.begin(), lines_.end(), [&](const line& l) { return l.qpn == qpn && !idle(l); });
}

}  // namespace rnic::transport
