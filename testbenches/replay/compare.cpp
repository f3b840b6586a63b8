// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "testbenches/replay/counters.h"
#include "testbenches/replay/explain.h"
#include "testbenches/replay/packets.h"
#include "testbenches/replay/questions.h"

namespace rnic::replay {

namespace {

constexpr std::size_t questions_kept = 4096;
constexpr sim::time_ps fastest_answer = 100 * sim::ps_per_ns;  // no adapter answers before it has had the question

/// The syndrome without what the two ends choose freely: credits of an ACK, time of an RNR NAK.
unsigned verdict_of(std::uint8_t syndrome) {
  return syndrome_kind(syndrome) == aeth_kind::nak ? syndrome & 0x7fu : syndrome & 0x60u;
}

std::string aeth_text(const wire::aeth& a) {
  constexpr const char* naks[] = {"PSN sequence error", "invalid request", "remote access error",
                                  "remote operational error", "invalid RD request"};
  const unsigned code = a.syndrome & 0x1f;
  switch (syndrome_kind(a.syndrome)) {
    case aeth_kind::ack:
      return fmt::format("ACK MSN {}", a.msn);
    case aeth_kind::rnr:
      return fmt::format("RNR NAK timer {} MSN {}", code, a.msn);
    case aeth_kind::nak:
      return fmt::format("NAK {} MSN {}", code < 5 ? naks[code] : "reserved", a.msn);
    default:
      return fmt::format("reserved syndrome {:#04x}", a.syndrome);
  }
}

bool same_remote(const wire::reth& a, const wire::reth& b) {
  return a.va == b.va && a.rkey == b.rkey && a.length == b.length;
}

/// As far as both have it: that one is longer is another matter.
bool same_payload(const captured_frame& f, const wire::packet& p, const std::uint8_t* bytes) {
  const wire::packet& x = f.packet;
  const wire::opcode_traits &t = wire::traits(x.bth.opcode), &u = wire::traits(p.bth.opcode);
  if (t.atomic_eth && u.atomic_eth && (x.atomic.swap_add != p.atomic.swap_add || x.atomic.compare != p.atomic.compare))
    return false;
  if (t.atomic_ack_eth && u.atomic_ack_eth && x.atomic_original != p.atomic_original) return false;
  const std::uint32_t both = std::min(f.known_payload(), p.payload_length);
  return std::memcmp(f.bytes.data() + x.payload_offset, bytes + p.payload_offset, both) == 0;
}

}  // namespace

const char* to_string(difference_kind k) {
  constexpr const char* names[] = {"acknowledged together with others",
                                   "answer that did not come",
                                   "request that was not sent",
                                   "answer that the real host did not give",
                                   "request that the real host did not send",
                                   "request that could not be posted",
                                   "messages that were not delivered",
                                   "completion in error",
                                   "other opcode",
                                   "other verdict",
                                   "other remote address, key or length",
                                   "other payload length",
                                   "other payload",
                                   "other immediate data",
                                   "other solicited bit",
                                   "other MSN"};
  return names[static_cast<unsigned>(k)];
}

const std::vector<compared_field>& compared_fields() {
  static const std::vector<compared_field> fields{
      {"opcode", difference_kind::opcode, "what kind of packet it is"},
      {"verdict", difference_kind::verdict, "ACK, RNR NAK or which NAK; without credits and timer"},
      {"remote", difference_kind::remote_address,
       "address, key and length of a WRITE or READ, address and key of an atomic, key that a SEND invalidates, XRC "
       "receive queue"},
      {"length", difference_kind::payload_length, "bytes of payload"},
      {"payload", difference_kind::payload, "payload, operands of an atomic and what it found"},
      {"immediate", difference_kind::immediate, "immediate data"},
      {"solicited", difference_kind::solicited, "the solicited event bit"},
      {"msn", difference_kind::msn, "message sequence number, less what most answers of the connection differ by"}};
  return fields;
}

bool is_positive(const wire::packet& p) {
  const wire::opcode_traits& t = wire::traits(p.bth.opcode);
  return t.response && (!t.aeth || syndrome_kind(p.aeth.syndrome) == aeth_kind::ack);
}

std::string describe(const wire::packet& p) {
  const wire::opcode_traits& t = wire::traits(p.bth.opcode);
  std::string s = fmt::format("{} PSN {}", t.name, p.bth.psn.value());
  if (t.aeth) s += " " + aeth_text(p.aeth);
  if (t.reth) s += fmt::format(" {} bytes at {:#x} key {:#x}", p.reth.length, p.reth.va, p.reth.rkey);
  if (t.atomic_eth)
    s += fmt::format(" at {:#x} key {:#x} swap/add {:#x} compare {:#x}", p.atomic.va, p.atomic.rkey, p.atomic.swap_add,
                     p.atomic.compare);
  if (t.atomic_ack_eth) s += fmt::format(" original {:#x}", p.atomic_original);
  if (t.payload) s += fmt::format(", {} bytes", p.payload_length);
  return s;
}

kept_span::kept_span(const sim::span& s) : start_(s.start()) {
  marks_.reserve(s.count());
  for (unsigned i = 0; i < s.count(); ++i) marks_.push_back(s[i]);
}

kept_span::operator sim::span() const {
  sim::span s;
  s.begin(start_);
  for (const sim::span::mark& m : marks_) s.leave(m.block, m.stage, m.at, m.waited);
  return s;
}

comparison::comparison(const plan& p, std::set<difference_kind> ignored)
    : plan_(p),
      ignored_(std::move(ignored)),
      lanes_(p.connections.size()),
      by_frame_(p.frames.size(), 0),
      injected_at_(p.frames.size(), never) {
  for (std::size_t i = 0; i < p.connections.size(); ++i)
    if (p.connections[i].before < 0) begin(static_cast<int>(i));
  const std::vector<std::size_t> questions = captured_questions(p);
  for (std::size_t i = 0; i < p.frames.size(); ++i) {
    const captured_frame& f = p.frames[i];
    if (f.connection < 0 || !f.from_held) continue;
    expectation e;
    e.frame = i;
    e.waited_for = !f.repeated || f.asked_again;
    e.question = questions[i];
    expectations_.push_back(e);
    by_frame_[i] = expectations_.size();
    lanes_[static_cast<std::size_t>(f.connection)].by_psn[f.packet.bth.psn.value()].push_back(expectations_.size() - 1);
  }
}

void comparison::begin(int connection) {
  const struct connection& c = plan_.connections[static_cast<std::size_t>(connection)];
  if (c.service == wire::transport::ud) {
    datagram_lanes_[c.held_qpn] = connection;
    return;
  }
  const lane_key key{c.held_gid, c.peer_gid, c.peer_qpn, c.encap};
  const auto at = lane_index_.find(key);
  if (at == lane_index_.end())
    lane_index_.emplace(key, connection);
  else if (c.before >= 0)
    at->second = connection;
}

void comparison::note(difference_kind kind, int connection, std::size_t frame, std::string expected,
                      std::string obtained) {
  difference d;
  d.kind = kind;
  d.frame = frame;
  d.connection = connection;
  d.expected = std::move(expected);
  d.obtained = std::move(obtained);
  differences_.push_back(std::move(d));
}

void comparison::injected(std::size_t index, sim::time_ps first_bit) {
  if (index < injected_at_.size()) injected_at_[index] = first_bit;
  const captured_frame& f = plan_.frame(index);
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
  if (wire::transport_of(p.bth.opcode) == wire::transport::ud) {
    const auto sender = datagram_lanes_.find(p.deth.src_qp);
    return sender == datagram_lanes_.end() ? -1 : sender->second;
  }
  const auto at = lane_index_.find({p.sgid, p.dgid, p.bth.dest_qp, p.encap});
  return at == lane_index_.end() ? -1 : at->second;
}

void comparison::find_question(const lane& l, const wire::packet& p, obtained_frame& o) const {
  if (!wire::traits(p.bth.opcode).response) return;
  for (auto q = l.questions.rbegin(); q != l.questions.rend(); ++q) {
    if (p.bth.psn.before(q->first) || p.bth.psn.after(q->last)) continue;
    if (o.first_bit < q->at + fastest_answer) continue;
    if (q->frame >= plan_.frames.size()) return;  // made up
    o.question = q->frame + 1;
    o.latency = o.first_bit - q->at;
    return;
  }
}

/// The span goes on in the host after an answer has left, so only what lies before the answer's first bit is its way.
void comparison::follow(const payload::frame& f, const sim::span_recorder& spans, obtained_frame& o) const {
  if (f.span == 0 || o.question == 0) return;
  const sim::span& all = spans[f.span];
  if (all.start() + o.latency != o.first_bit) return;
  sim::span way;
  way.begin(all.start());
  sim::time_ps last = all.start();
  for (unsigned i = 0; i < all.count() && all[i].at <= o.first_bit; ++i) {
    if (all[i].at < last) return;
    last = all[i].at;
    way.leave(all[i].block, all[i].stage, all[i].at, all[i].waited);
  }
  o.followed = last == o.first_bit;
  if (o.followed) o.way = kept_span(way);
}

int comparison::received(const payload::frame& f, const sim::span_recorder& spans) {
  wire::packet p;
  const int connection = wire::decode(f.data(), f.length, p) == wire::decode_error::none ? lane_of(p) : -1;
  if (connection < 0) {
    ++foreign_;
    return -1;
  }
  lane& l = lanes_[static_cast<std::size_t>(connection)];
  obtained_frame o;
  o.first_bit = f.stamp;
  o.connection = connection;
  o.opcode = p.bth.opcode;
  o.psn = p.bth.psn.value();
  if (wire::traits(p.bth.opcode).aeth) o.syndrome = p.aeth.syndrome, o.msn = p.aeth.msn;
  if (wire::traits(p.bth.opcode).atomic_ack_eth) o.found = p.atomic_original;
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
    if (!l.acknowledged || !p.bth.psn.before(l.acknowledged_up_to)) {
      l.acknowledged_up_to = p.bth.psn;
      l.acknowledged_at = o.first_bit;
    }
    l.acknowledged = true;
  }
  match(connection, p, f.data());
  return connection;
}

