// SPDX-License-Identifier: Apache-2.0
// The requester's memories on chip: messages under way, what a QP is doing, who waits for what, deadlines.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "model/sim/channel.h"
#include "model/sim/seldom.h"
#include "model/sim/span.h"
#include "model/sim/types.h"
#include "model/transport/requester/send_wqe.h"
#include "model/transport/requester/standstill.h"
#include "model/wire/psn.h"

namespace rnic::transport {

inline constexpr std::uint32_t no_index = ~std::uint32_t{0};

/// A message from its first packet until its completion has been reported.
struct message {
  std::uint32_t next = no_index;
  std::uint32_t next_read = no_index;  ///< READ or atomic: the one behind it,
  std::uint32_t last_read = no_index;  ///< any: itself or the last one before it, when it was entered
  std::uint32_t generation = 0;        ///< tells a reused entry from the one that an answer belongs to
  std::uint32_t wqe_index = 0;         ///< as requester_context::next_wqe
  wire::psn_t first_psn, last_psn;
  std::uint32_t length = 0;
  std::uint64_t first_packet = 0;    ///< number of its first packet, as the transmit engine counts
  std::uint32_t got = 0;             ///< READ: response packets accepted
  std::uint32_t asked_from = 0;      ///< READ: response packet with which the answer to the last request begins
  std::uint32_t scatter = no_index;  ///< READ: where the data goes
  std::uint16_t strides = 1;
  std::uint16_t writes = 0;  ///< READ: response packets not yet written to host memory
  std::uint8_t opcode = 0;
  std::uint8_t syndrome = 0, vendor = 0;  ///< not 0: ends in error when all before it are complete
  bool signalled = false;
  bool read = false;           ///< READ or atomic: its response brings data
  bool atomic = false;         ///< of these: one response of eight bytes
  bool takes_receive = false;  ///< of the peer (RC, XRC)
  bool local = false;          ///< needs no acknowledgement (NOP, UC, UD): complete when `sent`
  bool sent = false;
  sim::span_id span = 0;  ///< READ, atomic: of the response with which all of its data had come
  std::uint32_t packets() const { return last_psn.since(first_psn) + 1; }
  /// READ: of the first response packet that has not come.
  wire::psn_t missing() const { return first_psn + got; }
  /// READ: all of its data has come, if not to host memory yet.
  bool answered() const { return got == packets(); }
  bool holds(wire::psn_t psn) const { return !local && psn.since(first_psn) < packets(); }
};

/// Fixed number of objects by index, grown on first use and never given back to the allocator.
template <class T>
class index_pool {
 public:
  explicit index_pool(std::uint32_t limit) : limit_(limit) {}
  bool available() const { return !free_.empty() || used_ < limit_; }
  std::uint32_t take() {
    if (sim::seldom(free_.empty())) return take_new();
    const std::uint32_t i = free_.back();
    free_.pop_back();
    return i;
  }
  void give(std::uint32_t i) { free_.push_back(i); }
  T& operator[](std::uint32_t i) { return (*chunks_[i / chunk])[i % chunk]; }
  std::uint32_t in_use() const { return used_ - static_cast<std::uint32_t>(free_.size()); }

 private:
  static constexpr std::uint32_t chunk = 64;
  [[gnu::noinline, gnu::cold]] std::uint32_t take_new() {
    if (used_ % chunk == 0) {
      chunks_.push_back(std::make_unique<std::array<T, chunk>>());
      free_.reserve(used_ + chunk);
    }
    return used_++;
  }
  std::uint32_t limit_;
  std::uint32_t used_ = 0;
  std::vector<std::unique_ptr<std::array<T, chunk>>> chunks_;
  std::vector<std::uint32_t> free_;
};

/// Lists that a QP can be in, once each.
enum class qp_list : std::uint8_t { drain, timer, resume, room, scatter, credit, halt, back, withdraw, drained, count };

/// READs and atomics of a QP that may be under way. When an answer is lost the peer goes on with the others, and
/// answers what is asked for again behind them: to ask for all of them again at each loss would fill its queue with
/// what is thrown away. So few are asked for then, and one more for each that comes whole.
class read_window {
 public:
  void open() { few_ = 0; }
  void lost(unsigned few) { few_ = static_cast<std::uint8_t>(few); }
  /// `most`: what the QP may have under way, 1..128.
  void came(unsigned most) {
    if (few_ != 0 && ++few_ >= most) few_ = 0;
  }
  unsigned limit(unsigned most) const { return few_ != 0 && few_ < most ? few_ : most; }

