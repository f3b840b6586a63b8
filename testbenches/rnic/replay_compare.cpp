// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/replay_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace rnic::program {

namespace {

constexpr unsigned kind_ack = 0, kind_rnr = 1, kind_nak = 3;  // AETH syndrome, bits 6:5
constexpr std::size_t questions_kept = 4096;

unsigned kind_of(std::uint8_t syndrome) { return syndrome >> 5 & 3; }

/// The syndrome without what the two ends choose freely: credits of an ACK, time of an RNR NAK.
unsigned verdict_of(std::uint8_t syndrome) {
  return kind_of(syndrome) == kind_nak ? syndrome & 0x7fu : syndrome & 0x60u;
}

bool is_read_response(std::uint8_t opcode) {
  const wire::operation o = wire::operation_of(opcode);
  return o >= wire::operation::read_response_first && o <= wire::operation::read_response_only;
}

bool is_positive(const wire::packet& p) {
  const wire::opcode_traits& t = wire::traits(p.bth.opcode);
  return t.response && (!t.aeth || kind_of(p.aeth.syndrome) == kind_ack);
}

std::string aeth_text(const wire::aeth& a) {
  constexpr const char* naks[] = {"PSN sequence error", "invalid request", "remote access error",
                                  "remote operational error", "invalid RD request"};
  const unsigned code = a.syndrome & 0x1f;
  switch (kind_of(a.syndrome)) {
    case kind_ack:
      return fmt::format("ACK MSN {}", a.msn);
    case kind_rnr:
      return fmt::format("RNR NAK timer {} MSN {}", code, a.msn);
    case kind_nak:
      return fmt::format("NAK {} MSN {}", code < 5 ? naks[code] : "reserved", a.msn);
    default:
      return fmt::format("reserved syndrome {:#04x}", a.syndrome);
  }
}

}  // namespace

std::string describe(const wire::packet& p) {
  const wire::opcode_traits& t = wire::traits(p.bth.opcode);
  std::string s = fmt::format("{} PSN {}", t.name, p.bth.psn.value());
  if (t.aeth) s += " " + aeth_text(p.aeth);
  if (t.reth) s += fmt::format(" {} bytes at {:#x} key {:#x}", p.reth.length, p.reth.va, p.reth.rkey);
  if (t.payload) s += fmt::format(", {} bytes", p.payload_length);
  return s;
}

comparison::comparison(const plan& p) : plan_(p), lanes_(p.connections.size()), by_frame_(p.frames.size(), 0) {
  for (std::size_t i = 0; i < p.frames.size(); ++i) {
    const captured_frame& f = p.frames[i];
    if (f.connection < 0 || !f.from_held) continue;
    expectation e;
    e.frame = i;
    e.waited_for = !f.repeated;
    expectations_.push_back(e);
    by_frame_[i] = expectations_.size();
    lanes_[static_cast<std::size_t>(f.connection)].by_psn[f.packet.bth.psn.value()].push_back(expectations_.size() - 1);
  }
}

void comparison::note(std::size_t frame, std::string kind, std::string expected, std::string obtained) {
  differences_.push_back({frame, std::move(kind), std::move(expected), std::move(obtained)});
}

void comparison::injected(std::size_t index, sim::time_ps first_bit) {
  const captured_frame& f = plan_.frames[index];
  if (f.connection < 0 || !wire::traits(f.packet.bth.opcode).request) return;
  lane& l = lanes_[static_cast<std::size_t>(f.connection)];
  const wire::psn_t first = f.packet.bth.psn;
  wire::psn_t last = first;
  if (wire::operation_of(f.packet.bth.opcode) == wire::operation::read_request && f.packet.reth.length != 0)
    last = first + (f.packet.reth.length - 1) / plan_.connections[static_cast<std::size_t>(f.connection)].mtu;
  if (l.questions.size() == 2 * questions_kept)
    l.questions.erase(l.questions.begin(), l.questions.begin() + static_cast<std::ptrdiff_t>(questions_kept));
  l.questions.push_back({index, first, last, first_bit});
}

