// SPDX-License-Identifier: Apache-2.0
// Device-managed flow steering (adapter control plane 4.19).
#include "firmware/firmware.h"

namespace rnic::firmware {

/// Only rules for queue pairs that the function may have: one that is beyond reset is known to be somebody's.
abi::status firmware::attach_flow(command_request& r) {
  namespace f = abi::flow_rule;
  if (!flows_.enabled()) return status::bad_sys_state;
  if (r.modifier < f::control_bytes / 4 || r.modifier > abi::mailbox_bytes / 4) return status::bad_param;
  if (const status s = read_mailbox(r, std::size_t{r.modifier} * 4); s != status::ok) return s;
  const std::uint16_t function = function_of(r);
  if (in(f::function) != 0 && in(f::function) != function) return status::bad_param;
  const std::uint32_t qpn = in(f::qpn);
  if (!in_table(icm::table::qpc, qpn)) return status::bad_param;
  const qp_record* qp = find_qp(qpn);
  if (qp != nullptr && qp->function != function) return status::bad_param;
  return flows_.attach(in_.data(), r.modifier, config_.num_ports, &r.out_param);
}

abi::status firmware::detach_flow(command_request& r) {
  return flows_.enabled() ? flows_.detach(r.in_param) : status::bad_sys_state;
}

}  // namespace rnic::firmware
