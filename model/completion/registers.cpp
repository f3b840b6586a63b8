// SPDX-License-Identifier: Apache-2.0
// The completion block as firmware sees it: control of queues, events from firmware, counters.
#include "model/completion/completion.h"

namespace rnic::completion {

// ---------------------------------------------------------------- register access

std::uint32_t completion::cr_read(std::uint32_t offset) {
  if (offset >= cr::event_map && offset < cr::event_map + 4 * cr::event_types)
    return event_map_[(offset - cr::event_map) / 4];
  if (offset >= cr::event_data && offset < cr::event_data + 24)
    return abi::load32(event_data_.data(), (offset - cr::event_data) & ~3u);
  const std::uint64_t* const counters[] = {
      &stats_.cqe,         &stats_.cqe_invalid, &stats_.cq_overflow,    &stats_.eqe,
      &stats_.eqe_invalid, &stats_.eq_overflow, &stats_.event_unmapped, &stats_.event_lost,
      &stats_.interrupts,  &stats_.stale_arm,   &stats_.bad_doorbell,   &stats_.discarded};
  if (offset >= cr::count_cqe && offset < cr::count_cqe + sizeof(counters) / sizeof(counters[0]) * 4)
    return static_cast<std::uint32_t>(*counters[(offset - cr::count_cqe) / 4]);
  switch (offset) {
    case cr::cq_select:
      return cq_select_;
    case cr::cq_status:
      return queue_busy(cq_halts_, true, cq_select_) ? 1 : 0;
    case cr::eq_select:
      return eq_select_;
    case cr::eq_status:
      return queue_busy(eq_halts_, false, eq_select_) ? 1 : 0;
    case cr::cqe_bytes:
      return cqe_bytes_;
    case cr::eqe_bytes:
      return eqe_bytes_;
    case cr::event_kind:
      return event_kind_;
    case cr::event_eqn:
      return event_eqn_;
    case cr::event_push:
      return firmware_events_.full() ? 1 : 0;
    default:
      return 0;
  }
}

void completion::cr_write(std::uint32_t offset, std::uint32_t value) {
  if (offset >= cr::event_map && offset < cr::event_map + 4 * cr::event_types) {
    event_map_[(offset - cr::event_map) / 4] = static_cast<std::uint16_t>(value);
    return;
  }
  if (offset >= cr::event_data && offset < cr::event_data + 24) {
    abi::store32(event_data_.data(), (offset - cr::event_data) & ~3u, value);
    return;
  }
  const bool size_ok = value == 32 || value == 64;
  switch (offset) {
    case cr::cq_select:
      cq_select_ = value;
      break;
    case cr::cq_command:
      command(cq_halts_, true, cq_select_, value);
      break;
    case cr::eq_select:
      eq_select_ = value;
      break;
    case cr::eq_command:
      command(eq_halts_, false, eq_select_, value);
      break;
    case cr::cqe_bytes:
      cqe_bytes_ = size_ok ? value : cqe_bytes_;
      break;
    case cr::eqe_bytes:
      eqe_bytes_ = size_ok ? value : eqe_bytes_;
      break;
    case cr::event_kind:
      event_kind_ = value & 0xffff;
      break;
    case cr::event_eqn:
      event_eqn_ = value & 0xffff;
      break;
    case cr::event_push:
      push_firmware_event();
      break;
    case cr::reset:
      if (value == 1) reset();
      break;
    default:
      break;
  }
}

void completion::push_firmware_event() {
  if (firmware_events_.full()) {
    ++stats_.event_lost;
    return;
  }
  event_request& e = firmware_events_.extend();
  e = event_request{};
  e.type = static_cast<std::uint8_t>(event_kind_ >> 8);
  e.subtype = static_cast<std::uint8_t>(event_kind_);
  e.eqn = static_cast<std::uint16_t>(event_eqn_);
  e.data = event_data_;
  wake_next();
}

void completion::reset() {
  cqs.drop_all();
  eqs.drop_all();
  pages.forget_all();
  for (consumer_fetch& f : consumer_fetches_) {
    f.stale = true;
    if (f.arrived) f.active = false;
  }
  for (halt_entry& h : cq_halts_) h.active = false;  // a fence under way keeps its entry until it is answered
  for (halt_entry& h : eq_halts_) h.active = false;
  halts_ = 0;
  events_.clear();
  firmware_events_.clear();
  moderation_.clear();
  event_map_.fill(static_cast<std::uint16_t>(cr::event_unmapped));
  cqe_bytes_ = eqe_bytes_ = 32;
  cq_select_ = eq_select_ = event_kind_ = 0;
  event_eqn_ = cr::event_eqn_mapped;
  wake_next();
}

// ---------------------------------------------------------------- queue control

const completion::halt_entry* completion::find_halt(const halt_table& table, std::uint32_t number) {
  for (const halt_entry& h : table)
    if (h.active && h.number == number) return &h;
  return nullptr;
}

void completion::command(halt_table& table, bool is_cq, std::uint32_t number, std::uint32_t value) {
  halt_entry* mine = nullptr;
  halt_entry* unused = nullptr;
  for (halt_entry& h : table) {
    if (h.active && h.number == number) mine = &h;
    if (!h.active && h.state != fence::under_way) unused = &h;
  }
  if (value == cr::queue_command_release) {
    if (is_cq) {
      cqs.drop(number);
      pages.forget(buffer_pages::queue::cq, number);
    } else {
      eqs.drop(number);
      pages.forget(buffer_pages::queue::eq, number);
    }
    if (mine != nullptr) {
      mine->active = false;
      --halts_;
    }
  } else if (value == cr::queue_command_halt || value == cr::queue_command_discard) {
    if (mine == nullptr) {
      if (unused == nullptr) return;
      mine = unused;
      *mine = halt_entry{};
      mine->active = true;
      mine->number = number;
      ++halts_;
    }
    mine->discard = value == cr::queue_command_discard;
  }
  wake_next();
}

void completion::serve_halts() {
  for (halt_entry& h : cq_halts_)
    if (h.active) serve_halt(h, true);
  for (halt_entry& h : eq_halts_)
    if (h.active) serve_halt(h, false);
}

/// Brings a halted queue to rest: what was decided for it goes to memory, then nothing of it stays on chip. A read
/// behind the writes tells when they are there, because reads of a client do not overtake its writes.
void completion::serve_halt(halt_entry& h, bool is_cq) {
  if (!h.forgotten) {
    pages.forget(is_cq ? buffer_pages::queue::cq : buffer_pages::queue::eq, h.number);
    if (is_cq) {
      for (consumer_fetch& f : consumer_fetches_)
        if (f.active && f.cqn == h.number) {
          f.stale = true;
          if (f.arrived) f.active = false;
        }
    }
    if (h.discard) moderation_.end(!is_cq, h.number);
    h.forgotten = true;
  }
  if (h.state == fence::wanted) {
    if (last_address_ == 0) {
      h.state = fence::done;
    } else if (writes_.size() + 1 < writes_.capacity()) {
      pcie::dma_request& read = queue_write(1);
      read.op = pcie::dma_request::kind::read;
      read.function = last_function_;
      read.length = 4;
      read.address = last_address_;
      const auto index =
          static_cast<std::uint64_t>(is_cq ? &h - cq_halts_.data() : max_halted + (&h - eq_halts_.data()));
      read.tag = static_cast<std::uint64_t>(tag_kind::fence) << 32 | index;
      read.destination = fence_data_.data();
      h.state = fence::under_way;
    }
  }
  if (is_cq && h.discard) cqs.drop(h.number);
  if (is_cq && !h.discard && cqs.on_chip(h.number)) cqs.flush(h.number);
  if (!is_cq && h.discard) eqs.drop(h.number);
  if (!is_cq && !h.discard && eqs.on_chip(h.number)) eqs.flush(h.number);
}

bool completion::queue_busy(const halt_table& table, bool is_cq, std::uint32_t number) const {
  const halt_entry* h = find_halt(table, number);
  if (h == nullptr) return true;  // not halted: it can be worked on at any time
  if (!h->forgotten || h->state != fence::done) return true;
  return is_cq ? cqs.busy(number) || cqs.on_chip(number) : eqs.busy(number) || eqs.on_chip(number);
}

}  // namespace rnic::completion
