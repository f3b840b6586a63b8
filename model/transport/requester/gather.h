// SPDX-License-Identifier: Apache-2.0
// Gather: payload from host memory into the frames that the transmit engine has started, and their way out.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "model/gid/source_reader.h"
#include "model/icm/contexts.h"
#include "model/icm/key_operation_if.h"
#include "model/icm/translation_if.h"
#include "model/payload/frame.h"
#include "model/pcie/dma_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/pipeline.h"
#include "model/sim/ring.h"
#include "model/sim/server.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/transport/requester/config.h"
#include "model/transport/requester/send_wqe.h"
#include "model/transport/requester/withdrawals.h"

namespace rnic::transport {

/// Frame of an Ethernet QP: what has to be done to it when all of it is there.
struct ethernet_work {
  bool segmented = false, last = false, software_tag = false;
  std::uint8_t own_priority = 0;  ///< of the tag whose VID is the queue pair's
  std::uint16_t software_tci = 0, udp_port = 0;
  icm::ethernet_rules rules{};
  std::uint32_t offset = 0;  ///< of the packet's payload in a segmented message
  ethernet_send offload;
};

/// A packet that the transmit engine has started: what its headers will say, a frame with room for them, and room for
/// its payload. Inline bytes are there, and the headers of frames that software has made.
struct gather_job {
  static constexpr unsigned most_pieces = send_wqe::max_segments + payload::frame::capacity / 4096;
  payload::frame_ptr frame;
  std::uint64_t number = 0;  ///< in the order in which packets were started
  std::uint32_t qpn = 0, pd = 0, message = 0, generation = 0;
  wire::psn_t psn;
  std::uint32_t reserved_lkey = 0;
  std::uint16_t function = 0;
  std::uint16_t pieces = 0;  ///< that follow through the channel of pieces, up to most_pieces
  std::uint8_t unit = 0;     ///< processing unit
  std::uint8_t syndrome = 0;
  bool last_local = false;  ///< its leaving completes the message
  bool reserved_key = false;
  bool plain = false;  ///< frame of an Ethernet QP
  ethernet_work ethernet;
  gid::source_request source;
};

/// What one address gives of a packet's payload: up to 4096 bytes.
struct gather_piece {
  std::uint64_t address = 0;
  std::uint32_t length = 0, lkey = 0;
  std::uint16_t place = 0;  ///< in the payload
};

/// A frame has left the transmit pipeline.
struct gather_left {
  std::uint32_t qpn = 0, message = 0, generation = 0;
  bool last_local = false;
};

/// A packet that does not leave. `failed`: its payload cannot be read; gather waits for the word to go on, and the
/// packet then ends as withdrawn.
struct gather_event {
  enum class kind : std::uint8_t { failed, withdrawn, blocked };
  kind what = kind::withdrawn;
  std::uint8_t syndrome = 0, port = 0, priority = 0;
  bool last_local = false;
  std::uint32_t qpn = 0, message = 0, generation = 0;
  wire::psn_t psn;
};

/// An address of a packet of this processing unit is known.
struct gather_address {
  std::uint8_t unit = 0;
  sim::cycle_t missed_for = 0;  ///< cycles, when it had to be fetched
};

/// The transmit engine has taken a failure, and withdrawn what has to be.
struct gather_verdict {};

/// Data sheet.
///
/// Ports, each of one item a cycle: packets and pieces in (the pieces of a packet in order, behind those of the packet
/// before), verdicts in; frames out; what has left, events, addresses known; address translation, DMA (reads only),
/// revocation of keys. Two read ports of the memory of withdrawals.
///
/// Stages: accept, into the queue of packets (cycle 0); ask, one address a cycle, packet by packet (0 for a packet that
/// finds nobody in front of it); translation; read, one DMA request a cycle (two for a piece across a page); memory;
/// leave, one packet a cycle in the order in which they were started, the first in the cycle behind accept; then the
/// look-up of its source (gid::gid_source_if) and the transmit pipeline (requester_config::transmit), for an Ethernet
/// QP with `ethernet_offload_cycles` more: the registers of the channels of frames and of what has left.
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
/// memory has answered what it had asked for.
///
/// Three engines of a cycle each say by whom they are blocked: ask by "translation" (or "requester", who takes no word
/// of a withdrawn packet's address), read by "dma" or "requester", leave by "payload", by "requester", "icrc insert" or
/// "gid table".
///
/// Revocation of a key is answered when memory has answered what was asked for by then.
class gather : public sim::clocked_block {
 public:
  static constexpr unsigned ports = 2;

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

 private:
  struct slot {
    gather_job job;
    std::uint16_t asked = 0, pending = 0;
    std::uint8_t syndrome = 0;
    bool dropped = false;  // withdrawn, or judged
    bool blocked = false;  // a frame that its queue pair may not send
    sim::cycle_t asked_at = 0;
    sim::cycle_t failed_at = 0;  // from here on it is known that it has no source
  };

  void tick() override;
  void take_memory();
  void leave();
  void leave_pipeline(slot& s);
  bool stands(slot& s);
  bool tell(const slot& s, gather_event::kind what);
  void drop_slot();
  void take_address();
  void accept();
  void ask();
  void revoke();
  const char* ask_held_up_by() const;
  const char* read_held_up_by() const;
  const char* leave_held_up_by() const;
  bool look_up_source(slot& s);
  bool finish_ethernet(slot& s, const gid::source& found);
  bool withdrawn(slot& s);
  slot& at(std::uint32_t number) { return slots_[number - first_slot_]; }

  const bool translation_blocks_;
  const std::uint8_t ect_priorities_;
  gid::source_reader sources_;
  withdrawals& withdrawn_;
  sim::span_recorder& spans_;
  const sim::pipeline pipeline_, plain_pipeline_;  // of packets, of an Ethernet QP's frames
  sim::ring<slot> slots_;
  std::uint32_t first_slot_ = 0;  // number of the oldest
  std::uint32_t asking_ = 0;      // number of the first whose pieces are not all asked for
  unsigned parts_ = 0;            // of the address in front that memory has been asked for
  bool judging_ = false;          // the oldest has failed
  bool revoking_ = false;
  std::uint32_t drain_to_ = 0;  // revoking: all before this number
  sim::server ask_{*this, "ask"}, read_{*this, "read"}, leave_{*this, "leave"};

  std::uint64_t packets_ = 0, pieces_ = 0, bytes_ = 0, failed_ = 0, withdrawn_packets_ = 0, translation_misses_ = 0,
                ethernet_frames_ = 0;
};

}  // namespace rnic::transport
