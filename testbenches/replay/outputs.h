// SPDX-License-Identifier: Apache-2.0
// Capture files that a replay writes.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "model/fabric/cable.h"
#include "testbenches/replay/comments.h"
#include "testbenches/replay/run.h"
#include "tlm/capture.h"
#include "tlm/pcapng_writer.h"

namespace rnic::replay {

/// Those of the settings, which observe the cable from now on.
class outputs {
 public:
  outputs(const replay_settings& settings, fabric::cable& cable);
  /// Of the file that has the capture's own time.
  void set_clock(const tlm::file_clock& as_captured);
  /// Writes what is left; `say` is asked when a file takes comments.
  void close(const std::function<comments()>& say);

 private:
  std::vector<std::unique_ptr<tlm::capture_writer>> captures_;
  std::unique_ptr<tlm::capture_writer> merged_;
  std::unique_ptr<tlm::pcapng_writer> commented_;
};

}  // namespace rnic::replay
