// SPDX-License-Identifier: Apache-2.0
// Device capabilities and the layout of context memory (net/fw.c:mlx4_QUERY_DEV_CAP, net/profile.c:mlx4_make_profile).
#include "host_driver/profile.h"

#include <algorithm>

#include "model/abi/device.h"
#include "model/abi/paravirtual.h"

namespace rnic::host_driver {

namespace {
constexpr std::uint32_t one_shifted(unsigned n) { return n < 32 ? std::uint32_t{1} << n : 0; }
}  // namespace

device_caps device_caps::parse(const void* mailbox) {
  namespace f = abi::dev_cap;
  const auto get = [&](auto field) { return abi::get(mailbox, field); };
  device_caps c;
  c.max_srq_wqes = one_shifted(get(f::log_max_srq_wqes));
  c.max_qp_wqes = one_shifted(get(f::log_max_qp_wqes));
  c.max_cqes = one_shifted(get(f::log_max_cqes));
  c.reserved_qps = one_shifted(get(f::log_reserved_qps));
  c.reserved_srqs = one_shifted(get(f::log_reserved_srqs));
  c.reserved_cqs = one_shifted(get(f::log_reserved_cqs));
  c.reserved_eqs = one_shifted(get(f::log_reserved_eqs));
  c.reserved_mtts = one_shifted(get(f::log_reserved_mtts));
  c.reserved_mpts = one_shifted(get(f::log_reserved_mpts));
  c.num_sys_eqs = get(f::num_sys_eqs);
  c.max_eqs = c.num_sys_eqs != 0 ? c.num_sys_eqs : one_shifted(get(f::log_max_eqs));
  c.reserved_uars = get(f::reserved_uars);
  if (c.num_sys_eqs == 0) c.reserved_eqs = std::max(c.reserved_uars * 4, c.reserved_eqs);
  c.reserved_pds = get(f::reserved_pds);
  c.max_pds = one_shifted(get(f::log_max_pds));
  c.reserved_mcgs = get(f::reserved_mcgs);
  c.max_requester_rdma = one_shifted(get(f::log_max_requester_rdma));
  c.max_responder_rdma = one_shifted(get(f::log_max_responder_rdma));
  c.ack_delay = get(f::ack_delay);
  c.num_ports = get(f::num_ports);
  c.log_max_message = get(f::log_max_message);
  c.log_max_gso = get(f::log_max_gso);
  c.flags = get(f::flags);
  c.uar_bytes = std::uint64_t{1} << std::min(get(f::log_uar_mib) + 20, 63);
  c.max_icm_bytes = get(f::max_icm_bytes);
  c.ext_flags = get(f::ext_flags);
  c.features = get(f::features);
  c.eth_prot_ctrl = get(f::eth_prot_ctrl) != 0;
  c.qos_vpp = get(f::qos_vpp) != 0;
  c.bmme_flags = get(f::bmme_flags);
  c.reserved_lkey = get(f::reserved_lkey);
  c.max_counters = get(f::max_counters);
  c.static_rates = get(f::static_rates);
  c.rate_limits = get(f::rate_limits);
  c.flow_steering = get(f::flow_steering) != 0;
  c.flow_sniffer = get(f::flow_sniffer) != 0;
  c.max_flow_qps = get(f::max_flow_qps);
  c.blue_flame = get(f::blue_flame) != 0;
  c.qcn = get(f::qcn) != 0;
  c.bf_register_bytes = c.blue_flame ? one_shifted(get(f::log_bf_register)) : 0;
  c.min_page = one_shifted(get(f::log_min_page));
  c.max_sq_sge = get(f::max_sq_sge);
  c.max_rq_sge = get(f::max_rq_sge);
  c.max_sq_bytes = get(f::max_sq_bytes);
  c.max_rq_bytes = get(f::max_rq_bytes);
  c.max_qps_per_mcg = one_shifted(get(f::log_max_mcg_qps));
  c.rdmarc_bytes = get(f::rdmarc_bytes);
  c.qpc_bytes = get(f::qpc_bytes);
  c.auxc_bytes = get(f::auxc_bytes);
  c.altc_bytes = get(f::altc_bytes);
  c.eqc_bytes = get(f::eqc_bytes);
  c.cqc_bytes = get(f::cqc_bytes);
  c.srqc_bytes = get(f::srqc_bytes);
  c.cmpt_bytes = get(f::cmpt_bytes);
  c.mtt_bytes = get(f::mtt_bytes);
  c.dmpt_bytes = get(f::dmpt_bytes);
  return c;
}

icm_profile make_profile(const config& cfg, const device_caps& caps) {
  icm_profile p;
  const auto define = [&](icm_region r, std::uint64_t count, std::uint64_t entry_bytes) {
    auto& region = p.regions[static_cast<unsigned>(r)];
    region.log_count = log2_up(count);
    region.count = std::uint64_t{1} << region.log_count;
    region.bytes = std::max<std::uint64_t>(region.count * entry_bytes, 4096);
  };
  // Special queue pairs of functions have numbers of their own, beside as many others as there are to be.
  const std::uint64_t others = std::uint64_t{1} << cfg.log_num_qp;
  const std::uint64_t qps = cfg.virtual_functions != 0 ? others + abi::paravirtual::numbers : others;
  const std::uint64_t host_mtts = std::min(std::uint64_t{1} << 31, cfg.host_memory_bytes / 4096 * 2);
  const std::uint64_t mtts = std::max(std::uint64_t{1} << cfg.log_num_mtt, host_mtts);
  define(icm_region::qp, qps, caps.qpc_bytes);
  define(icm_region::rdmarc, qps << cfg.log_rdmarc_per_qp, caps.rdmarc_bytes);
  define(icm_region::altc, qps, caps.altc_bytes);
  define(icm_region::auxc, qps, caps.auxc_bytes);
  define(icm_region::srq, std::uint64_t{1} << cfg.log_num_srq, caps.srqc_bytes);
  define(icm_region::cq, std::uint64_t{1} << cfg.log_num_cq, caps.cqc_bytes);
  define(icm_region::eq, caps.num_sys_eqs != 0 ? caps.num_sys_eqs : std::min(caps.max_eqs, max_msix), caps.eqc_bytes);
  define(icm_region::dmpt, std::uint64_t{1} << cfg.log_num_mpt, caps.dmpt_bytes);
  define(icm_region::cmpt, std::uint64_t{cmpt_per_type} * 4, caps.cmpt_bytes);
  define(icm_region::mtt, mtts, caps.mtt_bytes);
  define(icm_region::mcg, std::uint64_t{1} << cfg.log_num_mcg, p.mcg_entry_bytes);

  std::array<unsigned, num_icm_regions> order{};
  for (unsigned i = 0; i < num_icm_regions; ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](unsigned a, unsigned b) { return p.regions[a].bytes > p.regions[b].bytes; });
  for (const unsigned i : order) {
    p.regions[i].base = p.total;
    p.total += p.regions[i].bytes;
  }
  return p;
}

}  // namespace rnic::host_driver
