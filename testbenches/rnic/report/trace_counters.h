// SPDX-License-Identifier: Apache-2.0
// Counters of buffers and pauses in a trace of Chrome's trace-event format.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "testbenches/rnic/report/packed_file.h"

namespace rnic::program {

/// True when the file begins as a trace does: a list of events, or an object with one.
bool is_trace(packed_file& file);

/// {"command": "trace", "events", "from_us", "to_us", "buffers", "pauses"}. Buffers are counters whose name ends with
/// "bytes": {process, name, points: [[us, value]], changes, most}, of which long ones are thinned so that each lowest
/// and highest value stays. Pauses are those whose name has "paused": {process, name, times: [[from us, to us]],
/// number, total_us}; of many, the shortest gaps are closed, while number and total are of all. What is paused at the
/// end of the trace is so until then.
nlohmann::json counters_of_trace(packed_file& file);

}  // namespace rnic::program
