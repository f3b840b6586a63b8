// SPDX-License-Identifier: Apache-2.0
// How the port is told of shares and pauses (net/en_dcb_nl.c, net/fw_qos.c; adapter data plane E.4).
#pragma once

#include <cstdint>

#include "host_driver/device.h"
#include "model/wire/dcbx.h"

namespace rnic::host_driver::dcb {

/// SET_PORT PRIO2TC, then SCHEDULER: a class with strict priority has a group of its own, the highest class the first
/// one; those that share are together behind them. 0 or a negative errno; EOPNOTSUPP for a table that is not
/// supported().
int set_ets(device& dev, unsigned port, const wire::ets_table& table);

/// SET_PORT general: PFC of these priorities in both directions in the place of PAUSE, which is what it was before when
/// there are none. 0 or a negative errno.
int set_pfc(device& dev, unsigned port, std::uint8_t priorities);

}  // namespace rnic::host_driver::dcb
