// SPDX-License-Identifier: Apache-2.0
// The device as a whole: identity, capabilities, start and stop (adapter control
// plane 4.2, 4.5, 4.6, 4.8, 4.9, 4.21, 4.22).
#include <algorithm>
#include <cstring>
#include <utility>

#include "firmware/firmware.h"
#include "firmware/limits.h"
#include "model/abi/bar_layout.h"
#include "model/abi/device.h"
#include "model/completion/completion_cr.h"
#include "model/doorbell/doorbell_cr.h"
#include "model/ethernet/steering_cr.h"
#include "model/gid/gid_cr.h"
#include "model/icm/contexts.h"
#include "model/icm/icm_cr.h"
#include "model/mac/mac_cr.h"
#include "model/pcie/pcie_cr.h"
#include "model/transport/transport_cr.h"

namespace rnic::firmware {

using icm::table;
using register_bus::cr_base;

namespace {

constexpr std::uint16_t qpc_bytes = 256;   // requester's half, then responder's (model/icm/contexts.h)
constexpr std::uint16_t altc_bytes = 256;  // the QP context as software wrote it
constexpr std::uint16_t srqc_bytes = 128, cqc_bytes = 128, eqc_bytes = 64, cmpt_bytes = 64;
constexpr std::uint16_t rdmarc_bytes = sizeof(icm::rdma_resources::entry);
constexpr unsigned log_max_qps = 24, log_max_cqs = 24, log_max_srqs = 24, log_max_mpts = 24, log_max_eqs = 10,
                   log_max_mcgs = 20;
constexpr unsigned log_shortest_group = 7;  // MLX4_MIN_MGM_LOG_ENTRY_SIZE of the kernel's driver

}  // namespace

abi::status firmware::nop(command_request&) { return status::ok; }

abi::status firmware::query_fw(command_request& r) {
  namespace f = abi::query_fw;
  out_.fill(0);
  put(f::pages, config_.firmware_pages);
  put(f::major, config_.version[0]);
  put(f::minor, config_.version[1]);
  put(f::subminor, config_.version[2]);
  put(f::physical_function, 0);
  put(f::command_interface, 3);
  put(f::log_max_commands, 4);
  put(f::clr_int_offset, abi::bar0::clr_int);
  put(f::catas_offset, abi::bar0::catas);
  put(f::catas_words, abi::bar0::catas_words);
  put(f::comm_offset, abi::bar0::comm);
  put(f::clock_offset, abi::bar0::clock);
  return write_mailbox(r, 0x100);
}

/// Approximation: the firmware area must be provided as on real hardware, but this firmware keeps its data elsewhere.
abi::status firmware::run_fw(command_request&) {
  if (firmware_area_pages_ < config_.firmware_pages) return status::bad_param;
  stage_ = stage_running;
  return status::ok;
}

abi::status firmware::mod_stat_cfg(command_request& r) {
  namespace f = abi::mod_stat_cfg_mailbox;
  if (r.op_modifier == 0) {
    if (const status s = read_mailbox(r, 0x100); s != status::ok) return s;
    return in(f::log_page_value) == 0 ? status::ok : status::bad_param;  // only 4 KiB pages
  }
  const std::uint32_t port = r.modifier >> 8 & 0xff;
  if (!valid_port(port)) return status::bad_param;
  out_.fill(0);
  put(f::port_guid_high, config_.port_guid[port - 1] >> 32);
  put(f::port_guid_low, config_.port_guid[port - 1] & 0xffffffff);
  return write_mailbox(r, 0x100);
}

/// Profile M of adapter control plane 3.9, with BlueFlame on and room for the published QP context in ALTC.
void firmware::fill_capabilities() {
  namespace c = abi::dev_cap;
  struct value {
    abi::field<std::uint8_t> f;
    std::uint8_t v;
  };
  constexpr value bytes[] = {
      {c::log_max_srq_wqes, log_max_srq_wqes},
      {c::log_max_qp_wqes, log_max_qp_wqes},
      {c::log_reserved_qps, 6},
      {c::log_max_qps, 18},
      {c::log_reserved_srqs, 6},
      {c::log_max_srqs, 16},
      {c::log_max_cqes, 22},
      {c::log_reserved_cqs, 7},
      {c::log_max_cqs, 16},
      {c::log_max_mpts, 19},
      {c::log_reserved_eqs, 2},
      {c::log_max_eqs, 8},
      {c::log_reserved_mtts, 4},
      {c::log_reserved_mpts, 4},
      {c::log_max_requester_rdma, log_max_requester_rdma},
      {c::log_max_responder_rdma, log_max_responder_rdma},
      {c::log_max_gso, 17},
      {c::rss, 0x37},
      {c::ack_delay, 15},
      {c::legacy_vl_port, 0x53},
      {c::ports_byte, 0x80},
      {c::log_max_message, 31},
      {c::legacy_gids, 7},
      {c::legacy_pkeys, 7},
      {c::reserved_uars, 0},
      {c::log_uar_mib, 2},
      {c::log_min_page, 12},
      {c::blue_flame, 1},
      {c::log_bf_register, 9},
      {c::log_bf_per_page, 3},
      {c::max_sq_sge, 62},
      {c::max_rq_sge, 32},
      {c::log_max_mcg_qps, log_max_mcg_qps},
      {c::reserved_mcgs, 0},
      {c::log_max_mcgs, 13},
      {c::log_max_pds, 15},
      {c::log_max_xrcds, 16},
      {c::qcn, 1},
  };
  out_.fill(0);
  for (const value& b : bytes) put(b.f, b.v);
  put(c::num_ports, config_.num_ports);
  constexpr auto bit = [](unsigned n) { return std::uint64_t{1} << n; };
  put(c::flags, bit(c::flag_rc) | bit(c::flag_uc) | bit(c::flag_ud) | bit(c::flag_xrc) | bit(c::flag_srq) |
                    bit(c::flag_lso) | bit(c::flag_mem_window) | bit(c::flag_atomic) | bit(c::flag_ud_mcast) |
                    bit(c::flag_iboe) | bit(c::flag_uc_loopback) | bit(c::flag_keep_fcs) | bit(c::flag_udp_rss) |
                    bit(c::flag_uc_steer) | bit(c::flag_mc_steer) | bit(c::flag_counters) | bit(c::flag_64b_eqe) |
                    bit(c::flag_64b_cqe));
  put(c::max_sq_bytes, max_sq_bytes);
  put(c::max_rq_bytes, max_rq_bytes);
  put(c::max_counters, 256);
  constexpr unsigned most_of_old_devices = 63;  // virtual functions, for the kernel's driver
  put(c::ext_flags, c::ext_update_qp | c::ext_fsm | (config_.software_cq_init ? c::ext_sw_cq_init : 0) |
                        (config_.total_vfs != 0 ? c::ext_vlan_control : 0) |
                        (config_.total_vfs > most_of_old_devices ? c::ext_80_vfs : 0));
  put(c::features, c::feature_reassign_mac | c::feature_diag_per_port | c::feature_ets);
  put(c::eth_prot_ctrl, config_.link_modes ? 1 : 0);
  put(c::qos_vpp, config_.total_vfs != 0 ? 1 : 0);
  // A queue pair's own limit: every value of each unit. What the line cannot do is no limit.
  namespace rate = abi::qp_rate;
  put(c::rate_limits, 3 * rate::value_mask);
  put(c::min_rate_limit, rate::kbps << rate::unit_shift | 1);
  put(c::max_rate_limit, rate::gbps << rate::unit_shift | rate::value_mask);
  put(c::flow_steering, 1);
  put(c::flow_sniffer, 1);
  put(c::max_flow_qps, flow::cr::max_members);
  put(c::rdmarc_bytes, rdmarc_bytes);
  put(c::qpc_bytes, qpc_bytes);
  put(c::auxc_bytes, 1);
  put(c::altc_bytes, altc_bytes);
  put(c::eqc_bytes, eqc_bytes);
  put(c::cqc_bytes, cqc_bytes);
  put(c::srqc_bytes, srqc_bytes);
  put(c::cmpt_bytes, cmpt_bytes);
  put(c::mtt_bytes, abi::mtt::bytes);
  put(c::dmpt_bytes, abi::mpt::bytes);
  put(c::bmme_flags, c::bmme_config_dev | c::bmme_ignore_fcs | (config_.num_ports == 2 ? c::bmme_port_remap : 0) |
                         (config_.roce_v2 ? c::bmme_roce_v1_v2 : 0) | c::bmme_fast_reg | c::bmme_reserved_lkey |
                         c::bmme_remote_inv | c::bmme_local_inv | c::bmme_type_2_win | c::bmme_win_2b);
  put(c::reserved_lkey, config_.reserved_lkey);
  put(c::max_icm_bytes, std::uint64_t{1} << 40);
  if (config_.total_vfs != 0) put(c::num_sys_eqs, functions::all_eqs);
}

abi::status firmware::query_dev_cap(command_request& r) {
  fill_capabilities();
  return write_mailbox(r, 0x100);
}

abi::status firmware::query_adapter(command_request& r) {
  namespace f = abi::query_adapter;
  out_.fill(0);
  put(f::inta_pin, abi::bar0::inta_pin);
  std::uint8_t id[f::board_id_bytes] = {};
  std::memcpy(id, config_.board_id.data(), std::min(config_.board_id.size(), sizeof id));
  for (std::size_t i = 0; i < sizeof id; ++i) out_[f::board_id + (i ^ 3)] = id[i];
  return write_mailbox(r, 0x100);
}

abi::status firmware::init_hca(command_request& r) {
  namespace f = abi::init_hca;
  if (const status s = read_mailbox(r, f::bytes); s != status::ok) return s;
  if (in(f::version) != f::version_value) return status::bad_param;
  const unsigned log_qps = in(f::log_qps), log_cqs = in(f::log_cqs), log_srqs = in(f::log_srqs),
                 log_eqs = config_.total_vfs != 0 && in(f::log_eqs) == f::log_eqs_system ? log_max_eqs : in(f::log_eqs);
  const unsigned log_mpts = in(f::log_mpts);
  if (log_qps > log_max_qps || log_cqs > log_max_cqs || log_srqs > log_max_srqs || log_eqs > log_max_eqs ||
      log_mpts > log_max_mpts)
    return status::bad_param;
  if (!set_group_table()) return status::bad_param;
  if (in(f::log_uar_page) > 8 || in(f::log_uars) > 20) return status::bad_param;

  std::copy_n(in_.begin(), f::bytes, hca_parameters_.begin());
  const auto base = [this](abi::field<std::uint64_t> q) { return in(q)&abi::init_hca::base_mask; };
  layout(table::qpc) = {base(f::qpc_base), qpc_bytes, log_qps};
  layout(table::srqc) = {base(f::srqc_base), srqc_bytes, log_srqs};
  layout(table::cqc) = {base(f::cqc_base), cqc_bytes, log_cqs};
  layout(table::eqc) = {base(f::eqc_base), eqc_bytes, log_eqs};
  layout(table::dmpt) = {base(f::dmpt_base), abi::mpt::bytes, log_mpts};
  layout(table::mtt) = {base(f::mtt_base), abi::mtt::bytes, 31};  // its size is not part of the command
  layout(table::cmpt) = {base(f::cmpt_base), cmpt_bytes, 26};
  layout(table::rdmarc) = {base(f::rdmarc_base), std::uint32_t{rdmarc_bytes} << in(f::log_rdmarc), log_qps};
  layout(table::altc) = {base(f::altc_base), altc_bytes, log_qps};
  layout(table::auxc) = {base(f::auxc_base), 1, log_qps};
  for (const icm::table_layout& l : layouts_)
    if ((std::uint64_t{l.entry_bytes} << l.log_entries) - 1 > ~l.base) return status::bad_param;
  const bool by_device = (in(f::flags)&f::flag_dmfs) != 0;
  log_mcg_hash_ = by_device ? 0 : in(f::log_mcg_hash);
  chip_.write(cr_base::transport, transport::cr::multicast_offset + transport::cr::mcg_hash_bits, log_mcg_hash_);
  chip_.write(cr_base::steering, ethernet::cr::group_hash_bits, log_mcg_hash_);
  chip_.write(cr_base::steering, ethernet::cr::group_steering, in(f::unicast_steering));
  if (by_device) flows_.start(1u << layout(table::mcg).log_entries);
  cqe_bytes_ = (in(f::entry_sizes)&f::cqe_64) != 0 ? 64 : 32;
  eqe_bytes_ = (in(f::entry_sizes)&f::eqe_64) != 0 ? 64 : 32;

  program_tables();
  for (const auto& [address, pages] : mapped_)
    if (!clear_contexts(address, std::uint64_t{pages} * 4096)) return status::icm_error;
  mpts_.resize(std::size_t{1} << log_mpts);
  eqs_.resize(std::size_t{1} << log_eqs);
  cqs_.resize(std::size_t{1} << log_cqs);
  srqs_.resize(std::size_t{1} << log_srqs);
  groups_written_.assign(std::size_t{1} << layout(table::mcg).log_entries, false);
  chip_.write(cr_base::transport, transport::cr::responder_offset + transport::cr::rx_checksum_mode,
              config_.rx_checksum_mode);
  stage_ = stage_ready;
  return status::ok;
}

/// Of groups, or of flow steering rules.
/// Approximation: flow steering rules are in memory on chip; the driver lends a table, which nobody looks at.
bool firmware::set_group_table() {
  namespace f = abi::init_hca;
  if ((in(f::flags)&f::flag_dmfs) != 0) {
    const unsigned log_flows = in(f::log_flow_table), log_flow_bytes = in(f::log_flow_bytes);
    const unsigned high_rate = in(f::flow_high_rate);  // QUERY_DEV_CAP has no queue pairs for it
    if (log_flows > log_max_mcgs || log_flow_bytes < 7 || log_flow_bytes > 12) return false;
    if (high_rate != f::high_rate_default && high_rate != f::high_rate_disabled) return false;
    layout(table::mcg) = {in(f::flow_base)&f::base_mask, 1u << log_flow_bytes, log_flows};
    return true;
  }
  const unsigned log_mcgs = in(f::log_mcg_table), log_mcg_bytes = in(f::log_mcg_bytes);
  if (log_mcgs > log_max_mcgs || log_mcg_bytes > 12 || in(f::log_mcg_hash) > 16 || in(f::log_mcg_hash) > log_mcgs)
    return false;
  if (log_mcg_bytes < log_shortest_group) return false;
  layout(table::mcg) = {in(f::mcg_base)&f::base_mask, 1u << log_mcg_bytes, log_mcgs};
  return true;
}

void firmware::program_tables() {
  for (unsigned t = 0; t < layouts_.size(); ++t) chip_.set_table(static_cast<table>(t), layouts_[t]);
  chip_.drop_translations();
  namespace d = doorbell::cr;
  chip_.write(cr_base::doorbell, d::uar_page_shift, 12u + in(abi::init_hca::log_uar_page));
  chip_.write(cr_base::doorbell, d::log_num_uars, in(abi::init_hca::log_uars));
  chip_.write(cr_base::doorbell, d::blueflame_enable, 1);
  chip_.write(cr_base::completion, completion::cr::cqe_bytes, cqe_bytes_);
  chip_.write(cr_base::completion, completion::cr::eqe_bytes, eqe_bytes_);
  namespace t = transport::cr;
  for (const std::uint32_t half : {0u, t::responder_offset}) {
    chip_.write(cr_base::transport, half + t::roce_v2_port, roce_v2_port_);
    chip_.write(cr_base::transport, half + t::reserved_lkey, config_.reserved_lkey);
    chip_.write(cr_base::transport, half + t::num_qps_log, layout(table::qpc).log_entries);
    chip_.write(cr_base::transport, half + t::special_qp_base, 0);
  }
}

/// The driver does not zero ICM (5.2), and hardware takes an entry of zeros as one that was never written.
/// What of [icm_address, icm_address + bytes) lies in a table of contexts.
bool firmware::clear_contexts(std::uint64_t icm_address, std::uint64_t bytes) {
  static constexpr std::array<std::uint8_t, 4096> zeros{};
  for (const table t : {table::qpc, table::srqc, table::cqc, table::eqc}) {
    const std::uint64_t base = layout(t).base, size = std::uint64_t{layout(t).entry_bytes} << layout(t).log_entries;
    const std::uint64_t from = std::max(icm_address, base);
    if (from - icm_address >= bytes || from - base >= size) continue;
    const std::uint64_t count = std::min(bytes - (from - icm_address), size - (from - base));
    for (std::uint64_t done = 0; done < count; done += zeros.size())
      if (!chip_.hw().icm_write(from + done, zeros.data(), std::min<std::uint64_t>(zeros.size(), count - done)))
        return false;
  }
  return true;
}

abi::status firmware::query_hca(command_request& r) {
  out_.fill(0);
  std::copy(hca_parameters_.begin(), hca_parameters_.end(), out_.begin());
  put(abi::init_hca::global_caps, 0);
  put(abi::init_hca::core_clock_mhz, config_.core_clock_mhz);
  out_[0x0e] = 0;
  return write_mailbox(r, abi::init_hca::bytes);
}

/// Stops all that runs, so that no block touches the memory which the driver takes back next.
void firmware::drop_everything() {
  for (unsigned port = 0; port < config_.num_ports; ++port)
    chip_.write_port(cr_base::mac, port, mac::cr::port_control, 0);
  chip_.empty_transport();
  roce_flags_ = 0;
  write_port_map(transport::cr::port_map_identity);
  for (unsigned port = 0; port < config_.num_ports; ++port) set_roce_mode(port, abi::set_port::roce_v1_v2);
  vports_.fill({});
  qps_.clear();
  chip_.write(cr_base::completion, completion::cr::reset, 1);
  chip_.write(cr_base::steering, ethernet::cr::reset, 1);
  groups_filtered_.fill(0);
  functions_.restart();
  for (owner_table* table : {&mpts_, &eqs_, &cqs_, &srqs_}) table->clear();
  groups_written_.clear();
  flows_.clear();
  forget_congestion();
  port_up_.fill(false);
  link_reported_.fill(false);
  special_qp_base_ = 0;
}

abi::status firmware::close_hca(command_request&) {
  if (stage_ != stage_ready) return status::ok;  // a closing command must not fail (2.6)
  drop_everything();
  stage_ = stage_sized;
  return status::ok;
}

/// What ethtool's self test asks: blocks may reach the host's memory, and address translation answers.
abi::status firmware::hw_health_check(command_request&) {
  const bool reaches_memory = (chip_.read(cr_base::pcie, pcie::cr::dma_enable) & 1) != 0;
  return reaches_memory && chip_.wait_translations() ? status::ok : status::internal_error;
}

/// Which port each virtual port stands for. Crossed, they would stand for each other's, which makes no sense
/// (net/main.c: mlx4_port_map_set).
abi::status firmware::virt_port_map(command_request& r) {
  namespace f = abi::virt_port_map_mailbox;
  namespace t = transport::cr;
  if (const status s = read_mailbox(r, 8); s != status::ok) return s;
  const std::uint32_t first = in(f::port_1), second = in(f::port_2);
  const auto exists = [this](std::uint32_t port) { return port >= 1 && port <= config_.num_ports; };
  if (config_.num_ports != 2 || !exists(first) || !exists(second) || (first == 2 && second == 1))
    return status::bad_param;
  write_port_map((port_map_ & ~t::port_map_ports) | (first - 1) | (second - 1) << 1);
  return status::ok;
}

/// One register in three places, and what of it the ports' tables have to know; nothing is written that is there
/// already.
void firmware::write_port_map(std::uint32_t value) {
  namespace t = transport::cr;
  const std::uint32_t before = std::exchange(port_map_, value);
  if (value == before) return;
  if (((value ^ before) & t::port_map_own_tables) != 0)
    for (unsigned port = 0; port < config_.num_ports; ++port)
      chip_.write_port(cr_base::gid, port, gid::cr::both_tables, (value & t::port_map_own_tables) != 0 ? 1 : 0);
  for (const std::uint32_t part : {0u, t::responder_offset, t::answer_offset})
    chip_.write(cr_base::transport, part + t::port_map, value);
}

abi::status firmware::config_dev(command_request& r) {
  namespace f = abi::config_dev_mailbox;
  namespace t = transport::cr;
  if (r.op_modifier == 1) {
    out_.fill(0);
    put(f::roce_v2_port, roce_v2_port_);
    put(f::roce_flags, roce_flags_);
    put(f::rx_checksum_mode, config_.rx_checksum_mode * 0x11u);  // of both ports
    return write_mailbox(r, 0x100);
  }
  if (const status s = read_mailbox(r, 0x100); s != status::ok) return s;
  const std::uint32_t update = in(f::update_flags);
  // Tunnels (VXLAN) are not announced.
  if ((update & ~(f::update_roce_v2_port | f::update_rx_port_check | f::update_function_ports)) != 0)
    return status::bad_param;
  if ((update & f::update_roce_v2_port) != 0 && !config_.roce_v2) return status::bad_param;
  if ((update & f::update_function_ports) != 0 &&
      !functions_.set_ports(in(f::functions_port_1), in(f::functions_port_2), in(f::functions_both)))
    return status::bad_param;
  if ((update & f::update_rx_port_check) != 0) {
    roce_flags_ = in(f::roce_flags);
    const bool any = (roce_flags_ & f::disable_rx_port_check) != 0;
    // Where functions have windows, the tables of the ports are not the same.
    const std::uint32_t how = t::port_map_any_arrival | (functions_.has_windows() ? t::port_map_own_tables : 0u);
    write_port_map((port_map_ & t::port_map_ports) | (any ? how : 0));
  }
  if ((update & f::update_roce_v2_port) != 0) {
    roce_v2_port_ = in(f::roce_v2_port);
    for (const std::uint32_t half : {0u, transport::cr::responder_offset})
      chip_.write(cr_base::transport, half + transport::cr::roce_v2_port, roce_v2_port_);
  }
  return status::ok;
}

}  // namespace rnic::firmware
