// SPDX-License-Identifier: Apache-2.0
// Queue pairs on chip.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "model/icm/context_cache.h"
#include "model/sim/clocked_block.h"
#include "model/sim/memory_ports.h"
#include "model/transport/responder/queue_pair_halts.h"
#include "model/transport/responder/read_backlog.h"
#include "model/transport/responder/slot_table.h"
#include "model/transport/responder/types.h"

namespace rnic::transport {

/// Who reads and writes contexts.
enum class context_user : std::uint8_t {
  check,    ///< a packet: state, PSN, message under way
  answers,  ///< an ACK, a NAK, a request for the READ generator: address of the peer, credits
  reads,    ///< a queue pair whose READs come back from host memory
  errors,   ///< a queue pair on its way into the error state, or in it
  firmware  ///< publishing, changing
};

/// Part of the responder: the queue pairs that have something on chip (responder_flow), their contexts, and the frames
/// of theirs that wait. A queue pair has a place from the first frame or task of it until nothing of it is left: what
/// was written to in a cycle is looked at at the end of it, or of the next tick, and leaves when it is idle. An answer
/// that waits for requests in host memory keeps nothing here, nor need one for a port that is paused: it leaves in the
/// context (owed_answer.h).
///
/// Ports of the contexts: `context_ports` accesses a cycle, each a read that may be written back, by users with names
/// (context_user), who wait in turn where there are more. What a user does with one context in a cycle is one access.
/// Whether it is on chip is asked of the tags first, without a port: who waits for a context holds none. Fills and
/// write-backs have a port of their own.
///
/// Memories: responder_config::flows places, found by queue pair number with a comparator at each (one look-up a cycle
/// by the check, one by firmware's commands and reads that come back); contexts behind the cache
/// adapter.responder.contexts, where those of queue pairs on chip are pinned; context_wait_frames frames in a list a
/// queue pair. Firmware's halts (queue_pair_halts).
///
/// Stalls: open() finds no place while all are in use, wait() no place for a frame. Both come free in a tick of the
/// owner. Counters: context_waits, queue pairs whose context was not on chip; context_memory.<user>.waits.
class flow_table {
 public:
  using contexts = icm::context_cache<icm::responder_context>;

  flow_table(sim::clocked_block& owner, const responder_config& cfg, contexts& cache, read_backlog& backlog,
             const slot_table& slots, drop_counters& drops);

  /// Its place, no_link when it has none; open() gives it one, no_link: all are in use.
  std::uint16_t find(std::uint32_t qpn) const;
  std::uint16_t open(std::uint32_t qpn);
  /// For writing: looked at in leave().
  responder_flow& operator[](std::uint16_t i) {
    responder_flow& f = flows_[i];
    touch(f);
    return f;
  }
  const responder_flow& operator[](std::uint16_t i) const { return flows_[i]; }

  /// What has become of places: those that were written to since leave() has looked at them; whether open() had none
  /// since a queue pair left last; those of queue pairs whose answer has come with the context. parked_answers works by
  /// it, and clears the last ones.
  struct place_news {
    std::vector<std::uint16_t> touched;
    bool short_of_places = false;
    std::vector<std::uint16_t> brought_back;
  };
  place_news& news() { return news_; }

  const std::vector<std::uint32_t>& qpns() const { return active_qpns_; }
  std::uint16_t places() const { return static_cast<std::uint16_t>(flows_.size()); }

  enum class found : std::uint8_t {
    known,
    read,     ///< known from this cycle on: find_context() alone, which leaves the access to its caller
    pending,  ///< the context is being fetched
    no_port,  ///< not in this cycle
    unknown   ///< there is none; the frames that waited for it are dropped
  };
  /// Whether its context is on chip. What is not there is fetched, and the owner is ticked.
  found resolve(responder_flow& f, context_user user);
  /// The same for a frame that may not be able to stay: where its context is `read`, the access is made when the frame
  /// does, or is taken.
  found find_context(responder_flow& f, context_user user);
  /// Whether the user may access the context of the queue pair in this cycle. Refused, the owner is ticked in the next.
  bool may_access(const responder_flow& f, context_user user);
  /// The same, of a queue pair that is not known yet.
  bool may_access(context_user user) { return ports_.claim(static_cast<unsigned>(user)); }
  /// Does, behind may_access().
  void access(responder_flow& f, context_user user);
  /// The same for a context that has no place here.
  void access(context_user user) { ports_.access(static_cast<unsigned>(user)); }
  const sim::memory_ports& ports() const { return ports_; }
  /// The queue pair for which resolve() said so goes on: now that counts as a use.
  void count_use(responder_flow& f);
  /// One that was written to and is idle leaves its place.
  void leave();
  void leave(std::uint16_t i);

  bool has_room_to_wait() const { return free_frame_ != no_link; }
  void wait(responder_flow& f, payload::frame_ptr frame);
  payload::frame_ptr& front(const responder_flow& f) { return frames_[f.waits.head].frame; }
  void pop(responder_flow& f);
  /// Drops all frames that wait, each counted in `counter`, if any.
  void drop_waiting(responder_flow& f, std::uint64_t* counter = nullptr);

  /// What is to be done with a queue pair beside its packets (flow_todo_*); those with anything, longest first.
  void add_todo(responder_flow& f, std::uint8_t todo);
  void clear_todo(responder_flow& f);
  const std::vector<std::uint16_t>& to_do() const { return to_do_; }

  queue_pair_halts& halts() { return halts_; }
  /// A frame for it is dropped.
  bool refuses(std::uint32_t qpn, std::uint16_t place) const {
    return place == no_link ? halts_.halted(qpn) : halts_.closed() || flows_[place].stop;
  }

  std::uint64_t context_waits = 0;

 private:
  struct waiting_frame {
    payload::frame_ptr frame;
    std::uint16_t next = no_link;
  };
  void touch(responder_flow& f) {
    if (f.touched) return;
    f.touched = true;
    news_.touched.push_back(f.number);
  }
  found look_up(responder_flow& f, icm::responder_context* ctx);
  bool accesses(const responder_flow& f, context_user user) const {
    return f.access.at == owner_.edge() && f.access.by == static_cast<std::uint8_t>(user);
  }

  sim::clocked_block& owner_;
  contexts& contexts_;
  read_backlog& backlog_;
  const slot_table& slots_;
  drop_counters& drops_;
  sim::memory_ports ports_;
  std::vector<responder_flow> flows_;
  std::vector<std::uint16_t> free_, active_, to_do_;
  place_news news_;
  std::vector<std::uint32_t> active_qpns_;  // beside active_
  std::vector<waiting_frame> frames_;
  std::uint16_t free_frame_ = no_link;
  queue_pair_halts halts_;
};

}  // namespace rnic::transport
