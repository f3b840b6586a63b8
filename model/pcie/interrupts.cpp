// SPDX-License-Identifier: Apache-2.0
#include "model/pcie/interrupts.h"

namespace rnic::pcie {

std::optional<msix_request> interrupts::take_request() {
  const msix_request r = requests_.pop();
  if (bus_.enabled() && r.function == 0 && !functions_.interrupts_on(0)) {
    functions_.line().raise();
    return {};
  }
  if (!bus_.enabled() || !functions_.interrupts_on(r.function) || functions_.held(r.function) ||
      r.vector >= functions_.vectors(r.function).vectors()) {
    ++counts_.dropped;
    return {};
  }
  msix_table& vectors = functions_.vectors(r.function);
  if (may_send(r.function) && !vectors.masked(r.vector)) return r;
  if (!vectors.is_pending(r.vector)) ++counts_.pended;
  vectors.set_pending(r.vector);
  return {};
}

std::optional<msix_request> interrupts::take_pending() {
  recheck_ = false;
  for (std::uint16_t f = 0; functions_.exists(f); ++f) {
    const int vector = functions_.interrupts_on(f) && may_send(f) ? functions_.vectors(f).deliverable() : -1;
    if (vector < 0) continue;
    functions_.vectors(f).clear_pending(static_cast<unsigned>(vector));
    recheck_ = true;  // there may be one more
    return msix_request{f, static_cast<std::uint16_t>(vector)};
  }
  return {};
}

std::optional<interrupts::message> interrupts::take() {
  const bool request = requests_.bound() && requests_.can_pop();
  const std::optional<msix_request> m = request ? take_request() : take_pending();
  if (m) {
    ++counts_.sent;
    return message{m->function, functions_.vectors(m->function).of(m->vector), {}};
  }
  const std::optional<bool> level = functions_.line().move(functions_.now());
  if (!level) return {};
  ++counts_.sent;
  return message{0, {}, level};
}

}  // namespace rnic::pcie
