// SPDX-License-Identifier: Apache-2.0
// Files that take the place of others.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>

namespace rnic::program {

/// `write` puts the text of `file` into a stream. The file is put in place, with the rights of one that is there, when
/// its text is whole; until then, and when writing fails (usage_error, which names it), that one stays as it was. What
/// is no file (a pipe) is written directly.
void write_whole(const std::string& file, const std::function<void(std::ostream&)>& write);

}  // namespace rnic::program
