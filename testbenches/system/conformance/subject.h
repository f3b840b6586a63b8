// SPDX-License-Identifier: Apache-2.0
// The queue pair under test with its queues and memory.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "testbenches/system/conformance/rig.h"
#include "testbenches/system/conformance/scenario.h"

namespace rnic::conformance {

inline constexpr std::uint32_t first_request_in = 0xfffffe;   ///< what the adapter expects: the numbers wrap soon
inline constexpr std::uint32_t first_request_out = 0xfffffd;  ///< what the adapter sends
inline constexpr std::uint32_t datagram_qkey = 0x1100'0011;
inline constexpr std::uint32_t memory_bytes = 8192, receive_slot = 1024;

/// Byte `i` of what the peer may reach, before a row.
constexpr std::uint8_t pattern_of_target(unsigned i) { return static_cast<std::uint8_t>(i * 3 + (i >> 8) + 5); }

/// The host's memory that packets go to and come from, under many keys, for all rows of a process.
class estate {
 public:
  static estate& instance();
  ibv_mr* bindable() const { return regions_.at(key::window); }
  std::uint32_t lkey(key k) const { return find(k, false); }
  std::uint32_t rkey(key k) const { return find(k, true); }
  /// What each row begins with.
  void fill();
  hosts::buffer target, inbox;  ///< what the peer reads and writes; what receives are of
  hosts::buffer origin;         ///< what the adapter's requests send, and where their answers go
  std::uint64_t doorbell = 0;   ///< of requests, in BAR2
  host_driver::xrc_domain *domain = nullptr, *foreign = nullptr;
  host_driver::shared_receive_queue* foreign_srq = nullptr;

 private:
  estate();
  std::uint32_t find(key k, bool remote) const;
  void find_doorbell();
  std::uint32_t freed_ = 0;
  std::map<key, ibv_mr*> regions_;
};

class subject {
 public:
  subject(rig& r, service s, const setup& before);
  ~subject();
  subject(const subject&) = delete;
  subject& operator=(const subject&) = delete;

  void post(const receive& r);
  void post(const work& w);
  /// 0 or a negative errno.
  int modify(ibv_qp_state to);
  /// A modify with these attributes only; 0 or a negative errno.
  int modify(ibv_qp_state to, int mask);
  /// With all the attributes that it needs.
  void move(ibv_qp_state to);
  int drain();
  void ring();
  /// Frames made for this queue pair go to another one.
  void address_to(std::uint32_t qpn) { destination_ = qpn; }
  std::uint32_t destination() const { return destination_ != 0 ? destination_ : qp_->qp_num; }
  ibv_qp_state state() const;
  std::vector<ibv_wc> completions(bool of_sends);
  /// Bus address of the n-th receive posted.
  std::uint64_t receive_place(unsigned n) const { return n * receive_slot; }

  host_driver::queue_pair* qp() const { return qp_; }
  std::uint32_t peer_qpn() const { return peer_qpn_; }
  std::uint32_t srqn() const { return srq_ != nullptr ? srq_->srqn : 0; }
  std::uint32_t key_of(key k) const { return k == key::window ? window_key_ : estate::instance().rkey(k); }
  service on() const { return service_; }
  /// Its receives are a shared queue's.
  bool is_shared() const { return srq_ != nullptr; }
  unsigned sends_posted() const { return sends_; }
  unsigned receives_posted() const { return receives_; }

 private:
  void make_queues(const setup& before);
  void make_xrc(const setup& before);
  void to_init(unsigned access);
  void bring(const setup& before);
  void to_rtr(const setup& before);
  void to_rts(const setup& before);
  void post_raw(const work& w);
  void bind_window();

  rig& rig_;
  service service_;
  setup before_;
  host_driver::completion_queue *send_cq_ = nullptr, *receive_cq_ = nullptr;
  host_driver::shared_receive_queue* srq_ = nullptr;
  host_driver::queue_pair* qp_ = nullptr;
  host_driver::address_handle* vector_ = nullptr;
  host_driver::memory_window* window_ = nullptr;
  std::uint32_t window_key_ = 0;
  std::uint32_t peer_qpn_;
  std::uint32_t destination_ = 0;
  unsigned sends_ = 0, receives_ = 0;
};

}  // namespace rnic::conformance
