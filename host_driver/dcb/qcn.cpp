// SPDX-License-Identifier: Apache-2.0
#include "host_driver/dcb/qcn.h"

#include <cerrno>

#include "model/abi/congestion.h"
#include "model/abi/endian.h"

namespace rnic::host_driver::dcb {

namespace layout_of = abi::congestion_ctrl;
namespace p = layout_of::parameters;

namespace {

int check(const device& dev, unsigned port) {
  if (!dev.caps().qcn || dev.is_virtual()) return -EOPNOTSUPP;
  return port == 0 || port > dev.caps().num_ports ? -EINVAL : 0;
}

int read(device& dev, command_channel::mailbox& box, unsigned port, unsigned priority, std::uint8_t what) {
  return dev.commands().read(box, abi::opcode::congestion_ctrl, layout_of::modifier(port, priority), what);
}

}  // namespace

int get_qcn(device& dev, unsigned port, ieee_qcn* out) {
  if (const int error = check(dev, port)) return error;
  *out = {};
  for (unsigned i = 0; i < IEEE_8021QAZ_MAX_TCS; ++i) {
    command_channel::mailbox box(dev.commands());
    if (const int error = read(dev, box, port, i, layout_of::op_get_parameters)) return error;
    const auto get = [&box](auto field) { return abi::get(box.data(), field); };
    out->rpg_enable[i] = static_cast<std::uint8_t>(get(p::enable));
    out->rppp_max_rps[i] = get(p::max_rps);
    out->rpg_time_reset[i] = get(p::time_reset);
    out->rpg_byte_reset[i] = get(p::byte_reset);
    out->rpg_threshold[i] = get(p::threshold);
    out->rpg_max_rate[i] = get(p::max_rate);
    out->rpg_ai_rate[i] = get(p::ai_rate);
    out->rpg_hai_rate[i] = get(p::hai_rate);
    out->rpg_gd[i] = get(p::gd);
    out->rpg_min_dec_fac[i] = get(p::min_dec_fac);
    out->rpg_min_rate[i] = get(p::min_rate);
  }
  return 0;
}

int set_qcn(device& dev, unsigned port, const ieee_qcn& in) {
  if (const int error = check(dev, port)) return error;
  for (unsigned i = 0; i < IEEE_8021QAZ_MAX_TCS; ++i) {
    command_channel::mailbox box(dev.commands());
    const auto set = [&box](auto field, std::uint32_t value) { abi::set(box.data(), field, value); };
    set(p::modify_high, p::modify_all_high);
    set(p::modify_low, p::modify_all_low);
    set(p::enable, in.rpg_enable[i]);
    set(p::cn_tag, in.cndd_state_machine[i] == DCB_CNDD_INTERIOR_READY ? 1 : 0);
    set(p::max_rps, in.rppp_max_rps[i]);
    set(p::time_reset, in.rpg_time_reset[i]);
    set(p::byte_reset, in.rpg_byte_reset[i]);
    set(p::threshold, in.rpg_threshold[i]);
    set(p::max_rate, in.rpg_max_rate[i]);
    set(p::ai_rate, in.rpg_ai_rate[i]);
    set(p::hai_rate, in.rpg_hai_rate[i]);
    set(p::gd, in.rpg_gd[i]);
    set(p::min_dec_fac, in.rpg_min_dec_fac[i]);
    set(p::min_rate, in.rpg_min_rate[i]);
    if (const int error = dev.commands().write(box, abi::opcode::congestion_ctrl, layout_of::modifier(port, i),
                                               layout_of::op_set_parameters))
      return error;
  }
  return 0;
}

int get_qcn_counters(device& dev, unsigned port, unsigned priority, qcn_counters* out) {
  if (const int error = check(dev, port)) return error;
  if (priority >= IEEE_8021QAZ_MAX_TCS) return -EINVAL;
  command_channel::mailbox box(dev.commands());
  if (const int error = read(dev, box, port, priority, layout_of::op_get_statistics)) return error;
  namespace s = layout_of::statistics;
  const auto get = [&box](auto field) { return abi::get(box.data(), field); };
  out->centiseconds = get(s::centiseconds);
  out->created = get(s::created_rps);
  out->handled = get(s::handled_cnms);
  out->ignored = get(s::ignored_cnm);
  out->dropped = get(s::dropped_cnms);
  out->total_rate = get(s::total_rate);
  out->least_total = get(s::least_total_rate);
  out->most_total = get(s::most_total_rate);
  out->highest_limiter = get(s::highest_limiter);
  return 0;
}

int get_qcn_statistics(device& dev, unsigned port, ieee_qcn_stats* out) {
  *out = {};
  for (unsigned i = 0; i < IEEE_8021QAZ_MAX_TCS; ++i) {
    qcn_counters c;
    if (const int error = get_qcn_counters(dev, port, i, &c)) return error;
    out->rppp_rp_centiseconds[i] = c.centiseconds;
    out->rppp_created_rps[i] = c.created;
  }
  return 0;
}

int start_qcn(device& dev) {
  const qcn_settings& q = dev.settings().qcn;
  if (q.priorities == 0) return 0;
  for (unsigned port = 1; port <= dev.caps().num_ports; ++port) {
    ieee_qcn all;
    if (const int error = get_qcn(dev, port, &all)) return error;
    for (unsigned i = 0; i < IEEE_8021QAZ_MAX_TCS; ++i) {
      if ((q.priorities >> i & 1) == 0) continue;
      all.rpg_enable[i] = 1;
      all.rppp_max_rps[i] = q.max_rps;
      all.rpg_time_reset[i] = q.time_reset_us;
      all.rpg_byte_reset[i] = q.byte_reset;
      all.rpg_threshold[i] = q.threshold;
      all.rpg_max_rate[i] = q.max_rate_mbps;
      all.rpg_ai_rate[i] = q.ai_rate_mbps;
      all.rpg_hai_rate[i] = q.hai_rate_mbps;
      all.rpg_gd[i] = q.gd;
      all.rpg_min_dec_fac[i] = q.min_dec_percent;
      all.rpg_min_rate[i] = q.min_rate_mbps;
    }
    if (const int error = set_qcn(dev, port, all)) return error;
  }
  return 0;
}

}  // namespace rnic::host_driver::dcb
