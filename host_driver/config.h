// SPDX-License-Identifier: Apache-2.0
// Parameters of the driver shim: what the kernel takes from module parameters, and what its processor time costs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "host_driver/dcb/settings.h"
#include "host_driver/forced_path.h"
#include "host_driver/gid_rules.h"
#include "host_driver/lacp/settings.h"
#include "host_driver/pinned_memory.h"

namespace rnic::host_driver {

struct config {
  // Resource profile (module parameters of mlx4_core; defaults are its defaults). log2 of the number of objects.
  unsigned log_num_qp = 18;        ///< source: default_profile.num_qp
  unsigned log_rdmarc_per_qp = 4;  ///< source: default_profile.rdmarc_per_qp
  unsigned log_num_srq = 16;       ///< source: default_profile.num_srq
  unsigned log_num_cq = 16;        ///< source: default_profile.num_cq
  unsigned log_num_mpt = 19;       ///< source: default_profile.num_mpt
  unsigned log_num_mcg = 13;       ///< source: default_profile.num_mcg
  unsigned log_num_mtt = 20;       ///< source: default_profile.num_mtt; grows to twice the host's pages
  std::uint64_t host_memory_bytes = std::uint64_t{1} << 32;  ///< for the number of MTT entries; 0: do not grow
  bool large_cqe = true;                                     ///< enable_64b_cqe_eqe
  bool use_msix =
      true;  ///< without it the device's wire interrupts, and there is one completion EQ (net/main.c: no_msi)

  unsigned completion_vectors = 2;    ///< completion EQs beside the asynchronous one
  unsigned log_completion_eq = 0;     ///< log2 of entries of a completion EQ; 0: from the number of CQs, as the kernel
  unsigned mtu = 4200;                ///< netdev MTU: active path MTU is 4096 from 4192 on (data plane F.3)
  bool lossless_global_pause = true;  ///< 802.3x pause both ways in SET_PORT, as mlx4_en's default
  std::uint8_t pfc_mask = 0;          ///< priorities with PFC, takes the place of global pause
  dcb::settings dcb;                  ///< agent that agrees on PFC and ETS with the peer
  dcb::qcn_settings qcn;              ///< reaction points of quantised congestion notification
  unsigned mr_page_shift = 12;        ///< log2 of the page size of memory regions: 12..30; larger needs aligned buffers
  /// Module parameter roce_mode (0, 2, 4): versions for which an address gets a GID.
  enum class roce_versions : std::uint8_t { v1, v2, both };
  roce_versions roce_mode = roce_versions::both;
  /// The bond that has the interfaces of both ports (bond.h): modes 1, 2 and 4 of the bonding driver, or routing over
  /// equal ways (product documents: RoCE LAG, RoCE LAG ECMP).
  enum class bond_mode : std::uint8_t { none, active_backup, balance_xor, ecmp, ieee_802_3ad };
  bond_mode bond = bond_mode::none;
  lacp::settings lacp;               ///< of ieee_802_3ad
  std::uint64_t bond_miimon_us = 0;  ///< interval at which the bonding driver looks at its links; 0: with their events
  /// Module parameter ud_gid_type of the vendor's distribution (0, 2): RoCE version of all datagram queue pairs. By
  /// address: each datagram has that of its address handle's GID, as the kernel's own driver, which has no such
  /// parameter.
  enum class datagram_version : std::uint8_t { by_address, v1, v2 };
  datagram_version ud_gid_type = datagram_version::by_address;
  /// RoCE version in which rdma_cm makes connections when a port has nothing of its own (configfs default_roce_mode).
  /// Automatic: version 2 where the device has it (core/cma.c: CMA_PREFERRED_ROCE_GID_TYPE).
  enum class connection_version : std::uint8_t { automatic, v1, v2 };
  connection_version cma_roce_mode = connection_version::automatic;
  std::uint8_t cma_roce_tos = 0;               ///< of connections that set none (configfs default_roce_tos)
  std::array<forced_path, 2> forced{};         ///< sysfs tc/1 and tc/2 when the driver is loaded
  std::uint64_t memlock_bytes = no_memlock;    ///< RLIMIT_MEMLOCK of the programs (ulimit -l), in bytes
  mtu_rule path_mtu_rule = mtu_rule::headers;  ///< which path MTU a netdev MTU leaves
  std::uint32_t first_mpt = 0;  ///< protection entries below are given only when asked for; 0: the reserved ones

