// SPDX-License-Identifier: Apache-2.0
// The completion block as firmware sees it: control of queues, events from firmware, counters.
#include "model/completion/completion.h"

namespace rnic::completion {

// ---------------------------------------------------------------- register access

std::uint32_t completion::cr_read(std::uint32_t offset) {
  if (offset >= cr::event_map && offset < cr::event_map + 4 * cr::event_types)
    return set_.event_map[(offset - cr::event_map) / 4];
  if (offset >= cr::event_data && offset < cr::event_data + 24)
    return abi::load32(firmware_event_.data.data(), (offset - cr::event_data) & ~3u);
  const std::uint64_t* const counters[] = {
      &stats_.cqe,         &stats_.cqe_invalid, &stats_.cq_overflow,    &stats_.eqe,
      &stats_.eqe_invalid, &stats_.eq_overflow, &stats_.event_unmapped, &stats_.event_lost,
      &stats_.interrupts,  &stats_.stale_arm,   &stats_.bad_doorbell,   &stats_.discarded};
  if (offset >= cr::count_cqe && offset < cr::count_cqe + sizeof(counters) / sizeof(counters[0]) * 4)
    return static_cast<std::uint32_t>(*counters[(offset - cr::count_cqe) / 4]);
  switch (offset) {
    case cr::cq_select:
      return select_.cq;
    case cr::cq_status:
      return cq_busy(select_.cq) ? 1 : 0;
    case cr::eq_select:
      return select_.eq;
    case cr::eq_status:
      return eq_busy(select_.eq) ? 1 : 0;
    case cr::cqe_bytes:
      return set_.cqe_bytes;
    case cr::eqe_bytes:
      return set_.eqe_bytes;
    case cr::event_kind:
      return firmware_event_.kind;
    case cr::event_eqn:
      return firmware_event_.eqn;
    case cr::event_function:
      return firmware_event_.function;
    case cr::event_push:
      return firmware_events_.full() ? 1 : 0;
    default:
      return 0;
  }
}

void completion::cr_write(std::uint32_t offset, std::uint32_t value) {
  if (offset >= cr::event_map && offset < cr::event_map + 4 * cr::event_types) {
    set_.event_map[(offset - cr::event_map) / 4] = static_cast<std::uint16_t>(value);
    return;
  }
  if (offset >= cr::event_data && offset < cr::event_data + 24) {
    abi::store32(firmware_event_.data.data(), (offset - cr::event_data) & ~3u, value);
    return;
  }
  const bool size_ok = value == 32 || value == 64;
  switch (offset) {
    case cr::cq_select:
      select_.cq = value;
      break;
    case cr::cq_command:
      command_cq(select_.cq, value);
      break;
    case cr::eq_select:
      select_.eq = value;
      break;
    case cr::eq_command:
      command_eq(select_.eq, value);
      break;
    case cr::cqe_bytes:
      if (size_ok) set_.cqe_bytes = value;
      wake_next();  // an entry that waits for its page may be in another
      break;
    case cr::eqe_bytes:
      if (size_ok) set_.eqe_bytes = value;
      wake_next();
      break;
    case cr::event_kind:
      firmware_event_.kind = value & 0xffff;
      break;
    case cr::event_eqn:
      firmware_event_.eqn = value & 0xffff;
      break;
    case cr::event_function:
      firmware_event_.function = value & 0xff;
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
  e.type = static_cast<std::uint8_t>(firmware_event_.kind >> 8);
  e.subtype = static_cast<std::uint8_t>(firmware_event_.kind);
  e.eqn = static_cast<std::uint16_t>(firmware_event_.eqn);
  e.function = static_cast<std::uint16_t>(firmware_event_.function);
  e.data = firmware_event_.data;
  firmware_event_.function = 0;
  wake_next();
}

void completion::reset() {
  cqs.drop_all();
  eqs.drop_all();
  pages.forget_all();
  cq_engine_.records().forget_all();
  cq_halts_.release_all();
  eq_halts_.release_all();
  events_.clear();
  firmware_events_.clear();
  eq_engine_.forget_inner();
  moderation_.clear();
  set_ = settings{};
  select_ = {};
  firmware_event_.kind = firmware_event_.function = 0;
  firmware_event_.eqn = cr::event_eqn_mapped;
  wake_next();
}

// ---------------------------------------------------------------- queue control

void completion::command_cq(std::uint32_t number, std::uint32_t value) {
  if (value == cr::queue_command_release) {
    cqs.drop(number);
    pages.forget(buffer_pages::queue::cq, number);
  }
  command(cq_halts_, number, value);
}

void completion::command_eq(std::uint32_t number, std::uint32_t value) {
  if (value == cr::queue_command_release) {
    eqs.drop(number);
    pages.forget(buffer_pages::queue::eq, number);
  }
  command(eq_halts_, number, value);
}

void completion::command(halted_queues& halts, std::uint32_t number, std::uint32_t value) {
  if (value == cr::queue_command_release) {
    halts.release(number);
  } else if (value == cr::queue_command_halt || value == cr::queue_command_discard) {
    if (!halts.halt(number, value == cr::queue_command_discard)) return;  // busy stays set
  }
  wake_next();
}

/// Not halted: it can be worked on at any time.
bool completion::cq_busy(std::uint32_t number) const {
  const auto* h = cq_halts_.find(number);
  return h == nullptr || !halted_queues::written(*h) || cqs.busy(number) || cqs.on_chip(number);
}

bool completion::eq_busy(std::uint32_t number) const {
  const auto* h = eq_halts_.find(number);
  return h == nullptr || !halted_queues::written(*h) || eqs.busy(number) || eqs.on_chip(number);
}

}  // namespace rnic::completion
