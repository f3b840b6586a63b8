// SPDX-License-Identifier: Apache-2.0
// One host's end of a link of any transport service, of which one posts to and receives from.
#pragma once

#include "host_driver/hosts/connection.h"
#include "host_driver/workloads/verb.h"

namespace rnic::workloads {

/// With what a datagram's payload is preceded in a receive's buffer (IBA volume 1, 10.2.4.1), and the room that a
/// buffer leaves for it so that payloads begin at a cache line.
inline constexpr std::uint32_t datagram_header = 40, datagram_headroom = 64;

/// Completions that are polled at once.
inline constexpr unsigned poll_batch = 16;

/// A completion queue, of the largest size at most. Throws std::runtime_error.
host_driver::completion_queue* new_cq(hosts::endpoint& e, std::uint64_t entries);

/// Queue pairs and what belongs to them by `connection_options::type`: one for RC, UC and UD, which has an address
/// handle too; for XRC (IBV_QPT_XRC_SEND) one that sends and one that receives into a shared receive queue.
class link_end {
 public:
  /// In state INIT. Throws std::runtime_error that names the step that failed.
  void create(hosts::endpoint& at, const hosts::connection_options& options, ibv_cq& send_cq, ibv_cq& receive_cq);
  /// To RTS, when the other host has created its end.
  void connect(const link_end& peer, std::uint32_t own_psn, std::uint32_t peer_psn);

  /// Says where a request goes, for the transports that want it in each one.
  void aim(ibv_send_wr& wr) const;
  void post_send(ibv_send_wr& list) const;
  /// Of the queue pair that sends.
  std::uint32_t sender_number() const { return sender_->qp_num; }
  /// One receive; `bytes` of payload at `address`, which for datagrams has datagram_headroom before it.
  void post_receive(std::uint64_t address, std::uint32_t bytes, std::uint32_t lkey, std::uint64_t id = 0) const;
  /// Of a receive that was polled last: a message that has stayed in it goes to `to`, where the others are.
  void take_out(const ibv_wc& wc, std::uint8_t* to) const;

 private:
  void create_xrc(ibv_cq& send_cq, ibv_cq& receive_cq);
  void check_datagram_version() const;

  hosts::endpoint* at_ = nullptr;
  hosts::connection_options options_;
  host_driver::queue_pair *sender_ = nullptr, *receiver_ = nullptr;  // XRC: two, else one
  host_driver::shared_receive_queue* srq_ = nullptr;
  host_driver::address_handle* ah_ = nullptr;
  std::uint32_t peer_qpn_ = 0, peer_srqn_ = 0;
};

/// Makes `wr` a message of verb `v` to `address`; atomics move a counter from `found` on, see make_atomic(). For a
/// masked one `wr` is a host_driver::masked_atomic_wr, whose masks let all bits through.
void make_message(ibv_send_wr& wr, const verb& v, std::uint64_t address, std::uint32_t rkey, std::uint64_t found);

}  // namespace rnic::workloads
