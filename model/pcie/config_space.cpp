// SPDX-License-Identifier: Apache-2.0
#include "model/pcie/config_space.h"

#include <algorithm>
#include <cstring>

#include "model/sim/check.h"

namespace rnic::pcie {

namespace {

bool power_of_two(std::uint64_t v) { return v != 0 && (v & (v - 1)) == 0; }

/// Encoding of payload and read request sizes: 128 bytes is 0, each step doubles.
std::uint32_t size_code(std::uint32_t bytes) { return static_cast<std::uint32_t>(__builtin_ctz(bytes)) - 7; }

}  // namespace

config_space::config_space(const config& c) : config_(sim::checked(c, "pcie.config")) {
  const auto bar_ok = [](std::uint64_t bytes) { return power_of_two(bytes) && bytes >= 4096 && bytes <= 1ull << 40; };
  if (!bar_ok(c.bar0_bytes) || !bar_ok(c.bar2_bytes) || !bar_ok(c.vf_bar2_bytes))
    throw sim::config_error("pcie.config.bar_bytes: must be a power of two, 4 KiB to 1 TiB");
  if (c.msix_table_offset % 8 != 0 || c.msix_pba_offset % 8 != 0 ||
      c.msix_table_offset + 16ull * c.msix_vectors > c.bar0_bytes || c.msix_pba_offset + 256ull > c.bar0_bytes)
    throw sim::config_error("pcie.config.msix_table_offset: table and PBA must lie in BAR0 at multiples of 8");
  if (c.vf_msix_table_offset % 8 != 0 || c.vf_msix_pba_offset % 8 != 0 ||
      c.vf_msix_table_offset + 16ull * c.vf_msix_vectors > c.vf_bar2_bytes ||
      c.vf_msix_pba_offset + 256ull > c.vf_bar2_bytes)
    throw sim::config_error("pcie.config.vf_msix_table_offset: table and PBA must lie in VF BAR2 at multiples of 8");
  if (!power_of_two(c.max_payload_bytes))
    throw sim::config_error("pcie.config.max_payload_bytes: must be a power of two");
  // Vital product data: identifier string and end tag (PCI Local Bus Specification 3.0, appendix I).
  const std::size_t length = std::min<std::size_t>(c.product_name.size(), 200);
  vpd_[0] = 0x82;
  vpd_[1] = static_cast<std::uint8_t>(length);
  std::memcpy(&vpd_[3], c.product_name.data(), length);
  vpd_[3 + length] = 0x78;
  reset();
}

void config_space::reset() {
  clear();
  build_header();
  build_power_and_vpd();
  build_express();
  build_msix();
  build_extended();
  decode();
}

void config_space::build_header() {
  set16(0x00, config_.vendor_id);
  set16(0x02, config_.device_id);
  writable16(cfg::command, 0x0546);  // memory, bus master, parity, SERR#, INTx disable
  set16(cfg::status, 0x0010);        // capability list
  clearable16(cfg::status, 0xf900);
  set32(0x08, config_.class_code << 8 | config_.revision);
  set8(0x0c, 0, 0xff);  // cache line size
  const auto bar = [this](std::uint16_t offset, std::uint64_t bytes, std::uint32_t type) {
    const std::uint64_t mask = ~(bytes - 1);
    set32(offset, type);
    writable32(offset, static_cast<std::uint32_t>(mask));
    writable32(static_cast<std::uint16_t>(offset + 4), static_cast<std::uint32_t>(mask >> 32));
  };
  bar(cfg::bar0, config_.bar0_bytes, 0x4);  // 64-bit
  bar(cfg::bar2, config_.bar2_bytes, 0xc);  // 64-bit, prefetchable
  set16(0x2c, config_.vendor_id);
  set16(0x2e, config_.subsystem_id);
  set8(0x34, cfg::power);
  set8(0x3c, 0, 0xff);  // interrupt line
  set8(0x3d, 1);        // INTA
}

void config_space::build_power_and_vpd() {
  set32(cfg::power, 0x0003'0001u | cfg::vpd << 8);  // version 3, no PME
  set32(cfg::power + 4, 0x0008);                    // no soft reset on D3hot -> D0
  writable16(cfg::power + 4, 0x0003);
  set32(cfg::vpd, 0x03u | cfg::msix << 8);
  writable16(cfg::vpd + 2, 0xffff);
  writable32(cfg::vpd + 4, 0);  // nothing in the product data may be written
}

std::uint32_t config_space::device_capabilities(const config& c) {
  return size_code(c.max_payload_bytes) | 1u << 5 | 1u << 15 | 1u << 28;
}

void config_space::build_express() {
  set32(cfg::express, 0x0002'0010u);  // version 2, endpoint, end of the list
  set32(cfg::express + 0x04, device_capabilities(config_));
  set16(cfg::device_control, 0x2810);  // 512-byte reads, 128-byte payload: defaults of the specification
  writable16(cfg::device_control, 0xffff);
  clearable16(cfg::device_status, 0x000f);
  set32(cfg::express + 0x0c, config_.link_generation | config_.link_width << 4);
  writable16(cfg::express + 0x10, 0x01fb);
  set16(cfg::link_status, static_cast<std::uint16_t>(config_.link_generation | config_.link_width << 4 | 1u << 12));
  set32(cfg::express + 0x24, 0x1f);  // completion timeout ranges A to D, may be disabled
  writable16(cfg::express + 0x28, 0x001f);
  set32(cfg::express + 0x2c, ((1u << config_.link_generation) - 1) << 1);  // speeds 1..generation
  set16(cfg::express + 0x30, static_cast<std::uint16_t>(config_.link_generation));
  writable16(cfg::express + 0x30, 0x000f);
}

void config_space::build_msix() {
  set32(cfg::msix, 0x11u | cfg::express << 8 | static_cast<std::uint32_t>(config_.msix_vectors - 1) << 16);
  writable16(cfg::msix_control, 0xc000);
  set32(cfg::msix + 4, config_.msix_table_offset);  // BAR indicator 0
  set32(cfg::msix + 8, config_.msix_pba_offset);
}

void config_space::build_extended() {
  const auto header = [](std::uint32_t id, std::uint32_t version, std::uint32_t next) {
    return id | version << 16 | next << 20;
  };
  set32(cfg::ari, header(0x000e, 1, cfg::serial));
  set32(cfg::serial, header(0x0003, 1, config_.total_vfs != 0 ? cfg::sriov : cfg::aer));
  set32(cfg::serial + 4, static_cast<std::uint32_t>(config_.serial_number));
  set32(cfg::serial + 8, static_cast<std::uint32_t>(config_.serial_number >> 32));
  if (config_.total_vfs != 0) build_sriov(cfg::aer);
  set32(cfg::aer, header(0x0001, 2, 0));
  constexpr std::uint32_t uncorrectable = 0x0037'f030;
  clearable32(cfg::aer + 0x04, uncorrectable);
  writable32(cfg::aer + 0x08, uncorrectable);
  set32(cfg::aer + 0x0c, 0x0006'2030);  // severity: fatal are data link, flow control, overflow, malformed
  writable32(cfg::aer + 0x0c, uncorrectable);
  clearable32(cfg::aer + 0x10, 0x0000'f1c1);
  set32(cfg::aer + 0x14, 0x0000'2000);  // advisory non-fatal errors are masked
  writable32(cfg::aer + 0x14, 0x0000'f1c1);
}

void config_space::build_sriov(std::uint16_t next) {
  set32(cfg::sriov, 0x0010u | 1u << 16 | static_cast<std::uint32_t>(next) << 20);
  writable16(cfg::sriov_control, 0x0019);  // VF enable, VF memory space enable, ARI hierarchy
  set32(cfg::sriov + 0x0c, config_.total_vfs | std::uint32_t{config_.total_vfs} << 16);
  writable16(cfg::sriov_num_vfs, 0x00ff);  // NumVFs
  set16(cfg::sriov + 0x14, 1);             // first VF offset
  set16(cfg::sriov + 0x16, 1);             // VF stride
  set16(cfg::sriov + 0x1a, config_.vf_device_id);
  set32(cfg::sriov + 0x1c, 0x0000'0553);  // page sizes 4 KiB to 4 MiB as the specification asks
  set32(cfg::sriov + 0x20, 1);
  writable32(cfg::sriov + 0x20, 0x0000'0553);
  const std::uint64_t mask = ~(config_.vf_bar2_bytes - 1);
  set32(cfg::sriov_bar2, 0xc);  // VF BAR2: 64-bit, prefetchable
  writable32(cfg::sriov_bar2, static_cast<std::uint32_t>(mask));
  writable32(cfg::sriov + 0x30, static_cast<std::uint32_t>(mask >> 32));
}

config_effect config_space::write32(std::uint16_t offset, std::uint32_t value, unsigned byte_enables) {
  if (state_.vf_enabled && (offset & 0xffcu) == cfg::sriov_num_vfs) byte_enables &= 0xc;
  write(offset, value, byte_enables);
  config_effect e;
  e.function_level_reset = takes_reset(offset, byte_enables);
  if (touches(cfg::vpd + 3, offset, byte_enables)) vpd_access();
  e.msix_changed = touches(cfg::msix_control + 1, offset, byte_enables);
  decode();
  return e;
}

void config_space::vpd_access() {
  const std::uint16_t address = get16(cfg::vpd + 2);
  const bool write = (address & 0x8000) != 0;
  const unsigned from = address & 0x7ffcu;
  std::uint32_t data = 0;
  if (from + 4 <= vpd_.size()) std::memcpy(&data, &vpd_[from], 4);
  if (!write) set32(cfg::vpd + 4, data);
  // The flag turns over when the transfer is done; a write of read-only data ends without effect.
  set16(cfg::vpd + 2, static_cast<std::uint16_t>(write ? address & 0x7fff : address | 0x8000));
}

void config_space::decode() {
  const std::uint16_t command = get16(cfg::command);
  const bool awake = (byte(cfg::power + 4) & 3) == 0;  // in D1 to D3hot only configuration works
  state_.memory_enabled = awake && (command & cfg::command_memory) != 0;
  state_.bus_master = awake && (command & cfg::command_bus_master) != 0;
  const auto bar = [this](std::uint16_t offset) {
    return static_cast<std::uint64_t>(read32(static_cast<std::uint16_t>(offset + 4))) << 32 | (read32(offset) & ~0xfu);
  };
  state_.line_disabled = (command & cfg::command_line_disable) != 0;
  state_.bar0 = bar(cfg::bar0);
  state_.bar2 = bar(cfg::bar2);
  const std::uint16_t control = get16(cfg::device_control);
  state_.max_payload = std::min<std::uint32_t>(128u << std::min(control >> 5 & 7, 5), config_.max_payload_bytes);
  state_.max_read_request = 128u << std::min(control >> 12 & 7, 5);
  state_.msix_enabled = (get16(cfg::msix_control) & 0x8000) != 0;
  state_.msix_masked = (get16(cfg::msix_control) & 0x4000) != 0;
  const std::uint16_t sriov = config_.total_vfs != 0 ? get16(cfg::sriov_control) : std::uint16_t{0};
  state_.vf_enabled = (sriov & cfg::sriov_vf_enable) != 0;
  state_.enabled_vfs =
      state_.vf_enabled ? std::min<std::uint16_t>(get16(cfg::sriov_num_vfs), config_.total_vfs) : std::uint16_t{0};
  state_.vf_memory_enabled = awake && state_.enabled_vfs != 0 && (sriov & cfg::sriov_vf_memory) != 0;
  state_.vf_bar2 = state_.enabled_vfs != 0 ? bar(cfg::sriov_bar2) : 0;
}

void config_space::report(error e) {
  const std::uint16_t detected = e == error::unsupported_request ? 0x000a : 0x0002;  // non-fatal, UR
  set16(cfg::device_status,
        static_cast<std::uint16_t>(get16(cfg::device_status) | (e == error::malformed ? 0x0004 : detected)));
  set32(cfg::aer + 4, read32(cfg::aer + 4) | static_cast<std::uint32_t>(e));
  std::uint16_t status = get16(cfg::status);
  if (e == error::poisoned) status |= 0x8000;         // detected parity error
  if (e == error::completer_abort) status |= 0x0800;  // signalled target abort
  set16(cfg::status, status);
}

void config_space::received_abort(bool target_abort) {
  set16(cfg::status, static_cast<std::uint16_t>(get16(cfg::status) | (target_abort ? 0x1000 : 0x2000)));
}

}  // namespace rnic::pcie
