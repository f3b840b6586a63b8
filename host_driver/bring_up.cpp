// SPDX-License-Identifier: Apache-2.0
// From a PCI function to a working adapter and back (adapter control plane 3.1, 3.4; net/main.c).
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "host_driver/device.h"
#include "model/abi/bar_layout.h"
#include "model/abi/contexts.h"
#include "model/abi/device.h"

namespace rnic::host_driver {

namespace {

constexpr std::uint64_t ps_per_us = 1'000'000;
constexpr std::uint16_t vendor_mellanox = 0x15b3;
constexpr std::array<std::uint16_t, 13> physical_functions{0x1003, 0x1005, 0x1006, 0x1007, 0x1008, 0x1009, 0x100a,
                                                           0x100b, 0x100c, 0x100d, 0x100e, 0x100f, 0x1010};
// ConnectX-5, whose driver is another one: this model's adapter of that generation has the interface of the one before.
constexpr std::uint16_t fifth_generation = 0x1017;
// Virtual functions of both (ids.h of the kernel's table, MLX4_PCI_DEV_IS_VF; mlx5: MT27800 family).
constexpr std::array<std::uint16_t, 3> virtual_ids{0x1002, 0x1004, 0x1018};

// Configuration space (PCI Local Bus Specification 3.0, 6.1; PCI Express Base 3.0, 7.8).
constexpr std::uint16_t reg_id = 0x00, reg_command = 0x04, reg_bar = 0x10, reg_capabilities = 0x34;
constexpr std::uint32_t command_memory = 1u << 1, command_bus_master = 1u << 2, command_intx_disable = 1u << 10;
constexpr std::uint8_t capability_pcie = 0x10, capability_msix = 0x11;
constexpr unsigned saved_dwords = 64;

constexpr unsigned async_eq_entries = 512;  // MLX4_NUM_ASYNC_EQE + MLX4_NUM_SPARE_EQE, rounded up
constexpr unsigned spare_eqes = 0x80;
constexpr std::uint64_t async_events = 0x1d1f46fe;  // control plane 7.3
constexpr std::uint32_t map_eq_unmap = 1u << 31;

std::uint16_t find_capability(bus_if& bus, std::uint8_t id) {
  unsigned at = bus.config_read32(reg_capabilities) & 0xfc;
  for (unsigned guard = 0; at >= 0x40 && guard < 48; ++guard) {
    const std::uint32_t header = bus.config_read32(static_cast<std::uint16_t>(at));
    if ((header & 0xff) == id) return static_cast<std::uint16_t>(at);
    at = header >> 8 & 0xfc;
  }
  return 0;
}

}  // namespace

device::device(bus_if& bus, const config& cfg) : bus_(bus), cfg_(cfg), channel_(bus, cfg_) {}

device::~device() {
  for (const auto& entry : buffers_) bus_.release(entry.second);
  for (const auto& page : record_pages_) bus_.release(page);
}

int device::open() {
  if (open_) return -EBUSY;
  const int error = bring_up();
  open_ = true;
  if (error != 0) close();
  return error;
}

int device::bring_up() {
  identity_ = bus_.config_read32(reg_id);
  device_id_ = identity_ >> 16;
  virtual_ = knows_virtual(device_id_);
  resources_ = virtual_ ? static_cast<resources_if*>(&asked_) : &tables_;
  if (virtual_)
    return run_steps({&device::take_function, &device::open_channel, &device::ask_capabilities,
                      &device::ask_function_capabilities, &device::init_event_queues, &device::switch_to_events,
                      &device::start_virtual_ports});
  return run_steps({&device::take_function, &device::take_ownership, &device::reset_device, &device::start_firmware,
                    &device::query_capabilities, &device::init_icm, &device::init_hca, &device::enable_functions,
                    &device::read_adapter, &device::init_event_queues, &device::switch_to_events,
                    &device::init_special_qps, &device::start_network_ports, &device::start_rdma_ports,
                    &device::activate_ports});
}

int device::run_steps(std::initializer_list<int (device::*)()> steps) {
  for (const auto step : steps) {
    if (const int error = (this->*step)()) return error;
  }
  return 0;
}

bool device::knows_virtual(std::uint32_t device_id) {
  return std::find(virtual_ids.begin(), virtual_ids.end(), device_id) != virtual_ids.end();
}

bool device::knows(std::uint32_t device_id) {
  return device_id == fifth_generation ||
         std::find(physical_functions.begin(), physical_functions.end(), device_id) != physical_functions.end();
}

int device::take_function() {
  if ((identity_ & 0xffff) != vendor_mellanox || !(virtual_ || knows(device_id_))) return -ENODEV;
  if (virtual_) {  // its BAR is where the physical function's driver has put it
    bus_.config_write32(reg_command, command_bus_master);
    return 0;
  }
  if (const int error = assign_bars()) return error;
  const std::uint32_t command = bus_.config_read32(reg_command) & 0xffff;
  bus_.config_write32(reg_command,
                      command | command_memory | command_bus_master | (cfg_.use_msix ? command_intx_disable : 0));
  return 0;
}

int device::assign_bars() {
  struct wanted {
    unsigned bar;
    std::uint64_t address, minimum;
  };
  for (const wanted& w : {wanted{0, cfg_.bar0_address, abi::bar0::bytes}, wanted{2, cfg_.bar2_address, 1u << 20}}) {
    const auto low = static_cast<std::uint16_t>(reg_bar + 4 * w.bar);
    const auto high = static_cast<std::uint16_t>(low + 4);
    const std::uint32_t old_low = bus_.config_read32(low);
    if ((old_low & 1) != 0) return -ENODEV;  // an I/O BAR
    const bool wide = (old_low & 6) == 4;
    const std::uint32_t old_high = wide ? bus_.config_read32(high) : 0;
    const std::uint32_t command = bus_.config_read32(reg_command) & 0xffff;
    bus_.config_write32(reg_command, command & ~command_memory);  // not while it decodes
    bus_.config_write32(low, ~0u);
    if (wide) bus_.config_write32(high, ~0u);
    const std::uint64_t mask = (wide ? std::uint64_t{bus_.config_read32(high)} << 32 : 0xffff'ffff'0000'0000) |
                               (bus_.config_read32(low) & ~15u);
    const std::uint64_t size = ~mask + 1;
    const std::uint64_t assigned = std::uint64_t{old_high} << 32 | (old_low & ~15u);
    const std::uint64_t address = assigned != 0 ? assigned : (w.address + size - 1) & mask;
    bus_.config_write32(low, static_cast<std::uint32_t>(address));
    if (wide) bus_.config_write32(high, static_cast<std::uint32_t>(address >> 32));
    bus_.config_write32(reg_command, command);
    if (size < w.minimum) return -ENODEV;
  }
  return 0;
}

int device::take_ownership() {
  if (bus_.mmio_read32(0, abi::bar0::ownership) != 0) return -EINVAL;  // another function's driver has the device
  owner_ = true;
  return 0;
}

int device::reset_device() {
  std::array<std::uint32_t, saved_dwords> saved{};
  for (unsigned i = 0; i < saved_dwords; ++i) {
    if (i == 22 || i == 23) continue;  // gateway to the device's flash
    saved[i] = bus_.config_read32(static_cast<std::uint16_t>(4 * i));
  }
  const std::uint64_t start = bus_.now_ps();
  while (bus_.mmio_read32(0, abi::bar0::flash_semaphore) != 0) {
    if (bus_.now_ps() - start >= cfg_.semaphore_timeout_us * ps_per_us) return -EAGAIN;
    bus_.spend_ps(1000 * ps_per_us);
  }
  bus_.mmio_write32(0, abi::bar0::reset, 1);
  bus_.spend_ps(cfg_.reset_wait_us * ps_per_us);
  const std::uint64_t reset_done = bus_.now_ps();
  while ((bus_.config_read32(reg_id) & 0xffff) == 0xffff) {
    if (bus_.now_ps() - reset_done >= cfg_.reset_timeout_us * ps_per_us) return -ENODEV;
    bus_.spend_ps(cfg_.poll_interval_ns * 1000);
  }
  if (const std::uint16_t pcie = find_capability(bus_, capability_pcie); pcie != 0 && pcie + 0x10u < 4 * saved_dwords) {
    for (const unsigned control :
         {0x08u, 0x10u}) {  // device control, link control; the status halves are write-1-to-clear
      bus_.config_write32(static_cast<std::uint16_t>(pcie + control), saved[(pcie + control) / 4] & 0xffff);
    }
  }
  for (unsigned i = 0; i < 16; ++i) {
    if (4 * i != reg_command) bus_.config_write32(static_cast<std::uint16_t>(4 * i), saved[i]);
  }
  bus_.config_write32(reg_command, saved[reg_command / 4] & 0xffff);
  channel_.reset();
  return 0;
}

int device::start_firmware() {
  {
    command_channel::mailbox box(channel_);
    if (const int error = channel_.read(box, abi::opcode::query_fw)) return error;
    namespace f = abi::query_fw;
    const auto get = [&](auto field) { return abi::get(box.data(), field); };
    firmware_.pages = get(f::pages);
    firmware_.major = get(f::major);
    firmware_.minor = get(f::minor);
    firmware_.subminor = get(f::subminor);
    firmware_.command_interface = get(f::command_interface);
    firmware_.log_max_commands = get(f::log_max_commands);
    firmware_.catas_offset = get(f::catas_offset);
    firmware_.catas_words = get(f::catas_words);
    firmware_.catas_bar = (get(f::catas_bar) >> 6) * 2u;
    firmware_.clr_int_offset = get(f::clr_int_offset);
    firmware_.clr_int_bar = (get(f::clr_int_bar) >> 6) * 2u;
  }
  if (firmware_.command_interface < 2 || firmware_.command_interface > 3) return -ENODEV;
  if (const int error = firmware_area_.map(bus_, channel_, abi::opcode::map_fa, firmware_.pages)) return error;
  fw_ = true;
  if (const int error = channel_.command(abi::opcode::run_fw)) return error;
  command_channel::mailbox box(channel_);
  abi::set(box.data(), abi::mod_stat_cfg_mailbox::log_page_mask, 1);
  return channel_.write(box, abi::opcode::mod_stat_cfg);
}

int device::query_capabilities() {
  {
    command_channel::mailbox box(channel_);
    if (const int error = channel_.read(box, abi::opcode::query_dev_cap)) return error;
    caps_ = device_caps::parse(box.data());
  }
  if (caps_.num_ports == 0 || caps_.num_ports > 2 || caps_.min_page > 4096) return -ENODEV;
  ports_.assign(caps_.num_ports, port_state{});
  for (unsigned p = 1; p <= caps_.num_ports; ++p) {
    if (const int error = read_port(p)) return error;
    // The default counters are the first ones (net/main.c:mlx4_allocate_default_counters).
    if (caps_.has(abi::dev_cap::flag_counters)) ports_[p - 1].counter = static_cast<std::uint8_t>(p - 1);
  }
  for (unsigned p = 1; p <= caps_.num_ports; ++p) {
    command_channel::mailbox box(channel_);  // physical port id: nice to have
    channel_.read(box, abi::opcode::mod_stat_cfg, p << 8, 2);
  }
  profile_ = make_profile(cfg_, caps_);
  choose_steering();
  // A queue pair's responder has no more resources than there is memory for (net/profile.c: max_qp_dest_rdma).
  caps_.max_responder_rdma = std::min(caps_.max_responder_rdma, 1u << cfg_.log_rdmarc_per_qp);
  if (profile_.total > caps_.max_icm_bytes) return -ENOMEM;
  num_qps_ = static_cast<std::uint32_t>(profile_[icm_region::qp].count);
  num_mpts_ = static_cast<std::uint32_t>(profile_[icm_region::dmpt].count);
  const std::uint32_t line_mtts = 64 / std::max(1u, caps_.mtt_bytes);  // DMA cache alignment
  caps_.reserved_mtts = (caps_.reserved_mtts + line_mtts - 1) / line_mtts * line_mtts;
  return 0;
}

int device::init_icm() {
  std::uint64_t aux_pages = 0;
  if (const int error = channel_.execute({abi::opcode::set_icm_size, 0, 0, profile_.total, 0, &aux_pages}))
    return error;
  if (const int error = aux_area_.map(bus_, channel_, abi::opcode::map_icm_aux, aux_pages)) return error;
  aux_ = aux_area_.mapped();
  return tables_.map_tables(bus_, channel_, cfg_, caps_, profile_);
}

int device::init_hca() {
  command_channel::mailbox box(channel_);
  std::uint8_t* m = box.data();
  namespace f = abi::init_hca;
  const auto region = [&](icm_region r) { return profile_[r]; };
  const auto log = [&](icm_region r) { return static_cast<std::uint8_t>(profile_[r].log_count); };
  const bool eqe64 = cfg_.large_cqe && caps_.has(abi::dev_cap::flag_64b_eqe);
  const bool cqe64 = cfg_.large_cqe && caps_.has(abi::dev_cap::flag_64b_cqe);
  eqe_bytes_ = eqe64 ? 64 : 32;
  cqe_bytes_ = cqe64 ? 64 : 32;
  abi::set(m, f::version, f::version_value);
  m[0x0e] = (6 - 4) << 5 | 1 << 4;  // 64-byte cache lines
  abi::set(m, f::flags,
           (by_device() ? f::flag_dmfs : 0) | (caps_.has(abi::dev_cap::flag_ud_av_port) ? f::flag_check_ud_port : 0) |
               (caps_.has(abi::dev_cap::flag_counters) ? f::flag_counters : 0));
  abi::set(m, f::entry_sizes, (eqe64 ? f::eqe_64 : 0) | (cqe64 ? f::cqe_64 : 0));
  abi::set(m, f::qpc_base, region(icm_region::qp).base);
  abi::set(m, f::log_qps, log(icm_region::qp));
  abi::set(m, f::srqc_base, region(icm_region::srq).base);
  abi::set(m, f::log_srqs, log(icm_region::srq));
  abi::set(m, f::cqc_base, region(icm_region::cq).base);
  abi::set(m, f::log_cqs, log(icm_region::cq));
  abi::set(m, f::altc_base, region(icm_region::altc).base);
  abi::set(m, f::auxc_base, region(icm_region::auxc).base);
  abi::set(m, f::eqc_base, region(icm_region::eq).base);
  abi::set(m, f::log_eqs, caps_.num_sys_eqs != 0 ? std::uint8_t{0x1f} : log(icm_region::eq));
  abi::set(m, f::num_sys_eqs, static_cast<std::uint16_t>(caps_.num_sys_eqs));
  abi::set(m, f::rdmarc_base, region(icm_region::rdmarc).base);
  abi::set(m, f::log_rdmarc, static_cast<std::uint8_t>(cfg_.log_rdmarc_per_qp));
  fill_steering(m);
  abi::set(m, f::dmpt_base, region(icm_region::dmpt).base);
  abi::set(m, f::windows_enabled, caps_.has(abi::dev_cap::flag_mem_window) ? 1 : 0);
  abi::set(m, f::log_mpts, log(icm_region::dmpt));
  abi::set(m, f::mtt_base, region(icm_region::mtt).base);
  abi::set(m, f::cmpt_base, region(icm_region::cmpt).base);
  const std::uint64_t uars = caps_.uar_bytes >> abi::uar::log_page;
  abi::set(m, f::log_uars, static_cast<std::uint8_t>(log2_up(uars)));
  const int error = channel_.write(box, abi::opcode::init_hca);
  hca_ = error == 0;
  return error;
}

void device::fill_steering(std::uint8_t* m) const {
  namespace f = abi::init_hca;
  const auto log_bytes = static_cast<std::uint8_t>(log2_up(profile_.mcg_entry_bytes));
  const auto& region = profile_[icm_region::mcg];
  const auto log_entries = static_cast<std::uint8_t>(region.log_count);
  if (by_device()) {
    constexpr std::uint16_t addresses = 8;  // MLX4_FS_NUM_OF_L2_ADDR
    abi::set(m, f::flow_base, region.base);
    abi::set(m, f::log_flow_bytes, log_bytes);
    abi::set(m, f::log_flow_table, log_entries);
    abi::set(m, f::flow_ethernet_bits, static_cast<std::uint8_t>(f::flow_udp | f::flow_tcp));
    abi::set(m, f::flow_ethernet_addresses, addresses);
    abi::set(m, f::flow_ib_bits, static_cast<std::uint8_t>(f::flow_udp | f::flow_tcp));
    abi::set(m, f::flow_ib_addresses, addresses);
    return;
  }
  abi::set(m, f::mcg_base, region.base);
  abi::set(m, f::log_mcg_bytes, log_bytes);
  abi::set(m, f::log_mcg_hash, static_cast<std::uint8_t>(log_entries - 1));
  abi::set(m, f::log_mcg_table, log_entries);
  const bool b0 = caps_.has(abi::dev_cap::flag_uc_steer) && caps_.has(abi::dev_cap::flag_mc_steer);
  abi::set(m, f::unicast_steering, b0 ? 1 : 0);
}

int device::read_adapter() {
  {
    command_channel::mailbox box(channel_);
    if (const int error = channel_.read(box, abi::opcode::query_adapter)) return error;
    inta_pin_ = abi::get(box.data(), abi::query_adapter::inta_pin);
    for (unsigned i = 0; i < abi::query_adapter::board_id_bytes; ++i) {
      board_id_[i] = static_cast<char>(box.data()[abi::query_adapter::board_id + (i ^ 3)]);
    }
  }
  if ((caps_.bmme_flags & abi::dev_cap::bmme_config_dev) != 0) {
    command_channel::mailbox box(channel_);  // receive checksum mode: of interest to a network device only
    channel_.read(box, abi::opcode::config_dev, 0, 1);
  }
  init_allocators();
  const std::uint64_t uars = caps_.uar_bytes >> abi::uar::log_page;
  if (uars <= abi::uar::reserved_pages) return -ENODEV;
  uar_ = std::max(abi::uar::reserved_pages, caps_.reserved_uars);
  uar_offset_ = std::uint64_t{uar_} << abi::uar::log_page;
  bf_offset_ = (uars << abi::uar::log_page) + uar_offset_;
  bf_bytes_ = caps_.bf_register_bytes / 2;
  bf_half_ = 0;
  using rule = config::blue_flame_rule;
  blue_flame_ = cfg_.blue_flame;
  if (blue_flame_ == rule::by_device) blue_flame_ = device_id_ == fifth_generation ? rule::all : rule::with_inline_data;
  bf_image_.assign(bf_bytes_, 0);
  return 0;
}

void device::init_allocators() {
  pdns_ = bitmap(1u << 15, (1u << 20) - 1, caps_.reserved_pds + 1);
  if (!virtual_) tables_.start(cfg_, caps_, profile_);
  group_rules_.clear();
  group_used_.assign(profile_[icm_region::mcg].count, false);
  cqs_.clear();
  cqs_.resize(profile_[icm_region::cq].count);
  srqs_.clear();
  srqs_.resize(profile_[icm_region::srq].count);
  qp_index_.clear();
  qp_index_.resize((num_qps_ + qps_per_group - 1) / qps_per_group);
}

int device::create_eq(event_queue& eq, unsigned vector, unsigned log_entries) {
  eq.vector = vector;
  eq.entries = 1u << log_entries;
  eq.entry_bytes = eqe_bytes_;
  eq.consumer = 0;
  const std::size_t bytes = (std::size_t{eq.entries} * eq.entry_bytes + 4095) / 4096 * 4096;
  eq.buffer = bus_.allocate(bytes);
  if (eq.buffer.pointer == nullptr) return -ENOMEM;
  mtt_range range;
  if (const int error = map_buffer(eq.buffer.bus_address, bytes, 12, range)) return error;
  eq.mtt_first = range.first;
  eq.mtt_order = range.order;
  command_channel::mailbox box(channel_);
  std::uint8_t* c = box.data();
  abi::set(c, abi::eqc::state, abi::eqc::state_armed);
  abi::set(c, abi::eqc::log_size, static_cast<std::uint8_t>(log_entries));
  abi::set(c, abi::eqc::vector, static_cast<std::uint8_t>(vector));
  abi::store_mtt(c, abi::eqc::mtt_high, abi::eqc::mtt_low, std::uint64_t{range.first} * caps_.mtt_bytes);
  const int error = channel_.write(box, abi::opcode::sw2hw_eq, eq.eqn);
  eq.in_hardware = error == 0;
  return error;
}

int device::init_event_queues() {
  async_eq_.eqn = caps_.reserved_eqs;
  if (const int error = create_eq(async_eq_, 0, log2_up(async_eq_entries))) return error;
  const std::uint64_t cqs = profile_[icm_region::cq].count - caps_.reserved_cqs + spare_eqes;
  const unsigned log_entries = cfg_.log_completion_eq != 0 ? cfg_.log_completion_eq : log2_up(cqs);
  completion_eqs_.assign(cfg_.use_msix ? std::max(1u, cfg_.completion_vectors) : 1u, event_queue{});
  vector_armed_.assign(completion_eqs_.size(), false);
  cq_events_.assign(completion_eqs_.size(), {});
  for (unsigned i = 0; i < completion_eqs_.size(); ++i) {
    completion_eqs_[i].eqn = caps_.reserved_eqs + 1 + i;
    if (const int error = create_eq(completion_eqs_[i], cfg_.use_msix ? i + 1 : 0, log_entries)) return error;
  }
  return 0;
}

int device::switch_to_events() {
  const bool there = cfg_.use_msix ? find_capability(bus_, capability_msix) != 0 && bus_.enable_interrupt(0)
                                   : !virtual_ && bus_.enable_line();  // a virtual function has no wire
  if (!there) return -ENOTSUP;
  const int error = channel_.command(abi::opcode::map_eq, async_eq_.eqn, 0, async_events);
  if (error != 0) return error;
  async_eq_.ring(bus_, true);
  channel_.use_events(*this, firmware_.log_max_commands);
  return channel_.command(abi::opcode::nop, 0x1f);
}

int device::init_special_qps() {
  if (const int error = channel_.command(abi::opcode::conf_special_qp, tables_.base_special_qpn())) return error;
  special_qps_ = true;
  for (unsigned p = 1; p <= caps_.num_ports; ++p)
    mad(p, abi::mad::port_info, p, nullptr);  // capability mask: a warning at most
  return 0;
}

void device::destroy_event_queues() {
  if (async_eq_.in_hardware) channel_.command(abi::opcode::map_eq, async_eq_.eqn | map_eq_unmap, 0, async_events);
  const auto destroy = [&](event_queue& eq) {
    if (eq.in_hardware) channel_.command(abi::opcode::hw2sw_eq, eq.eqn, 1);
    if (eq.buffer.pointer != nullptr) {
      mtt_range range{eq.mtt_first, 1u << eq.mtt_order, eq.mtt_order};
      free_mtt(range);
      bus_.release(eq.buffer);
    }
    eq = event_queue{};
  };
  destroy(async_eq_);
  for (auto& eq : completion_eqs_) destroy(eq);
  completion_eqs_.clear();
}

void device::clean_up_icm() {
  tables_.clean_up();
  if (aux_) aux_area_.unmap(channel_, abi::opcode::unmap_icm_aux);
  aux_area_.release(bus_);
  if (fw_) firmware_area_.unmap(channel_, abi::opcode::unmap_fa);
  firmware_area_.release(bus_);
  aux_ = fw_ = false;
}

int device::reset() {
  if (!open_) return -ENODEV;
  if (virtual_) return -EOPNOTSUPP;
  if (const int error = reset_device()) return error;
  return abandon();
}

int device::abandon() {
  channel_.lose_device();
  return close();
}

int device::close() {
  if (!open_) return -ENODEV;
  take_down_objects();
  if (virtual_) return close_virtual();
  if (special_qps_) {
    for (unsigned p = 1; p <= caps_.num_ports; ++p) channel_.command(abi::opcode::close_port, p);
    if (caps_.has(abi::dev_cap::flag_counters)) {
      command_channel::mailbox box(channel_);
      channel_.read(box, abi::opcode::query_if_stat, 1u << 31);
    }
    channel_.command(abi::opcode::conf_special_qp, 0);
  }
  special_qps_ = false;
  channel_.use_polling();
  bus_.interrupt_served(async_eq_.vector);  // who serves virtual functions sees that there is nothing to wait for
  if (hca_) {
    destroy_event_queues();
    channel_.command(abi::opcode::close_hca);
  }
  hca_ = false;
  clean_up_icm();
  disable_functions();
  if (owner_) {
    bus_.mmio_write32(0, abi::bar0::ownership, 0);
    bus_.spend_ps(cfg_.reset_wait_us * ps_per_us);
  }
  owner_ = false;
  open_ = bonded_ = own_addresses_ = mirrored_ = false;
  own_rules_.clear();
  second_ = {};
  async_events_.clear();
  return 0;
}

}  // namespace rnic::host_driver