/// Connections are told apart as on the wire: by both addresses and the queue pair that the frame goes to.
int comparison::lane_of(const wire::packet& p) const {
  for (std::size_t i = 0; i < plan_.connections.size(); ++i) {
    const connection& c = plan_.connections[i];
    if (c.peer_qpn == p.bth.dest_qp && c.peer_gid == p.dgid && c.held_gid == p.sgid && c.encap == p.encap)
      return static_cast<int>(i);
  }
  return -1;
}

void comparison::find_question(const lane& l, const wire::packet& p, obtained_frame& o) const {
  if (!wire::traits(p.bth.opcode).response) return;
  for (auto q = l.questions.rbegin(); q != l.questions.rend(); ++q) {
    if (p.bth.psn.before(q->first) || p.bth.psn.after(q->last)) continue;
    o.question = q->frame + 1;
    o.latency = o.first_bit - q->at;
    return;
  }
}

/// The span goes on in the host after an answer has left, so only what lies before the answer's first bit is its way.
void comparison::follow(const tlm::frame& f, const sim::span_recorder& spans, obtained_frame& o) const {
  if (f.span == 0 || o.question == 0) return;
  const sim::span& all = spans[f.span];
  if (all.start() + o.latency != o.first_bit) return;
  o.way.begin(all.start());
  sim::time_ps last = all.start();
  for (unsigned i = 0; i < all.count() && all[i].at <= o.first_bit; ++i) {
    if (all[i].at < last) return;
    last = all[i].at;
    o.way.leave(all[i].stage, all[i].at, all[i].waited);
  }
  o.followed = last == o.first_bit;
}

void comparison::received(const tlm::frame& f, const sim::span_recorder& spans) {
  wire::packet p;
  const int connection = wire::decode(f.data(), f.length, p) == wire::decode_error::none ? lane_of(p) : -1;
  if (connection < 0) {
    ++foreign_;
    return;
  }
  lane& l = lanes_[static_cast<std::size_t>(connection)];
  obtained_frame o;
  o.first_bit = f.stamp;
  o.connection = connection;
  o.opcode = p.bth.opcode;
  o.psn = p.bth.psn.value();
  find_question(l, p, o);
  follow(f, spans, o);
  answers_.push_back(o);
  if (wire::traits(p.bth.opcode).request) {
    wire::psn_t last = p.bth.psn;
    if (wire::operation_of(p.bth.opcode) == wire::operation::read_request && p.reth.length != 0)
      last = last + (p.reth.length - 1) / plan_.connections[static_cast<std::size_t>(connection)].mtu;
    if (!l.asked || last.after(l.asked_up_to)) l.asked_up_to = last;
    l.asked = true;
  } else if (is_positive(p)) {
    if (!l.acknowledged || p.bth.psn.after(l.acknowledged_up_to)) l.acknowledged_up_to = p.bth.psn;
    l.acknowledged = true;
  }
  match(connection, p, f.data());
}

void comparison::match(int connection, const wire::packet& p, const std::uint8_t* bytes) {
  lane& l = lanes_[static_cast<std::size_t>(connection)];
  const bool response = wire::traits(p.bth.opcode).response;
  const auto candidates = l.by_psn.find(p.bth.psn.value());
  expectation* best = nullptr;
  if (candidates != l.by_psn.end()) {
    for (const std::size_t i : candidates->second) {
      expectation& e = expectations_[i];
      if (e.now != expectation::state::open) continue;
      const wire::packet& x = plan_.frames[e.frame].packet;
      if (wire::traits(x.bth.opcode).response != response) continue;
      if (x.bth.opcode == p.bth.opcode) {
        best = &e;
        break;
      }
      if (best == nullptr) best = &e;
    }
  }
  if (best == nullptr) {
    note(0, response ? "answer that the real host did not give" : "request that the real host did not send", "",
         describe(p));
    return;
  }
  best->answer = answers_.size();
  answers_.back().expected = best->frame + 1;
  best->now = same(l, best->frame, p, bytes) ? expectation::state::matched : expectation::state::different;
}

