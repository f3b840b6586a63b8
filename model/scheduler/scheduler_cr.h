// SPDX-License-Identifier: Apache-2.0
// Registers of the scheduler of send queues on the internal bus.
#pragma once

#include <cstdint>

namespace rnic::scheduler {

/// A UAR page of a function, as a doorbell and its queue pair's owner are compared by.
constexpr std::uint32_t uar_of(std::uint16_t function, std::uint32_t page) {
  return std::uint32_t{function} << 20 | (page & 0xfffff);
}
/// Not a page: the queue pair is nobody's.
inline constexpr std::uint32_t no_owner = 0xffff'ffff;

namespace cr {

/// Offsets from cr_base::scheduler.
inline constexpr std::uint32_t qp_select = 0x00;  ///< QPN that `owner` is of
/// uar_of() whose doorbells the queue pair obeys; no_owner after reset. Firmware writes it in RST2INIT before there is
/// a context, and no_owner when the queue pair has gone back to RESET. Writing forgets the doorbells and WQEs that wait
/// for the queue pair: they were its last owner's. Numbers from 2^log_qps on have none: reads say no_owner.
inline constexpr std::uint32_t owner = 0x04;

}  // namespace cr
}  // namespace rnic::scheduler
