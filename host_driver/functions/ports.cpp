// SPDX-License-Identifier: Apache-2.0
#include "host_driver/functions/ports.h"

#include <algorithm>

namespace rnic::host_driver {

namespace {

constexpr unsigned physical_rows = 16, all_rows = 128;  // MLX4_ROCE_PF_GIDS, MLX4_ROCE_MAX_GIDS

}  // namespace

function_ports::function_ports(const functions_by_port& functions, unsigned device_ports)
    : by_port_(functions), device_ports_(device_ports) {
  if (device_ports == 2) return;
  by_port_.both += by_port_.port_1 + by_port_.port_2;
  by_port_.port_1 = by_port_.port_2 = 0;
}

unsigned function_ports::count(unsigned function) const {
  const unsigned alone = by_port_.port_1 + by_port_.port_2;
  if (function > alone + by_port_.both) return 0;
  return function != 0 && function <= alone ? 1 : device_ports_;
}

unsigned function_ports::first_port(unsigned function) const {
  return function > by_port_.port_1 && function <= by_port_.port_1 + by_port_.port_2 ? 2 : 1;
}

unsigned function_ports::physical_of(unsigned function, unsigned own) const {
  return own != 0 && own <= count(function) ? first_port(function) + own - 1 : 0;
}

unsigned function_ports::own_of(unsigned function, unsigned physical) const {
  const unsigned first = first_port(function);
  return physical >= first && physical < first + count(function) ? physical - first + 1 : 0;
}

unsigned function_ports::functions_on(unsigned physical) const {
  if (physical == 0 || physical > device_ports_) return 0;
  return by_port_.both + (physical == 1 ? by_port_.port_1 : by_port_.port_2);
}

/// The functions that have the port alone come first.
function_ports::window function_ports::gids_of(unsigned function, unsigned physical) const {
  if (!has(function, physical)) return {};
  if (function == 0) return {0, physical_rows};
  const unsigned elsewhere = physical == 2 ? by_port_.port_1 : function > by_port_.port_1 ? by_port_.port_2 : 0;
  const unsigned before = function - elsewhere - 1;
  const unsigned divided = all_rows - physical_rows, on_port = functions_on(physical);
  const unsigned each = divided / on_port, larger = divided % on_port;
  return {physical_rows + each * before + std::min(before, larger), each + (before < larger ? 1 : 0)};
}

}  // namespace rnic::host_driver
