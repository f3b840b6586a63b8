// SPDX-License-Identifier: Apache-2.0
#include "model/transport/responder/read_returns.h"

namespace rnic::transport {

read_returns::read_returns(sim::clocked_block& owner, flow_table& flows, read_port& reads, history_memory& rings,
                           acknowledgement& answers, key_withdrawal& keys, completion_port& completions,
                           error_state& errors, drop_counters& drops)
    : owner_(owner),
      flows_(flows),
      reads_(reads),
      rings_(rings),
      answers_(answers),
      keys_(keys),
      completions_(completions),
      errors_(errors),
      drops_(drops) {}

void read_returns::work() {
  if (!reads_.report.can_pop()) return;
  const read_report& r = reads_.report.front();
  responder_flow& f = flows_[r.flow];
  switch (r.what) {
    case read_report::kind::ended:
      if (!end(f, r)) return;  // who is refused a port is ticked
      break;
    case read_report::kind::answered:
      answers_.answered(f, r);
      break;
    case read_report::kind::fault:
      if (!fail(f, r)) return owner_.wake_next();
      break;
    case read_report::kind::discarded:
      f.requests.discarding = false;
      break;
    case read_report::kind::revoked:
      keys_.reads_revoked();
      break;
  }
  reads_.report.drop();
}

bool read_returns::end(responder_flow& f, const read_report& r) {
  icm::rdma_resources* ring = nullptr;
  if (r.atomic && r.executed && rings_.on_chip(f.qpn)) {
    if (rings_.find(f.qpn, history_user::reports, ring) != history_memory::found::known) return false;
    rings_.access(f.qpn, history_user::reports, true);
  }
  ++f.requests.finished;
  reads_.ended(f.reads_on_chip() == 0);
  --(r.again ? f.requests.again : f.requests.fresh);
  if (r.dropped) ++(r.replay ? drops_.duplicate_atomic : drops_.duplicate_read);
  if (!r.atomic) return true;
  if (ring != nullptr) ring->keep_answer(r.psn, r.original);
  rings_.unpin(f.qpn);
  return true;
}

bool read_returns::fail(responder_flow& f, const read_report& r) {
  if (f.requests.discarding) return true;  // it is being given up anyway
  if (!reads_.room(1) || !completions_.may_raise() || !flows_.may_access(f, context_user::errors)) return false;
  flows_.access(f, context_user::errors);
  completions_.raise(r.event, f.qpn, f.ctx->function);
  completion_port::error_counters& errors = completions_.errors;
  (r.nak == syndrome_access ? errors.remote_access : errors.local_operation).count(f.ctx->dest.port);
  answers_.give_up(f);
  answers_.set_nak(f, r.nak, r.psn, r.msn);
  errors_.enter(f, errors_.first_uncompleted(f), true);
  return true;
}

}  // namespace rnic::transport
