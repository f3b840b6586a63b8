// SPDX-License-Identifier: Apache-2.0
#include "testbenches/unit/firmware/fake_hardware.h"

#include <cstring>

#include "model/completion/completion_cr.h"
#include "model/icm/context_change.h"
#include "model/icm/icm_cr.h"
#include "model/icm/icm_map.h"
#include "model/transport/transport_cr.h"

namespace rnic {
namespace {

constexpr std::uint64_t base = 0x8'0000'0000;  // host memory starts here: all 64 bits of addresses must be handled
constexpr std::uint64_t unmapped = ~std::uint64_t{0};

}  // namespace

std::uint64_t fake_hardware::allocate(std::uint64_t bytes) {
  const std::uint64_t at = (memory_.size() + 0x3ffff) & ~std::uint64_t{0x3ffff};
  memory_.resize(at + bytes, 0xa5);
  return base + at;
}

std::uint8_t* fake_hardware::host(std::uint64_t address) {
  return address >= base && address < base + memory_.size() ? memory_.data() + (address - base) : nullptr;
}

std::uint32_t fake_hardware::cr_read(std::uint32_t address) { return registers[address]; }

void fake_hardware::cr_write(std::uint32_t address, std::uint32_t value) {
  writes.emplace_back(address, value);
  using register_bus::cr_base;
  namespace c = completion::cr;
  namespace i = icm::cr;
  if (address == static_cast<std::uint32_t>(cr_base::completion) + c::event_push) {
    event e{};
    for (std::uint32_t w = 0; w < 6; ++w) e.data[w] = reg(cr_base::completion, c::event_data + 4 * w);
    e.type = static_cast<std::uint8_t>(reg(cr_base::completion, c::event_kind) >> 8);
    e.subtype = static_cast<std::uint8_t>(reg(cr_base::completion, c::event_kind));
    events.push_back(e);
    return;
  }
  registers[address] = value;
  if (reg(cr_base::icm, i::table_select) == static_cast<std::uint32_t>(icm::table::qpc)) {
    qpc_ = std::uint64_t{reg(cr_base::icm, i::table_base_hi)} << 32 | reg(cr_base::icm, i::table_base_lo);
    qpc_entry_ = reg(cr_base::icm, i::table_entry_bytes);
  }
  namespace t = transport::cr;
  for (const std::uint32_t half : {0u, t::responder_offset})
    if (address == static_cast<std::uint32_t>(cr_base::transport) + half + t::qp_command &&
        value == t::qp_command_change)
      change_qp(half);
  for (const std::uint32_t half : {0u, t::responder_offset})  // a reset takes no time
    if (address == static_cast<std::uint32_t>(cr_base::transport) + half + t::reset) registers[address] = 0;
  if (address != static_cast<std::uint32_t>(cr_base::icm) + i::map_command) return;
  const auto pair = [this](std::uint32_t high, std::uint32_t low) {
    return std::uint64_t{reg(cr_base::icm, high)} << 32 | reg(cr_base::icm, low);
  };
  const std::uint64_t first = pair(i::map_icm_hi, i::map_icm_lo) >> 12;
  for (std::uint32_t p = 0; p < reg(cr_base::icm, i::map_pages); ++p) {
    if (value == i::map_command_map) icm[first + p] = pair(i::map_bus_hi, i::map_bus_lo) + p * 4096;
    if (value == i::map_command_unmap) icm.erase(first + p);
  }
}

// What is on chip of a context is what lies in ICM.
void fake_hardware::change_qp(std::uint32_t half) {
  using register_bus::cr_base;
  namespace t = transport::cr;
  const auto word = [&](std::uint32_t offset) { return reg(cr_base::transport, half + offset); };
  const std::uint64_t at = qpc_ + std::uint64_t{word(t::qp_select) & 0x3ffff} * qpc_entry_;
  const icm::qp_change how{static_cast<std::uint16_t>(word(t::change_from)),
                           static_cast<std::uint8_t>(word(t::change_to))};
  std::array<std::uint32_t, t::settings_bytes / 4> words;
  for (std::uint32_t n = 0; n < words.size(); ++n) words[n] = word(t::settings + 4 * n);
  const auto apply = [&](auto context, std::uint64_t place) {
    auto settings = context;
    std::memcpy(static_cast<void*>(&settings), words.data(), sizeof settings);
    if (!icm_read(place, &context, sizeof context)) return context;
    const auto was = context.state;
    icm::change(context, settings, how);
    reg(cr_base::transport, half + t::qp_status) = how.legal_in(was) || half != 0 ? 0 : t::qp_status_refused;
    icm_write(place, &context, sizeof context);
    return context;
  };
  if (half != 0) {
    apply(icm::responder_context{}, at + 128);
    return;
  }
  const icm::qp_state now = apply(icm::requester_context{}, at).state;
  if (now == icm::qp_state::sqd && how.legal_in(icm::qp_state::rts))
    reg(cr_base::transport, t::drained) = t::drained_valid | (word(t::qp_select) & 0xffffff);
}

bool fake_hardware::dma_read(std::uint16_t, std::uint64_t address, void* to, std::size_t bytes) {
  if (host(address) == nullptr || host(address + bytes - 1) == nullptr) return false;
  std::memcpy(to, host(address), bytes);
  return true;
}

bool fake_hardware::dma_write(std::uint16_t, std::uint64_t address, const void* from, std::size_t bytes) {
  if (host(address) == nullptr || host(address + bytes - 1) == nullptr) return false;
  std::memcpy(host(address), from, bytes);
  return true;
}

std::uint64_t fake_hardware::translate(std::uint64_t icm_address) const {
  const auto page = icm.find(icm_address >> 12);
  return page == icm.end() ? unmapped : page->second + (icm_address & 0xfff);
}

bool fake_hardware::icm_read(std::uint64_t icm_address, void* to, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    const std::uint64_t at = translate(icm_address + i);
    if (at == unmapped || !dma_read(0, at, static_cast<std::uint8_t*>(to) + i, 1)) return false;
  }
  return true;
}

bool fake_hardware::icm_write(std::uint64_t icm_address, const void* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    const std::uint64_t at = translate(icm_address + i);
    if (at == unmapped || !dma_write(0, at, static_cast<const std::uint8_t*>(from) + i, 1)) return false;
  }
  return true;
}

}  // namespace rnic
