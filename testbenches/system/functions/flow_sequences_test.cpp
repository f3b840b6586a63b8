// SPDX-License-Identifier: Apache-2.0
// Flow steering rules of the physical function and of virtual ones, attached and detached in long random sequences:
// which queue pairs get a frame, against a plain list of rules that is asked one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <list>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "host_driver/resources.h"
#include "testbenches/system/functions/raw_rule.h"
#include "testbenches/system/functions/statuses.h"

namespace rnic::system_test {
namespace {

namespace f = abi::flow_rule;

constexpr unsigned functions = 3, rings_each = 2, physical = 0;

/// What a rule compares of a frame, as a person would say it. Whatever has no value is not compared.
struct wish {
  std::optional<bytes> mac;
  std::optional<std::uint16_t> vid;
  std::optional<std::uint16_t> ether_type;
  bool ipv4 = false;
  std::optional<std::uint32_t> to, from;
  unsigned protocol = 0;  // 17 UDP, 6 TCP
  std::optional<std::uint16_t> to_port, from_port;

  bool ethernet() const { return mac || vid || ether_type; }
  bool is_group() const { return mac && ((*mac)[0] & 1) != 0; }
  auto all() const { return std::tie(mac, vid, ether_type, ipv4, to, from, protocol, to_port, from_port); }
  bool operator==(const wish& o) const { return all() == o.all(); }
};

struct frame_fields {
  bytes mac;
  std::optional<std::uint16_t> vid;
  std::uint32_t to = 0, from = 0;
  unsigned protocol = 17;
  std::uint16_t to_port = 0, from_port = 0;
};

bool fits(const wish& w, const frame_fields& of) {
  if (w.mac && *w.mac != of.mac) return false;
  if (w.vid && w.vid != of.vid) return false;
  if (w.ether_type && *w.ether_type != 0x0800) return false;
  if ((w.to && *w.to != of.to) || (w.from && *w.from != of.from)) return false;
  if (w.protocol != 0 && w.protocol != of.protocol) return false;
  return (!w.to_port || *w.to_port == of.to_port) && (!w.from_port || *w.from_port == of.from_port);
}

void put16(bytes& b, unsigned v) {
  b.push_back(static_cast<std::uint8_t>(v >> 8));
  b.push_back(static_cast<std::uint8_t>(v));
}

/// RFC 1071.
std::uint16_t internet_sum(const bytes& b, std::size_t from, std::size_t to) {
  std::uint32_t sum = 0;
  for (std::size_t i = from; i < to; i += 2) sum += static_cast<std::uint32_t>(b[i]) << 8 | b[i + 1];
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

/// With `number` in its last bytes, so that each is another one.
bytes build(const frame_fields& of, std::uint32_t number) {
  bytes b = of.mac;
  for (const unsigned byte : {0x02u, 0x00u, 0x00u, 0x00u, 0x0au, 0x01u}) b.push_back(static_cast<std::uint8_t>(byte));
  if (of.vid) {
    put16(b, 0x8100);
    put16(b, *of.vid);
  }
  put16(b, 0x0800);
  const std::size_t ip = b.size();
  const unsigned header = of.protocol == 17 ? 8 : 20, data = 64;
  for (const unsigned v : {0x4500u, 20 + header + data, number & 0xffff, 0u, 64u << 8 | of.protocol, 0u, of.from >> 16,
                           of.from & 0xffff, of.to >> 16, of.to & 0xffff})
    put16(b, v);
  const std::uint16_t sum = internet_sum(b, ip, b.size());
  b[ip + 10] = static_cast<std::uint8_t>(sum >> 8);
  b[ip + 11] = static_cast<std::uint8_t>(sum);
  put16(b, of.from_port);
  put16(b, of.to_port);
  if (of.protocol == 17) {
    put16(b, header + data);
    put16(b, 0);
  } else {
    for (const unsigned v : {0u, 0u, 0u, 0u, 0x5010u, 100u, 0u, 0u}) put16(b, v);
  }
  b.resize(b.size() + data - 4, 0x5a);
  put16(b, number >> 16);
  put16(b, number & 0xffff);
  return b;
}

raw_rule request_of(const wish& w, std::uint32_t qpn, std::uint16_t priority, bool lifo) {
  raw_rule r(qpn, priority);
  if (lifo) r.with(f::flags, static_cast<std::uint8_t>(f::flag_loopback | f::flag_lifo));
  if (w.ethernet()) {
    r.ethernet(w.mac.value_or(bytes(6)), w.mac ? bytes(6, 0xff) : bytes(6));
    std::uint8_t* const h = r.m.data() + r.length - f::ethernet_bytes;
    if (w.vid) {
      abi::set(h, f::vlan, *w.vid);
      abi::set(h, f::vlan_mask, std::uint16_t{0xffff});
    }
    if (w.ether_type) {
      abi::set(h, f::ether_type_enable, 1);
      abi::set(h, f::ether_type, *w.ether_type);
    }
  }
  if (w.ipv4) {
    std::uint8_t* const h = r.add(f::id_ipv4, f::ipv4_bytes);
    if (w.to) abi::set(h, f::destination_ip, *w.to), abi::set(h, f::destination_ip_mask, ~0u);
    if (w.from) abi::set(h, f::source_ip, *w.from), abi::set(h, f::source_ip_mask, ~0u);
  }
  if (w.protocol != 0) {
    std::uint8_t* const h = r.add(w.protocol == 6 ? f::id_tcp : f::id_udp, f::ports_bytes);
    constexpr std::uint16_t whole = 0xffff;
    if (w.to_port) abi::set(h, f::destination_port, *w.to_port), abi::set(h, f::destination_port_mask, whole);
    if (w.from_port) abi::set(h, f::source_port, *w.from_port), abi::set(h, f::source_port_mask, whole);
  }
  return r;
}

/// The rules that there are, in the order in which they are asked.
class rule_list {
 public:
  struct rule {
    std::uint64_t id = 0;
    unsigned function = 0, ring = 0;
    std::uint16_t priority = 0;
    wish match;
  };
  explicit rule_list(std::array<bytes, functions + 1> macs) : macs_(std::move(macs)) {}

  /// Of a function: nothing but frames to itself, or copies of a group's. False: it may not have this one.
  bool make_own(unsigned function, wish& w, std::uint16_t& priority) const {
    if (function == physical) return w.ethernet() || w.ipv4 || w.protocol != 0;
    if (!w.ethernet()) {
      w.mac = macs_[function];
      return w.ipv4 || w.protocol != 0;
    }
    if (!w.mac) return false;
    if (!w.is_group()) return *w.mac == macs_[function];
    priority = f::domain_nic;
    return !w.vid && !w.ether_type && !w.ipv4 && w.protocol == 0;
  }
  bool has(unsigned ring, const wish& w, std::uint16_t priority) const {
    return std::any_of(rules_.begin(), rules_.end(),
                       [&](const rule& r) { return r.ring == ring && r.priority == priority && r.match == w; });
  }
  /// Beside those of the same match, else behind or (`lifo`) before the others of its priority.
  void add(const rule& r, bool lifo) {
    const auto same = std::find_if(rules_.begin(), rules_.end(),
                                   [&r](const rule& o) { return o.priority == r.priority && o.match == r.match; });
    if (same != rules_.end()) {
      rules_.insert(same, r);
      return;
    }
    rules_.insert(
        std::find_if(rules_.begin(), rules_.end(),
                     [&](const rule& o) { return lifo ? o.priority >= r.priority : o.priority > r.priority; }),
        r);
  }
  void remove(std::uint64_t id) {
    rules_.erase(std::find_if(rules_.begin(), rules_.end(), [id](const rule& r) { return r.id == id; }));
  }
  void remove_all(unsigned function) {
    rules_.remove_if([function](const rule& r) { return r.function == function; });
  }
  /// Rings that get the frame.
  std::set<unsigned> takers(const frame_fields& of) const {
    std::set<unsigned> rings;
    const rule* first = nullptr;
    for (const rule& r : rules_) {
      if (first == nullptr && fits(r.match, of)) first = &r;
      if (first != nullptr && r.priority == first->priority && r.match == first->match) rings.insert(r.ring);
    }
    return rings;
  }
  const std::list<rule>& all() const { return rules_; }
  std::size_t of(unsigned function) const {
    return static_cast<std::size_t>(
        std::count_if(rules_.begin(), rules_.end(), [function](const rule& r) { return r.function == function; }));
  }

 private:
  const std::array<bytes, functions + 1> macs_;
  std::list<rule> rules_;
};

class FlowSequences : public testing::TestWithParam<unsigned> {
 protected:
  unsigned below(unsigned limit) { return static_cast<unsigned>(random_() % limit); }
  template <class T>
  T one_of(std::initializer_list<T> list) {
    return *(list.begin() + below(static_cast<unsigned>(list.size())));
  }
  bytes some_group() { return one_of<bytes>({{0x01, 0, 0x5e, 1, 2, 3}, {0x33, 0x33, 0, 0, 0, 9}, broadcast}); }
  bytes some_mac() { return below(3) != 0 ? macs_[below(functions + 1)] : some_group(); }
  wish some_wish(unsigned function) {
    wish w;
    if (below(4) == 0) {
      w.mac = some_group();
      return w;
    }
    if (below(4) != 0) w.mac = below(5) == 0 ? some_mac() : macs_[function];
    if (below(4) == 0) w.vid = one_of<std::uint16_t>({5, 6});
    if (below(8) == 0) w.ether_type = one_of<std::uint16_t>({0x0800, 0x0806});
    if (w.is_group() && below(3) != 0) return w;
    w.ipv4 = below(2) == 0;
    if (w.ipv4 && below(2) == 0) w.to = one_of<std::uint32_t>({0x0a000001, 0x0a000002});
    if (w.ipv4 && below(3) == 0) w.from = one_of<std::uint32_t>({0x0b000001, 0x0b000002});
    w.protocol = one_of<unsigned>({0, 0, 6, 17});
    if (w.protocol != 0 && below(2) == 0) w.to_port = one_of<std::uint16_t>({80, 5000});
    if (w.protocol != 0 && below(3) == 0) w.from_port = one_of<std::uint16_t>({1000, 2000});
    return w;
  }
  frame_fields some_frame() {
    frame_fields of;
    of.mac = some_mac();
    if (below(3) == 0) of.vid = one_of<std::uint16_t>({5, 6});
    of.to = one_of<std::uint32_t>({0x0a000001, 0x0a000002});
    of.from = one_of<std::uint32_t>({0x0b000001, 0x0b000002});
    of.protocol = one_of<unsigned>({6, 17});
    of.to_port = one_of<std::uint16_t>({80, 5000});
    of.from_port = one_of<std::uint16_t>({1000, 2000});
    return of;
  }
  host_driver::device& driver(unsigned function) { return node_->device(function); }
  void make_rings(unsigned function) {
    for (unsigned i = 0; i < rings_each; ++i) {
      hosts::endpoint end = end_of(*node_, function);
      auto& ring = rings_[function * rings_each + i];
      ring = std::make_unique<station>(end);
      ring->post_receives(16);
    }
  }
  void attach(rule_list& list, unsigned function) {
    wish w = some_wish(function);
    const unsigned ring = function * rings_each + below(rings_each);
    std::uint16_t priority = static_cast<std::uint16_t>(one_of<unsigned>({f::domain_verbs, f::domain_nic}) + below(2));
    const bool lifo = below(6) == 0;
    const raw_rule r = request_of(w, rings_[ring]->qp()->qp_num, priority, lifo);
    const bool may = list.make_own(function, w, priority);
    const unsigned expected = !may ? bad_param : list.has(ring, w, priority) ? resource_busy : ok;
    std::uint64_t id = 0;
    const unsigned status = r.attach(driver(function), &id) == 0 ? ok : driver(function).commands().last_status();
    ASSERT_EQ(status, expected) << "function " << function;
    ++answers_[expected];
    if (status == ok) list.add({id, function, ring, priority, w}, lifo);
  }
  int detach(unsigned by, std::uint64_t id) {
    return driver(by).commands().command(abi::opcode::flow_steering_detach, 0, 0, id);
  }
  void send(station& sender, const rule_list& list, std::uint32_t number) {
    const frame_fields of = some_frame();
    const bytes frame = build(of, number);
    std::set<unsigned> expected = list.takers(of), got;
    sender.send(frame);
    ASSERT_EQ(sender.wait_sent().status, IBV_WC_SUCCESS);
    node_->bus(0).spend_ps(10 * us);
    for (unsigned i = 0; i < rings_.size(); ++i)
      for (arrival a = rings_[i]->poll(); !a.frame.empty(); a = rings_[i]->poll()) {
        EXPECT_TRUE(got.insert(i).second) << "twice";
        EXPECT_EQ(a.frame, frame);
        rings_[i]->post_receives(1);
        const unsigned owner = i / rings_each;
        EXPECT_TRUE(owner == physical || of.mac == macs_[owner] || (of.mac[0] & 1) != 0) << "another one's frame";
      }
    ASSERT_EQ(got, expected) << "frame " << number;
    ++by_takers_[std::min<std::size_t>(expected.size(), 3)];
  }

  std::mt19937 random_{GetParam()};
  hosts::node* node_ = nullptr;
  std::array<bytes, functions + 1> macs_;
  std::array<std::unique_ptr<station>, (functions + 1) * rings_each> rings_;
  std::array<unsigned, 16> answers_{};
  std::array<unsigned, 4> by_takers_{};
};

TEST_P(FlowSequences, FramesGoWhereTheListSays) {
  hosts::two_nodes system(managed_cards(functions));
  run(system, [&] {
    node_ = &system.node_b();
    hosts::endpoint from = end_of(system.node_a(), 0);
    station sender(from);
    for (unsigned i = 0; i <= functions; ++i) {
      macs_[i] = mac_of(driver(i));
      make_rings(i);
    }
    const host_driver::resource_tracker& tracker = node_->master().tracker();
    rule_list list(macs_);
    unsigned detached = 0, resets = 0;
    for (std::uint32_t step = 0; step < 2500 && !HasFatalFailure(); ++step) {
      const unsigned function = below(functions + 1), what = below(100);
      const auto& all = list.all();
      if (what < (step / 200 % 2 == 0 ? 40u : 25u)) {
        attach(list, function);
      } else if (what < 60 && !all.empty()) {
        const rule_list::rule& r = *std::next(all.begin(), below(static_cast<unsigned>(all.size())));
        const unsigned thief = 1 + below(functions);
        if (thief != r.function) {
          ASSERT_NE(detach(thief, r.id), 0) << "another one's rule";
        }
        ASSERT_EQ(detach(r.function, r.id), 0);
        ASSERT_NE(detach(r.function, r.id), 0) << "once";
        list.remove(std::uint64_t{r.id});
        ++detached;
      } else if (what == 60 && function != physical && below(3) == 0) {
        initiate_reset(node_->bus(function));
        node_->bus(0).spend_ps(2000 * us);
        list.remove_all(function);
        ASSERT_EQ(driver(function).abandon(), 0);
        ASSERT_EQ(driver(function).open(), 0);
        make_rings(function);
        ++resets;
      } else {
        send(sender, list, step);
      }
      for (unsigned i = 1; i <= functions; ++i)
        ASSERT_EQ(tracker.of(i, host_driver::resource_flow).size(), list.of(i)) << step;
    }
    EXPECT_GT(answers_[ok], 300u);
    EXPECT_GT(answers_[bad_param], 50u);
    EXPECT_GT(answers_[resource_busy], 5u);
    EXPECT_GT(detached, 200u);
    EXPECT_GT(resets, 1u);
    for (const unsigned frames : by_takers_) EXPECT_GT(frames, 10u) << "frames for none, one, two and more";
    RecordProperty("rules", static_cast<int>(answers_[ok]));
  });
}

INSTANTIATE_TEST_SUITE_P(Seeds, FlowSequences, testing::Range(1u, 5u));

}  // namespace
}  // namespace rnic::system_test
