// SPDX-License-Identifier: Apache-2.0
// The GID match as C++.
#pragma once

#include "model/gid/gid_match_if.h"
#include "model/gid/gid_table.h"
#include "model/sim/ring.h"

namespace rnic::gid {

/// Beside the receive parser of a port, which alone asks it. Its entries are those of the port's GID table, which
/// firmware writes between the edges of the core clock.
class gid_match final : public gid_match_if {
 public:
  gid_match(const match_config& cfg, const gid_table& entries);

  match_outputs step(const match_inputs& in) override;
  void reset() override;
  result look_up(const wire::gid& dgid, roce_type type) override;
  unsigned pass_cycles() const override;

 private:
  struct pending {
    unsigned left = 0;  // cycles to its result
    std::optional<unsigned> index;
  };
  match_config config_;
  const gid_table& entries_;
  sim::ring<pending> under_way_;  // by step()
  unsigned busy_ = 0;             // cycles until step() takes the next look-up
};

}  // namespace rnic::gid
