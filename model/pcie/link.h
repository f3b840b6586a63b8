// SPDX-License-Identifier: Apache-2.0
// One direction of a PCIe link: serialisation, latency and flow-control credits, owned by the block that transmits.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/pcie/tlp_link_if.h"
#include "model/sim/check.h"
#include "model/sim/clock_domain.h"
#include "model/sim/clocked_block.h"
#include "model/sim/parameter.h"

namespace rnic::pcie {

/// Both directions of a link are built from the same values.
struct link_config {
  sim::parameter<unsigned> generation{3, {1, 4, "", "calibration 5: Gen3"}};  ///< 2.5, 5, 8, 16 GT/s a lane
  sim::parameter<unsigned> width{8, {1, 16, "lanes", "calibration 5: x8"}};   ///< 1, 2, 4, 8 or 16
  /// What ACK, flow-control and SKP leave of the raw rate (calibration 7.2: 0.945 fits 54.45 of 57.6 Gb/s).
  sim::parameter<std::uint32_t> dll_efficiency_permille{945, {1, 1000, "per mille", "calibration 5: 0.945"}};
  /// Framing, sequence number, header and LCRC of a request with a 64-bit address, of one with a 32-bit address, and of
  /// a completion, in bytes (calibration 2.4).
  std::uint32_t request64_overhead_bytes = 24;
  std::uint32_t request32_overhead_bytes = 20;
  std::uint32_t completion_overhead_bytes = 20;
  /// Last byte at the transmitter's to last byte at the receiver's transaction layer: both PHYs, scrambling, elastic
  /// buffer, link layer with its check. With the root complex's latencies it makes up the 310 ns of a 64-byte read, of
  /// which calibration 5 gives the sum only.
  sim::parameter<sim::time_ps> latency_ps{
      60'000, {1, sim::many * 1000, "ps", "calibration 5: share of the 310 ns of a 64-byte read"}};
  /// How far ahead of the wire a transmitter fills its transmit buffer: two packets of 256 bytes.
  sim::parameter<sim::time_ps> transmit_buffer_ps{80'000, {0, sim::many, "ps", "design"}};
  /// A flow-control update on its way back: link latency and the update timer (Base Specification 3.0, 2.6.1.2).
  sim::parameter<sim::time_ps> credit_latency_ps{80'000, {1, sim::many * 1000, "ps", "design"}};

  void list(sim::fields& are) {
    are("generation", generation);
    are("width", width);
    are("dll_efficiency_permille", dll_efficiency_permille);
    are("latency_ps", latency_ps);
    are("transmit_buffer_ps", transmit_buffer_ps);
    are("credit_latency_ps", credit_latency_ps);
  }
};

/// Bytes in 16-byte credit units.
inline std::uint32_t data_credits(std::uint32_t bytes) { return (bytes + 15) / 16; }

inline credit_class class_of(const payload::tlp& t) {
  if (t.type == payload::tlp_type::completion) return credit_class::completion;
  return t.posted() ? credit_class::posted : credit_class::non_posted;
}
/// What a packet occupies in the receiver.
inline credit_amount credits_of(const payload::tlp& t) { return {class_of(t), 1, data_credits(t.carried())}; }

/// The transmitting end of the lanes, with the transmit buffer in front of them.
class link_wire {
 public:
  link_wire(const std::string& name, const link_config& c) : config_(sim::checked(c, name)) {
    static constexpr std::array<std::uint64_t, 5> mega_transfers{0, 2500, 5000, 8000, 16000};
    if ((c.width & (c.width - 1)) != 0) throw sim::config_error(name + ".width: must be 1, 2, 4, 8 or 16");
    // ps a byte = 8 bits * 10^6 / (MT/s * lanes * coding * efficiency), kept as a fixed-point number of 2^-24 ps.
    const bool wide_code = c.generation >= 3;  // 128b/130b, else 8b/10b
    const std::uint64_t num = std::uint64_t{8'000'000} * (wide_code ? 130 : 10) * 1000;
    const std::uint64_t den =
        mega_transfers[c.generation] * c.width * (wide_code ? 128 : 8) * c.dll_efficiency_permille;
    byte_time_ = (num / den << 24) + ((num % den) << 24) / den;
  }

  void connect(tlp_link_if& peer) { peer_ = &peer; }

  /// Time on the wire of a packet, rounded up to picoseconds.
  sim::time_ps serialisation(const payload::tlp& t) const {
    const bool completion = t.type == payload::tlp_type::completion;
    const std::uint32_t overhead = completion             ? config_.completion_overhead_bytes
                                   : t.address >> 32 != 0 ? config_.request64_overhead_bytes
                                                          : config_.request32_overhead_bytes;
    const std::uint32_t carried = t.carried();
    const std::uint32_t dwords = carried == 0 ? 0 : (static_cast<std::uint32_t>(t.address & 3) + carried + 3) / 4;
    return ((overhead + 4 * dwords) * byte_time_ + 0xff'ffff) >> 24;
  }

  /// Whether the transmit buffer takes a packet at `now`; else it does so from room_at() on.
  bool has_room(sim::time_ps now) const { return busy_until_ <= now + config_.transmit_buffer_ps; }
  sim::time_ps room_at() const { return busy_until_ - config_.transmit_buffer_ps; }
  /// The packet starts at `earliest` at the earliest. Returns the time at which its last byte leaves.
  sim::time_ps send(payload::tlp_ptr&& packet, sim::time_ps earliest) {
    const sim::time_ps time = serialisation(*packet);
    busy_until_ = std::max(busy_until_, earliest) + time;
    busy_ps_ += time;
    ++packets_;
    peer_->deliver(std::move(packet), busy_until_ + config_.latency_ps);
    return busy_until_;
  }

  sim::time_ps busy_until() const { return busy_until_; }
  const link_config& config() const { return config_; }
  /// Counters: packets sent, time on the wire.
  const std::uint64_t& packets() const { return packets_; }
  const std::uint64_t& busy_ps() const { return busy_ps_; }

 private:
  link_config config_;
  tlp_link_if* peer_ = nullptr;
  std::uint64_t byte_time_ = 0;
  sim::time_ps busy_until_ = 0;
  std::uint64_t packets_ = 0;
  std::uint64_t busy_ps_ = 0;
};

/// Wire and credits. Ask can_send() in a tick; when it says no it has booked the wake-up that asks again.
class link_transmitter {
 public:
  link_transmitter(const std::string& name, sim::clocked_block& owner, const link_config& c)
      : owner_(owner), wire_(name, c), returns_(64), mask_(returns_.size() - 1) {}

  void connect(tlp_link_if& peer) { wire_.connect(peer); }
  link_wire& wire() { return wire_; }

  /// Whether a packet of this class and size may be sent now; else the owner's wake-up is booked.
  bool can_send(credit_class type, std::uint32_t bytes) {
    // The wire first: whether credit is short is asked only at an edge at which every run ticks (law 3).
    refused_for_credit_ = false;
    if (!wire_.has_room(now_ps())) {
      owner_.wake_at(owner_.domain().edge_at_or_after(wire_.room_at()));
      return false;
    }
    return has_credit(type, bytes);
  }
  /// The same for a packet whose way to the wire has room.
  bool has_credit(credit_class type, std::uint32_t bytes) {
    absorb(now_ps());
    const account& a = accounts_[static_cast<std::size_t>(type)];
    refused_for_credit_ = a.headers < 1 || a.data < data_credits(bytes);
    if (sim::seldom(refused_for_credit_)) out_of_credit();
    return !refused_for_credit_;
  }

  /// Whether there is credit for such a packet; asking books nothing.
  bool has_at_hand(credit_class type, std::uint32_t bytes) {
    const credit_amount have = available(type);
    return have.headers >= 1 && have.data >= data_credits(bytes);
  }
  /// Sends a packet that can_send() allowed; see link_wire::send.
  sim::time_ps send(payload::tlp_ptr&& packet, sim::time_ps earliest) {
    take_credit(*packet);
    return wire_.send(std::move(packet), earliest);
  }
  /// Of a packet that has_credit() allowed.
  void take_credit(const payload::tlp& packet) {
    account& a = accounts_[static_cast<std::size_t>(class_of(packet))];
    if (a.headers != infinite_credits) a.headers -= 1;
    if (a.data != infinite_credits) a.data -= data_credits(packet.carried());
  }

  /// From the peer, through the owner's tlp_link_if. The peer may know early when it gives one back.
  void credit(const credit_amount& amount, sim::time_ps arrival) {
    if (sim::seldom(return_count_ > mask_)) grow();
    std::size_t at = return_count_++;
    for (; at != 0 && returned(at - 1).arrival > arrival; --at) returned(at) = returned(at - 1);
    returned(at) = {amount, arrival};
    if (sim::seldom(blocked_)) wake_for(arrival);
  }

  /// The owner's present time.
  sim::time_ps now_ps() const { return owner_.now_ps(); }
  /// Whether the last refusal of can_send() was for want of credit, not because the transmit buffer is full.
  bool refused_for_credit() const { return refused_for_credit_; }
  /// Times a packet found no credit (once for each packet and class).
  const std::uint64_t& credit_stalls() const { return credit_stalls_; }
  /// Credits at hand now, for who looks on: nothing is taken in for it.
  credit_amount at_hand(credit_class type) const {
    const account& a = accounts_[static_cast<std::size_t>(type)];
    credit_amount all{type, a.headers, a.data};
    for (std::size_t i = 0; i < return_count_; ++i) {
      const credit_return& r = returns_[(return_head_ + i) & mask_];
      if (r.arrival > now_ps() || r.amount.type != type || a.headers == infinite_credits) continue;
      all.headers += r.amount.headers;
      if (a.data != infinite_credits) all.data += r.amount.data;
    }
    return all;
  }
  /// Credits at hand now, for checks.
  credit_amount available(credit_class type) {
    absorb(now_ps());
    const account& a = accounts_[static_cast<std::size_t>(type)];
    return {type, a.headers, a.data};
  }

 private:
  struct account {
    std::uint32_t headers = 0;
    std::uint32_t data = 0;
  };
  struct credit_return {
    credit_amount amount;
    sim::time_ps arrival = 0;
  };

  credit_return& returned(std::size_t n) { return returns_[(return_head_ + n) & mask_]; }
  void absorb(sim::time_ps now) {
    while (return_count_ != 0 && returns_[return_head_].arrival <= now) {
      const credit_amount& r = returns_[return_head_].amount;
      account& a = accounts_[static_cast<std::size_t>(r.type)];
      a.headers = r.headers == infinite_credits ? infinite_credits : a.headers + r.headers;
      a.data = r.data == infinite_credits ? infinite_credits : a.data + r.data;
      return_head_ = (return_head_ + 1) & mask_;
      --return_count_;
      blocked_ = false;
    }
  }
  [[gnu::noinline]] void wake_for(sim::time_ps arrival) {
    owner_.wake_at(std::max(owner_.domain().edge_at_or_after(arrival), owner_.now() + 1));
  }
  /// The next return wakes the owner: the first one that is under way, or the one that comes after this.
  [[gnu::noinline]] void out_of_credit() {
    if (!blocked_) ++credit_stalls_;
    blocked_ = true;
    if (return_count_ != 0) owner_.wake_at(owner_.domain().edge_at_or_after(returns_[return_head_].arrival));
  }
  [[gnu::noinline, gnu::cold]] void grow() {
    std::vector<credit_return> bigger(returns_.size() * 2);
    for (std::size_t i = 0; i < return_count_; ++i) bigger[i] = returned(i);
    returns_.swap(bigger);
    mask_ = returns_.size() - 1;
    return_head_ = 0;
  }

  sim::clocked_block& owner_;
  link_wire wire_;
  std::array<account, 3> accounts_{};
  std::vector<credit_return> returns_;  // ring, in the order of arrival; a power of two of them
  std::size_t mask_;
  std::size_t return_head_ = 0;
  std::size_t return_count_ = 0;
  bool refused_for_credit_ = false;
  bool blocked_ = false;  // somebody found no credit since the last one came
  std::uint64_t credit_stalls_ = 0;
};

}  // namespace rnic::pcie