/// What the real host sent of this PSN. An answer has to be the one to that very transmission of its question.
expectation* comparison::find_expectation(const lane& l, const wire::packet& p, std::size_t question) {
  const auto candidates = l.by_psn.find(p.bth.psn.value());
  if (candidates == l.by_psn.end()) return nullptr;
  const bool response = wire::traits(p.bth.opcode).response;
  expectation* best = nullptr;
  unsigned best_rank = 0;
  for (const std::size_t i : candidates->second) {
    expectation& e = expectations_[i];
    const wire::packet& x = plan_.frames[e.frame].packet;
    if (e.now != expectation::state::open || wire::traits(x.bth.opcode).response != response) continue;
    const bool known = response && question != no_frame && e.question != no_frame;
    if (known && e.question != question) continue;
    const unsigned rank = 1 + (known ? 2 : 0) + (x.bth.opcode == p.bth.opcode ? 1 : 0);
    if (rank <= best_rank) continue;
    best = &e;
    best_rank = rank;
  }
  return best;
}

void comparison::match(int connection, const wire::packet& p, const std::uint8_t* bytes) {
  lane& l = lanes_[static_cast<std::size_t>(connection)];
  const bool response = wire::traits(p.bth.opcode).response;
  const std::size_t question = answers_.back().question;
  expectation* best = find_expectation(l, p, question == 0 ? no_frame : question - 1);
  if (best == nullptr) {
    note(response ? difference_kind::extra_answer : difference_kind::extra_request, connection, 0, "", describe(p));
    differences_.back().answer = answers_.size();
    return;
  }
  best->answer = answers_.size();
  answers_.back().expected = best->frame + 1;
  best->now = same(l, *best, p, bytes) ? expectation::state::matched : expectation::state::different;
}

