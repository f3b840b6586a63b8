// SPDX-License-Identifier: Apache-2.0
// Statuses of commands (Linux 6.1 mlx4/cmd.c), as tests expect them.
#pragma once

namespace rnic::system_test {

inline constexpr unsigned ok = 0x00, internal_error = 0x01, bad_param = 0x03, bad_resource = 0x05, resource_busy = 0x06,
                          exceed_lim = 0x08;

}  // namespace rnic::system_test