bool comparison::same(lane& l, std::size_t expected, const wire::packet& p, const std::uint8_t* bytes) {
  const captured_frame& f = plan_.frames[expected];
  const wire::packet& x = f.packet;
  const wire::opcode_traits& t = wire::traits(x.bth.opcode);
  const char* kind = nullptr;
  if (x.bth.opcode != p.bth.opcode) {
    kind = "other opcode";
  } else if (t.aeth && verdict_of(x.aeth.syndrome) != verdict_of(p.aeth.syndrome)) {
    kind = "other verdict";
  } else if (t.reth && (x.reth.va != p.reth.va || x.reth.rkey != p.reth.rkey || x.reth.length != p.reth.length)) {
    kind = "other remote address, key or length";
  } else if (x.payload_length != p.payload_length ||
             std::memcmp(f.bytes.data() + x.payload_offset, bytes + p.payload_offset, p.payload_length) != 0) {
    kind = x.payload_length != p.payload_length ? "other payload length" : "other payload";
  } else if (t.immediate && x.immediate != p.immediate) {
    kind = "other immediate data";
  } else if (x.bth.solicited != p.bth.solicited) {
    kind = "other solicited bit";
  } else if (t.aeth) {
    const std::uint32_t offset = (x.aeth.msn - p.aeth.msn) & 0xffffff;
    if (!l.msn_known) l.msn_offset = offset;
    l.msn_known = true;
    if (offset != l.msn_offset) kind = "other MSN";
  }
  if (kind != nullptr) note(expected + 1, kind, describe(x), describe(p));
  return kind == nullptr;
}

bool comparison::asked(int connection, wire::psn_t psn) const {
  const lane& l = lanes_[static_cast<std::size_t>(connection)];
  return l.asked && !psn.after(l.asked_up_to);
}

bool comparison::settled(std::size_t frame) const {
  const expectation& e = expectations_[by_frame_[frame] - 1];
  if (e.now != expectation::state::open || !e.waited_for) return true;
  const captured_frame& f = plan_.frames[frame];
  const lane& l = lanes_[static_cast<std::size_t>(f.connection)];
  const bool plain = wire::operation_of(f.packet.bth.opcode) == wire::operation::acknowledge && is_positive(f.packet);
  return plain && l.acknowledged && !f.packet.bth.psn.after(l.acknowledged_up_to);
}

void comparison::give_up(std::size_t frame) { expectations_[by_frame_[frame] - 1].waited_for = false; }

void comparison::finish() {
  for (expectation& e : expectations_) {
    if (e.now != expectation::state::open) continue;
    const captured_frame& f = plan_.frames[e.frame];
    const lane& l = lanes_[static_cast<std::size_t>(f.connection)];
    const bool plain = wire::operation_of(f.packet.bth.opcode) == wire::operation::acknowledge && is_positive(f.packet);
    const char* kind = is_read_response(f.packet.bth.opcode) || wire::traits(f.packet.bth.opcode).response
                           ? "answer that did not come"
                           : "request that was not sent";
    if (f.repeated) kind = "retransmission that was not needed";
    if (plain && l.acknowledged && !f.packet.bth.psn.after(l.acknowledged_up_to)) {
      e.now = expectation::state::covered;
      kind = "acknowledged together with others";
    }
    note(e.frame + 1, kind, describe(f.packet), "");
  }
  std::stable_sort(differences_.begin(), differences_.end(), [](const difference& a, const difference& b) {
    return (a.frame == 0 ? ~std::size_t{0} : a.frame) < (b.frame == 0 ? ~std::size_t{0} : b.frame);
  });
}

}  // namespace rnic::program