bool comparison::same(lane& l, const expectation& e, const wire::packet& p, const std::uint8_t* bytes) {
  const captured_frame& f = plan_.frames[e.frame];
  const std::optional<difference_kind> kind = first_difference(f, p, bytes);
  if (!kind && wire::traits(p.bth.opcode).aeth && wire::traits(f.packet.bth.opcode).aeth)
    l.counted.push_back(by_frame_[e.frame] - 1);
  if (!kind) return true;
  note(*kind, f.connection, e.frame + 1, describe(f.packet), describe(p));
  differences_.back().answer = e.answer;
  return false;
}

/// Of headers those that both packets have: with the opcode ignored they may be of different kinds.
/// MSNs are compared at the end.
std::optional<difference_kind> comparison::first_difference(const captured_frame& f, const wire::packet& p,
                                                            const std::uint8_t* bytes) const {
  const wire::packet& x = f.packet;
  const wire::opcode_traits &t = wire::traits(x.bth.opcode), &u = wire::traits(p.bth.opcode);
  const bool aeth = t.aeth && u.aeth;
  const auto differs = [&](difference_kind kind) {
    if (ignored_.count(kind) != 0) return false;
    switch (kind) {
      case difference_kind::opcode:
        return x.bth.opcode != p.bth.opcode;
      case difference_kind::verdict:
        return aeth && verdict_of(x.aeth.syndrome) != verdict_of(p.aeth.syndrome);
      case difference_kind::remote_address:
        return (t.deth && u.deth &&
                (x.bth.dest_qp != p.bth.dest_qp || x.dgid != p.dgid || x.deth.qkey != p.deth.qkey)) ||
               (t.xrceth && u.xrceth && (x.xrceth & 0xffffff) != (p.xrceth & 0xffffff)) ||
               (t.reth && u.reth && !same_remote(x.reth, p.reth)) ||
               (t.ieth && u.ieth && x.invalidate_rkey != p.invalidate_rkey) ||
               (t.atomic_eth && u.atomic_eth && (x.atomic.va != p.atomic.va || x.atomic.rkey != p.atomic.rkey));
      case difference_kind::payload_length:
        return x.payload_length != p.payload_length;
      case difference_kind::payload:
        return !same_payload(f, p, bytes);
      case difference_kind::immediate:
        return t.immediate && u.immediate && x.immediate != p.immediate;
      case difference_kind::solicited:
        return x.bth.solicited != p.bth.solicited;
      default:
        return false;
    }
  };
  // A READ that was begun again: what is in the packet matters more than how it is called.
  const bool other_data = is_read_response(x) && is_read_response(p) && x.bth.opcode != p.bth.opcode &&
                          x.payload_length == p.payload_length;
  if (other_data && differs(difference_kind::payload)) return difference_kind::payload;
  for (const compared_field& field : compared_fields())
    if (differs(field.kind)) return field.kind;
  return std::nullopt;
}

