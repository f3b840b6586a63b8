// SPDX-License-Identifier: Apache-2.0
// Every opcode behind every opcode (IBA volume 1, 9.7.4.1.2 and 9.8.2.2.2, "valid sequences of opcodes"; adapter data
// plane C.3 and C.7.1), the lengths that each may have, and the order of READ responses. What is legal is written down
// here from the standard's rule; nothing of it comes from the model.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "testbenches/system/conformance/scenario.h"

namespace rnic::conformance {
namespace {

using op = operation;
using op_set = std::set<op>;
constexpr std::uint8_t invalid = 0x61;
constexpr int seen_on_hardware = 0x88;
constexpr std::uint32_t mtu = 256, tail = 10;

// ---------------------------------------------------------------- the standard's table

const op_set begins_rc = {op::send_first,   op::send_only,  op::send_only_immediate,  op::send_only_invalidate,
                          op::write_first,  op::write_only, op::write_only_immediate, op::read_request,
                          op::compare_swap, op::fetch_add};
const op_set goes_on_with_send_rc = {op::send_middle, op::send_last, op::send_last_immediate, op::send_last_invalidate};
const op_set begins_uc = {op::send_first,  op::send_only,  op::send_only_immediate,
                          op::write_first, op::write_only, op::write_only_immediate};
const op_set goes_on_with_send_uc = {op::send_middle, op::send_last, op::send_last_immediate};
const op_set goes_on_with_write = {op::write_middle, op::write_last, op::write_last_immediate};
const op_set responses = {op::read_response_first, op::read_response_middle, op::read_response_last,
                          op::read_response_only,  op::acknowledge,          op::atomic_acknowledge};

/// What brings a responder to where a row begins: the packets up to the previous opcode, and what may follow it.
struct position {
  const char* name;
  std::vector<op> before;
  const op_set* legal_rc;
  const op_set* legal_uc;  ///< nullptr: not an opcode of UC
};
const position positions[] = {
    {"the_start", {}, &begins_rc, &begins_uc},
    {"send_first", {op::send_first}, &goes_on_with_send_rc, &goes_on_with_send_uc},
    {"send_middle", {op::send_first, op::send_middle}, &goes_on_with_send_rc, &goes_on_with_send_uc},
    {"send_last", {op::send_first, op::send_last}, &begins_rc, &begins_uc},
    {"send_last_immediate", {op::send_first, op::send_last_immediate}, &begins_rc, &begins_uc},
    {"send_last_invalidate", {op::send_first, op::send_last_invalidate}, &begins_rc, nullptr},
    {"send_only", {op::send_only}, &begins_rc, &begins_uc},
    {"send_only_immediate", {op::send_only_immediate}, &begins_rc, &begins_uc},
    {"send_only_invalidate", {op::send_only_invalidate}, &begins_rc, nullptr},
    {"write_first", {op::write_first}, &goes_on_with_write, &goes_on_with_write},
    {"write_middle", {op::write_first, op::write_middle}, &goes_on_with_write, &goes_on_with_write},
    {"write_last", {op::write_first, op::write_last}, &begins_rc, &begins_uc},
    {"write_last_immediate", {op::write_first, op::write_last_immediate}, &begins_rc, &begins_uc},
    {"write_only", {op::write_only}, &begins_rc, &begins_uc},
    {"write_only_immediate", {op::write_only_immediate}, &begins_rc, &begins_uc},
    {"read_request", {op::read_request}, &begins_rc, nullptr},
    {"compare_swap", {op::compare_swap}, &begins_rc, nullptr},
    {"fetch_add", {op::fetch_add}, &begins_rc, nullptr},
};

bool is_one_of(op o, const op_set& set) { return set.count(o) != 0; }
bool is_first(op o) { return o == op::send_first || o == op::write_first; }
bool is_middle(op o) { return o == op::send_middle || o == op::write_middle; }
bool invalidates(op o) { return o == op::send_last_invalidate || o == op::send_only_invalidate; }
bool fetches(op o) { return o == op::read_request || o == op::compare_swap || o == op::fetch_add; }
bool is_send(op o) { return o <= op::send_only_immediate || invalidates(o); }
bool has_immediate(op o) {
  return o == op::send_last_immediate || o == op::send_only_immediate || o == op::write_last_immediate ||
         o == op::write_only_immediate;
}
/// Of the reliable services and of UC; the rest is reserved.
bool is_request(op o, service s) {
  const op_set& begins = s == service::uc ? begins_uc : begins_rc;
  const op_set& sends = s == service::uc ? goes_on_with_send_uc : goes_on_with_send_rc;
  return is_one_of(o, begins) || is_one_of(o, sends) || is_one_of(o, goes_on_with_write);
}

// ---------------------------------------------------------------- rows from it

constexpr std::uint64_t untouched = 4096;  // where READs and atomics look, and no WRITE goes

/// Writes a row packet by packet, and what must come of it.
class writer {
 public:
  writer(service s, const position& at, op next) : service_(s), next_(next) {
    row_.on = s;
    row_.before.with(std::vector<receive>(4));
    row_.before.window = s == service::rc;
    const bool open = !at.before.empty() && (is_first(at.before.back()) || is_middle(at.before.back()));
    const auto middles = std::count_if(at.before.begin(), at.before.end(), is_middle);
    announced_ = mtu * (1 + static_cast<std::uint32_t>(middles)) + tail + (open && next == op::write_middle ? mtu : 0);
    for (const op o : at.before) {
      row_.steps.push_back(inject(of(o).silent()));
      accept(o, false);
    }
    announced_ = mtu + tail;
  }
  row legal() {
    row_.steps.push_back(inject(of(next_)));
    accept(next_, service_ != service::uc);
    return row_;
  }
  /// UC: what was begun is forgotten, and its receive is the next message's.
  row restarts() {
    abandon();
    return legal();
  }
  row illegal() {
    row_.steps.push_back(inject(of(next_)));
    if (service_ == service::uc) {
      row_.after.counts("responder.drop.sequence");
      return row_;
    }
    row_.steps.push_back(hear(ack(psn_, msn_, invalid)));
    row_.after.error().counts("responder.naks").counts("diag.rq_num_rire");
    if (in_send_)
      row_.after.receives(bad(IBV_WC_REM_INV_REQ_ERR, seen_on_hardware));
    else
      row_.after.event(IBV_EVENT_QP_REQ_ERR);
    return row_;
  }
  row ignored(const std::string& counter) {
    row_.steps.push_back(inject(of(next_)));
    row_.after.counts(counter);
    return row_;
  }

