// SPDX-License-Identifier: Apache-2.0
// CONGESTION_CTRL: reaction points of 802.1Qau (adapter data plane E.7, adapter control plane 4.20; net/en_dcb_nl.c).
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/abi/endian.h"

namespace rnic::abi::congestion_ctrl {

inline constexpr std::uint8_t op_get_parameters = 0, op_get_statistics = 1, op_set_parameters = 4;
/// In modifier: port, one bit for each priority that is meant, algorithm.
inline constexpr unsigned priorities_shift = 8, algorithm_shift = 16;
inline constexpr std::uint32_t reaction_point_algorithm = 0;  ///< 802.1Qau's, the only one
constexpr std::uint32_t modifier(unsigned port, unsigned priority) {
  return port | 1u << priority << priorities_shift | reaction_point_algorithm << algorithm_shift;
}

/// struct mlx4_congestion_control_mb_prio_802_1_qau_params.
namespace parameters {
inline constexpr std::size_t bytes = 0x100;
/// Which of the fields are to be set: bits 31 and 30 of `modify_high` those of `enable`, bits 31 to 22 of `modify_low`
/// the words from max_rps to min_rate.
inline constexpr auto modify_high = u32(0x00), modify_low = u32(0x04);
inline constexpr auto enable = bits32(0x0c, 31, 31), cn_tag = bits32(0x0c, 30, 30);
inline constexpr std::uint32_t modify_enable = 1u << 31, modify_cn_tag = 1u << 30;
inline constexpr auto max_rps = u32(0x10);
inline constexpr auto time_reset = u32(0x14);  ///< us
inline constexpr auto byte_reset = u32(0x18);  ///< bytes
inline constexpr auto threshold = u32(0x1c);
inline constexpr auto max_rate = u32(0x20), ai_rate = u32(0x24), hai_rate = u32(0x28);  ///< Mb/s
inline constexpr auto gd = u32(0x2c);           ///< log2 of what divides the feedback
inline constexpr auto min_dec_fac = u32(0x30);  ///< %
inline constexpr auto min_rate = u32(0x34);     ///< Mb/s
inline constexpr unsigned words = 10, first_word = 0x10;
inline constexpr std::uint32_t modify_all_high = 0xc000'0000, modify_all_low = 0xffc0'0000;
}  // namespace parameters

/// struct mlx4_congestion_control_mb_prio_802_1_qau_statistics.
namespace statistics {
inline constexpr std::size_t bytes = 0x40;
inline constexpr auto centiseconds = u64(0x00);
inline constexpr auto ignored_cnm = u32(0x0c), created_rps = u32(0x10), total_rate = u32(0x14);
inline constexpr auto highest_limiter = u32(0x18), dropped_cnms = u32(0x1c), handled_cnms = u32(0x24);
inline constexpr auto least_total_rate = u32(0x28), most_total_rate = u32(0x2c);
}  // namespace statistics

}  // namespace rnic::abi::congestion_ctrl