/// A capture may begin late, so that the two count from different messages. How far they are apart is what most answers
/// say; of what as many say, what was said first.
void comparison::compare_counts(const lane& l) {
  const auto apart = [&](std::size_t i) {
    const expectation& e = expectations_[i];
    return (plan_.frames[e.frame].packet.aeth.msn - answers_[e.answer - 1].msn) & 0xffffff;
  };
  std::unordered_map<std::uint32_t, std::size_t> votes;
  for (const std::size_t i : l.counted) ++votes[apart(i)];
  std::size_t most = 0;
  std::uint32_t usual = 0;
  for (const std::size_t i : l.counted)
    if (votes[apart(i)] > most) most = votes[usual = apart(i)];
  for (const std::size_t i : l.counted) {
    if (apart(i) == usual) continue;
    expectation& e = expectations_[i];
    const captured_frame& f = plan_.frames[e.frame];
    const obtained_frame& o = answers_[e.answer - 1];
    e.now = expectation::state::different;
    note(difference_kind::msn, f.connection, e.frame + 1, describe(f.packet),
         fmt::format("{} PSN {} {}", wire::traits(o.opcode).name, o.psn, aeth_text({o.syndrome, o.msn})));
    differences_.back().answer = e.answer;
  }
}

/// Atomics of several queue pairs on one word, which have no order among each other, nor does the replay keep one: the
/// adapter's results are as right as the real host's when they follow from one another in some order as well as those.
void comparison::find_other_orders() {
  struct on_word {
    std::vector<executed_atomic> captured, obtained;
  };
  std::map<std::pair<std::uint32_t, std::uint64_t>, on_word> words;  // by key and address
  for (const expectation& e : expectations_) {
    if (!wire::traits(plan_.frames[e.frame].packet.bth.opcode).atomic_ack_eth || e.question == no_frame) continue;
    const wire::packet& request = plan_.frames[e.question].packet;
    if (e.answer == 0 || !is_atomic(request) || !wire::traits(answers_[e.answer - 1].opcode).atomic_ack_eth) continue;
    const obtained_frame& o = answers_[e.answer - 1];
    on_word& w = words[{request.atomic.rkey, request.atomic.va}];
    w.captured.push_back({e.question, e.frame, &request, plan_.frames[e.frame].packet.atomic_original, e.frame});
    w.obtained.push_back({injected_at_[e.question], o.first_bit, &request, o.found, e.frame});
  }
  std::set<std::size_t> explained;
  for (const auto& [where, w] : words) {
    const int first = plan_.frames[w.captured.front().number].connection;
    const bool of_one = std::all_of(w.captured.begin(), w.captured.end(), [&](const executed_atomic& a) {
      return plan_.frames[a.number].connection == first;
    });
    if (of_one || order_of_execution(w.obtained).jump_count > order_of_execution(w.captured).jump_count) continue;
    for (const executed_atomic& a : w.captured) explained.insert(a.number);
  }
  for (difference& d : differences_)
    d.other_order = d.kind == difference_kind::payload && explained.count(d.frame - 1) != 0;
}