 private:
  std::uint8_t few_ = 0;  // 0: there is no limit but the QP's
};

/// What the requester knows of a QP beside its context: groups by who writes them (README.md). Begins a line of the
/// processor's cache; what a packet touches is in this one and the next.
struct alignas(sim::cache_line) qp_runtime {
  std::uint32_t qpn = 0;
  std::uint32_t head = no_index, tail = no_index;  ///< messages, oldest first
  /// What was sent, answered and sent again.
  struct {
    wire::psn_t sent_before;          ///< behind the last packet that was ever sent, if it resends
    wire::psn_t heard;                ///< last answer that went beyond what is missing since it went back
    wire::psn_t told;                 ///< behind the packet whose answer told of receives
    wire::psn_t asked;                ///< behind the last packet that asked for an acknowledgement
    std::uint32_t extra_retries = 0;  ///< used since something new was acknowledged (requester_config)
    bool resends = false;             ///< it went back, and not all before `sent_before` is acknowledged yet
    bool rnr_wait = false;
    bool retrying = false;  ///< it went back, by retry or RNR wait, and nothing new was acknowledged since
  } progress;
  /// Where something of it still is.
  struct {
    std::uint16_t packets = 0;  ///< between their start and the end of the transmit pipeline
    std::uint16_t jobs = 0;     ///< READ response packets on their way to host memory
    std::uint8_t fetches = 0;   ///< reads of its send queue
  } under_way;
  /// Of the processing units and the scheduler.
  struct {
    std::int8_t unit = -1;  ///< that serves it
    std::uint8_t priority = 0;
    bool ends_stalled = false;                ///< its unit ends the turn as stalled
    bool stalled = false;                     ///< the scheduler waits for our resume
    bool has_work = false;                    ///< look for WQEs even without a legal doorbell
    bool poked = false;                       ///< resumed while a unit serves it
    standstill waits_for = standstill::none;  ///< why it gave up its last unit, until it has one
  } turn;
  read_window reads;
  std::uint16_t member = 0;    ///< bit per list
  bool unwalked = false;       ///< it is in error, and go-back has not found the first message that did not complete
  bool kept_for_back = false;  ///< go-back has its context pinned
  bool needs_receive = false;  ///< its next message waits for a receive of the peer's (end-to-end credits)
  bool failing = false;        ///< a message ends in error, when those before it are complete
  /// Of control.
  struct {
    bool halting = false, halted = false;
    bool discard = false;   ///< of the last halt, until it is released
    bool flushing = false;  ///< halting: only the context's way back to ICM is left
  } stop;
  /// Of acknowledgement or RNR.
  struct {
    sim::cycle_t deadline = sim::never;  ///< until when it is to run
    sim::cycle_t armed = sim::never;     ///< until when it runs at least, as far as ack_timers was told
    sim::cycle_t since = 0;              ///< when the deadline was set
    std::uint8_t tag = 0;                ///< of the last start that was sent
    bool for_receiver = false;           ///< it runs until the receiver is ready
  } timer;
  /// The operation on keys before WQE `end` was executed and not completed: a retransmission that goes back behind it
  /// leaves it out.
  struct {
    bool valid = false;
    std::uint32_t end = 0;
  } keys;
  std::array<std::uint32_t, static_cast<unsigned>(qp_list::count)> link{};  ///< the lists of each packet come first
  std::uint32_t reading = no_index;  ///< of its messages the first READ or atomic whose answer is not complete
  std::uint32_t cut = no_index;      ///< those that are forgotten, until go-back has taken them back
  /// Its packets that will not leave, until go-back has written that (withdrawals.h).
  struct {
    std::uint64_t first = 0, behind = 0, complete = 0;
    /// Packets before this number may be repetitions that were acknowledged before they left; 0: none are, ~0: those
    /// that are still to be started as well.
    std::uint64_t repeated = 0;
  } withdraw;
  /// Nothing is started for it until something comes that it waits for.
  bool must_stop() const { return stop.halting || stop.halted || progress.rnr_wait || failing; }
  bool nothing_under_way() const { return under_way.packets == 0 && under_way.jobs == 0 && under_way.fetches == 0; }
};
static_assert(sizeof(qp_runtime) == 3 * sim::cache_line);

/// Table of QPs, flat and grown by pages.
class qp_table {
 public:
  explicit qp_table(unsigned log_qps) : mask_((1u << log_qps) - 1), pages_((std::size_t{1} << log_qps) / page) {}
  bool known(std::uint32_t qpn) const { return qpn <= mask_ && pages_[qpn / page] != nullptr; }
  bool legal(std::uint32_t qpn) const { return qpn <= mask_; }
  /// Calls f(qp_runtime&) for every QP that something is kept of, in the order of their numbers.
  template <class F>
  void for_each(F f) {
    for (auto& p : pages_)
      if (p)
        for (qp_runtime& r : *p) f(r);
  }
  [[gnu::always_inline]] qp_runtime& operator[](std::uint32_t qpn) {
    const auto& p = pages_[(qpn & mask_) / page];
    if (sim::seldom(!p)) add_page(qpn);
    return (*p)[qpn % page];
  }

 private:
  static constexpr std::uint32_t page = 256;
  [[gnu::noinline, gnu::cold]] void add_page(std::uint32_t qpn) {
    auto& p = pages_[(qpn & mask_) / page];
    p = std::make_unique<std::array<qp_runtime, page>>();
    for (std::uint32_t i = 0; i < page; ++i) (*p)[i].qpn = (qpn & mask_ & ~(page - 1)) + i;
  }
  std::uint32_t mask_;
  std::vector<std::unique_ptr<std::array<qp_runtime, page>>> pages_;
};

/// Intrusive first-in first-out list of QPs.
class qp_queue {
 public:
  explicit qp_queue(qp_list which) : slot_(static_cast<unsigned>(which)) {}
  bool empty() const { return head_ == no_index; }
  bool has(const qp_runtime& r) const { return (r.member >> slot_ & 1) != 0; }
  std::uint32_t front() const { return head_; }
  void push(qp_table& table, qp_runtime& r) {
    if ((r.member >> slot_ & 1) != 0) return;
    r.member = static_cast<std::uint16_t>(r.member | 1u << slot_);
    r.link[slot_] = no_index;
    if (head_ == no_index)
      head_ = r.qpn;
    else
      table[tail_].link[slot_] = r.qpn;
    tail_ = r.qpn;
  }
  qp_runtime& pop(qp_table& table) {
    qp_runtime& r = table[head_];
    head_ = r.link[slot_];
    r.member = static_cast<std::uint16_t>(r.member & ~(1u << slot_));
    return r;
  }

 private:
  unsigned slot_;
  std::uint32_t head_ = no_index, tail_ = no_index;
};

}  // namespace rnic::transport
