// SPDX-License-Identifier: Apache-2.0
// The fields of a JSON result by name, each a number or a text: "all.latency.p99", "rows.64.goodput_gbps".
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace rnic::program {

using named_fields = std::vector<std::pair<std::string, nlohmann::json>>;

/// In the order of the file. An element of a list is called by what tells it from the others (its name, id, size, or
/// its two hosts), else by its number from 0; one whose name is there already has its number behind that.
named_fields fields_of(const nlohmann::json& result);

/// `pattern` with * for any text, ? for any letter.
bool matches(const std::string& pattern, const std::string& field);

/// Reads a result. Throws usage_error: one line with the file's name.
nlohmann::json read_result(const std::string& file);

}  // namespace rnic::program
