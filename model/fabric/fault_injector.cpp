// SPDX-License-Identifier: Apache-2.0
// Which rule hits a frame, and what then becomes of it.
#include "model/fabric/fault_injector.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "model/fabric/frame_damage.h"
#include "model/payload/frame_copy.h"

namespace rnic::fabric {

namespace {

constexpr std::uint32_t preamble_and_fcs_bytes = 12, gap_bytes = 12;

constexpr std::uint32_t response_flow = 1u << 31;
constexpr std::size_t held_expected = 1024;  // frames; more are held at the price of an allocation

answer_kind answer_of(const wire::packet& p) {
  switch (p.aeth.syndrome >> 5 & 3) {
    case 0:
      return answer_kind::ack;
    case 1:
      return answer_kind::rnr_nak;
    default:
      return answer_kind::nak;
  }
}

struct due_later {
  template <class T>
  bool operator()(const T& a, const T& b) const {
    return a.due != b.due ? a.due > b.due : a.number > b.number;
  }
};

}  // namespace

fault_injector::fault_injector(std::string name, sim::clock_domain& domain, const fault_plan& plan, std::uint64_t seed,
                               payload::frame_pool& pool, sim::statistics& stats)
    : clocked_block(name, domain), plan_(plan), pool_(pool) {
  const std::uint64_t start = plan.seed != 0 ? plan.seed : seed;
  for (unsigned i = 0; i < 2; ++i) {
    lane& l = lanes_[i];
    l.random = start * 2 + i;
    l.rules.resize(plan.rules.size());
    l.flows.resize(1);
    l.held.reserve(held_expected);
    l.flow_of.reserve(held_expected);
  }
  for (const fault_rule& r : plan.rules) {
    const bool selects =
        r.roce_only || r.by_opcode || r.answer != answer_kind::any || r.qpn != fault_rule::any_qp || r.flow != 0;
    const bool counts_flows = r.first != 0 || r.last != 0 || r.every != 1;
    needs_flow_ |= r.flow != 0 || r.by_psn == fault_rule::psn_kind::relative || counts_flows;
    needs_packet_ |= selects || r.by_psn != fault_rule::psn_kind::any || needs_flow_;
  }
  announce(stats);
}

void fault_injector::announce(sim::statistics& stats) {
  for (unsigned i = 0; i < 2; ++i) {
    const lane& l = lanes_[i];
    const std::string prefix = name() + (i == 0 ? ".a_to_b." : ".b_to_a.");
    stats.add(prefix + "frames", l.count.frames);
    for (unsigned a = 0; a < fault_actions; ++a)
      stats.add(prefix + to_string(static_cast<fault_action>(a)), l.count.done[a]);
    stats.add(prefix + "hold_ended", l.count.hold_ended);
    stats.add(prefix + "not_possible", l.count.not_possible);
  }
}

/// splitmix64 (Steele, Lea, Flood): the same numbers on every machine.
std::uint64_t fault_injector::next_random(lane& l) {
  std::uint64_t z = l.random += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

void fault_injector::look_at(lane& l, const payload::frame& f, subject& s, bool with_flow) {
  if (!s.decoded) {
    s.decoded = true;
    s.roce = wire::decode(f.data(), f.length, s.packet) == wire::decode_error::none;
    if (!s.roce) return;
    s.response = wire::traits(s.packet.bth.opcode).response;
    s.qpn = s.packet.bth.dest_qp;
  }
  if (!with_flow || !s.roce) return;
  const auto [place, is_new] = l.flow_of.try_emplace(s.response ? s.qpn | response_flow : s.qpn, l.flows.size());
  if (is_new) l.flows.push_back({s.response ? ++l.responses : ++l.requests, s.packet.bth.psn.value()});
  s.flow_index = place->second;
}

/// Is this a frame of which the rule speaks?
bool fault_injector::means(const fault_rule& r, unsigned from, const lane& l, const subject& s) {
  if ((r.directions >> from & 1) == 0) return false;
  const bool any = !r.roce_only && !r.by_opcode && r.answer == answer_kind::any && r.qpn == fault_rule::any_qp &&
                   r.flow == 0 && r.by_psn == fault_rule::psn_kind::any;
  if (any) return true;
  if (!s.roce) return false;
  const wire::packet& p = s.packet;
  if (r.by_opcode && !r.opcodes[p.bth.opcode]) return false;
  if (r.answer != answer_kind::any && (!wire::traits(p.bth.opcode).aeth || answer_of(p) != r.answer)) return false;
  if (r.qpn != fault_rule::any_qp && r.qpn != s.qpn) return false;
  if (r.flow != 0 && r.flow != l.flows[s.flow_index].number) return false;
  switch (r.by_psn) {
    case fault_rule::psn_kind::any:
      return true;
    case fault_rule::psn_kind::absolute:
      return p.bth.psn.value() == r.psn;
    case fault_rule::psn_kind::relative:
      return (p.bth.psn - l.flows[s.flow_index].first_psn).value() == r.psn;
  }
  return false;
}

/// The first rule that hits the frame; all that mean it count it.
const fault_rule* fault_injector::choose(unsigned from, lane& l, const payload::frame& f, subject& s) {
  if (needs_packet_) look_at(l, f, s, needs_flow_);
  const fault_rule* chosen = nullptr;
  for (std::size_t i = 0; i < plan_.rules.size(); ++i) {
    const fault_rule& r = plan_.rules[i];
    if (!means(r, from, l, s)) continue;
    rule_state& state = l.rules[i];
    if (state.seen.size() <= s.flow_index) state.seen.resize(l.flows.size());
    const std::uint64_t n = ++state.seen[s.flow_index];
    const std::uint64_t first = r.first == 0 ? 1 : r.first;
    if (n < first || (r.last != 0 && n > r.last)) continue;
    if (r.first == 0 ? n % r.every != 0 : (n - first) % r.every != 0) continue;
    if (r.probability != fault_rule::certain && next_random(l) >> 32 >= r.probability) continue;
    if (chosen != nullptr || (r.times != 0 && state.hits >= r.times)) continue;
    ++state.hits;
    chosen = &r;
  }
  return chosen;
}

std::uint64_t fault_injector::meant(std::size_t rule) const {
  std::uint64_t frames = 0;
  for (const lane& l : lanes_) frames = std::accumulate(l.rules[rule].seen.begin(), l.rules[rule].seen.end(), frames);
  return frames;
}

void fault_injector::enter(unsigned from, payload::frame_ptr frame, sim::time_ps last_bit) {
  lane& l = lanes_[from];
  ++l.count.frames;
  release_due(l, last_bit);
  subject s;
  const fault_rule* r = choose(from, l, *frame, s);
  if (r == nullptr)
    pass(l, std::move(frame), last_bit, s);
  else
    act(*r, l, std::move(frame), last_bit, s);
}

void fault_injector::act(const fault_rule& r, lane& l, payload::frame_ptr frame, sim::time_ps last_bit, subject& s) {
  bool done = true;
  switch (r.action) {
    case fault_action::drop:
      break;
    case fault_action::duplicate: {
      for (std::uint32_t i = 0; i < r.copies; ++i) pass(l, payload::copy_on_cable(pool_, *frame), last_bit, s);
      pass(l, std::move(frame), last_bit, s);
      break;
    }
    case fault_action::reorder: {
      look_at(l, *frame, s, false);
      const auto behind =
          static_cast<std::uint32_t>(r.probability == fault_rule::certain ? r.frames : 1 + below(l, r.frames));
      hold(l, std::move(frame), last_bit, last_bit + r.hold_ps, s.qpn, behind);
      break;
    }
    case fault_action::delay:
      hold(l, std::move(frame), last_bit, last_bit + r.delay_ps, s.qpn, 0);
      break;
    case fault_action::corrupt:
      done = damage(r, l, *frame, s);
      pass(l, std::move(frame), last_bit, s);
      break;
    case fault_action::mark_congestion:
      look_at(l, *frame, s, false);
      done = s.roce && mark_congestion(*frame, s.packet);
      pass(l, std::move(frame), last_bit, s);
      break;
  }
  ++(done ? l.count.done[static_cast<unsigned>(r.action)] : l.count.not_possible);
}

/// False when the frame has nothing of what is to be changed.
bool fault_injector::damage(const fault_rule& r, lane& l, payload::frame& f, subject& s) {
  if (r.part == frame_part::fcs) {
    f.fcs ^= 1u << (r.bit < 8 ? r.bit : below(l, 32));
    return true;
  }
  look_at(l, f, s, false);
  const wire::packet* p = s.roce ? &s.packet : nullptr;
  const bool by_name = r.field != header_field::none;
  const bit_range range = by_name ? (p != nullptr ? find_field(*p, r.field) : bit_range{}) : find_part(f, p, r.part);
  if (range.count == 0) return false;
  if (r.by_value) {
    if (!set_bits(f, range, r.value)) return false;
  } else {
    const std::uint64_t bytes = std::max(1u, range.count / 8);
    const std::uint64_t byte = r.by_offset ? std::min<std::uint64_t>(r.offset, bytes - 1) : below(l, bytes);
    const std::uint64_t bit = r.bit < 8 ? 7u - r.bit : below(l, std::min(8u, range.count));
    flip_bit(f, range.first + static_cast<std::uint32_t>(std::min<std::uint64_t>(byte * 8 + bit, range.count - 1)));
  }
  const bool fcs = r.right == made_right::fcs || r.right == made_right::icrc ||
                   (r.right == made_right::either && (next_random(l) & 1) != 0);
  if (r.right == made_right::icrc && p != nullptr) make_icrc_right(f, *p);
  if (fcs) make_fcs_right(f);
  return true;
}

void fault_injector::hold(lane& l, payload::frame_ptr frame, sim::time_ps last_bit, sim::time_ps due, std::uint32_t qpn,
                          std::uint32_t to_pass) {
  frame->stamp = last_bit - frame->stamp;  // how long it is, until it goes on
  held_frame h;
  h.due = domain().edge_at_or_after(std::max(due, domain().edge_time(now() + 2)));
  h.number = l.held_number++;
  h.qpn = qpn;
  h.to_pass = to_pass;
  h.frame = std::move(frame);
  if (to_pass != 0) ++l.passing;
  l.held.push_back(std::move(h));
  std::push_heap(l.held.begin(), l.held.end(), due_later{});
  ask_for_wake();
}

/// What is due up to `until` goes on, each at its own time.
void fault_injector::release_due(lane& l, sim::time_ps until) {
  while (!l.held.empty() && domain().edge_time(l.held.front().due) <= until) {
    std::pop_heap(l.held.begin(), l.held.end(), due_later{});
    held_frame h = std::move(l.held.back());
    l.held.pop_back();
    if (h.to_pass != 0) {
      --l.passing;
      ++l.count.hold_ended;
    }
    const sim::time_ps duration = h.frame->stamp;
    send_on(l, std::move(h.frame), domain().edge_time(h.due), duration);
  }
}

/// A frame goes on in its turn, and behind it those that waited for it.
void fault_injector::pass(lane& l, payload::frame_ptr frame, sim::time_ps last_bit, subject& s) {
  if (l.passing != 0) look_at(l, *frame, s, false);
  const std::uint32_t qpn = s.qpn;
  const sim::time_ps duration = last_bit - frame->stamp;
  send_on(l, std::move(frame), last_bit, duration);
  if (l.passing == 0) return;
  for (std::size_t i = 0; i < l.held.size();) {
    held_frame& h = l.held[i];
    if (h.to_pass == 0 || h.qpn != qpn || --h.to_pass != 0) {
      ++i;
      continue;
    }
    payload::frame_ptr late = std::move(h.frame);
    --l.passing;
    l.held.erase(l.held.begin() + static_cast<std::ptrdiff_t>(i));
    const sim::time_ps length = late->stamp;
    send_on(l, std::move(late), last_bit, length);
  }
  std::make_heap(l.held.begin(), l.held.end(), due_later{});
}

void fault_injector::send_on(lane& l, payload::frame_ptr frame, sim::time_ps last_bit, sim::time_ps duration) {
  frame->stamp = std::max(last_bit - duration, l.line_free);
  last_bit = frame->stamp + duration;
  const sim::time_ps per_byte = duration / (frame->length + preamble_and_fcs_bytes);
  l.line_free = last_bit + gap_bytes * per_byte;
  l.onward->deliver(std::move(frame), last_bit);
}

void fault_injector::tick() {
  // What is due at the next edge: no frame that enters from now on can be earlier, since none is shorter than an edge.
  const sim::time_ps until = domain().edge_time(now() + 1);
  for (lane& l : lanes_) release_due(l, until);
  ask_for_wake();
}

void fault_injector::ask_for_wake() {
  for (const lane& l : lanes_)
    if (!l.held.empty()) wake_at(std::max(now() + 1, l.held.front().due - 1));
}

}  // namespace rnic::fabric