  /// Which rules bring frames and groups to queue pairs (module parameter log_num_mgm_entry_size, net/main.c:
  /// choose_steering_mode): groups and addresses (B0), or rules over headers that the device manages (DMFS) if it does.
  enum class steering_mode : std::uint8_t { b0, device_managed };
  steering_mode steering = steering_mode::b0;

  /// What the host says of all its virtual functions, where nothing is said of each (functions/master.h).
  std::uint16_t function_vlan = 0;           ///< 0: none
  std::uint32_t function_max_rate_mbps = 0;  ///< of each, through each port; 0: no limit. Needs function_vlan
  unsigned virtual_functions = 0;            ///< num_vfs: that the physical function's driver enables
  unsigned functions_port_1 = 0;             ///< of these, the first ones: with port 1 alone
  unsigned functions_port_2 = 0;             ///< the next ones: with port 2 alone; all others have both
  std::uint64_t function_bar_address = 0x3c'0000'0000;  ///< of the virtual functions' BARs
  unsigned function_mad_buffers = 512;            ///< of each tunnel, each way (ib/mlx4_ib.h: MLX4_NUM_TUNNEL_BUFS)
  std::uint64_t function_cm_id_keep_ms = 30'000;  ///< behind a connection's end (ib/cm.c: CM_CLEANUP_CACHE_TIMEOUT)
  std::uint64_t function_wait_us = 100;  ///< until they answer; the kernel sleeps 100 ms (SR-IOV specification 2.1.1)

  std::uint64_t bar0_address = 0xf000'0000;  ///< used when the function's BARs are not assigned yet
  std::uint64_t bar2_address = 0x4'0000'0000;

  /// Which single requests that fit are written into the BlueFlame buffer, so that the device need not read them: those
  /// with inline data (libmlx4), all (libmlx5), or none. By the device: as the library for its generation.
  enum class blue_flame_rule : std::uint8_t { by_device, with_inline_data, all, none };
  blue_flame_rule blue_flame = blue_flame_rule::by_device;

  // Patience. The kernel's figures are the defaults where waiting costs nothing.
  std::uint64_t reset_wait_us = 10;  ///< the kernel sleeps 1 s: long enough for anything; here the ready poll decides
  std::uint64_t reset_timeout_us = 2'000'000;       ///< until the vendor id is readable (reset.c)
  std::uint64_t semaphore_timeout_us = 10'000'000;  ///< reset.c: MLX4_SEM_TIMEOUT_JIFFIES
  std::uint64_t command_timeout_us = 60'000'000;    ///< all time classes of cmd.h
  std::uint64_t go_timeout_us = 10'000'000;         ///< cmd.c: GO_BIT_TIMEOUT_MSECS
  std::uint64_t poll_interval_ns = 1000;            ///< between two reads of a register being waited for

  // Processor time (source: calibration, latency budget "poll+post 60, poll 40").
  std::uint64_t post_send_ns = 60;    ///< per call
  std::uint64_t post_recv_ns = 30;    ///< per call
  std::uint64_t poll_ns = 40;         ///< per call that finds something
  std::uint64_t poll_empty_ns = 10;   ///< per call that finds nothing: one load that hits
  std::uint64_t interrupt_ns = 1500;  ///< from the interrupt to its handler (wake-up of a sleeping reader not included)

  /// A profile for runs with few objects: everything else is as above.
  static config small() {
    config c;
    c.log_num_qp = 12;
    c.log_num_srq = 10;
    c.log_num_cq = 10;
    c.log_num_mpt = 12;
    c.log_num_mcg = 8;
    c.log_num_mtt = 18;
    c.host_memory_bytes = 0;
    return c;
  }
};

}  // namespace rnic::host_driver
