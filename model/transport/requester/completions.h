// SPDX-License-Identifier: Apache-2.0
// Completions: messages leave the table in order, and software is told.
#pragma once

#include <cstdint>

#include "model/completion/completion_if.h"
#include "model/icm/contexts.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/transport/requester/context_memory.h"
#include "model/transport/requester/diagnostics.h"
#include "model/transport/requester/drain.h"
#include "model/transport/requester/go_back.h"
#include "model/transport/requester/message_table.h"
#include "model/transport/transport_if.h"

namespace rnic::transport {

/// Data sheet.
///
/// Stages: the queue pair in front of those whose oldest message may be complete; its context and that message are
/// read; if it is complete it is told of (where it is signalled or failed) and released: one message a cycle, whether
/// software is told of it or not. A queue pair that is in the list for nothing costs none. An error takes the queue
/// pair with it.
///
/// Stalls: context not on chip; channel of completions or errors full; release port of the message table taken; a
/// message that failed, until go-back has taken back what was behind it. What stalls the queue pair in front stalls
/// those behind it.
class completions {
 public:
  using context = icm::requester_context;
  completions(sim::clocked_block& owner, qp_table& qps, context_memory& contexts, message_table& messages,
              go_back& back, drained_queues& drained, resumptions& resumes, diagnostic_counters& diagnostics,
              sim::fifo_out<completion::cqe_request>& cqe, sim::fifo_out<qp_error>& error, sim::span_recorder& spans)
      : owner_(owner),
        qps_(qps),
        contexts_(contexts),
        messages_(messages),
        go_back_(back),
        drained_(drained),
        resumes_(resumes),
        diagnostics_(diagnostics),
        cqe_(cqe),
        error_(error),
        spans_(spans),
        adapter_(spans.adapter_of(owner.name())) {}
  void announce(sim::statistics& to) const { to.add(owner_.name() + ".completions", completions_); }

  void work();
  /// A WQE that was not executed, since the queue pair is in error. False: not now.
  bool report_flush(const context& c, std::uint32_t wqe_index);

 private:
  bool may_complete(const context& c, const qp_runtime& r);
  void complete_head(context& c, qp_runtime& r);
  void report(const context& c, const message& m);
  void use_receive(context& c, const qp_runtime& r, const message& m) const;
  sim::span_id follow(const context& c, std::uint32_t wqe_index) const;

  sim::clocked_block& owner_;
  qp_table& qps_;
  context_memory& contexts_;
  message_table& messages_;
  go_back& go_back_;
  drained_queues& drained_;
  resumptions& resumes_;
  diagnostic_counters& diagnostics_;
  sim::fifo_out<completion::cqe_request>& cqe_;
  sim::fifo_out<qp_error>& error_;
  sim::span_recorder& spans_;
  const unsigned adapter_;  // among those whose requests are followed
  std::uint64_t completions_ = 0;
};

}  // namespace rnic::transport
