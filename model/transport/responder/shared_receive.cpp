// SPDX-License-Identifier: Apache-2.0
// Shared receive queues on chip.
#include "model/transport/responder/shared_receive.h"

#include <algorithm>

#include "model/wire/bytes.h"

namespace rnic::transport {
namespace {

constexpr std::uint32_t link_bytes = 16;
constexpr std::uint32_t record_tag = 1u << 16;  // | line
constexpr std::uint8_t event_srq_limit = 0x14;

std::uint16_t left_of(const icm::srq_context& c) {
  const auto left = static_cast<std::uint16_t>(c.posted - c.consumed);
  return left > (1u << c.log_size) ? std::uint16_t{0} : left;  // more than the queue holds: not a posting driver
}

}  // namespace

shared_receive::shared_receive(sim::clocked_block& owner, const responder_config& cfg, shared_contexts& contexts,
                               icm::translate_port& translate, pcie::dma_port& dma, std::uint64_t translate_tag,
                               std::uint64_t dma_tag)
    : owner_(owner),
      prefetch_(cfg.receive_prefetch),
      line_bytes_(cfg.receive_line_bytes),
      translate_(translate),
      dma_(dma),
      translate_tag_(translate_tag),
      dma_tag_(dma_tag),
      contexts_(contexts),
      lines_(cfg.shared_lines),
      kept_(cfg.shared_kept),
      to_translate_(std::size_t{cfg.shared_lines} + cfg.shared_kept),
      to_read_(std::size_t{2} * cfg.shared_lines + cfg.shared_kept) {
  if (cfg.shared_lines == 0 || cfg.shared_kept == 0)
    throw sim::config_error(owner.name() + ".shared_lines, .shared_kept: must be 1 or more");
  for (line& l : lines_) l.ahead.bytes.resize(line_bytes_);
  for (kept_entry& k : kept_) k.data.bytes.resize(line_bytes_);
}

// ---------------------------------------------------------------- what is on chip

shared_receive::line* shared_receive::find(std::uint32_t srqn) {
  const auto l = std::find_if(lines_.begin(), lines_.end(), [&](const line& x) { return x.srqn == srqn; });
  return l == lines_.end() ? nullptr : &*l;
}

shared_receive::line* shared_receive::find_or_take(std::uint32_t srqn) {
  line* l = find(srqn);
  if (l == nullptr) {
    for (line& c : lines_)
      if (idle(c) && !c.watch && (l == nullptr || c.used_at < l->used_at)) l = &c;
    if (l == nullptr) return nullptr;
    l->srqn = srqn;
    l->ahead.state = l->record = phase::idle;
    l->usable = 0;
    l->on_demand = false;
    l->used_at = ++uses_;
  }
  return l;
}

shared_receive::kept_entry* shared_receive::find_kept(std::uint32_t srqn, std::uint16_t index) {
  const auto same = [&](const kept_entry& k) { return k.srqn == srqn && k.index == index; };
  const auto k = std::find_if(kept_.begin(), kept_.end(), same);
  return k == kept_.end() ? nullptr : &*k;
}

shared_receive::kept_entry* shared_receive::take_kept() {
  kept_entry* oldest = nullptr;
  for (kept_entry& k : kept_)
    if (k.data.rests() && (oldest == nullptr || k.used_at < oldest->used_at)) oldest = &k;
  return oldest;
}

// ---------------------------------------------------------------- the head of the list

/// Takes over a reading of the doorbell record. False: it failed.
bool shared_receive::settle_record(line& l, icm::srq_context& c) {
  if (l.record == phase::failed) return false;
  if (l.record != phase::valid) return true;
  l.record = phase::idle;
  c.posted = static_cast<std::uint16_t>(wire::load_be32(l.record_bytes.data()));
  contexts_.mark_dirty(c.srqn);
  if (l.watch && l.record_at == c.consumed) {
    l.watch = false;
    --watching_;
    if (c.limit != 0 && left_of(c) < c.limit) {
      contexts_.tell(event_srq_limit, c.srqn);
      c.limit = 0;
    }
  }
  return true;
}

/// What the packet needs is on its way: that is seen at the line.
bool shared_receive::waits(const line& l, const icm::srq_context& c) {
  if (l.record == phase::valid || l.record == phase::failed) return false;
  return left_of(c) == 0 ? l.record != phase::idle : !l.ahead.rests();
}

shared_receive::result shared_receive::head(std::uint32_t srqn, entry_view& out) {
  icm::srq_context* c = nullptr;
  if (const result r = contexts_.open(srqn, srq_user::check, c); r != result::ready) return r;
  line* l = find_or_take(srqn);
  if (l == nullptr || waits(*l, *c) || !contexts_.may_access(srqn, srq_user::check)) return result::pending;
  const result r = next(*l, *c, out);
  if (r != result::ready) contexts_.access(srqn, srq_user::check);
  return r;
}

shared_receive::result shared_receive::next(line& l, icm::srq_context& c, entry_view& out) {
  const bool asked = l.record == phase::valid && l.on_demand;
  if (!settle_record(l, c)) {
    contexts_.fail(c);
    return result::failed;
  }
  if (left_of(c) == 0) {
    if (asked) return result::empty;
    if (l.record == phase::idle) read_record(l, c, true);
    return result::pending;
  }
  fetch& f = l.ahead;
  const auto place = static_cast<std::uint16_t>(c.next_wqe - f.first);
  if (f.state == phase::failed || c.next_wqe >= 1u << c.log_size) {
    f.state = phase::idle;
    contexts_.fail(c);
    return result::failed;
  }
  if (f.state == phase::valid && l.usable != 0 && place < f.count) {
    const std::uint8_t* entry = f.bytes.data() + (std::size_t{place} << c.log_stride);
    out = {entry + link_bytes, (1u << c.log_stride) - link_bytes, c.pd, c.next_wqe};
    return result::ready;
  }
  if (!f.rests()) return result::pending;
  const unsigned count =
      std::min({prefetch_, line_bytes_ >> c.log_stride, unsigned{left_of(c)}, (1u << c.log_size) - c.next_wqe});
  l.usable = left_of(c);
  start(f, c, c.next_wqe, count, static_cast<std::uint32_t>(&l - lines_.data()));
  return result::pending;
}

void shared_receive::take(std::uint32_t srqn, const entry_view& entry, bool keep) {
  icm::srq_context& c = *contexts_.on_chip().peek(srqn);
  line& l = *find(srqn);
  const std::uint8_t* whole = entry.segments - link_bytes;
  kept_entry* k = find_kept(srqn, entry.index);  // of an earlier message in the same entry
  if (k != nullptr) k->srqn = no_queue;
  if (keep) {
    k = take_kept();
    if (k != nullptr) {
      k->srqn = srqn;
      k->index = entry.index;
      k->used_at = ++uses_;
      k->data.state = phase::valid;
      std::copy_n(whole, entry.bytes + link_bytes, k->data.bytes.begin());
    }
  }
  c.next_wqe = wire::load_be16(whole + 2);
  l.used_at = ++uses_;
  contexts_.used(srqn);
  ++c.consumed;
  --l.usable;
  contexts_.mark_dirty(srqn);
  if (c.limit == 0 || left_of(c) >= c.limit) return;
  if (!l.watch) ++watching_;
  l.watch = true;
  owner_.wake_next();
}

shared_receive::result shared_receive::taken(std::uint32_t srqn, std::uint16_t index, entry_view& out) {
  icm::srq_context* c = nullptr;
  if (const result r = contexts_.open(srqn, srq_user::check, c); r != result::ready) return r;
  kept_entry* k = find_kept(srqn, index);
  const bool known = k != nullptr;
  if (!known) k = take_kept();
  if (k == nullptr || !k->data.rests() || !contexts_.may_access(srqn, srq_user::check)) return result::pending;
  contexts_.access(srqn, srq_user::check);
  if (!known) {
    k->srqn = srqn;
    k->index = index;
    k->used_at = ++uses_;
    start(k->data, *c, index, 1,
          static_cast<std::uint32_t>(lines_.size() + static_cast<std::size_t>(k - kept_.data())));
    return result::pending;
  }
  if (k->data.state == phase::failed) {
    k->srqn = no_queue;
    contexts_.fail(*c);
    return result::failed;
  }
  k->used_at = ++uses_;
  contexts_.used(srqn);
  out = {k->data.bytes.data() + link_bytes, (1u << c->log_stride) - link_bytes, c->pd, index};
  return result::ready;
}

// ---------------------------------------------------------------- reads

void shared_receive::read_record(line& l, const icm::srq_context& c, bool on_demand) {
  l.record = phase::to_read;
  l.record_address = c.db_record;
  l.record_at = c.consumed;
  l.ahead.function = c.function;
  l.on_demand = on_demand;
  to_read_.push(record_tag | static_cast<std::uint32_t>(&l - lines_.data()));
  send();
}

void shared_receive::start(fetch& f, const icm::srq_context& c, std::uint16_t index, unsigned count,
                           std::uint32_t tag) {
  f.first = index;
  f.count = static_cast<std::uint16_t>(count);
  f.function = c.function;
  f.next_segment = 0;
  f.open = 0;
  f.request = icm::translate_request{};
  f.request.what = icm::translate_request::kind::buffer;
  f.request.log_page = c.log_page;
  f.request.buffer_mtt = c.address;
  f.request.va = std::uint64_t{c.page_offset} + (std::uint64_t{index} << c.log_stride);
  f.request.length = count << c.log_stride;
  f.request.tag = translate_tag_ | tag;
  f.state = phase::to_translate;
  to_translate_.push(tag);
  send();
}

bool shared_receive::send_translation(std::uint32_t tag) {
  if (!translate_.request.claim()) return false;
  fetch& f = fetch_of(tag);
  translate_.request.push(f.request);
  f.state = phase::translating;
  return true;
}

/// False: not all of it in this cycle. Asking the channel once more has us ticked in the next one.
bool shared_receive::send_read(std::uint32_t tag) {
  if (!dma_.request.claim()) return false;
  pcie::dma_request r;
  r.tag = dma_tag_ | tag;
  if ((tag & record_tag) != 0) {
    line& l = lines_[tag & ~record_tag];
    r.function = l.ahead.function;
    r.length = 4;
    r.address = l.record_address;
    r.destination = l.record_bytes.data();
    dma_.request.push(std::move(r));
    l.record = phase::reading;
    return true;
  }
  fetch& f = fetch_of(tag);
  const icm::translate_response::segment& s = f.answer.segments[f.next_segment];
  r.function = f.function;
  r.length = s.length;
  r.address = s.address;
  r.destination = f.bytes.data() + (f.next_segment == 0 ? 0 : f.answer.segments[0].length);
  dma_.request.push(std::move(r));
  ++f.open;
  if (++f.next_segment != f.answer.count) return send_read(tag);
  f.state = phase::reading;
  return true;
}

/// One translation and one read a cycle.
void shared_receive::send() {
  while (!to_translate_.empty() && send_translation(to_translate_.front())) to_translate_.drop();
  while (!to_read_.empty() && send_read(to_read_.front())) to_read_.drop();
}

void shared_receive::translated(std::uint32_t tag, const icm::translate_response& r) {
  fetch& f = fetch_of(tag);
  if (r.status != icm::translate_status::ok || r.count == 0) {
    f.state = phase::failed;
    return;
  }
  f.answer = r;
  f.state = phase::to_read;
  to_read_.push(tag);
  send();
}

void shared_receive::read_done(std::uint32_t tag, pcie::dma_status status) {
  const bool ok = status == pcie::dma_status::ok;
  if ((tag & record_tag) != 0) {
    lines_[tag & ~record_tag].record = ok ? phase::valid : phase::failed;
    return;
  }
  fetch& f = fetch_of(tag);
  --f.open;
  if (!ok) f.answer.status = icm::translate_status::not_mapped;
  if (f.open == 0 && f.state == phase::reading)
    f.state = f.answer.status == icm::translate_status::ok ? phase::valid : phase::failed;
}

/// Whether a limit was passed is known when the record has been read after the entry was taken. One queue in a cycle.
void shared_receive::check_limits() {
  const auto ready = [](const line& l) { return l.watch && l.record != phase::to_read && l.record != phase::reading; };
  const auto l = std::find_if(lines_.begin(), lines_.end(), ready);
  if (l == lines_.end()) return;
  icm::srq_context* c = nullptr;
  const result found = contexts_.open(l->srqn, srq_user::limits, c);
  if (found == result::pending) return;
  if (found == result::ready) {
    if (!contexts_.may_access(l->srqn, srq_user::limits)) return;
    contexts_.access(l->srqn, srq_user::limits);
  }
  const bool good = found == result::ready && settle_record(*l, *c);
  if (found == result::ready && !good) contexts_.fail(*c);
  if (!good) {  // nobody is told of a limit any more
    l->watch = false;
    --watching_;
  } else if (l->watch && l->record == phase::idle) {
    read_record(*l, *c, false);
  }
  if (watching_ > 1) owner_.wake_next();
}

void shared_receive::work() {
  send();
  if (watching_ != 0) check_limits();
}

/// Forgets the line and the kept entries whose reads are over.
bool shared_receive::forget(std::uint32_t srqn) {
  if (line* l = find(srqn); l != nullptr && idle(*l)) {
    if (l->watch) --watching_;
    l->watch = false;
    l->srqn = no_queue;
  }
  for (kept_entry& k : kept_)
    if (k.srqn == srqn && k.data.rests()) k.srqn = no_queue;
  const auto mine = [&](const kept_entry& k) { return k.srqn == srqn; };
  return find(srqn) == nullptr && std::none_of(kept_.begin(), kept_.end(), mine);
}

void shared_receive::drop_all() {
  for (line& l : lines_) {
    l.srqn = no_queue;
    l.watch = false;
  }
  watching_ = 0;
  for (kept_entry& k : kept_) k.srqn = no_queue;
}

}  // namespace rnic::transport
