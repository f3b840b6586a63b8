// SPDX-License-Identifier: Apache-2.0
// The other end of random queue pairs: a responder of IBA 9.7 in its simplest form, on a wire that loses packets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "model/payload/frame.h"
#include "model/wire/packet.h"
#include "testbenches/bench/seeded.h"

namespace bench {

using rnic::bench::dice;

/// How a seed's wire and peers are.
struct peer_manner {
  unsigned loss = 0;           ///< per mille of the packets of either direction
  unsigned not_ready = 0;      ///< per mille of SENDs that begin
  unsigned refused = 0;        ///< per mille of requests: NAK of a remote access error, which ends the queue pair
  unsigned silent_acks = 0;    ///< per cent of acknowledgements that a later one stands for
  unsigned longest_delay = 0;  ///< cycles until an answer comes
};

/// A message as it was executed, or is to be.
struct told_message {
  rnic::wire::operation first;  ///< opcode of its first packet, as of one that is alone
  std::uint64_t bytes = 0;
  std::uint64_t digest = 0;
  friend bool operator==(const told_message& a, const told_message& b) {
    return a.first == b.first && a.bytes == b.bytes && a.digest == b.digest;
  }
};

inline std::uint64_t digest_on(std::uint64_t h, const std::uint8_t* from, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) h = (h ^ from[i]) * 0x100'0000'01b3u;
  return h;
}
inline constexpr std::uint64_t digest_start = 0xcbf2'9ce4'8422'2325u;

/// What READs and atomics find at an address.
inline std::uint8_t remote_byte(std::uint64_t at) { return static_cast<std::uint8_t>(at * 13 + (at >> 8)); }

/// Of one connection.
class random_peer {
 public:
  struct answer {
    std::uint64_t due;
    rnic::wire::operation op;
    std::uint32_t psn;
    std::uint8_t syndrome;
    std::vector<std::uint8_t> payload;
    std::uint64_t original = 0;
  };

  random_peer(const peer_manner& m, std::uint64_t seed, std::uint32_t psn, bool reliable, std::uint32_t mtu)
      : manner_(m), draws_(seed), expected_(psn), reliable_(reliable), mtu_(mtu) {}

  void take(const rnic::wire::packet& p, const std::uint8_t* payload, std::uint64_t now) {
    using rnic::wire::operation;
    if (draws_.below(1000) < manner_.loss) return;
    if (!reliable_) return take_unreliable(p, payload);
    const std::int32_t ahead = p.bth.psn - rnic::wire::psn_t(expected_);
    const operation op = rnic::wire::operation_of(p.bth.opcode);
    if (ahead > 0) {
      if (!nak_sent_) push(now, operation::acknowledge, expected_, nak_sequence);
      nak_sent_ = true;
      return;
    }
    if (op == operation::read_request) return read(p, ahead, now);
    if (op == operation::compare_swap || op == operation::fetch_add) return atomic(p, ahead, now);
    if (ahead < 0) return push(now, operation::acknowledge, expected_ - 1, ack);
    const rnic::wire::opcode_traits& t = rnic::wire::traits(p.bth.opcode);
    const bool send = op <= operation::send_only_immediate;
    if (send && t.first && draws_.below(1000) < manner_.not_ready)
      return push(now, operation::acknowledge, expected_, rnr_of_10_us);
    if (t.first && draws_.below(1000) < manner_.refused) return refuse(now);
    nak_sent_ = false;
    ++expected_;
    if (t.first) current_ = {send ? operation::send_only : operation::write_only, 0, digest_start};
    current_.bytes += p.payload_length;
    current_.digest = digest_on(current_.digest, payload, p.payload_length);
    if (t.last) executed.push_back(current_);
    if (p.bth.ack_request && draws_.below(100) >= manner_.silent_acks)
      push(now, operation::acknowledge, p.bth.psn.value(), ack);
  }

  std::deque<answer> answers;          ///< in order, each not before it is due
  std::vector<told_message> executed;  ///< in order

 private:
  static constexpr std::uint8_t ack = 0x1f, nak_sequence = 0x60, nak_access = 0x62, rnr_of_10_us = 0x21;

  void push(std::uint64_t now, rnic::wire::operation op, std::uint32_t psn, std::uint8_t syndrome,
            std::vector<std::uint8_t> payload = {}, std::uint64_t original = 0) {
    const std::uint64_t due = now + 1 + draws_.below(manner_.longest_delay + 1);
    if (draws_.below(1000) < manner_.loss) return;
    last_due_ = std::max(last_due_, due);
    answers.push_back({last_due_, op, psn & 0xffffff, syndrome, std::move(payload), original});
  }
  void refuse(std::uint64_t now) { push(now, rnic::wire::operation::acknowledge, expected_, nak_access); }

  void read(const rnic::wire::packet& p, std::int32_t ahead, std::uint64_t now) {
    using rnic::wire::operation;
    const std::uint32_t n = std::max(1u, (p.reth.length + mtu_ - 1) / mtu_);
    if (ahead == 0) {
      if (draws_.below(1000) < manner_.refused) return refuse(now);
      nak_sent_ = false;
      expected_ += n;
    }
    for (std::uint32_t i = 0; i < n; ++i) {
      const operation op = n == 1      ? operation::read_response_only
                           : i == 0    ? operation::read_response_first
                           : i + 1 < n ? operation::read_response_middle
                                       : operation::read_response_last;
      std::vector<std::uint8_t> bytes(std::min(mtu_, p.reth.length - i * mtu_));
      for (std::size_t b = 0; b < bytes.size(); ++b) bytes[b] = remote_byte(p.reth.va + std::uint64_t{i} * mtu_ + b);
      push(now, op, p.bth.psn.value() + i, ack, std::move(bytes));
    }
    if (ahead == 0) executed.push_back({operation::read_request, p.reth.length, p.reth.va});
  }

  /// An answer is kept for as long as the connection lives.
  void atomic(const rnic::wire::packet& p, std::int32_t ahead, std::uint64_t now) {
    using rnic::wire::operation;
    if (ahead == 0) {
      if (draws_.below(1000) < manner_.refused) return refuse(now);
      nak_sent_ = false;
      ++expected_;
      executed.push_back({operation::fetch_add, 8, p.atomic.va});
    }
    push(now, operation::atomic_acknowledge, p.bth.psn.value(), ack, {}, original_of(p.atomic.va));
  }
  static std::uint64_t original_of(std::uint64_t va) { return va * 0x9e37'79b9'7f4a'7c15u; }

  void take_unreliable(const rnic::wire::packet& p, const std::uint8_t* payload) {
    using rnic::wire::operation;
    const rnic::wire::opcode_traits& t = rnic::wire::traits(p.bth.opcode);
    const operation op = rnic::wire::operation_of(p.bth.opcode);
    if (t.first) {
      current_ = {op <= operation::send_only_immediate ? operation::send_only : operation::write_only, 0, digest_start};
      broken_ = false;
    } else if (p.bth.psn != rnic::wire::psn_t(expected_)) {
      broken_ = true;
    }
    expected_ = p.bth.psn.value() + 1;
    current_.bytes += p.payload_length;
    current_.digest = digest_on(current_.digest, payload, p.payload_length);
    if (t.last && !broken_) executed.push_back(current_);
  }

  const peer_manner manner_;
  dice draws_;
  std::uint32_t expected_;
  const bool reliable_;
  const std::uint32_t mtu_;
  bool nak_sent_ = false, broken_ = true;
  told_message current_{rnic::wire::operation::send_only};
  std::uint64_t last_due_ = 0;
};

}  // namespace bench
