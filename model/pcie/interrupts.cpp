// SPDX-License-Identifier: Apache-2.0
#include "model/pcie/interrupts.h"

namespace rnic::pcie {

std::optional<unsigned> interrupts::take_request() {
  const msix_request r = requests_.pop();
  const config_space::state& s = space_.now();
  if (!bus_.enabled() || r.vector >= vectors_.vectors() || r.function != 0 || !s.msix_enabled) {
    ++counts_.dropped;
    return {};
  }
  if (s.bus_master && !s.msix_masked && !vectors_.masked(r.vector)) return r.vector;
  if (!vectors_.is_pending(r.vector)) ++counts_.pended;
  vectors_.set_pending(r.vector);
  return {};
}

std::optional<unsigned> interrupts::take_pending() {
  const config_space::state& s = space_.now();
  const int vector = s.msix_enabled && s.bus_master && !s.msix_masked ? vectors_.deliverable() : -1;
  recheck_ = vector >= 0;  // there may be one more
  if (vector < 0) return {};
  vectors_.clear_pending(static_cast<unsigned>(vector));
  return static_cast<unsigned>(vector);
}

std::optional<msix_table::message> interrupts::take() {
  const bool request = requests_.bound() && requests_.can_pop();
  const std::optional<unsigned> vector = request ? take_request() : take_pending();
  if (!vector) return {};
  ++counts_.sent;
  return vectors_.of(*vector);
}

}  // namespace rnic::pcie
