// SPDX-License-Identifier: Apache-2.0
#include "host_driver/hosts/driver_parameters.h"

#include <string>

namespace rnic::hosts {

namespace {

/// Data centre bridging: `driver.dcb.enabled` is what everything else of it needs.
void announce_dcb(sim::parameter_set& to, host_driver::dcb::settings& c) {
  using host_driver::dcb::settings;
  to.add("driver.dcb.enabled", c.enabled, "design: LLDP with DCBX on ports with a cable, as lldpad's");
  to.add("driver.dcb.ets.willing", c.ets_willing, "IEEE 802.1Q D.2.9: takes the peer's ETS Recommendation");
  to.add("driver.dcb.ets.recommend", c.recommend, "IEEE 802.1Q D.2.10: the own table is recommended to the peer");
  for (unsigned i = 0; i < 8; ++i) {
    const std::string n = std::to_string(i);
    settings::traffic_class& tc = c.classes[i];
    to.add("driver.dcb.ets.tc" + n + ".tsa", tc.select, sim::choice{"strict, ets", "IEEE 802.1Q table 8-5"});
    to.add("driver.dcb.ets.tc" + n + ".percent", tc.percent,
           sim::range{0, 100, "%", "IEEE 802.1Q D.2.9: of the ETS classes, 100 together"});
    to.add("driver.dcb.ets.priority" + n, c.class_of[i],
           sim::range{0, 7, "traffic class", "IEEE 802.1Q D.2.9: class of the priority"});
  }
  to.add("driver.dcb.pfc.willing", c.pfc_willing,
         "IEEE 802.1Q D.2.11: takes the peer's PFC in place of driver.pfc_mask");
  const sim::range priority{0, settings::no_entry, "priority",
                            "IEEE 802.1Q D.2.12: said to the peer, and of RoCE that names none; 8: nothing"};
  to.add("driver.dcb.app.roce_v1", c.roce_v1_priority, priority);
  to.add("driver.dcb.app.roce_v2", c.roce_v2_priority, priority);
  host_driver::dcb::lldp_timers& t = c.lldp;
  to.add("driver.dcb.lldp.tx_interval_s", t.tx_interval_s,
         sim::range{1, 3600, "s", "IEEE 802.1AB 9.2.5: msgTxInterval"});
  to.add("driver.dcb.lldp.tx_hold", t.tx_hold, sim::range{1, 100, "intervals", "IEEE 802.1AB 9.2.5: msgTxHold"});
  to.add("driver.dcb.lldp.fast_tx_s", t.fast_tx_s, sim::range{1, 3600, "s", "IEEE 802.1AB 9.2.5: msgFastTx"});
  to.add("driver.dcb.lldp.fast_init", t.fast_init, sim::range{1, 8, "data units", "IEEE 802.1AB 9.2.5: txFastInit"});
  to.add("driver.dcb.lldp.credit_max", t.credit_max,
         sim::range{1, 10, "data units", "IEEE 802.1AB 9.2.5: txCreditMax"});
  to.add("driver.dcb.lldp.reinit_s", t.reinit_s, sim::range{1, 10, "s", "IEEE 802.1AB 9.2.5: reinitDelay"});
}

/// Reaction points of 802.1Qau: `driver.qcn.priorities` is what everything else of them needs.
void announce_qcn(sim::parameter_set& to, host_driver::dcb::qcn_settings& c) {
  to.add("driver.qcn.priorities", c.priorities,
         sim::range{0, 255, "priorities, one bit each", "design: off; bit n: flows of priority n react to CNMs"});
  to.add("driver.qcn.max_rps", c.max_rps,
         sim::range{1, 0xffff, "reaction points", "IEEE 802.1Q 32.10: rpppMaxRps, of a port's priority"});
  to.add("driver.qcn.time_reset_us", c.time_reset_us,
         sim::range{0, 0xffffffff, "us", "IEEE 802.1Q 32.11: rpgTimeReset"});
  to.add("driver.qcn.byte_reset", c.byte_reset, sim::range{0, 0xffffffff, "bytes", "IEEE 802.1Q 32.11: rpgByteReset"});
  to.add("driver.qcn.threshold", c.threshold, sim::range{1, 0xffff, "stages", "IEEE 802.1Q 32.11: rpgThreshold"});
  to.add("driver.qcn.max_rate_mbps", c.max_rate_mbps,
         sim::range{0, 400'000, "Mb/s", "IEEE 802.1Q 32.11: rpgMaxRate; 0: the port's rate"});
  to.add("driver.qcn.ai_rate_mbps", c.ai_rate_mbps, sim::range{0, 400'000, "Mb/s", "IEEE 802.1Q 32.11: rpgAiRate"});
  to.add("driver.qcn.hai_rate_mbps", c.hai_rate_mbps, sim::range{0, 400'000, "Mb/s", "IEEE 802.1Q 32.11: rpgHaiRate"});
  to.add("driver.qcn.gd", c.gd,
         sim::range{0, 31, "log2", "IEEE 802.1Q 32.11: rpgGd: a CNM takes feedback / 2^gd of the rate"});
  to.add("driver.qcn.min_dec_percent", c.min_dec_percent,
         sim::range{1, 100, "%", "IEEE 802.1Q 32.11: rpgMinDecFac, what a CNM leaves of the rate at least"});
  to.add("driver.qcn.min_rate_mbps", c.min_rate_mbps, sim::range{1, 400'000, "Mb/s", "IEEE 802.1Q 32.11: rpgMinRate"});
}

/// Link aggregation control: of driver.bond=802.3ad.
void announce_lacp(sim::parameter_set& to, host_driver::lacp::settings& c) {
  to.add("driver.lacp.rate", c.rate,
         sim::choice{"slow, fast", "IEEE 802.1AX 6.4.4: units each 30 s or 1 s are asked for; bonding: lacp_rate"});
  to.add("driver.lacp.active", c.active, "IEEE 802.1AX 6.4.1: speaks first; bonding: lacp_active");
  to.add("driver.lacp.system_priority", c.system_priority,
         sim::range{1, 65'535, "priority, 1 goes first", "IEEE 802.1AX 6.3.2; bonding: ad_actor_sys_prio"});
  to.add("driver.lacp.key", c.user_key,
         sim::range{0, 1023, "key", "IEEE 802.1AX 6.3.5, bits 15:6 of the ports' key; bonding: ad_user_port_key"});
  for (unsigned i = 0; i < 2; ++i)
    to.add("driver.lacp.port" + std::to_string(i + 1) + ".priority", c.port_priority[i],
           sim::range{0, 65'535, "priority, 0 goes first", "IEEE 802.1AX 6.3.4; bonding: 255"});
}

/// RoCE versions, connections, MTU, memory of programs.
void announce_addresses(sim::parameter_set& to, host_driver::config& c) {
  to.add("driver.ud_gid_type", c.ud_gid_type,
         sim::choice{"by_address, v1, v2",
                     "MLNX_OFED manual, RoCE: ud_gid_type 0, 2: version of all datagram queue pairs; by address: "
                     "that of each address handle's GID, as mlx4_ib"});
  to.add("driver.cma_roce_mode", c.cma_roce_mode,
         sim::choice{"automatic, v1, v2",
                     "adapter data plane F.6: configfs default_roce_mode: in which version rdma_cm connects; "
                     "automatic: v2 where the adapter has it"});
  to.add("driver.cma_roce_tos", c.cma_roce_tos,
         sim::range{0, 255, "ToS", "adapter data plane F.6: configfs default_roce_tos: of connections that set none"});
  to.add("driver.memlock", c.memlock_bytes,
         sim::range{0, host_driver::no_memlock, "bytes",
                    "adapter data plane F.7: RLIMIT_MEMLOCK, what programs may pin; the highest is no limit"});
  to.add("driver.mtu", c.mtu, sim::range{68, 9600, "bytes", "adapter data plane F.3: MTU of the network interfaces"});
  to.add("driver.mtu_rule", c.path_mtu_rule,
         sim::choice{"headers, below_mtu",
                     "adapter data plane F.3: 256 to 4096 beside the headers; MLNX_OFED manual: 256 to 2048, below the "
                     "interface's MTU"});
}

}  // namespace

void announce(sim::parameter_set& to, host_driver::config& c) {
  to.add("driver.lossless_global_pause", c.lossless_global_pause,
         "design: 802.3x pause both ways, as mlx4_en's default");
  to.add("driver.pfc_mask", c.pfc_mask,
         sim::range{0, 255, "priorities, one bit each", "design: with PFC, in place of global pause"});
  announce_dcb(to, c.dcb);
  announce_qcn(to, c.qcn);
  to.add("driver.post_send_ns", c.post_send_ns, sim::range{0, 1'000'000, "ns", "calibration 5: latency budget"});
  to.add("driver.post_recv_ns", c.post_recv_ns, sim::range{0, 1'000'000, "ns", "calibration 5: latency budget"});
  to.add("driver.poll_ns", c.poll_ns, sim::range{0, 1'000'000, "ns", "calibration 5: latency budget"});
  to.add("driver.poll_empty_ns", c.poll_empty_ns, sim::range{0, 1'000'000, "ns", "design: one load that hits"});
  to.add("driver.mr_page_shift", c.mr_page_shift,
         sim::range{12, 30, "log2 bytes", "design: page size of memory regions"});
  to.add("driver.use_msix", c.use_msix,
         "adapter control plane 1.2: without, the wire INTA and one completion queue of events");
  to.add("driver.large_cqe", c.large_cqe, "design: 64-byte CQEs and EQEs");
  to.add(
      "driver.roce_mode", c.roce_mode,
      sim::choice{"v1, v2, both", "adapter data plane F.1: roce_mode 0, 2, 4: versions that an address gets GIDs of"});
  to.add("driver.bond", c.bond,
         sim::choice{"none, active_backup, balance_xor, ecmp, 802.3ad",
                     "adapter control plane 9: the bond of both ports' interfaces; --bond"});
  to.add(
      "driver.bond_miimon_us", c.bond_miimon_us,
      sim::range{0, 10'000'000, "us", "design: interval of the bonding driver's looks at its links; 0: with events"});
  announce_lacp(to, c.lacp);
  announce_addresses(to, c);
  const sim::range of_functions{0, 126, "virtual functions",
                                "adapter control plane 8 (main.c: num_vfs): the first of host.functions; --functions"};
  to.add("driver.functions.port1", c.functions_port_1, of_functions);
  to.add("driver.functions.port2", c.functions_port_2, of_functions);
  to.add("driver.functions.vlan", c.function_vlan,
         sim::range{0, 4094, "VID", "adapter control plane 8.5: VST of all virtual functions; 0: none"});
  to.add("driver.functions.max_rate_mbps", c.function_max_rate_mbps,
         sim::range{0, 400'000, "Mb/s", "adapter control plane 4.22: SET_VPORT_QOS of each virtual function; 0: none"});
  to.add("driver.functions.mad_buffers", c.function_mad_buffers,
         sim::range{16, 4096, "datagrams",
                    "adapter control plane 8 (mlx4_ib.h: MLX4_NUM_TUNNEL_BUFS): of each function's QP1"});
  to.add("driver.functions.cm_id_keep_ms", c.function_cm_id_keep_ms,
         sim::range{1, 3'600'000, "ms",
                    "adapter control plane 8 (ib/cm.c: CM_CLEANUP_CACHE_TIMEOUT): IDs of ended connections"});
  to.add("driver.blue_flame", c.blue_flame,
         sim::choice{"by_device, with_inline_data, all, none",
                     "adapter data plane A.1.2: which single requests go into the BlueFlame buffer; by the device, as "
                     "libmlx4 and libmlx5 do"});
  to.add("driver.steering", c.steering,
         sim::choice{"b0, device_managed",
                     "adapter control plane 3.7: log_num_mgm_entry_size 10, -1: groups and addresses, or rules over "
                     "headers (flow steering)"});
  to.add("driver.log_num_qp", c.log_num_qp, sim::range{10, 18, "log2", "design: queue pairs; grows with --qps"});
  to.add("driver.log_num_cq", c.log_num_cq, sim::range{8, 16, "log2", "design: completion queues"});
  to.add("driver.log_num_mpt", c.log_num_mpt, sim::range{8, 19, "log2", "design: memory regions"});
  to.add("driver.log_num_mtt", c.log_num_mtt,
         sim::range{12, 24, "log2", "design: pages of memory; grows with what is asked for"});
}

}  // namespace rnic::hosts
