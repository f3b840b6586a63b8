// SPDX-License-Identifier: Apache-2.0
// Data centre bridging of a port, for people and for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "host_driver/dcb/service.h"

namespace rnic::program {

/// One line: what is in force, whose it is, and who the peer is.
std::string dcb_line(const host_driver::dcb::service::state& s);
/// What iproute2's `dcb ets show`, `dcb pfc show` and `dcb app show` print of an interface, each behind its command.
std::string dcb_show(const std::string& interface, const host_driver::dcb::service::state& s);
nlohmann::json dcb_json(const host_driver::dcb::service::state& s);

}  // namespace rnic::program
