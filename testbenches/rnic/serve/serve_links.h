// SPDX-License-Identifier: Apache-2.0
// Links of `rnic serve`: from the command line, and what went through them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "testbenches/serve/links/link_port.h"

namespace rnic::program {

/// Throws usage_error for what is none.
serve::link_spec link_from(const std::string& text);
/// Frames and bytes both ways, and for each reason how many were dropped.
nlohmann::json link_json(const serve::link_port& link);
/// "1 frames in, 1 out, 0 dropped at the link"; the reasons are those of link_json().
std::string link_text(const serve::link_port& link);

}  // namespace rnic::program
