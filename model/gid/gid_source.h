// SPDX-License-Identifier: Apache-2.0
// The look-up of a packet's source as C++.
#pragma once

#include "model/gid/gid_source_if.h"
#include "model/gid/gid_table.h"
#include "model/sim/ring.h"

namespace rnic::gid {

/// Over the tables of one port, which firmware writes between the edges of the core clock.
class gid_source final : public gid_source_if {
 public:
  gid_source(const source_config& cfg, const gid_table& entries);

  source_outputs step(const source_inputs& in) override;
  void reset() override { under_way_.clear(); }
  source look_up(const source_request& request) override;
  unsigned cycles() const override { return config_.source_cycles; }

 private:
  struct pending {
    unsigned left = 0;  // cycles to its result
    source found;
  };
  refusal check(const source_request& request) const;

  source_config config_;
  const gid_table& entries_;
  sim::ring<pending> under_way_;  // by step()
};

}  // namespace rnic::gid
