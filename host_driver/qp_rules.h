// SPDX-License-Identifier: Apache-2.0
// Which attributes a queue pair transition needs and allows.
#pragma once

#include <infiniband/verbs.h>

namespace rnic::host_driver {

/// The table of IBA volume 1, 11.2.5.2 as the kernel has it (core/verbs.c:ib_modify_qp_is_ok).
bool modify_qp_is_ok(ibv_qp_state from, ibv_qp_state to, ibv_qp_type type, int mask);

}  // namespace rnic::host_driver
