// SPDX-License-Identifier: Apache-2.0
// Tags by which the responder finds the owner of an answer.
#pragma once

#include <cstdint>

namespace rnic::transport {

inline constexpr std::uint64_t tag_kind = 0xffffffff'00000000;
inline constexpr std::uint64_t tag_slot = std::uint64_t{1} << 32;     ///< | slot << 8 | piece
inline constexpr std::uint64_t tag_receive = std::uint64_t{2} << 32;  ///< | receive_wqe_cache's own
inline constexpr std::uint64_t tag_shared = std::uint64_t{6} << 32;   ///< | shared_receive's own
inline constexpr std::uint64_t tag_poll = std::uint64_t{4} << 32;

}  // namespace rnic::transport
