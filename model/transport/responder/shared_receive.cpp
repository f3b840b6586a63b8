// SPDX-License-Identifier: Apache-2.0
// Shared receive queues on chip.
#include "model/transport/responder/shared_receive.h"

#include <algorithm>

#include "model/wire/bytes.h"

namespace rnic::transport {
namespace {

constexpr std::uint32_t link_bytes = 16;
constexpr std::uint8_t event_srq_limit = 0x14;

std::uint16_t left_of(const icm::srq_context& c) {
  const auto left = static_cast<std::uint16_t>(c.posted - c.consumed);
  return left > (1u << c.log_size) ? std::uint16_t{0} : left;  // more than the queue holds: not a posting driver
}

}  // namespace

shared_receive::shared_receive(sim::clocked_block& owner, const responder_config& cfg, shared_contexts& contexts,
                               receive_port& port)
    : owner_(owner),
      prefetch_(cfg.receive_prefetch),
      line_bytes_(cfg.receive_line_bytes),
      contexts_(contexts),
      port_(port),
      lines_(cfg.shared_lines),
      kept_(cfg.shared_kept) {
  if (cfg.shared_lines == 0 || cfg.shared_kept == 0)
    throw sim::config_error(owner.name() + ".shared_lines, .shared_kept: must be 1 or more");
  for (kept_entry& k : kept_) k.bytes.resize(line_bytes_);
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
    l->ahead = l->record = phase::idle;
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
    if (k.state != phase::asked && (oldest == nullptr || k.used_at < oldest->used_at)) oldest = &k;
  return oldest;
}

// ---------------------------------------------------------------- the head of the list

/// Takes over a reading of the doorbell record. False: it failed.
bool shared_receive::settle_record(line& l, icm::srq_context& c) {
  if (l.record == phase::failed) return false;
  if (l.record != phase::valid) return true;
  l.record = phase::idle;
  c.posted = port_.posted(place_of(l, receive_place::part::shared_record));
  contexts_.mark_dirty(c.srqn);
  if (l.watch && l.record_at == c.consumed) {
    l.watch = false;
    --watching_;
    if (c.limit != 0 && left_of(c) < c.limit) {
      contexts_.tell(event_srq_limit, c);
      c.limit = 0;
    }
  }
  return true;
}

/// What the packet needs is on its way: that is seen at the line.
bool shared_receive::waits(const line& l, const icm::srq_context& c) {
  if (l.record == phase::valid || l.record == phase::failed) return false;
  return left_of(c) == 0 ? l.record != phase::idle : l.ahead == phase::asked;
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
  const receive_place from = place_of(l, receive_place::part::shared);
  const auto place = static_cast<std::uint16_t>(c.next_wqe - l.first);
  if (l.ahead == phase::failed || c.next_wqe >= 1u << c.log_size) {
    l.ahead = phase::idle;
    contexts_.fail(c);
    return result::failed;
  }
  if (l.ahead == phase::valid && l.usable != 0 && place < l.count) {
    const std::uint8_t* entry = port_.read(from) + (std::size_t{place} << c.log_stride);
    out = {entry + link_bytes, (1u << c.log_stride) - link_bytes, c.pd, c.next_wqe};
    return result::ready;
  }
  if (l.ahead == phase::asked) return result::pending;
  const unsigned count =
      std::min({prefetch_, line_bytes_ >> c.log_stride, unsigned{left_of(c)}, (1u << c.log_size) - c.next_wqe});
  l.usable = left_of(c);
  l.ahead = phase::asked;
  l.first = c.next_wqe;
  l.count = static_cast<std::uint16_t>(count);
  read_entries(from, c, c.next_wqe, count);
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
      k->state = phase::valid;
      k->copied = true;
      std::copy_n(whole, entry.bytes + link_bytes, k->bytes.begin());
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
  if (k == nullptr || k->state == phase::asked || !contexts_.may_access(srqn, srq_user::check)) return result::pending;
  contexts_.access(srqn, srq_user::check);
  if (!known) {
    k->srqn = srqn;
    k->index = index;
    k->used_at = ++uses_;
    k->state = phase::asked;
    k->copied = false;
    read_entries(place_of(*k), *c, index, 1);
    return result::pending;
  }
  if (k->state == phase::failed) {
    k->srqn = no_queue;
    contexts_.fail(*c);
    return result::failed;
  }
  k->used_at = ++uses_;
  contexts_.used(srqn);
  const std::uint8_t* const whole = k->copied ? k->bytes.data() : port_.read(place_of(*k));
  out = {whole + link_bytes, (1u << c->log_stride) - link_bytes, c->pd, index};
  return result::ready;
}

// ---------------------------------------------------------------- reads

void shared_receive::read_record(line& l, const icm::srq_context& c, bool on_demand) {
  l.record = phase::asked;
  l.record_at = c.consumed;
  l.on_demand = on_demand;
  port_.ask_record(place_of(l, receive_place::part::shared_record), c.db_record, c.function);
}

void shared_receive::read_entries(const receive_place& place, const icm::srq_context& c, std::uint16_t index,
                                  unsigned count) {
  receive_job j;
  j.place = place;
  j.mtt = c.address;
  j.at = std::uint64_t{c.page_offset} + (std::uint64_t{index} << c.log_stride);
  j.bytes = count << c.log_stride;
  j.function = c.function;
  j.log_page = c.log_page;
  port_.ask(j);
}

void shared_receive::fetched(const receive_fetch_result& r) {
  const phase now = r.ok ? phase::valid : phase::failed;
  const std::uint32_t number = r.place.number;
  if (r.place.in == receive_place::part::taken)
    kept_[number].state = now;
  else
    (is_record(r.place) ? lines_[number].record : lines_[number].ahead) = now;
}

/// Whether a limit was passed is known when the record has been read after the entry was taken. One queue in a cycle.
void shared_receive::check_limits() {
  const auto ready = [](const line& l) { return l.watch && l.record != phase::asked; };
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
  if (sim::seldom(watching_ != 0)) check_limits();
}

/// Forgets the line and the kept entries whose reads are over.
bool shared_receive::forget(std::uint32_t srqn) {
  if (line* l = find(srqn); l != nullptr && idle(*l)) {
    if (l->watch) --watching_;
    l->watch = false;
    l->srqn = no_queue;
  }
  for (kept_entry& k : kept_)
    if (k.srqn == srqn && k.state != phase::asked) k.srqn = no_queue;
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