 private:
  static std::uint32_t length_of(op o) { return is_first(o) || is_middle(o) ? mtu : fetches(o) ? 0 : tail; }
  packet of(op o) const {
    packet p(o, psn_);
    if (!is_request(o, service_)) return p.bytes(is_one_of(o, responses) ? 0 : tail);
    p.bytes(length_of(o)).with(invalidates(o) && service_ == service::rc ? key::window : key::good);
    if (fetches(o)) p.at(untouched);
    if (o == op::read_request) p.of(tail);
    if (o == op::write_first) p.of(announced_);
    return p;
  }
  /// The packet just added is taken; `asked`: and answered.
  void accept(op o, bool asked) {
    if (is_first(o) || !in_message_) bytes_ = 0;
    if (is_send(o) && !in_message_) slot_ = receives_++;
    packet& p = row_.steps.back().p;
    if (o == op::fetch_add) p.lands_at(untouched);
    if (!fetches(o)) p.lands_at(std::int64_t{bytes_} + (is_send(o) ? std::int64_t{slot_} * 1024 : 0));
    bytes_ += length_of(o);
    const bool ends = !is_first(o) && !is_middle(o);
    in_message_ = !ends;
    in_send_ = in_message_ && is_send(o);
    const bool bad_key = invalidates(o) && (invalidated_ || service_ == service::xrc);
    if (bad_key) return refuse_invalidation();
    invalidated_ = invalidated_ || invalidates(o);
    if (ends) complete(o);
    answer(o, asked);
    ++psn_;
  }
  /// Its place in the sequence is right, the key that it takes back is not: class J, without a NAK.
  void refuse_invalidation() {
    row_.steps.push_back(silence(10));
    row_.after.error().receives(bad(IBV_WC_REM_INV_REQ_ERR, seen_on_hardware)).counts("diag.rq_num_rire");
  }
  void complete(op o) {
    ++msn_;
    const std::int64_t bytes = static_cast<std::int64_t>(bytes_);
    if (is_send(o)) row_.after.receives(good(IBV_WC_RECV, bytes));
    if (is_send(o) || !has_immediate(o)) return;
    ++receives_;
    row_.after.receives(good(IBV_WC_RECV_RDMA_WITH_IMM, bytes));
  }
  void answer(op o, bool asked) {
    if (o == op::read_request) {
      row_.steps.push_back(hear(read_response(op::read_response_only, psn_, tail, msn_).at(untouched)));
    } else if (fetches(o)) {
      row_.steps.push_back(
          hear(packet(op::atomic_acknowledge, psn_).aeth(0x1f, msn_).at(untouched).after_adding(added_)));
      if (o == op::fetch_add) ++added_;
    } else if (asked) {
      row_.steps.push_back(hear(ack(psn_, msn_)));
    }
  }
  void abandon() {
    if (in_send_) --receives_;
    in_message_ = in_send_ = false;
  }

