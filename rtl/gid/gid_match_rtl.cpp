// SPDX-License-Identifier: Apache-2.0
#include <iomanip>
#include <sstream>

#include "rtl/gid/gid_match_pins.h"

namespace rnic::rtl {

void gid_match_pins::tracker::note(const inputs& i, const outputs& o) {
  if (i.reset) return open_.clear();
  if (o.result_valid && !open_.empty()) {
    open_.pop_front();
    ++done_;
  }
  if (i.look_up.valid && o.ready) open_.push_back(i.look_up);
}

std::string gid_match_pins::tracker::text() const {
  if (open_.empty()) return "no look-up is under way";
  std::ostringstream text;
  text << "look-up " << done_ + 1 << ", RoCE " << (open_.front().type == gid::roce_type::v2 ? "v2" : "v1") << ", GID "
       << std::hex << std::setfill('0');
  for (unsigned i = 0; i < 16; ++i)
    text << (i % 2 == 0 && i != 0 ? ":" : "") << std::setw(2) << unsigned{open_.front().dgid[i]};
  return text.str();
}

}  // namespace rnic::rtl
