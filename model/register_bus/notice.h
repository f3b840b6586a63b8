// SPDX-License-Identifier: Apache-2.0
// What firmware is woken for.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rnic::register_bus {

/// Why firmware is woken. Lines carry no data: firmware reads the registers of the block. `reset` comes from the reset
/// register and stops what firmware does; `link`: a port's carrier came or went; `drained`: a send queue has come to
/// rest in state SQ_DRAINING; `functions`: a virtual function has written to its channel or was reset, or virtual
/// functions have come or gone.
enum class notice : std::uint8_t { command, reset, link, drained, functions };
inline constexpr std::size_t notices = static_cast<std::size_t>(notice::functions) + 1;

}  // namespace rnic::register_bus