  row row_;
  service service_;
  op next_;
  int psn_ = 0;
  std::uint32_t msn_ = 0, bytes_ = 0, announced_ = 0;
  unsigned receives_ = 0, slot_ = 0;
  std::uint64_t added_ = 0;
  bool in_message_ = false, in_send_ = false, invalidated_ = false;
};

row row_of(service s, const position& at, op next) {
  writer w(s, at, next);
  const op_set& legal = s == service::uc ? *at.legal_uc : *at.legal_rc;
  if (is_one_of(next, responses) && s != service::uc) return w.ignored("requester.stray_responses");
  if (!is_request(next, s)) return w.ignored("parser1.drop.unknown_opcode");
  if (is_one_of(next, legal)) return w.legal();
  if (s == service::uc && is_one_of(next, begins_uc)) return w.restarts();
  return w.illegal();
}

// ---------------------------------------------------------------- lengths

struct length_rule {
  op which;
  const char* name;
  std::uint32_t least, most;
};
const length_rule length_rules[] = {
    {op::send_first, "send_first", mtu, mtu},   {op::send_middle, "send_middle", mtu, mtu},
    {op::send_last, "send_last", 1, mtu},       {op::send_last_immediate, "send_last_immediate", 1, mtu},
    {op::send_only, "send_only", 0, mtu},       {op::send_only_immediate, "send_only_immediate", 0, mtu},
    {op::write_first, "write_first", mtu, mtu}, {op::write_middle, "write_middle", mtu, mtu},
    {op::write_last, "write_last", 1, mtu},     {op::write_last_immediate, "write_last_immediate", 1, mtu},
    {op::write_only, "write_only", 0, mtu},     {op::write_only_immediate, "write_only_immediate", 0, mtu},
};

/// A message that would be right if a packet of `bytes` was.
row row_of(service s, const length_rule& rule, std::uint32_t bytes) {
  row r;
  r.on = s;
  const bool send = is_send(rule.which),
             starts = is_first(rule.which) || rule.which == op::send_only || rule.which == op::send_only_immediate ||
                      rule.which == op::write_only || rule.which == op::write_only_immediate;
  const bool ends = !is_first(rule.which) && !is_middle(rule.which), legal = bytes >= rule.least && bytes <= rule.most;
  const std::uint32_t before = starts ? 0 : mtu, all = before + bytes + (ends ? 0 : tail);
  if (!starts)
    r.steps.push_back(inject(packet(send ? op::send_first : op::write_first).bytes(mtu).of(all).silent().lands_at(0)));
  packet p = packet(rule.which, starts ? 0 : 1).bytes(bytes).of(all);
  if (legal) p.lands_at(before);
  r.steps.push_back(inject(p));
  if (legal && ends && (send || has_immediate(rule.which)))
    r.after.receives(good(send ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM, before + bytes));
  if (s == service::uc) {
    if (!legal) r.after.counts("responder.drop.unreliable");
    return r;
  }
  r.steps.push_back(hear(ack(p.psn, legal && ends ? 1 : 0, legal ? 0x1f : invalid)));
  if (legal) return r;
  r.after.error().counts("responder.naks").counts("diag.rq_num_rire");
  if (send && !starts)
    r.after.receives(bad(IBV_WC_REM_INV_REQ_ERR, seen_on_hardware));
  else
    r.after.event(IBV_EVENT_QP_REQ_ERR);
  return r;
}

// ---------------------------------------------------------------- answers to a READ

/// A READ of which some packets have come, and those that may come next.
struct reading {
  const char* name;
  unsigned packets, came;
  bool asked_again;  ///< for the rest
  op_set legal;
};
const reading readings[] = {
    {"one_packet", 1, 0, false, {op::read_response_only}},
    {"the_first_of_two", 2, 0, false, {op::read_response_first}},
    {"the_second_of_two", 2, 1, false, {op::read_response_last}},
    {"the_second_of_three", 3, 1, false, {op::read_response_middle}},
    {"the_third_of_three", 3, 2, false, {op::read_response_last}},
    {"the_rest_of_two_again", 2, 1, true, {op::read_response_only, op::read_response_last}},
    {"the_rest_of_three_again", 3, 1, true, {op::read_response_first, op::read_response_middle}},
};

row row_of(service s, const reading& at, op next) {
  const std::uint32_t all = (at.packets - 1) * mtu + tail;
  row r;
  r.on = s;
  r.before.timer(at.asked_again ? 4 : 0, 7);
  r.steps = {post(work(IBV_WR_RDMA_READ, all)), hear(packet(op::read_request).of(all))};
  int psn = 0;
  const auto come = [&](op which) {
    const bool last = psn + 1 == static_cast<int>(at.packets);
    const std::int64_t lands = psn * static_cast<int>(mtu);
    r.steps.push_back(inject(read_response(which, psn++, last ? tail : mtu).lands_at(lands)));
  };
  for (unsigned i = 0; i < at.came; ++i) come(i == 0 ? op::read_response_first : op::read_response_middle);
  if (at.asked_again) {
    r.steps.push_back(hear(packet(op::read_request, psn).of(all - at.came * mtu).at(at.came * mtu)));
    r.after.counts("diag.sq_num_to").counts("requester.retransmissions");
  }
  if (is_one_of(next, at.legal)) {
    come(next);
    for (; psn != static_cast<int>(at.packets);)
      come(psn + 1 == static_cast<int>(at.packets) ? op::read_response_last : op::read_response_middle);
    r.after.sends(good(IBV_WC_RDMA_READ, all));
    return r;
  }
  const bool last = psn + 1 == static_cast<int>(at.packets);
  r.steps.push_back(inject(read_response(next, psn, next == op::atomic_acknowledge ? 0 : last ? tail : mtu)));
  r.after.error().sends(bad(IBV_WC_BAD_RESP_ERR)).counts("diag.sq_num_bre");
  return r;
}

// ----------------------------------------------------------------

constexpr unsigned opcodes_of_a_class = 32;

template <class What>
struct cell {
  service on;
  What at;
  std::string name() const { return std::string(to_string(on)) + "_" + at.name; }
};
template <class What>
std::ostream& operator<<(std::ostream& to, const cell<What>& c) {
  return to << c.name();
}
template <class What, std::size_t n>
std::vector<cell<What>> cells(std::initializer_list<service> services, const What (&all)[n]) {
  std::vector<cell<What>> out;
  for (const service s : services)
    for (const What& w : all) out.push_back({s, w});
  return out;
}
std::vector<cell<position>> reachable() {
  std::vector<cell<position>> all = cells({service::rc, service::uc, service::xrc}, positions);
  const auto not_there = [](const cell<position>& c) {
    const bool taken_back = !c.at.before.empty() && invalidates(c.at.before.back());
    return (c.on == service::uc && c.at.legal_uc == nullptr) || (c.on == service::xrc && taken_back);
  };
  all.erase(std::remove_if(all.begin(), all.end(), not_there), all.end());
  return all;
}
constexpr auto named = [](const auto& info) { return info.param.name(); };
void play_cell(const std::string& in, row r, const std::string& which) {
  r.name = in + "." + which;
  play("opcode_transitions", r);
}

class transitions : public testing::TestWithParam<cell<position>> {};
TEST_P(transitions, after) {
  for (unsigned next = 0; next < opcodes_of_a_class; ++next)
    play_cell(GetParam().at.name, row_of(GetParam().on, GetParam().at, static_cast<op>(next)), std::to_string(next));
}
INSTANTIATE_TEST_SUITE_P(opcode, transitions, testing::ValuesIn(reachable()), named);

class lengths : public testing::TestWithParam<cell<length_rule>> {};
TEST_P(lengths, of) {
  const length_rule& rule = GetParam().at;
  for (const std::uint32_t bytes : {0u, 1u, 2u, 3u, 4u, mtu - 1, mtu, mtu + 1, 2 * mtu}) {
    const bool write_of_a_packet_less = (rule.which == op::write_last || rule.which == op::write_last_immediate) &&
                                        bytes == 0;  // would have ended before
    if (!write_of_a_packet_less) play_cell(rule.name, row_of(GetParam().on, rule, bytes), std::to_string(bytes));
  }
}
INSTANTIATE_TEST_SUITE_P(opcode, lengths,
                         testing::ValuesIn(cells({service::rc, service::uc, service::xrc}, length_rules)), named);

class answers : public testing::TestWithParam<cell<reading>> {};
TEST_P(answers, of_a_read) {
  for (const op next : {op::read_response_first, op::read_response_middle, op::read_response_last,
                        op::read_response_only, op::atomic_acknowledge})
    play_cell(GetParam().at.name, row_of(GetParam().on, GetParam().at, next),
              std::to_string(static_cast<unsigned>(next)));
}
INSTANTIATE_TEST_SUITE_P(opcode, answers, testing::ValuesIn(cells({service::rc, service::xrc}, readings)), named);

}  // namespace
}  // namespace rnic::conformance
