// SPDX-License-Identifier: Apache-2.0
// What the device can do, and the layout of its context memory that the driver computes from that.
#pragma once

#include <array>
#include <cstdint>

#include "host_driver/config.h"

namespace rnic::host_driver {

/// QUERY_FW, fields the driver keeps (adapter control plane 4.2).
struct firmware_info {
  std::uint16_t pages = 0, major = 0, minor = 0, subminor = 0, command_interface = 0;
  unsigned log_max_commands = 0;
  std::uint64_t catas_offset = 0;
  std::uint32_t catas_words = 0;
  unsigned catas_bar = 0;
  std::uint64_t clr_int_offset = 0;
  unsigned clr_int_bar = 0;
};

/// QUERY_DEV_CAP (4.6). Counts, not logarithms, unless named so.
struct device_caps {
  std::uint32_t max_srq_wqes = 0, max_qp_wqes = 0, max_cqes = 0;
  std::uint32_t reserved_qps = 0, reserved_srqs = 0, reserved_cqs = 0, reserved_eqs = 0, reserved_mtts = 0,
                reserved_mpts = 0;
  std::uint32_t max_eqs = 0, num_sys_eqs = 0, reserved_pds = 0, max_pds = 0, reserved_uars = 0, reserved_mcgs = 0;
  std::uint32_t max_requester_rdma = 0, max_responder_rdma = 0;
  unsigned ack_delay = 0, num_ports = 0, log_max_message = 0, log_max_gso = 0;
  std::uint64_t flags = 0, uar_bytes = 0, max_icm_bytes = 0;
  std::uint32_t ext_flags = 0, bmme_flags = 0, reserved_lkey = 0, max_counters = 0;
  std::uint16_t static_rates = 0, rate_limits = 0;
  std::uint32_t features = 0;  ///< abi::dev_cap::feature_*
  bool eth_prot_ctrl = false, qos_vpp = false;
  bool flow_steering = false, flow_sniffer = false;  ///< rules that the device manages; copies of what others get
  std::uint32_t max_flow_qps = 0;                    ///< of one entry of them
  bool blue_flame = false, qcn = false;
  std::uint32_t bf_register_bytes = 0;
  std::uint32_t min_page = 0, max_sq_sge = 0, max_rq_sge = 0, max_sq_bytes = 0, max_rq_bytes = 0, max_qps_per_mcg = 0;
  std::uint32_t rdmarc_bytes = 0, qpc_bytes = 0, auxc_bytes = 0, altc_bytes = 0, eqc_bytes = 0, cqc_bytes = 0,
                srqc_bytes = 0, cmpt_bytes = 0, mtt_bytes = 0, dmpt_bytes = 0;

  bool has(unsigned flag_bit) const { return (flags >> flag_bit & 1) != 0; }
  static device_caps parse(const void* mailbox);
};

/// Tables in ICM, in the order in which the kernel names them (net/profile.c).
enum class icm_region : std::uint8_t { qp, rdmarc, altc, auxc, srq, cq, eq, dmpt, cmpt, mtt, mcg };
inline constexpr unsigned num_icm_regions = 11;

struct icm_profile {
  struct region {
    std::uint64_t base = 0, bytes = 0;
    std::uint64_t count = 0;
    unsigned log_count = 0;
  };
  std::array<region, num_icm_regions> regions{};
  std::uint64_t total = 0;
  std::uint32_t mcg_entry_bytes = 1024;  ///< log_num_mgm_entry_size 10

  const region& operator[](icm_region r) const { return regions[static_cast<unsigned>(r)]; }
};

/// Sizes rounded up to powers of two (4096 bytes at least), sorted by size, packed from 0 (control plane 5.1).
/// `total` above caps.max_icm_bytes is the caller's error to report.
icm_profile make_profile(const config& cfg, const device_caps& caps);

inline constexpr std::uint32_t cmpt_per_type = 1u << 24;  ///< control MPTs of each of QP, SRQ, CQ, EQ
inline constexpr std::uint32_t num_phys_eqs = 1024;       ///< EQ contexts mapped whatever is announced (net/main.c)
inline constexpr std::uint32_t max_msix = 128;

constexpr unsigned log2_up(std::uint64_t n) {
  unsigned log = 0;
  while ((std::uint64_t{1} << log) < n) ++log;
  return log;
}

}  // namespace rnic::host_driver
