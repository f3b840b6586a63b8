// SPDX-License-Identifier: Apache-2.0
#include "model/pcie/functions.h"

namespace rnic::pcie {

functions::functions(const config_space::config& c)
    : physical_(c), vectors_(c.msix_vectors), held_(c.total_vfs, false) {
  virtual_.reserve(c.total_vfs);
  for (unsigned i = 0; i < c.total_vfs; ++i) virtual_.emplace_back(physical_.configuration());
}

std::uint32_t functions::read32(unsigned function, std::uint16_t offset) const {
  if (function != 0) return virtual_[function - 1].read32(offset);
  const bool status = offset / 4 == cfg::command / 4 && line_.pending();
  return physical_.read32(offset) | (status ? line_interrupt::status_bit : 0);
}

config_effect functions::write32(unsigned function, std::uint16_t offset, std::uint32_t value, unsigned byte_enables) {
  if (function != 0) return virtual_[function - 1].write32(offset, value, byte_enables);
  const unsigned before = now().enabled_vfs;
  const config_effect e = physical_.write32(offset, value, byte_enables);
  if (now().enabled_vfs != before) {
    for (virtual_function& v : virtual_) v.reset();
    held_.assign(held_.size(), false);
  }
  return e;
}

void functions::reset(unsigned function) {
  if (function != 0) return virtual_[function - 1].reset();
  physical_.reset();
  vectors_.reset();
  line_.clear();
  for (virtual_function& v : virtual_) v.reset();
  held_.assign(held_.size(), false);
}

void functions::report_unsupported(unsigned function) {
  function == 0 ? physical_.report(error::unsupported_request) : virtual_[function - 1].report_unsupported();
}

void functions::drop_pending() {
  vectors_.drop_pending();
  line_.clear();
  for (virtual_function& v : virtual_) v.vectors().drop_pending();
}

}  // namespace rnic::pcie
