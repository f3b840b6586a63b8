// SPDX-License-Identifier: Apache-2.0
// The page, of whose text the build makes a part of the program (page/build.mjs).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rnic::program {

/// Text before the data and behind them, in pieces.
const std::vector<std::string_view>& page_before_data();
const std::vector<std::string_view>& page_behind_data();

/// JSON as the content of a script element: no text in it can end the element.
std::string json_in_script(std::string json);

}  // namespace rnic::program
