// SPDX-License-Identifier: Apache-2.0
// Generator of READ and atomic responses.
#pragma once

#include <cstdint>
#include <vector>

#include "model/icm/context_cache.h"
#include "model/pcie/dma_if.h"
#include "model/sim/server.h"
#include "model/transport/congestion/rate_limiter.h"
#include "model/transport/responder/answer_port.h"
#include "model/transport/responder/atomic_unit.h"
#include "model/transport/responder/types.h"

namespace rnic::transport {

/// Part of the responder. Gathers accepted READ requests packet by packet (round robin over the requests that may
/// go, of each QP one at a time), has atomics executed, and sends the responses of a QP in the order of its requests'
/// PSNs (C.7.3). A request is begun when all before it of its QP have read or changed memory. Where a repeated request
/// says that the requester has gone back, what is behind it is answered once more from the beginning, without being
/// asked for: no later answer passes what was begun and not ended.
class responder_reads {
 public:
  enum class kind : std::uint8_t {
    read,
    atomic,
    replay  ///< an atomic that was executed before: `original` is the answer
  };
  struct request {
    kind what = kind::read;
    std::uint16_t flow = no_link;
    std::uint32_t qpn = 0;
    std::uint32_t psn = 0, msn = 0;
    std::uint32_t key = 0, length = 0, pd = 0;
    std::uint64_t va = 0;
    bool again = false;               ///< a repeated request
    std::uint64_t writes_before = 0;  ///< payload writes that must be on their way before memory is read
    icm::translate_response first;    ///< translation of the first packet, made by the check
    atomic_operation operation;
    std::uint64_t original = 0;
    sim::span_id span = 0;
  };
  /// What ends a request: `finished`, or a fault to be answered in its place.
  struct fault {
    std::uint16_t flow = no_link;
    std::uint32_t psn = 0, msn = 0;
    std::uint8_t nak = 0, event = 0;
  };

  responder_reads(sim::clocked_block& owner, const responder_config& cfg, std::vector<responder_flow>& flows,
                  icm::translate_port& translate, pcie::dma_port& dma, atomic_unit& atomics,
                  icm::context_cache<icm::rdma_resources>& histories, answer_port& answers, payload::frame_pool& frames,
                  rate_limiter& limiter, sim::span_recorder& spans, std::uint64_t translate_tag, std::uint64_t dma_tag);

  /// A place for an atomic or a repeated request, and one for a new READ of a flow that `has_some` on chip: new READs
  /// leave an eighth of the places to the others, and half of the flows to QPs that have nothing here.
  bool can_take() const { return !free_jobs_.empty(); }
  bool can_take_new(bool has_some) const {
    return free_jobs_.size() > jobs_.size() / 8 && (has_some || reading_flows_ < most_flows_);
  }
  /// No QP has a request here.
  bool idle() const { return reading_flows_ == 0; }
  /// Takes the next request of its flow, or a repeated one, which goes before those of later PSNs. Its will_send() must
  /// be false. The ring of an atomic's QP is pinned once for it. `held`: a READ that had waited and was accepted then.
  void take(const request& r, bool held = false);
  /// Gathers and sends. `writes_done`: payload writes on their way so far. Returns true with a fault to handle.
  bool work(std::uint64_t writes_done, fault& out);
  /// Whether the response `psn` is among those that will be sent.
  bool will_send(std::uint16_t flow, std::uint32_t psn) const;
  /// The responses of a flow that were not sent are given up.
  void discard(std::uint16_t flow);

  /// `key` has lost its meaning: what has not touched memory yet is refused.
  void refuse_key(std::uint32_t key);
  /// Whether something translated under `key` may still touch memory.
  bool uses_key(std::uint32_t key) const;

  /// An operation of the atomic unit has ended.
  void executed(const atomic_unit::outcome& o);
  void translated(std::uint32_t tag, const icm::translate_response& r);
  void read_done(std::uint32_t tag, pcie::dma_status status);

  std::uint64_t packets() const { return packets_; }

 private:
  struct job {
    request r;
    std::uint32_t sequence = 0;                    // among the flow's reads
    std::uint32_t gathered = 0;                    // bytes asked for
    std::uint16_t head = no_link, tail = no_link;  // gathers in order
    bool used = false, given_up = false, all_asked = false;
    bool executing = false;           // the atomic unit has it
    bool refused = false;             // its key was withdrawn before it began
    std::uint8_t nak = 0, event = 0;  // of an atomic
  };
  struct gather {
    payload::frame_ptr frame;
    icm::translate_response where;
    std::uint32_t offset = 0, length = 0;
    std::uint16_t job = no_link, next = no_link;  // job: none when free, or abandoned with answers outstanding
    std::uint16_t flow = no_link, function = 0;
    std::uint32_t key = 0;
    std::uint8_t open = 0;  // translation and reads under way
    unsigned next_segment = 0;
    bool to_read = false;
    std::uint8_t nak = 0, event = 0;
  };
  void ask();
  void begin_atomic(std::uint16_t j);
  bool emit_atomic(std::uint16_t j, fault& out);
  void ask_packet(std::uint16_t j);
  void read_memory(std::uint16_t g);
  bool emit(fault& out);
  bool in_time(std::uint32_t qpn) const;
  bool emit_head(std::uint16_t j, fault& out);
  wire::psn_t end_psn(const request& r) const;
  void free_gather(std::uint16_t g);
  void finish(std::uint16_t j);
  void remove(std::uint16_t j);
  void reap(std::uint16_t j);
  // repeated.cpp
  std::uint32_t go_back(const request& r);
  void yield(const request& r, wire::psn_t end);
  void begin_again(job& x);
  void abandon(std::uint16_t g);
  bool was_abandoned(std::uint16_t g);

  sim::clocked_block& owner_;
  const responder_config& config_;
  std::vector<responder_flow>& flows_;
  icm::translate_port& translate_;
  pcie::dma_port& dma_;
  atomic_unit& atomics_;
  icm::context_cache<icm::rdma_resources>& histories_;
  answer_port& answers_;
  payload::frame_pool& frames_;
  rate_limiter& limiter_;
  sim::span_recorder& spans_;
  std::uint64_t translate_tag_, dma_tag_;
  std::vector<job> jobs_;
  std::vector<gather> gathers_;
  std::vector<std::uint16_t> free_jobs_, free_gathers_, active_;  // active_: in the order of acceptance
  unsigned turn_ = 0;
  unsigned reading_flows_ = 0;  // with jobs
  const unsigned most_flows_;
  unsigned to_read_ = 0;
  std::uint64_t writes_done_ = 0;
  sim::server generator_;
  std::uint64_t packets_ = 0;
};

}  // namespace rnic::transport
