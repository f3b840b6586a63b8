// SPDX-License-Identifier: Apache-2.0
#include "model/pcie/bar_target.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "model/abi/bar_layout.h"

namespace rnic::pcie {

namespace {

constexpr std::uint32_t line_bytes = 64;
/// Of page 0 of a virtual function's BAR2.
constexpr std::uint64_t virtual_registers_bytes = 0x14;

}  // namespace

bool byte_enabled(const payload::tlp& t, std::uint32_t i) {
  const std::uint64_t first = t.address / 4;
  const std::uint64_t at = t.address + i;
  const unsigned lane = static_cast<unsigned>(at & 3);
  if (at / 4 == first) return (t.first_be >> lane & 1) != 0;
  if (at / 4 == (t.address + t.length - 1) / 4) return (t.last_be >> lane & 1) != 0;
  return true;
}

bar_target::bar_target(sim::clocked_block& owner, const config_space::config& c, std::uint32_t max_read_bytes,
                       functions& all, register_file_if& bar0, register_file_if& bar2, const outputs& to,
                       sim::server& serving, sim::span_recorder& spans)
    : owner_(owner),
      config_(c),
      max_read_bytes_(max_read_bytes),
      functions_(all),
      bar0_(bar0),
      bar2_(bar2),
      out_(to),
      serving_(serving),
      spans_(spans) {}

bar_target::target bar_target::decode(std::uint64_t address, std::uint64_t bytes) const {
  const config_space::state& s = functions_.now();
  const auto inside = [&](std::uint64_t base, std::uint64_t size) {
    return base != 0 && address >= base && address - base < size && bytes <= size - (address - base);
  };
  if (s.memory_enabled) {
    if (inside(s.bar0, config_.bar0_bytes)) return {bar::registers, address - s.bar0};
    if (inside(s.bar2, config_.bar2_bytes)) return {bar::uar, address - s.bar2};
  }
  return s.vf_memory_enabled ? decode_virtual(address, bytes) : target{};
}

bar_target::target bar_target::decode_virtual(std::uint64_t address, std::uint64_t bytes) const {
  const config_space::state& s = functions_.now();
  const std::uint64_t at = address - s.vf_bar2, index = at / config_.vf_bar2_bytes, offset = at % config_.vf_bar2_bytes;
  if (s.vf_bar2 == 0 || index >= s.enabled_vfs || bytes > config_.vf_bar2_bytes - offset) return {};
  const auto function = static_cast<std::uint16_t>(index + 1);
  return {offset < virtual_registers_bytes ? bar::registers : bar::uar, offset, function};
}

bar_target::msix_place bar_target::msix_of(unsigned function) const {
  const std::uint64_t vectors = functions_.vectors(function).vectors();
  const std::uint64_t pending_bytes = (vectors + 63) / 64 * 8;
  if (function == 0)
    return {bar::registers, config_.msix_table_offset, 16 * vectors, config_.msix_pba_offset, pending_bytes};
  return {bar::uar, config_.vf_msix_table_offset, 16 * vectors, config_.vf_msix_pba_offset, pending_bytes};
}

// ---------------------------------------------------------------- writes

bool bar_target::write(const payload::tlp& t) {
  if (t.poisoned) {
    ++counts_.poisoned;
    functions_.physical().report(error::poisoned);
    return true;
  }
  const target at = decode(t.address, t.length);
  if (at.where == bar::none) {
    ++counts_.unsupported_writes;
    functions_.physical().report(error::unsupported_request);
    done_ = 0;  // memory space was disabled in the middle of it
    return true;
  }
  std::uint32_t from = done_;
  const bool whole = t.has_all_enabled();
  while (!whole && from < t.length && !byte_enabled(t, from)) ++from;
  if (from < t.length) {
    const target run{at.where, at.offset + from, at.function};
    const std::uint32_t limit =
        std::min(t.length - from, line_bytes - static_cast<std::uint32_t>(run.offset % line_bytes));
    std::uint32_t bytes = whole ? limit : 1;
    while (bytes < limit && byte_enabled(t, from + bytes)) ++bytes;
    if (!push_run(run, t.data.data() + from, bytes, t.span)) return false;
    from += bytes;
  }
  if (done_ == 0) {  // its first part has gone on
    ++counts_.writes;
    if (t.length != 0) spans_.leave(t.span, owner_.name(), "mmio write", owner_.now_ps());
  }
  done_ = from;
  if (done_ == t.length) {
    done_ = 0;
    return true;
  }
  serving_.start(1);
  owner_.wake_next();
  return false;
}

bool bar_target::push_run(target at, const std::uint8_t* data, std::uint32_t bytes, sim::span_id span) {
  if (in_msix(at)) {
    msix_write(at, data, bytes);
    return true;
  }
  if (in_clear(at)) {
    clear_line(at, data, bytes);
    return true;
  }
  if (at.where == bar::uar && functions_.held(at.function)) {
    ++counts_.held_writes;
    return true;
  }
  const sim::fifo_out<mmio_write>& out = at.where == bar::registers ? out_.command : out_.doorbell;
  if (!out.claim()) {
    serving_.blocked(at.where == bar::registers ? "command" : "doorbell");
    return false;
  }
  mmio_write w;
  w.function = at.function;
  w.offset = at.offset;
  w.length = bytes;
  w.span = span;
  std::memcpy(w.data.data(), data, bytes);
  out.push(w);
  return true;
}

// ---------------------------------------------------------------- reads

bool bar_target::claims_read(const payload::tlp& t) {
  if (t.length != 0 && t.length <= max_read_bytes_ && decode(t.address, t.length).where != bar::none) {
    ++counts_.reads;
    return true;
  }
  ++counts_.unsupported_reads;
  functions_.physical().report(error::unsupported_request);
  return false;
}

void bar_target::read(const payload::tlp& t, std::uint8_t* to) {
  const target at = decode(t.address, t.length);
  std::memset(to, 0, t.length);
  std::uint64_t loaded = ~std::uint64_t{0};
  std::array<std::uint8_t, 4> word{};
  for (std::uint32_t i = 0; i < t.length; ++i) {
    if (!byte_enabled(t, i)) continue;
    const std::uint64_t offset = at.offset + i;
    if (loaded != offset / 4) {
      loaded = offset / 4;
      const std::uint32_t value = register32({at.where, offset & ~std::uint64_t{3}, at.function});
      std::memcpy(word.data(), &value, 4);
    }
    to[i] = word[offset & 3];
  }
}

/// The four bytes as they lie in memory order.
std::uint32_t bar_target::register32(target at) {
  if (in_msix(at)) return msix_read(at);
  register_file_if& file = at.where == bar::registers ? bar0_ : bar2_;
  return __builtin_bswap32(file.read32(at.function, at.offset));
}

// ---------------------------------------------------------------- MSI-X table

std::uint32_t bar_target::msix_read(target at) const {
  const msix_table& vectors = functions_.vectors(at.function);
  const msix_place place = msix_of(at.function);
  if (at.offset - place.table < place.table_bytes)
    return vectors.read32(static_cast<std::uint32_t>(at.offset - place.table));
  return vectors.pending32(static_cast<std::uint32_t>(at.offset - place.pending));
}

void bar_target::msix_write(target at, const std::uint8_t* data, std::uint32_t bytes) {
  const msix_place place = msix_of(at.function);
  for (std::uint32_t i = 0; i < bytes; ++i) {
    const std::uint64_t byte = at.offset + i - place.table;
    if (byte >= place.table_bytes) continue;  // pending bits are read-only
    const unsigned shift = static_cast<unsigned>(byte & 3) * 8;
    functions_.vectors(at.function)
        .write32(static_cast<std::uint32_t>(byte) & ~3u, std::uint32_t{data[i]} << shift, 0xffu << shift);
  }
  interrupts_written_ = true;
}

bool bar_target::in_clear(target at) {
  return at.where == bar::registers && at.function == 0 && at.offset - abi::bar0::clr_int < abi::bar0::clr_int_bytes;
}

/// Two big-endian words with a bit for each line, the first 32 in the second one.
void bar_target::clear_line(target at, const std::uint8_t* data, std::uint32_t bytes) {
  constexpr std::uint64_t byte = abi::bar0::clr_int + 7 - abi::bar0::inta_pin / 8;
  const std::uint64_t in = byte - at.offset;
  if (in >= bytes || (data[in] >> abi::bar0::inta_pin % 8 & 1) == 0) return;
  functions_.line().clear();
  interrupts_written_ = true;
}

bool bar_target::look(std::uint64_t address, std::uint32_t bytes, std::uint8_t* to) const {
  const target at = decode(address, bytes);
  if (!in_msix(at) || !in_msix({at.where, at.offset + bytes - 1, at.function})) return false;
  for (std::uint32_t i = 0; i < bytes; ++i) {
    const std::uint64_t offset = at.offset + i;
    to[i] =
        static_cast<std::uint8_t>(msix_read({at.where, offset & ~std::uint64_t{3}, at.function}) >> 8 * (offset & 3));
  }
  return true;
}

}  // namespace rnic::pcie
