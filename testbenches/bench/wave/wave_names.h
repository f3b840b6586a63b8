// SPDX-License-Identifier: Apache-2.0
// What a waveform is asked for: blocks and channels by name or pattern.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace rnic::bench {

/// A pattern of names: `*`, `?` and `[...]` as in the shell, where a dot is a character as others are. The name of a
/// block stands for its parts too.
bool is_name_in(const std::string& pattern, const std::string& name);

/// The name of a part as that of a scope: what is no letter and no digit is an underscore.
std::string name_in_wave(std::string name);

/// One line, for a pattern that no name matches: what it was, and the nearest of them.
std::string no_such_name(const std::string& pattern, const std::set<std::string>& names);

}  // namespace rnic::bench
