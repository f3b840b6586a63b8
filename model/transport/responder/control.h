// SPDX-License-Identifier: Apache-2.0
// Registers of the responder and firmware's commands about its queue pairs.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "model/sim/clocked_block.h"
#include "model/transport/live_command.h"
#include "model/transport/port_count.h"
#include "model/transport/responder/acknowledgement.h"
#include "model/transport/responder/completion_port.h"
#include "model/transport/responder/error_state.h"
#include "model/transport/responder/flow_table.h"
#include "model/transport/responder/held_reads.h"
#include "model/transport/responder/parked_answers.h"
#include "model/transport/responder/read_backlog.h"
#include "model/transport/responder/read_port.h"
#include "model/transport/responder/receive_descriptors.h"
#include "model/transport/responder/types.h"

namespace rnic::transport {

/// Part of the responder: halts of queue pairs, publishing and changing of their contexts (live_command.h), diagnostic
/// counters, reset.
///
/// A halted queue pair takes nothing new; payload and completions of what was accepted are finished or, where it is
/// discarded, given up; READs, atomics that wait for their turn, and acknowledgements that have not left are given up;
/// its context and its ring go to ICM or are forgotten; then the command is done. Reset discards all queue pairs on
/// chip. Ports: one register access at a time by firmware; of the halts one goes on in a cycle, in turn. Stalls:
/// answers of memory that the queue pair waits for, the way to the READ generator.
class responder_control {
 public:
  /// A diagnostic counter (adapter control plane, 10.3), by its offset.
  struct diagnostic {
    diagnostic(std::uint32_t at, const port_count& c) : offset(at), all(&c.all), second(&c.second) {}
    diagnostic(std::uint32_t at, const std::uint64_t& of_device) : offset(at), all(&of_device) {}
    std::uint32_t offset;
    const std::uint64_t* all;
    const std::uint64_t* second = nullptr;  ///< none: of the device alone
    port_count now() const { return {*all, second != nullptr ? *second : 0}; }
  };
  struct parts {
    flow_table& flows;
    flow_table::contexts& contexts;
    history_memory::rings& rings;
    read_backlog& backlog;
    receive_descriptors& receives;
    completion_port& completions;
    acknowledgement& answers;
    parked_answers& parked;
    held_reads& held;
    read_port& reads;
    error_state& errors;
  };
  responder_control(sim::clocked_block& owner, responder_registers& registers, std::uint16_t& roce_v2_port,
                    const parts& of, std::vector<diagnostic> counters);

  std::uint32_t read(std::uint32_t offset) const;
  void write(std::uint32_t offset, std::uint32_t value);
  /// Begins to discard all queue pairs.
  void reset();

  /// In each tick, behind what lets queue pairs leave: halts,
  void work();
  bool resetting() const { return resetting_; }

 private:
  struct stopping_entry {
    std::uint32_t qpn = 0;
    bool discard = false, begun = false;
  };
  std::uint32_t read_diagnostic(std::uint32_t offset) const;
  void command(std::uint32_t qpn, std::uint32_t code);
  void halt(std::uint32_t qpn, bool discard);
  void release(std::uint32_t qpn);
  bool halting(std::uint32_t qpn) const;
  [[gnu::noinline]] void work_halts();
  bool begin(stopping_entry& e, std::uint16_t place);
  bool go_on(stopping_entry& e);
  [[gnu::noinline]] void work_command();
  [[gnu::noinline]] void finish_reset();

  sim::clocked_block& owner_;
  responder_registers& registers_;
  std::uint16_t& roce_v2_port_;
  const parts of_;
  std::vector<diagnostic> counters_;
  std::vector<port_count> at_reset_;  // what they begin at
  std::vector<stopping_entry> stopping_;
  std::size_t turn_ = 0;
  live_command<icm::responder_context> command_;
  bool resetting_ = false;
  std::uint32_t selected_ = 0, selected_srq_ = 0;
};

}  // namespace rnic::transport
