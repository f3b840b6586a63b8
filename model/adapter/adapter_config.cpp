// SPDX-License-Identifier: Apache-2.0
#include "model/adapter/adapter_config.h"

#include "model/adapter/profiles.h"

namespace rnic::adapter {

void announce(sim::parameter_set& to, config& c) {
  to.add("adapter", c);
  to.add("rtl.icrc", c.icrc);
  to.add_synonyms("rtl.icrc", {"false", "true"});
  to.add("rtl.gid", c.gid);
  name_sources(to, c.profile);
}

}  // namespace rnic::adapter
