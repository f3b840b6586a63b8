// SPDX-License-Identifier: Apache-2.0
// Numbers and addresses that the captured host's objects have: which the adapter can have, and how it gets them.
#pragma once

#include <string>

#include "host_driver/device.h"
#include "host_driver/hosts/node.h"
#include "testbenches/replay/plan.h"

namespace rnic::replay {

/// Puts the MAC address and the object numbers that the plan asks for into the configuration of a host.
void shape_node(const plan& p, unsigned port, hosts::node_config& c);
/// Why no queue pair can be as the capture has it; empty: it can.
std::string impossible(const connection& c);
/// Special queue pairs, which nobody uses here, lie where the capture has no number.
void move_special_queue_pairs(const plan& p, host_driver::device& device);

}  // namespace rnic::replay
