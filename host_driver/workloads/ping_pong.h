// SPDX-License-Identifier: Apache-2.0
// A thread of a workload whose messages are answered, and who answers them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "host_driver/workloads/link_end.h"
#include "host_driver/workloads/workload.h"

namespace rnic::workloads {

/// Sends one message at a time, on its queue pairs in turn, as perftest's tests of latency do: it posts, polls its
/// completion, and waits for the answer, which the other host's program posts as soon as it has the message. Where the
/// verb takes no receive both poll the last byte of their memory.
class ping_pong {
 public:
  /// `first_lane`: number of its first queue pair within the workload.
  ping_pong(workload& of, unsigned host, unsigned thread, std::uint32_t first_lane);
  ~ping_pong();

  // By the programs of both hosts of each queue pair.
  void create(unsigned host);
  void connect(unsigned host);

  unsigned host() const { return host_; }
  std::size_t lanes() const { return lanes_.size(); }
  bool answers_at(unsigned host) { return side_of(host) != nullptr; }
  /// In a process of the host that sends, to the end of what it has to send.
  void send(const workload_times& t);
  /// In a process of a host that answers: until the sender has ended.
  void answer(unsigned host);
  /// The sender has ended; in the turn of a visitor of the host that answers.
  void sender_has_ended(unsigned host);

 private:
  struct end;
  struct lane;
  /// What a host has of all its queue pairs of this thread.
  struct side {
    unsigned host = 0;
    std::vector<end*> ends;
    host_driver::completion_queue *sent = nullptr, *received = nullptr;
    bool over = false;
  };
  enum class outcome : std::uint8_t { here, nothing, failed };
  void make_lanes(std::uint32_t first_lane);
  side* side_of(unsigned host);
  void create(side& s, end& e);
  void post_receive(const end& e) const;
  void receive_another(const end& e, std::uint64_t n) const;
  std::uint64_t last_byte_of(const end& e) const;
  void post(end& e, std::uint64_t n);
  outcome completed(const side& s, host_driver::completion_queue& cq, sim::time_ps timeout, ibv_wc& wc);
  outcome await(side& s, end& e, std::uint64_t n, sim::time_ps timeout);
  bool round_trip(lane& l, std::uint64_t n);
  void keep(lane& l, sim::time_ps start, sim::time_ps now);

  workload& of_;
  unsigned host_;
  std::uint64_t to_send_;  // ~0: until the end
  const verb& verb_;
  std::uint32_t bytes_, headroom_;
  std::vector<std::unique_ptr<lane>> lanes_;
  side sends_;
  std::vector<side> answers_;  // by receiver
  workload_times times_;
  const char* why_ = nullptr;  // of the last failure
};

}  // namespace rnic::workloads
