// SPDX-License-Identifier: Apache-2.0
// Registers of reaction points (802.1Qau) on the internal bus: in the requester's at qcn, in those of the READ
// generator and of the receiver of CNMs at generator_offset and cnm_offset behind cr_base::transport.
#pragma once

#include <cstdint>

namespace rnic::transport::cr {

inline constexpr std::uint32_t generator_offset = 0x2'0000, cnm_offset = 0x2'8000;

/// Requester, READ generator: a group of registers for each port's priority, of port p (from 0) and priority q at
/// qcn + (8 p + q) * qcn_stride. Both halves have the same parameters, and statistics of their own.
inline constexpr std::uint32_t qcn = 0x2000, qcn_stride = 0x80;
/// rw, the fields of qcn_group in their order, a word each. A group that is disabled forgets its reaction points.
inline constexpr std::uint32_t qcn_parameters = 11;
inline constexpr std::uint32_t qcn_statistics = 0x40;  ///< ro, words from here on in a group
/// Time that reaction points were there, all together, in 10 ms (64 bits, high word first).
inline constexpr std::uint32_t qcn_centiseconds = 0;
inline constexpr std::uint32_t qcn_ignored = 2;     ///< CNMs without a flow or a place for its reaction point
inline constexpr std::uint32_t qcn_created = 3;     ///< reaction points, since power-up
inline constexpr std::uint32_t qcn_handled = 4;     ///< CNMs that have lowered a rate
inline constexpr std::uint32_t qcn_total_rate = 5;  ///< of those that are there, in Mb/s
inline constexpr std::uint32_t qcn_least_total = 6, qcn_most_total = 7;  ///< that it ever was behind a CNM, Mb/s
inline constexpr std::uint32_t qcn_highest_index = 8;                    ///< of one that is there, from 1; 0: none is

/// Receiver of CNMs: ro, a word for each port's priority: CNMs about frames that are no requests or READ responses of
/// RoCE.
inline constexpr std::uint32_t cnm_ignored = 0;

}  // namespace rnic::transport::cr