bool comparison::asked(int connection, wire::psn_t psn) const {
  const lane& l = lanes_[static_cast<std::size_t>(connection)];
  return l.asked && !psn.after(l.asked_up_to);
}

/// An ACK is given with any later one.
bool comparison::is_covered(const expectation& e) const {
  const captured_frame& f = plan_.frames[e.frame];
  const lane& l = lanes_[static_cast<std::size_t>(f.connection)];
  const bool plain = wire::operation_of(f.packet.bth.opcode) == wire::operation::acknowledge && is_positive(f.packet);
  if (!plain || !l.acknowledged || f.packet.bth.psn.after(l.acknowledged_up_to)) return false;
  return e.question == no_frame || injected_at_[e.question] <= l.acknowledged_at;
}

bool comparison::settled(std::size_t frame) const {
  const expectation& e = expectations_[by_frame_[frame] - 1];
  return e.now != expectation::state::open || !e.waited_for || is_covered(e);
}

void comparison::delivered(int connection, std::uint64_t messages) {
  const struct connection& c = plan_.connections[static_cast<std::size_t>(connection)];
  const bool reliable = c.service == wire::transport::rc || c.service == wire::transport::xrc;
  if (reliable || c.order.empty() || messages == c.deliveries) return;
  note(difference_kind::delivery, connection, 0, fmt::format("{} messages", c.deliveries), fmt::format("{}", messages));
}

void comparison::give_up(std::size_t frame) { expectations_[by_frame_[frame] - 1].waited_for = false; }

void comparison::finish() {
  for (expectation& e : expectations_) {
    if (e.now != expectation::state::open) continue;
    const captured_frame& f = plan_.frames[e.frame];
    if (is_covered(e)) e.now = expectation::state::covered;
    const difference_kind kind = e.now == expectation::state::covered         ? difference_kind::together
                                 : wire::traits(f.packet.bth.opcode).response ? difference_kind::missing_answer
                                                                              : difference_kind::missing_request;
    note(kind, f.connection, e.frame + 1, describe(f.packet), "");
  }
  if (ignored_.count(difference_kind::msn) == 0)
    for (const lane& l : lanes_) compare_counts(l);
  find_other_orders();
  std::stable_sort(differences_.begin(), differences_.end(), [](const difference& a, const difference& b) {
    return (a.frame == 0 ? ~std::size_t{0} : a.frame) < (b.frame == 0 ? ~std::size_t{0} : b.frame);
  });
  const explainer reasons(*this, plan_);
  const loss_reasons losses(plan_);
  for (difference& d : differences_) {
    d.explanation = losses.explain(d);
    if (d.explanation.empty()) d.explanation = reasons.explain(d);
  }
}

}  // namespace rnic::replay
