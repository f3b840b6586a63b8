// SPDX-License-Identifier: Apache-2.0
// The driver's bus in simulated time.
#include "host_driver/bus/systemc_bus.h"

#include <algorithm>
#include <cstring>

namespace rnic::host_driver {

namespace {

constexpr std::uint64_t forever = program_turns::no_time;
constexpr std::uint16_t reg_bar = 0x10, reg_bar_end = 0x28, reg_capabilities = 0x34;
constexpr std::uint8_t capability_msix = 0x11;
constexpr std::uint32_t msix_enable = 1u << 31,
                        msix_function_mask = 1u << 30;  // message control, upper half of the dword
constexpr unsigned msix_entry_bytes = 16;
constexpr unsigned max_vectors = 2048;

}  // namespace

systemc_bus::systemc_bus(const sc_core::sc_module_name& name, sim::timebase& base, host::host_memory& memory,
                         program_turns& turns, const config& cfg)
    : sc_core::sc_module(name), cfg_(cfg), base_(base), memory_(memory), turns_(turns) {}
systemc_bus::~systemc_bus() = default;

/// Until `done`, which becomes true when the alarm rings; false where the deadline was first.
template <class Done>
bool systemc_bus::wait_until(program_turns::alarm& alarm, std::uint64_t deadline, Done done) {
  if (done()) return true;
  program_turns::turn mine(turns_, &alarm);
  do {
    base_.leave();
    if (now_ps() >= deadline) return false;
    mine.wait(deadline);
  } while (!done());
  return true;
}

/// A read or configuration cycle: starts it, repeats that while the root complex is busy, sleeps until it is done.
template <class Start>
std::uint32_t systemc_bus::split_access(Start start) {
  if (free_reads_.empty()) {
    reads_.push_back(std::make_unique<pending_read>());
    free_reads_.push_back(reads_.back().get());
  }
  pending_read* read = free_reads_.back();
  free_reads_.pop_back();
  read->completed = false;
  while (!start(reinterpret_cast<std::uint64_t>(read))) pass(cfg_.retry_ps);
  wait_until(read->done, forever, [read] { return read->completed; });
  std::uint32_t value = 0;
  std::memcpy(&value, read->data.data(), sizeof value);
  free_reads_.push_back(read);
  return value;
}

void systemc_bus::read_completed(std::uint64_t token, payload::tlp_status, const std::uint8_t* data,
                                 std::uint32_t bytes) {
  auto* read = reinterpret_cast<pending_read*>(token);
  std::memcpy(read->data.data(), data, bytes < read->data.size() ? bytes : read->data.size());
  read->completed = true;
  read->done.ring(base_);
}

void systemc_bus::assign(std::uint32_t id, std::uint64_t bar2) {
  assigned_id_ = id;
  bars_[2] = bar2;
  bar_known_[2] = true;
}

std::uint32_t systemc_bus::config_read32(std::uint16_t offset) {
  if (offset == 0 && assigned_id_ != 0) return assigned_id_;
  return split_access(
      [&](std::uint64_t token) { return port_->start_config_read(cfg_.function, offset, 4, *this, token); });
}

void systemc_bus::config_write32(std::uint16_t offset, std::uint32_t value) {
  if (offset >= reg_bar && offset < reg_bar_end) bar_known_.fill(false);
  split_access(
      [&](std::uint64_t token) { return port_->start_config_write(cfg_.function, offset, &value, 4, *this, token); });
}

std::uint64_t systemc_bus::bar_address(unsigned bar) {
  if (!bar_known_[bar]) {
    const auto reg = static_cast<std::uint16_t>(reg_bar + 4 * bar);
    const std::uint32_t low = config_read32(reg);
    const std::uint64_t high = (low & 6) == 4 ? config_read32(static_cast<std::uint16_t>(reg + 4)) : 0;
    bars_[bar] = high << 32 | (low & ~15u);
    bar_known_[bar] = true;
  }
  return bars_[bar];
}

std::uint32_t systemc_bus::mmio_read32(unsigned bar, std::uint64_t offset) {
  const std::uint64_t address = bar_address(bar) + offset;
  return __builtin_bswap32(
      split_access([&](std::uint64_t token) { return port_->start_mmio_read(address, 4, *this, token); }));
}

void systemc_bus::store_space() { space_.ring(base_); }

/// Stores of one processor stay in order; the lines of one call follow each other.
void systemc_bus::store_at(std::uint64_t address, const void* data, std::size_t bytes) {
  constexpr std::size_t line = 64;
  const std::uint32_t span = span_;
  const std::uint64_t turn = stores_asked_++;
  for (std::size_t at = 0; at < bytes;) {
    const auto* from = static_cast<const std::uint8_t*>(data) + at;
    const std::size_t n = std::min(bytes - at, line - (address + at) % line);
    wait_until(space_, forever, [&] {
      if (turn != stores_done_) return false;
      if (port_->mmio_store(address + at, from, static_cast<std::uint32_t>(n), span)) return true;
      port_->wait_for_space(*this);
      return false;
    });
    at += n;
  }
  if (++stores_done_ != stores_asked_) space_.ring(base_);  // the next one may find room too
}

void systemc_bus::store(unsigned bar, std::uint64_t offset, const void* data, std::size_t bytes) {
  store_at(bar_address(bar) + offset, data, bytes);
}

void systemc_bus::mmio_write32(unsigned bar, std::uint64_t offset, std::uint32_t value) {
  const std::uint32_t big_endian = __builtin_bswap32(value);
  store(bar, offset, &big_endian, sizeof big_endian);
}

void systemc_bus::mmio_write64(unsigned bar, std::uint64_t offset, std::uint64_t value) {
  const std::uint64_t big_endian = __builtin_bswap64(value);
  store(bar, offset, &big_endian, sizeof big_endian);
}

void systemc_bus::mmio_write_combined(unsigned bar, std::uint64_t offset, const void* from, std::size_t bytes) {
  store(bar, offset, from, bytes);
}

bus_if::dma_memory systemc_bus::allocate(std::size_t bytes, std::size_t alignment) {
  const auto buffer = memory_.allocate(bytes, alignment, cfg_.buffers, static_cast<std::uint8_t>(cfg_.function));
  return {buffer.address, buffer.pointer, buffer.bytes};
}

void systemc_bus::release(const dma_memory& memory) {
  memory_.release({memory.bus_address, memory.pointer, memory.bytes});
}

/// Lets time go by, without the kernel where the program may run ahead of it.
void systemc_bus::pass(std::uint64_t ps) {
  const std::uint64_t until = base_.now_ps() + ps;
  if (runs_ahead_ && base_.pass(until)) return;
  base_.leave();
  program_turns::turn(turns_).wait(until);
}

void systemc_bus::spend_ps(std::uint64_t ps) {
  busy_ps_ += ps;
  if (ps != 0) pass(ps);
}

void systemc_bus::sleep_ps(std::uint64_t ps) {
  if (ps != 0) pass(ps);
}

/// At the end the kernel gets where the program is.
void systemc_bus::run_ahead(bool on) {
  if (shared_) return;
  runs_ahead_ = on;
  if (!on && now_ps() != sc_core::sc_time_stamp().value())
    pass(0);
  else
    base_.leave();
}

void systemc_bus::watch::memory_written(std::uint64_t, std::uint32_t, sim::time_ps at) {
  hit = true;
  if (passing)
    base.end_pass();
  else
    written.ring(base, at);
}

bool systemc_bus::wait_for_write(std::uint64_t bus_address, std::size_t bytes, std::uint64_t timeout_ps) {
  if (free_watches_.empty()) {
    watches_.push_back(std::make_unique<watch>(base_));
    free_watches_.push_back(watches_.back().get());
  }
  watch* w = free_watches_.back();
  free_watches_.pop_back();
  w->hit = w->ended = false;
  w->waits = true;
  w->first = bus_address;
  w->bytes = bytes;
  memory_.watch(bus_address, bytes, *w);
  const std::uint64_t deadline = timeout_ps == 0 ? forever : now_ps() + timeout_ps;
  w->passing = runs_ahead_;
  const bool passed = runs_ahead_ && base_.pass(deadline);
  w->passing = false;
  if (!passed) wait_until(w->written, deadline, [w] { return w->hit || w->ended; });
  w->waits = false;
  memory_.unwatch(bus_address, bytes, *w);
  free_watches_.push_back(w);
  return w->hit;
}

void systemc_bus::end_wait(std::uint64_t bus_address) {
  for (const auto& w : watches_) {
    if (!w->waits || bus_address < w->first || bus_address - w->first >= w->bytes) continue;
    w->ended = true;
    w->written.ring(base_);
  }
}

systemc_bus::vector_state& systemc_bus::vector_of(unsigned vector) {
  while (vectors_.size() <= vector) vectors_.push_back(std::make_unique<vector_state>());
  return *vectors_[vector];
}

void systemc_bus::interrupt(std::uint16_t function, std::uint64_t address, std::uint32_t data, sim::time_ps at) {
  const std::uint32_t vector = data - cfg_.first_vector;
  if (function != cfg_.function || address != cfg_.msi_address || vector >= vectors_.size()) {
    ++foreign_interrupts_;
    return;
  }
  vectors_[vector]->pending = true;
  vectors_[vector]->raised.ring(base_, at);
}

bool systemc_bus::wait_interrupt(unsigned vector, std::uint64_t timeout_ps) {
  vector_state& v = vector_of(vector);
  const std::uint64_t deadline = timeout_ps == 0 ? forever : now_ps() + timeout_ps;
  const std::uint64_t served = v.served;
  if (!wait_until(v.raised, deadline, [&v, served] { return v.pending || v.served != served; }) || !v.pending)
    return false;
  v.pending = vector == 0 && line_enabled_ && line_asserted_;
  return true;
}

void systemc_bus::interrupt_served(unsigned vector) {
  vector_state& v = vector_of(vector);
  ++v.served;
  v.raised.ring(base_);
}

bool systemc_bus::enable_line() {
  vector_of(0);
  line_enabled_ = true;
  return true;
}

/// What the processor sees is the level: a handler that leaves it asserted is called again.
void systemc_bus::line(bool asserted, sim::time_ps at) {
  line_asserted_ = asserted;
  if (!line_enabled_) {
    ++foreign_interrupts_;
    return;
  }
  vectors_[0]->pending = asserted;
  if (asserted) vectors_[0]->raised.ring(base_, at);
}

std::uint16_t systemc_bus::find_msix() {
  unsigned at = config_read32(reg_capabilities) & 0xfc;
  for (unsigned guard = 0; at >= 0x40 && guard < 48; ++guard) {
    const std::uint32_t header = config_read32(static_cast<std::uint16_t>(at));
    if ((header & 0xff) == capability_msix) return static_cast<std::uint16_t>(at);
    at = header >> 8 & 0xfc;
  }
  return 0;
}

bool systemc_bus::enable_interrupt(unsigned vector) {
  if (msix_ == 0) msix_ = find_msix();
  if (msix_ == 0 || vector >= max_vectors) return false;
  const std::uint32_t control = config_read32(msix_);
  if (vector > (control >> 16 & 0x7ff)) return false;
  const std::uint32_t table = config_read32(static_cast<std::uint16_t>(msix_ + 4));
  vector_of(vector);
  // Table entries are little-endian, as everything of PCI itself.
  const std::uint64_t entry = bar_address(table & 7) + (table & ~7u) + std::uint64_t{vector} * msix_entry_bytes;
  const std::uint32_t words[] = {static_cast<std::uint32_t>(cfg_.msi_address),
                                 static_cast<std::uint32_t>(cfg_.msi_address >> 32), cfg_.first_vector + vector, 0};
  for (unsigned i = 0; i < 4; ++i) store_at(entry + 4 * i, &words[i], 4);
  if ((control & (msix_enable | msix_function_mask)) != msix_enable) {
    config_write32(msix_, (control & ~msix_function_mask) | msix_enable);
  }
  return true;
}

}  // namespace rnic::host_driver
