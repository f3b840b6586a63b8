// SPDX-License-Identifier: Apache-2.0
// The peers of the queue pairs, behind the port.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <set>
#include <vector>

#include "testbenches/block/responder/random/host_memory.h"

namespace rnic::transport::random_test {

/// A frame of a peer, and how it is sent.
struct outgoing {
  enum class input : unsigned { requests, plain_frames, copies, all };
  payload::frame_ptr frame;
  sim::cycle_t gap = 0;  ///< cycles behind the one before it
  input into = input::requests;
  bool needs_place = false;  ///< a READ or an atomic, of which the peer has so many under way as were agreed on
  wire::psn_t psn;
  std::uint32_t packets = 1;  ///< of its answer
};

struct answer {
  std::uint8_t opcode = 0, syndrome = 0;
  std::uint32_t peer = 0, msn = 0;
  wire::psn_t psn;
  std::uint64_t original = 0;
  octets payload;
};

/// Sends each queue pair's frames in order, one a cycle into each input; takes what the responder sends, and gives the
/// port's credits back.
class peers final : public sim::clocked_block {
 public:
  peers(sim::clock_domain& d, const blocks_under_test& of, const behaviour& how)
      : clocked_block("peers", d),
        how_(how),
        tx_("tx", d, 4),
        credit_("credit", d, 64),
        inputs_{{{"rx", d, 4}, {"plain", d, 4}, {"copies", d, 4}}},
        outputs_{{sim::fifo_out<payload::frame_ptr>(*this), sim::fifo_out<payload::frame_ptr>(*this),
                  sim::fifo_out<payload::frame_ptr>(*this)}} {
    of.answers.tx_out.bind(tx_);
    tx_in_.bind(tx_);
    of.answers.credit_in[0].bind(credit_);
    credit_out_.bind(credit_);
    sim::fifo_in<payload::frame_ptr>* const ports[] = {&of.requests.rx_in, &of.requests.ethernet_in,
                                                       &of.requests.copies_in};
    for (unsigned i = 0; i < inputs_.size(); ++i) {
      ports[i]->bind(inputs_[i]);
      outputs_[i].bind(inputs_[i]);
    }
  }

  struct stream {
    std::deque<outgoing> frames;
    std::uint32_t most_open = 1;  ///< READs and atomics
    sim::cycle_t next = 0;        ///< the first frame goes no earlier
    sim::cycle_t sent = 0;        ///< cycle of the last one
    struct request {
      wire::psn_t psn, last;
    };
    std::deque<request> open;
    std::set<std::uint32_t> answered;  // last PSNs
  };
  std::vector<stream> streams;  // by queue pair
  std::vector<answer> answers;
  journal seen;

  bool all_sent() const {
    return std::all_of(streams.begin(), streams.end(), [](const stream& s) { return s.frames.empty(); });
  }

 private:
  static constexpr auto kinds = static_cast<unsigned>(outgoing::input::all);

  void tick() override {
    if (tx_in_.can_pop() && how_.takes(channel::answers, now())) take();
    if (!credits_.empty() && how_.takes(channel::credits, now()) && credit_out_.claim()) {
      credit_out_.push(credits_.front());
      credits_.pop_front();
    }
    std::array<bool, kinds> used{};
    const auto n = static_cast<std::uint32_t>(streams.size());
    const auto first = n == 0 ? 0 : static_cast<std::uint32_t>(mixed(how_.seed() ^ now()) % n);
    for (std::uint32_t i = 0; i < n; ++i) send(streams[(first + i) % n], used);
    if (tx_in_.can_pop() || !credits_.empty()) wake_next();
    for (const stream& s : streams)
      if (!s.frames.empty()) wake_at(std::max(now() + 1, s.next));
  }

  void send(stream& s, std::array<bool, kinds>& used) {
    if (s.frames.empty() || s.next > now()) return;
    outgoing& o = s.frames.front();
    const auto into = static_cast<unsigned>(o.into);
    if (o.needs_place && s.open.size() >= s.most_open) return;
    if (used[into] || !how_.takes(channel_of(o.into), now()) || !outputs_[into].claim()) return;
    used[into] = true;
    if (o.needs_place) s.open.push_back({o.psn, o.psn + (o.packets - 1)});
    outputs_[into].push(std::move(o.frame));
    s.frames.pop_front();
    s.sent = now();
    if (!s.frames.empty()) s.next = now() + s.frames.front().gap;
    seen.active(now());
  }

  static channel channel_of(outgoing::input i) {
    return i == outgoing::input::requests       ? channel::requests
           : i == outgoing::input::plain_frames ? channel::plain_frames
                                                : channel::copies;
  }

  void take() {
    const payload::frame_ptr f = tx_in_.pop();
    const wire::packet& p = f->packet;
    const std::uint8_t* const data = f->data() + p.payload_offset;
    answers.push_back({p.bth.opcode, p.aeth.syndrome, p.bth.dest_qp, p.aeth.msn, p.bth.psn, p.atomic_original,
                       octets(data, data + p.payload_length)});
    seen.note(now(), "answer: opcode, peer, PSN, syndrome, MSN, length, digest, original",
              {p.bth.opcode, p.bth.dest_qp, p.bth.psn.value(), p.aeth.syndrome, p.aeth.msn, p.payload_length,
               digest(data, p.payload_length), p.atomic_original});
    credits_.push_back({f->port, f->priority});
    if (p.bth.dest_qp - first_peer < streams.size()) give_places_back(streams[p.bth.dest_qp - first_peer], p);
  }

  /// A READ or atomic that has all its answer leaves room for another one, behind those before it.
  static void give_places_back(stream& s, const wire::packet& p) {
    const wire::operation op = wire::operation_of(p.bth.opcode);
    constexpr std::uint8_t kind = 0x60;
    if (op == wire::operation::acknowledge && (p.aeth.syndrome & kind) == kind && p.aeth.syndrome != syndrome_sequence)
      return s.open.clear();
    if (op != wire::operation::read_response_last && op != wire::operation::read_response_only &&
        op != wire::operation::atomic_acknowledge)
      return;
    s.answered.insert(p.bth.psn.value());
    while (!s.open.empty() && s.answered.count(s.open.front().last.value()) != 0) s.open.pop_front();
  }

  const behaviour& how_;
  sim::fifo<payload::frame_ptr> tx_;
  sim::fifo<egress_credit> credit_;
  std::array<sim::fifo<payload::frame_ptr>, kinds> inputs_;
  sim::fifo_in<payload::frame_ptr> tx_in_{*this};
  sim::fifo_out<egress_credit> credit_out_{*this};
  std::array<sim::fifo_out<payload::frame_ptr>, kinds> outputs_;
  std::deque<egress_credit> credits_;
};

}  // namespace rnic::transport::random_test
