// SPDX-License-Identifier: Apache-2.0
// Reaction points of quantised congestion notification, as net/en_dcb_nl.c gives dcbnl its parameters and statistics.
#pragma once

#include <linux/dcbnl.h>

#include <cstdint>

#include "host_driver/device.h"

namespace rnic::host_driver::dcb {

// Each is 0 or a negative errno; EOPNOTSUPP: the device has no reaction points, or a virtual function's are not its
// own. All eight priorities of the port, one CONGESTION_CTRL each.
/// mlx4_en_dcbnl_ieee_getqcn. Rates are in Mb/s, min_rate too. The state of the domain's defence is not kept.
int get_qcn(device& dev, unsigned port, ieee_qcn* out);
/// mlx4_en_dcbnl_ieee_setqcn. DCB_CNDD_INTERIOR_READY asks for CN-TAGs, which this adapter refuses (EINVAL).
int set_qcn(device& dev, unsigned port, const ieee_qcn& in);
/// mlx4_en_dcbnl_ieee_getqcnstats.
int get_qcn_statistics(device& dev, unsigned port, ieee_qcn_stats* out);

/// All that the statistics of CONGESTION_CTRL say of a port's priority. Rates in Mb/s.
struct qcn_counters {
  std::uint64_t centiseconds = 0;                 ///< that reaction points were there, together
  std::uint32_t created = 0;                      ///< reaction points, as often as one began
  std::uint32_t handled = 0, ignored = 0;         ///< CNMs that lowered a rate; those without a flow or a place
  std::uint32_t dropped = 0;                      ///< for want of room, of the whole port
  std::uint32_t total_rate = 0;                   ///< of the reaction points that there are
  std::uint32_t least_total = 0, most_total = 0;  ///< that this ever was behind a CNM
  std::uint32_t highest_limiter = 0;              ///< number of one that there is, from 1; 0: there is none
};
int get_qcn_counters(device& dev, unsigned port, unsigned priority, qcn_counters* out);

/// Sets the ports to config::qcn. Without priorities no command is given.
int start_qcn(device& dev);

}  // namespace rnic::host_driver::dcb
