// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "model/wire/packet.h"
#include "testbenches/replay/packets.h"

namespace rnic::replay {

namespace {

using wire::operation;

constexpr const char* no_reason = "no reason found";
constexpr const char* failed_before = "the queue pair had failed before: see its completion in error";
constexpr const char* refused_before =
    "the queue pair had failed before: a request was refused, in the capture as well";
constexpr const char* lost_behind_capture =
    "the real host missed a packet that the capture holds: it was lost between the point of capture and the host";
constexpr const char* no_buffer = "the real host had no receive posted at that moment, the adapter has one";
constexpr const char* refused_behind_rnr =
    "after its RNR NAK the real host refused packets that were under way with sequence NAKs, as Linux's Soft-RoCE "
    "does; "
    "the adapter drops them";
constexpr const char* again_before_rnr =
    "after an RNR NAK the real host began again before the packet that the NAK names, as Linux's Soft-RoCE does; the "
    "NAK acknowledges what comes before that packet, and the adapter does not send it again";
constexpr const char* patient =
    "the capture ends with an RNR NAK: the adapter sends again after the time that it names; the real host did so "
    "after "
    "the capture, or had no retries left";
constexpr const char* begun_again =
    "the real host answers a READ begun again in its middle with Middle and Last packets, as Linux's Soft-RoCE does; "
    "the "
    "adapter begins with First or Only";
constexpr const char* other_order =
    "several queue pairs have atomics on this word: the real host executed them in another order";
constexpr const char* no_place = "the work queue takes no more: it goes on when what was posted before has been sent";
constexpr const char* budget_spent = "the memory for what the capture lacks is spent: the message is not sent";

/// Of either membership (IBA volume 1, 10.9.1.1).
bool is_default_pkey(std::uint16_t pkey) { return (pkey & 0x7fff) == 0x7fff; }

/// The table of a RoCE port holds the default key alone.
std::string dropped_for_pkey(std::uint16_t pkey) {
  return fmt::format(
      "the peer sent with P_Key {:#06x}, which is not in the adapter's table (0xffff alone): it drops that", pkey);
}

}  // namespace

explainer::explainer(const comparison& c, const plan& p)
    : compared_(c), plan_(p), lanes_(p.connections.size()), peer_requests_(p.connections.size()) {
  for (std::size_t i = 0; i < p.frames.size(); ++i)
    if (p.frames[i].connection >= 0) read(i);
  for (std::size_t i = 0; i < p.made_up.size(); ++i)
    if (wire::traits(p.made_up[i].packet.bth.opcode).request)
      peer_requests_[static_cast<std::size_t>(p.made_up[i].connection)].push_back(p.frames.size() + i);
  for (std::size_t i = 0; i < lanes_.size(); ++i) find_hole(i, peer_requests_[i]);
  for (const expectation& e : c.expectations()) {
    const captured_frame& x = p.frames[e.frame];
    if (e.answer != 0) ++answered_[{x.connection, x.packet.bth.psn.value(), x.packet.bth.opcode}];
  }
  for (std::size_t i = 0; i < c.answers().size(); ++i) {
    const obtained_frame& o = c.answers()[i];
    if (syndrome_kind(o.syndrome) == aeth_kind::nak) lanes_[static_cast<std::size_t>(o.connection)].refused = i + 1;
  }
  for (const difference& d : c.differences())
    if (d.connection >= 0 && d.kind == difference_kind::failed_completion)
      lanes_[static_cast<std::size_t>(d.connection)].failed = true;
}

void explainer::read(std::size_t i) {
  const captured_frame& f = plan_.frames[i];
  lane& l = lanes_[static_cast<std::size_t>(f.connection)];
  const wire::psn_t psn = f.packet.bth.psn;
  if (!f.from_held && is_default_pkey(f.packet.bth.pkey)) l.usual_pkey = true;
  if (!f.from_held && !l.other_pkey && !is_default_pkey(f.packet.bth.pkey)) {
    l.other_pkey = true;
    l.pkey = f.packet.bth.pkey;
  }
  if (wire::traits(f.packet.bth.opcode).request) {
    (f.from_held ? l.held_requests : l.peer_requests).try_emplace(psn.value(), i);
    if (!f.from_held) {
      if (f.repeated) l.repeated.insert(psn.value());
      peer_requests_[static_cast<std::size_t>(f.connection)].push_back(i);
      return;
    }
    if (l.told_to_wait && f.repeated && psn.before(l.not_ready)) l.before_rnr.insert(i);
    if (!l.requested || psn.after(l.requested_up_to)) l.requested_up_to = psn;
    l.requested = true;
  } else if (!f.from_held) {
    const wire::opcode_traits& t = wire::traits(f.packet.bth.opcode);
    if (t.response) l.told_to_wait = t.aeth && syndrome_kind(f.packet.aeth.syndrome) == aeth_kind::rnr;
    if (l.told_to_wait) l.not_ready = psn;
  } else if (f.from_held && !is_positive(f.packet)) {
    if (syndrome_kind(f.packet.aeth.syndrome) == aeth_kind::rnr) l.after_rnr = true;
    if (l.after_rnr && f.packet.aeth.syndrome == sequence_error) l.behind_rnr.insert(i);
  } else if (f.from_held) {
    l.after_rnr = false;
    if (!l.acknowledged || psn.after(l.acknowledged_up_to)) l.acknowledged_up_to = psn;
    l.acknowledged = true;
  }
}

/// What the peer asked for, and the first PSN that it never used although it used later ones.
void explainer::find_hole(std::size_t connection, const std::vector<std::size_t>& requests) {
  if (requests.empty()) return;
  lane& l = lanes_[connection];
  std::map<std::int64_t, std::int64_t>& spans = l.asked;
  const wire::psn_t first = l.first_asked = plan_.frame(requests.front()).packet.bth.psn;
  const std::uint32_t mtu = plan_.connections[connection].mtu;
  for (const std::size_t i : requests) {
    const wire::packet& p = plan_.frame(i).packet;
    const std::int64_t at = p.bth.psn - first;
    const std::int64_t n = is_read_request(p) ? packets_of(p.reth.length, mtu) : 1;
    spans[at] = std::max(spans[at], at + n);
  }
  std::int64_t next = spans.begin()->first;
  for (const auto& [at, behind] : spans) {
    if (at > next) {
      l.hole = true;
      l.first_hole = first + static_cast<std::uint32_t>(next & 0xffffff);
      return;
    }
    next = std::max(next, behind);
  }
}

std::string explainer::explain(const difference& d) const {
  if (d.connection < 0) return no_reason;
  const lane& l = lanes_[static_cast<std::size_t>(d.connection)];
  switch (d.kind) {
    case difference_kind::together:
      return "the adapter coalesced: a later acknowledgement of its own covers it";
    case difference_kind::extra_answer:
      return extra_answer(l, compared_.answers()[d.answer - 1]);
    case difference_kind::extra_request:
      return extra_request(l, compared_.answers()[d.answer - 1]);
    case difference_kind::missing_answer:
    case difference_kind::missing_request:
      return missing(l, d.frame - 1);
    case difference_kind::not_posted:
      if (l.failed) return failed_before;
      if (l.other_pkey) return dropped_for_pkey(l.pkey);
      return is_answered(d.connection) ? "the peer's answers, which the capture lacks, would have made room for it"
                                       : no_place;
    case difference_kind::delivery:
      if (l.other_pkey) return dropped_for_pkey(l.pkey);
      if (plan_.connections[static_cast<std::size_t>(d.connection)].datagrams.qkeys.size() > 1)
        return "the capture has datagrams with several Q_Keys for this queue pair, which takes one";
      return l.hole ? "packets of these messages are not in the capture" : no_reason;
    case difference_kind::failed_completion:
      return "the capture's answers to its requests, or its requests, are not what this queue pair can take";
    default:
      return other(l, d);
  }
}

std::string explainer::refusal(const lane& l, std::uint8_t syndrome, wire::psn_t psn) const {
  if (syndrome_kind(syndrome) == aeth_kind::rnr) return "the adapter had no receive posted";
  switch (syndrome & 0x1f) {
    case 0:
      if (const auto at = l.peer_requests.find(psn.value());
          at != l.peer_requests.end() && !is_default_pkey(plan_.frames[at->second].packet.bth.pkey))
        return dropped_for_pkey(plan_.frames[at->second].packet.bth.pkey);
      if (l.peer_requests.count(psn.value()) == 0)
        return "a packet is not in the capture, so that the adapter asks for it: PSN " + std::to_string(psn.value());
      return "in the capture the packet comes after later ones: PSN " + std::to_string(psn.value());
    case 1:
      return "the adapter does not offer this operation, or the request does not fit what came before it";
    case 2:
      return "the request goes beyond the memory that the capture shows";
    default:
      return no_reason;
  }
}

std::string explainer::extra_answer(const lane& l, const obtained_frame& o) const {
  const wire::psn_t psn(o.psn);
  if (syndrome_kind(o.syndrome) != aeth_kind::ack) return refusal(l, o.syndrome, psn);
  if (o.question != 0 && plan_.frames[o.question - 1].repeated)
    return "it answers a repeated request; the real host did not answer the repetition, or that answer was lost";
  if (l.repeated.count(o.psn) != 0)
    return "the real host did not get or dropped this packet, and answered its repetition";
  if (wire::operation_of(o.opcode) == operation::acknowledge && l.acknowledged && !psn.after(l.acknowledged_up_to))
    return "the real host coalesced: it acknowledged this packet together with later ones";
  if (l.acknowledged && !psn.after(l.acknowledged_up_to)) return "the real host's packet was lost in the capture";
  return "the real host's answer is not in the capture: lost, or sent after its end";
}

std::string explainer::extra_request(const lane& l, const obtained_frame& o) const {
  if (l.told_to_wait && !wire::psn_t(o.psn).before(l.not_ready)) return patient;
  if (l.held_requests.count(o.psn) != 0)
    return "the adapter sent it a second time because an answer asked for it; the capture lacks one of the two";
  if (l.requested && wire::psn_t(o.psn).after(l.requested_up_to))
    return "it belongs to a message whose end the capture lacks";
  return "the real host's packet is not in the capture; zeros stand in for what it held";
}

/// Whether the capture has the request that an answer of this PSN belongs to.
bool explainer::was_asked(const lane& l, wire::psn_t psn) {
  const std::int64_t at = psn - l.first_asked;
  const auto behind = l.asked.upper_bound(at);
  return behind != l.asked.begin() && std::prev(behind)->second > at;
}

/// Of an answer: its question.
bool explainer::is_dropped_for_pkey(std::size_t frame) const {
  const std::size_t e = compared_.expectation_of(frame);
  const std::size_t question = e == 0 ? no_frame : compared_.expectations()[e - 1].question;
  return question != no_frame && !is_default_pkey(plan_.frames[question].packet.bth.pkey);
}

bool explainer::is_answered(int connection) const {
  const wire::transport service = plan_.connections[static_cast<std::size_t>(connection)].service;
  return service == wire::transport::rc || service == wire::transport::xrc;
}

/// Whether another frame of the capture with the same packet was answered for. `frame` was not.
bool explainer::sent_twice(std::size_t frame) const {
  const captured_frame& f = plan_.frames[frame];
  return answered_.count({f.connection, f.packet.bth.psn.value(), f.packet.bth.opcode}) != 0;
}

/// Whether an answer belongs to a READ that its peer began again in the middle.
bool explainer::read_again(const difference& d) const {
  const wire::packet& x = plan_.frames[d.frame - 1].packet;
  const obtained_frame& o = compared_.answers()[d.answer - 1];
  if (!is_read_response(x) || o.question == 0) return false;
  const operation mine = wire::operation_of(o.opcode), real = wire::operation_of(x.bth.opcode);
  const bool begins = mine == operation::read_response_first || mine == operation::read_response_only;
  const bool goes_on = real == operation::read_response_middle || real == operation::read_response_last;
  return begins && goes_on && plan_.frames[o.question - 1].repeated;
}

std::string explainer::missing(const lane& l, std::size_t frame) const {
  const captured_frame& f = plan_.frames[frame];
  const wire::packet& p = f.packet;
  const connection& c = plan_.connections[static_cast<std::size_t>(f.connection)];
  if ((c.refusals.by_held != no_frame && frame > c.refusals.by_held) ||
      (c.refusals.by_peer != no_frame && frame > c.refusals.by_peer))
    return refused_before;
  if (l.failed) return failed_before;
  if (wire::traits(p.bth.opcode).request && plan_.connections[static_cast<std::size_t>(f.connection)].budget_spent)
    return budget_spent;
  if (l.behind_rnr.count(frame) != 0) return refused_behind_rnr;
  if (l.before_rnr.count(frame) != 0) return again_before_rnr;
  if ((l.other_pkey && !l.usual_pkey) || is_dropped_for_pkey(frame)) return dropped_for_pkey(l.pkey);
  if (!is_answered(f.connection)) return no_reason;
  if (wire::traits(p.bth.opcode).request)
    return f.repeated ? "the real host sent it again, after a loss or a timeout; the adapter had no reason to"
                      : "the peer's answers, which the capture lacks, would have made room for it";
  if (wire::traits(p.bth.opcode).aeth && syndrome_kind(p.aeth.syndrome) == aeth_kind::rnr) return no_buffer;
  if (wire::traits(p.bth.opcode).aeth && syndrome_kind(p.aeth.syndrome) == aeth_kind::nak &&
      (p.aeth.syndrome & 0x1f) == 0)
    return lost_behind_capture;
  if (sent_twice(frame)) return "the real host answered more than once, the adapter did not";
  if (!was_asked(l, p.bth.psn)) return "the request that it answers is not in the capture";
  if (l.hole && p.bth.psn.after(l.first_hole))
    return "the adapter waits for a packet that is not in the capture: PSN " + std::to_string(l.first_hole.value());
  if (l.refused == 0) return no_reason;
  const obtained_frame& o = compared_.answers()[l.refused - 1];
  if ((o.syndrome & 0x1f) != 0) return "the adapter had refused a request, and takes no more";
  return "the adapter had asked for a packet and takes nothing before that comes: PSN " + std::to_string(o.psn);
}

std::string explainer::other(const lane& l, const difference& d) const {
  const wire::packet& x = plan_.frames[d.frame - 1].packet;
  const obtained_frame& o = compared_.answers()[d.answer - 1];
  switch (d.kind) {
    case difference_kind::verdict:
      if (syndrome_kind(x.aeth.syndrome) == aeth_kind::rnr) return no_buffer;
      if (l.behind_rnr.count(d.frame - 1) != 0) return refused_behind_rnr;
      if (syndrome_kind(x.aeth.syndrome) == aeth_kind::nak && (x.aeth.syndrome & 0x1f) == 0) return lost_behind_capture;
      if (syndrome_kind(o.syndrome) != aeth_kind::ack) return refusal(l, o.syndrome, wire::psn_t(o.psn));
      return "the real host refused what the adapter takes";
    case difference_kind::opcode:
      if (read_again(d)) return begun_again;
      if (syndrome_kind(o.syndrome) != aeth_kind::ack) return refusal(l, o.syndrome, wire::psn_t(o.psn));
      return "the message is cut into other packets: the capture does not tell the path MTU, or lacks a part";
    case difference_kind::payload_length:
      return "the capture does not tell the path MTU, or lacks a part of the message";
    case difference_kind::remote_address:
      return "the real packet's length is not that of its message, or the capture lacks the message's beginning";
    case difference_kind::solicited:
      return "the real packet has the bit where only the last one of a message has it, or asks for no completion";
    case difference_kind::payload:
      if (d.other_order) return other_order;
      return "the capture does not tell what the memory held at that moment";
    case difference_kind::msn:
      return "the two count other messages as done: the capture lacks some, or one of them counted earlier";
    default:
      return no_reason;
  }
}

}  // namespace rnic::replay
