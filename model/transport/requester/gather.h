// SPDX-License-Identifier: Apache-2.0
// Gather: payload from host memory into the frames that the transmit engine has started, and their way out.
#pragma once

#include <cstdint>
#include <string>

#include "model/gid/source_reader.h"
#include "model/icm/key_operation_if.h"
#include "model/icm/translation_if.h"
#include "model/payload/frame.h"
#include "model/pcie/dma_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/transport/requester/config.h"
#include "model/transport/requester/gather_fetch.h"
#include "model/transport/requester/gather_job.h"
#include "model/transport/requester/gather_leave.h"
#include "model/transport/requester/gather_queue.h"
#include "model/transport/requester/withdrawals.h"
#include "model/transport/traffic_counters.h"

namespace rnic::transport {

/// Data sheet.
///
/// Ports, each of one item a cycle: packets and pieces in (the pieces of a packet in order, behind those of the packet
/// before), verdicts in; frames out; what has left, events, addresses known; address translation, DMA (reads only),
/// revocation of keys. Three read ports of the memory of withdrawals.
///
/// Stages: accept, into the queue of packets (cycle 0); ask, one address a cycle, packet by packet (0 for a packet that
/// finds nobody in front of it); translation; read, one DMA request a cycle (two for a piece across a page); memory;
/// leave, one packet a cycle in the order in which they were started, the first in the cycle behind accept; then the
/// look-up of its source (gid::gid_source_if) and the transmit pipeline (requester_config::transmit), for an Ethernet
/// QP with `ethernet_offload_cycles` more: the registers of the channels of frames and of what has left.
///
/// In a cycle: memory's answer, leave, read, accept, ask, revocation. So a packet is asked for in the cycle in which it
/// is accepted, a place that leave frees is filled in that cycle, and what read completes leaves in the next one.
///
/// Source: the look-up is made in the cycle in which a packet leaves, and what the tables hold then is in its headers,
/// or whether it may leave at all. One that may not is a failure when the look-up is over; what follows it by then is
/// taken back out of the look-up's registers, and makes its own again behind the verdict.
///
/// Memories: queue of packets (`gather_depth` entries); payload is written into the frames by the DMA engine. A read
/// port of each port's GID, MAC and VLAN tables (gid::source_reader).
///
/// Stalls: accept, when the queue is full; ask, when translation takes no request; read, when the DMA engine takes none
/// or nobody takes the word that an address is known; leave, until all of the oldest packet is there, while a channel
/// behind it is full, in a cycle in which the tables' only read port is the answers', and from a packet that failed
/// until the verdict. A packet that is withdrawn asks for nothing more, passes over a piece a cycle, and goes when
/// memory has answered what it had asked for; so does one whose look-up has failed and was not told yet, while one
/// whose failure was told stands until the verdict. The second read of a piece across a page waits for the word that
/// its address is known, and the packet for both.
///
/// Three engines of a cycle each: ask, read, leave; the parts say by whom they are blocked.
///
/// Revocation of a key is answered when memory has answered what was asked for by then.
///
/// Parts, each with a data sheet of its own: `gather_queue`, `gather_fetch` (ask, read), `gather_leave`.
class gather : public sim::clocked_block {
 public:
  gather(std::string name, sim::clock_domain& domain, const requester_config& cfg, const gid::source_access& sources,
         withdrawals& withdrawn, sim::span_recorder& spans, sim::statistics& stats);

  sim::fifo_in<gather_job> job_in{*this};
  sim::fifo_in<gather_piece> piece_in{*this};
  sim::fifo_in<gather_verdict> verdict_in{*this};
  sim::fifo_out<payload::frame_ptr> tx_out{*this};
  sim::fifo_out<gather_left> left_out{*this};
  sim::fifo_out<gather_event> event_out{*this};
  sim::fifo_out<gather_address> address_out{*this};
  pcie::dma_port dma{*this};
  icm::translate_port translate{*this};
  icm::revocation_port keys{*this};  ///< may stay unbound
  /// Counts what leaves.
  void count_into(traffic_table& t) { leave_.count_into(t); }

 private:
  void tick() override;
  void accept();
  void revoke();

  gather_counters counters_;
  gather_queue queue_;
  gather_fetch fetch_;
  gather_leave leave_;
  bool revoking_ = false;
  std::uint32_t drain_to_ = 0;  // revoking: all before this number
};

}  // namespace rnic::transport
