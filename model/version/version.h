// SPDX-License-Identifier: Apache-2.0
// Which model this is.
#pragma once

namespace rnic {

/// Version of the library that is linked, "0.9.0".
const char* version_number();
/// Nearest tag and commit of the sources as `git describe` has them, "v0.9.0-12-g5f37390" or "5f37390", at the time of
/// the build. Of an archive that git made the commit, of other sources "".
const char* commit();
/// Files of the commit had been changed when the library was built.
bool modified();
/// All of it in a line: "0.9.0", "0.9.0 (5f37390)" or "0.9.0 (5f37390, modified)".
const char* version();

}  // namespace rnic
