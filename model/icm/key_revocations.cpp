// SPDX-License-Identifier: Apache-2.0
#include "model/icm/key_revocations.h"

namespace rnic::icm {

bool key_revocations::send() {
  for (unsigned i = 0; i < holders; ++i) {
    if ((sent_ >> i & 1) != 0 || !revoke_[i].bound()) continue;
    if (!revoke_[i].claim()) return false;
    revoke_[i].push({key_});
    sent_ |= 1u << i;
  }
  awaited_ = sent_;
  return true;
}

bool key_revocations::answered() {
  for (unsigned i = 0; i < holders; ++i)
    if (revoked_[i].can_pop()) {
      revoked_[i].drop();
      awaited_ &= ~(1u << i);
    }
  return awaited_ == 0;
}

}  // namespace rnic::icm
