// SPDX-License-Identifier: Apache-2.0
// Send queues that firmware lets run dry (IBA volume 1, 10.3.1.5).
#pragma once

#include <algorithm>
#include <cstdint>

#include "model/icm/context_cache.h"
#include "model/icm/contexts.h"
#include "model/register_bus/interrupt_lines.h"
#include "model/register_bus/notice.h"
#include "model/sim/clocked_block.h"
#include "model/transport/requester/message_table.h"
#include "model/transport/requester/tables.h"

namespace rnic::transport {

/// A queue pair in SQ_DRAINING comes to rest when all that had begun has ended. Firmware is told by interrupt, and
/// reads the numbers one after the other, in the order in which they came to rest: a link a queue pair, which is in the
/// list once.
class drained_queues {
 public:
  using context = icm::requester_context;
  drained_queues(sim::clocked_block& owner, icm::context_cache<context>& contexts, qp_table& qps)
      : owner_(owner), contexts_(contexts), qps_(qps) {}
  void bind_firmware(register_bus::interrupt_lines& lines, sim::time_ps delay_ps) {
    firmware_ = &lines;
    notice_ps_ = delay_ps;
  }

  /// WQEs that had begun are left.
  static bool left(const context& c) { return static_cast<std::int32_t>(c.drain_end - c.next_wqe) > 0; }
  /// What has been started has to be finished in SQ_DRAINING, although it starts again after a halt or go-back.
  static void note_begun(context& c, const qp_runtime& r, message_table& messages) {
    std::uint32_t end = c.next_wqe + (c.message_offset != 0 ? 1 : 0);
    if (r.tail != no_index) end = std::max(end, messages[r.tail].wqe_index + messages[r.tail].strides);
    if (static_cast<std::int32_t>(end - c.drain_end) > 0) c.drain_end = end;
  }
  /// After a completion, or when the queue pair asks for its next WQE.
  void check(context& c, const qp_runtime& r) {
    if (c.state != icm::qp_state::sq_draining || left(c) || r.head != no_index) return;
    c.state = icm::qp_state::sqd;
    contexts_.mark_dirty(r.qpn);
    tell(r.qpn);
  }
  void tell(std::uint32_t qpn) {
    drained_.push(qps_, qps_[qpn]);
    if (firmware_ != nullptr) firmware_->pulse(register_bus::notice::drained, owner_.now_ps() + notice_ps_);
  }

  // ---- firmware's register
  bool empty() const { return drained_.empty(); }
  std::uint32_t front() const { return drained_.front(); }
  void pop() { drained_.pop(qps_); }
  void clear() {
    while (!empty()) pop();
  }

 private:
  sim::clocked_block& owner_;
  icm::context_cache<context>& contexts_;
  register_bus::interrupt_lines* firmware_ = nullptr;
  sim::time_ps notice_ps_ = 1;
  qp_table& qps_;
  qp_queue drained_{qp_list::drained};  // that firmware has to be told of
};

}  // namespace rnic::transport
