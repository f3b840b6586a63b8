// SPDX-License-Identifier: Apache-2.0
#include "model/pcie/bar_target.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rnic::pcie {

namespace {

constexpr std::uint32_t line_bytes = 64;

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
                       config_space& space, msix_table& vectors, register_file_if& bar0, register_file_if& bar2,
                       const outputs& to, sim::server& serving, sim::span_recorder& spans)
    : owner_(owner),
      config_(c),
      max_read_bytes_(max_read_bytes),
      space_(space),
      vectors_(vectors),
      bar0_(bar0),
      bar2_(bar2),
      out_(to),
      serving_(serving),
      spans_(spans) {}

bar_target::target bar_target::decode(std::uint64_t address, std::uint64_t bytes) const {
  const config_space::state& s = space_.now();
  if (!s.memory_enabled) return {};
  const auto inside = [&](std::uint64_t base, std::uint64_t size) {
    return base != 0 && address >= base && address - base < size && bytes <= size - (address - base);
  };
  if (inside(s.bar0, config_.bar0_bytes)) return {bar::registers, address - s.bar0};
  if (inside(s.bar2, config_.bar2_bytes)) return {bar::uar, address - s.bar2};
  return {};
}

// ---------------------------------------------------------------- writes

bool bar_target::write(const payload::tlp& t) {
  if (t.poisoned) {
    ++counts_.poisoned;
    space_.report(error::poisoned);
    return true;
  }
  const target at = decode(t.address, t.length);
  if (at.where == bar::none) {
    ++counts_.unsupported_writes;
    space_.report(error::unsupported_request);
    done_ = 0;  // memory space was disabled in the middle of it
    return true;
  }
  std::uint32_t from = done_;
  const bool whole = t.has_all_enabled();
  while (!whole && from < t.length && !byte_enabled(t, from)) ++from;
  if (from < t.length) {
    const target run{at.where, at.offset + from};
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
    msix_write(at.offset, data, bytes);
    return true;
  }
  const sim::fifo_out<mmio_write>& out = at.where == bar::registers ? out_.command : out_.doorbell;
  if (!out.claim()) {
    serving_.blocked(at.where == bar::registers ? "command" : "doorbell");
    return false;
  }
  mmio_write w;
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
  space_.report(error::unsupported_request);
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
      const std::uint32_t value = register32({at.where, offset & ~std::uint64_t{3}}, 0);
      std::memcpy(word.data(), &value, 4);
    }
    to[i] = word[offset & 3];
  }
}

/// The four bytes as they lie in memory order.
std::uint32_t bar_target::register32(target at, std::uint16_t function) {
  if (in_msix(at)) return msix_read(at.offset);
  register_file_if& file = at.where == bar::registers ? bar0_ : bar2_;
  return __builtin_bswap32(file.read32(function, at.offset));
}

// ---------------------------------------------------------------- MSI-X table

bool bar_target::in_msix(target at) const {
  if (at.where != bar::registers) return false;
  const std::uint64_t table = config_.msix_table_offset;
  const std::uint64_t pba = config_.msix_pba_offset;
  return (at.offset >= table && at.offset < table + 16ull * vectors_.vectors()) ||
         (at.offset >= pba && at.offset < pba + (vectors_.vectors() + 63) / 64 * 8);
}

std::uint32_t bar_target::msix_read(std::uint64_t offset) const {
  const std::uint64_t table = config_.msix_table_offset;
  if (offset >= table && offset < table + 16ull * vectors_.vectors())
    return vectors_.read32(static_cast<std::uint32_t>(offset - table));
  return vectors_.pending32(static_cast<std::uint32_t>(offset - config_.msix_pba_offset));
}

void bar_target::msix_write(std::uint64_t offset, const std::uint8_t* data, std::uint32_t bytes) {
  const std::uint64_t table = config_.msix_table_offset;
  for (std::uint32_t i = 0; i < bytes; ++i) {
    const std::uint64_t at = offset + i;
    if (at < table || at >= table + 16ull * vectors_.vectors()) continue;  // pending bits are read-only
    const unsigned shift = static_cast<unsigned>(at & 3) * 8;
    vectors_.write32(static_cast<std::uint32_t>(at - table) & ~3u, std::uint32_t{data[i]} << shift, 0xffu << shift);
  }
  msix_written_ = true;
}

bool bar_target::look(std::uint64_t address, std::uint32_t bytes, std::uint8_t* to) const {
  const target at = decode(address, bytes);
  if (!in_msix(at) || !in_msix({at.where, at.offset + bytes - 1})) return false;
  for (std::uint32_t i = 0; i < bytes; ++i) {
    const std::uint64_t offset = at.offset + i;
    to[i] = static_cast<std::uint8_t>(msix_read(offset & ~std::uint64_t{3}) >> 8 * (offset & 3));
  }
  return true;
}

}  // namespace rnic::pcie
