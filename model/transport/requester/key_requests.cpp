// SPDX-License-Identifier: Apache-2.0
// Operations on memory keys: local invalidation, fast registration, binding of windows.
#include "model/transport/requester/key_requests.h"

#include <utility>

namespace rnic::transport {

namespace {

/// Keys that were valid may lose their meaning by it: nothing that was posted before may need them any more, not even
/// for a retransmission.
bool withdraws(const icm::key_operation& k) {
  return k.what == icm::key_operation::kind::local_invalidate ||
         (k.what == icm::key_operation::kind::bind && !k.type_2);
}

/// Adapter data plane C.8.2.
std::uint8_t syndrome_of(icm::key_operation::kind what, icm::key_status status) {
  if (what == icm::key_operation::kind::bind) return syndrome::window_bind;
  return status == icm::key_status::memory_error ? syndrome::local_protection : syndrome::local_qp_operation;
}

}  // namespace

// These requests are strongly ordered (adapter data plane A.4.3): what is before them in the queue has left the
// adapter, or is complete where the operation takes a key away (IBA volume 1, 10.8.3.3).
bool key_requests::may_begin(send_unit& u) {
  const icm::requester_context& c = *u.ctx;
  const qp_runtime& r = qps_[u.grant.qpn];
  const bool fenced = u.wqe.fence && c.rd_outstanding != 0;
  if (fenced || (withdraws(u.wqe.keys) && r.head != no_index)) {
    units_.end_turn(u, scheduler::report::kind::stalled);
    owner_.wake_next();
    return false;
  }
  if (r.under_way.packets == 0) return true;
  leaving_.await();
  return false;
}

bool key_requests::run(send_unit& u) {
  const icm::requester_context& c = *u.ctx;
  const qp_runtime& r = qps_[u.grant.qpn];
  const icm::key_operation& k = u.wqe.keys;
  constexpr std::uint32_t longest_queue = 1u << 16;                              // WQEs
  if (r.keys.valid && r.keys.end - c.next_wqe - 1 < longest_queue) return true;  // before a retransmission
  if (u.keys == send_unit::keys_state::refused) {
    u.keys = send_unit::keys_state::none;
    u.wqe.error = syndrome_of(k.what, u.keys_answer);
    return true;
  }
  const bool register_enabled = (c.flags & icm::requester_flag_fast_reg) != 0;
  if (k.what == icm::key_operation::kind::fast_register && !register_enabled) {
    u.wqe.error = syndrome::local_qp_operation;
    return true;
  }
  if (!may_begin(u) || !keys_.request.claim()) return false;
  icm::key_operation o = k;
  o.pd = c.pd;
  o.qpn = c.qpn & 0xffffff;
  o.function = c.function;
  o.tag = std::uint64_t{units_.number_of(u)} << 32 | (c.next_wqe + u.at_wqe.strides);
  keys_.request.push(o);
  u.keys = send_unit::keys_state::asked;
  operating_ |= units_.mask_of(u);
  ++operations_;
  return false;
}

// What was executed stays so, whatever has happened to the queue pair meanwhile.
void key_requests::take_answer() {
  if (!keys_.response.can_pop()) return;
  const icm::key_answer a = keys_.response.pop();
  send_unit& u = units_[static_cast<unsigned>(a.tag >> 32)];
  qp_runtime& r = qps_[u.grant.qpn];
  operating_ &= ~units_.mask_of(u);
  u.keys = a.status == icm::key_status::ok ? send_unit::keys_state::none : send_unit::keys_state::refused;
  u.keys_answer = a.status;
  if (a.status != icm::key_status::ok) return;
  r.keys.valid = true;
  r.keys.end = static_cast<std::uint32_t>(a.tag);
}

}  // namespace rnic::transport
