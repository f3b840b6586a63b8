// SPDX-License-Identifier: Apache-2.0
// A virtual function from its channel to active ports and back (adapter control plane 8.4; net/main.c: mlx4_init_slave,
// mlx4_slave_cap).
#include <algorithm>
#include <cerrno>

#include "host_driver/device.h"
#include "model/abi/bar_layout.h"
#include "model/abi/device.h"

namespace rnic::host_driver {

int device::open_channel() {
  channel_.reset();
  channel_.use_virtual(to_physical_);
  return to_physical_.open();
}

int device::ask_capabilities() {
  std::uint64_t qps = 0, mpts = 0, cqs = 0, srqs = 0;
  {
    namespace f = abi::init_hca;
    command_channel::mailbox box(channel_);
    if (const int error = channel_.read(box, abi::opcode::query_hca)) return error;
    core_clock_mhz_ = abi::get(box.data(), f::core_clock_mhz);
    qps = std::uint64_t{1} << abi::get(box.data(), f::log_qps);
    mpts = std::uint64_t{1} << abi::get(box.data(), f::log_mpts);
    cqs = std::uint64_t{1} << abi::get(box.data(), f::log_cqs);
    srqs = std::uint64_t{1} << abi::get(box.data(), f::log_srqs);
    const bool flows = (abi::get(box.data(), f::flags) & f::flag_dmfs) != 0;
    steering_ = flows ? config::steering_mode::device_managed : config::steering_mode::b0;
    eqe_bytes_ = (abi::get(box.data(), f::entry_sizes) & f::eqe_64) != 0 ? 64 : 32;
    cqe_bytes_ = (abi::get(box.data(), f::entry_sizes) & f::cqe_64) != 0 ? 64 : 32;
  }
  {
    command_channel::mailbox box(channel_);
    if (const int error = channel_.read(box, abi::opcode::query_dev_cap)) return error;
    caps_ = device_caps::parse(box.data());
  }
  if (caps_.num_ports == 0 || caps_.num_ports > 2) return -ENODEV;
  ports_.assign(caps_.num_ports, port_state{});
  for (unsigned p = 1; p <= caps_.num_ports; ++p) {
    if (const int error = read_port(p)) return error;
  }
  namespace f = abi::query_fw;
  command_channel::mailbox box(channel_);
  if (const int error = channel_.read(box, abi::opcode::query_fw)) return error;
  firmware_.major = abi::get(box.data(), f::major);
  firmware_.minor = abi::get(box.data(), f::minor);
  firmware_.subminor = abi::get(box.data(), f::subminor);
  num_qps_ = static_cast<std::uint32_t>(qps);
  num_mpts_ = static_cast<std::uint32_t>(mpts);
  profile_ = icm_profile{};
  profile_.regions[static_cast<unsigned>(icm_region::cq)].count = cqs;
  profile_.regions[static_cast<unsigned>(icm_region::srq)].count = srqs;
  return 0;
}

int device::ask_function_capabilities() {
  namespace f = abi::func_cap;
  command_channel::mailbox box(channel_);
  if (const int error = channel_.read(box, abi::opcode::query_func_cap)) return error;
  caps_.max_eqs = abi::get(box.data(), f::max_eqs);
  caps_.reserved_eqs = abi::get(box.data(), f::reserved_eqs);
  if (caps_.max_eqs < caps_.reserved_eqs + 2) return -ENOMEM;
  caps_.max_responder_rdma = std::min(caps_.max_responder_rdma, 1u << cfg_.log_rdmarc_per_qp);
  init_allocators();
  uar_ = std::max(abi::uar::reserved_pages, caps_.reserved_uars);
  uar_offset_ = std::uint64_t{uar_} << abi::uar::log_page;
  bf_bytes_ = 0;
  blue_flame_ = config::blue_flame_rule::none;
  bf_image_.clear();
  return 0;
}

int device::start_virtual_ports() {
  // Management datagrams, which would tell, are the physical function's: the name is made of the first address.
  const gid_bytes own = default_gid(ports_[0].mac);
  for (unsigned i = 8; i < own.size(); ++i) node_guid_ = node_guid_ << 8 | own[i];
  system_guid_ = node_guid_;
  for (unsigned p = 1; p <= caps_.num_ports; ++p) {
    port_state& s = ports_[p - 1];
    std::uint64_t mac = 0, index = 0;
    for (const std::uint8_t byte : s.mac) mac = mac << 8 | byte;
    if (const int error = channel_.execute({abi::opcode::alloc_res, static_cast<std::uint32_t>(resource::mac) | p << 8,
                                            abi::res_op::reserve_and_map, mac, 0, &index}))
      return error;
    s.mac_index = static_cast<unsigned>(index);
    if (caps_.has(abi::dev_cap::flag_counters) &&
        channel_.execute({abi::opcode::alloc_res, static_cast<std::uint32_t>(resource::counter),
                          abi::res_op::reserve_and_map, 0, 0, &index}) == 0)
      s.counter = static_cast<std::uint8_t>(index);  // else its frames are counted with nobody's
    if (const int error = channel_.command(abi::opcode::init_port, p)) return error;
    // With one row there is room for one version, with none for no address: then the function has Ethernet only.
    const roce_types versions = s.gid_rows >= 2 ? roce_types::both : roce_types::v1;
    if (const int row = s.gid_rows != 0 ? add_address(p, default_gid(s.mac), versions) : 0; row < 0) return row;
  }
  return 0;
}

/// The physical function's driver takes back what is left.
int device::close_virtual() {
  channel_.use_polling();
  destroy_event_queues();
  if (channel_.is_lost())
    to_physical_.abandon();
  else
    to_physical_.close();
  open_ = false;
  async_events_.clear();
  return 0;
}

}  // namespace rnic::host_driver
