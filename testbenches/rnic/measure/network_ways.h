// SPDX-License-Identifier: Apache-2.0
// Which way frames take from one host of a network to another.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "model/fabric/topology.h"

namespace rnic::program {

/// A port of a host: its number from 0, and 1 or 2.
struct host_port {
  unsigned host = 0, port = 1;
};

/// {from, to, cables, switches, hops}: hops are the steps of the way, each the cables of which frames take one, as
/// {from, to, metres, rate_mbps}. `cables` is the number of the hops, `switches` is one less.
nlohmann::json way_json(const fabric::topology& shape, host_port from, host_port to);
/// The way as a line: "h1 - 3 m, 40 Gb/s - leaf1 - 3 m, 40 Gb/s - spine1 or spine2 - ...".
std::string way_text(const nlohmann::json& way);
/// Whether there is one.
bool leads(const fabric::topology& shape, host_port from, host_port to);

}  // namespace rnic::program
