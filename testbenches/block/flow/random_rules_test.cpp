// SPDX-License-Identifier: Apache-2.0
// Random sets of rules, from the mailbox through firmware into the table, and random packets, from their bytes: who
// gets them, against a plain list of rules that are looked at one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <systemc>
#include <vector>

#include "firmware/flow_rules.h"
#include "model/ethernet/steering_cr.h"
#include "model/flow/flow_table.h"
#include "model/sim/clock_domain.h"
#include "model/sim/timebase.h"
#include "model/transport/transport_cr.h"

namespace rnic::flow {
namespace {

using octets = std::vector<std::uint8_t>;
using register_bus::cr_base;

// ---------------------------------------------------------------- the reference

/// A field of a header: bits that are compared, and what they have to be.
struct test_of_field {
  std::uint64_t value = 0, mask = 0;
  bool operator==(const test_of_field& o) const { return mask == o.mask && (value & mask) == (o.value & o.mask); }
  bool holds(std::uint64_t of) const { return (of & mask) == (value & mask); }
};
enum class carries { nothing, tcp, udp };
struct packet {
  unsigned port = 1;
  std::uint64_t dmac = 0, smac = 0;
  std::optional<std::uint16_t> tci;
  std::uint16_t type = 0;
  bool ipv4 = false, ipv6 = false, fragment = false, options = false;
  std::uint32_t source = 0, destination = 0;
  carries what = carries::nothing;
  std::uint16_t from = 0, to = 0;
  // Instead of all that, a datagram of RoCE to a group.
  bool roce = false;
  std::uint32_t qpn = 0;
  std::array<std::uint64_t, 2> gid{};
};
struct plain_rule {
  std::uint64_t id = 0;
  unsigned type = 0, priority = 0, port = 1;
  std::uint32_t qpn = 0;
  bool lifo = false, exclusive = false, loopback = false;
  bool ethernet = false, has_type = false, ip = false, roce = false;
  carries l4 = carries::nothing;
  test_of_field dmac, smac, vlan, source, destination, from, to, group_qpn, gid[2];
  std::uint16_t ether_type = 0;
  bool is_default() const { return type == 1 || type == 3; }
  bool is_sniffer() const { return type == 6 || type == 7; }

  bool same_match(const plain_rule& o) const {
    return port == o.port && type == o.type && roce == o.roce && has_type == o.has_type &&
           (!has_type || ether_type == o.ether_type) && ip == o.ip && l4 == o.l4 && dmac == o.dmac && smac == o.smac &&
           vlan == o.vlan && source == o.source && destination == o.destination && from == o.from && to == o.to &&
           group_qpn == o.group_qpn && gid[0] == o.gid[0] && gid[1] == o.gid[1];
  }
  bool takes(const packet& p) const {
    if (p.port != port || p.roce != roce) return false;
    if (roce) return group_qpn.holds(p.qpn) && gid[0].holds(p.gid[0]) && gid[1].holds(p.gid[1]);
    const bool group = (p.dmac >> 40 & 1) != 0;
    if ((type == 3 || type == 7) && !group) return false;
    if (type == 6 && group) return false;
    if (!dmac.holds(p.dmac) || !smac.holds(p.smac) || (has_type && ether_type != p.type)) return false;
    if (vlan.mask != 0 && (!p.tci || !vlan.holds(*p.tci))) return false;
    if (ip && (!p.ipv4 || !source.holds(p.source) || !destination.holds(p.destination))) return false;
    return l4 == carries::nothing || (p.what == l4 && !p.fragment && from.holds(p.from) && to.holds(p.to));
  }
};

// ---------------------------------------------------------------- bytes

void put(octets& to, std::size_t at, std::uint64_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) to.at(at + i) = static_cast<std::uint8_t>(value >> 8 * (bytes - 1 - i));
}

/// struct mlx4_net_trans_rule_hw_ctrl and the headers behind it (include/linux/mlx4/device.h).
octets mailbox_of(const plain_rule& r) {
  octets m(16);
  put(m, 0, r.priority, 2);
  m[2] = static_cast<std::uint8_t>(r.type);
  m[3] = static_cast<std::uint8_t>((r.lifo ? 1 : 0) | (r.exclusive ? 4 : 0) | (r.loopback ? 8 : 0));
  m[7] = static_cast<std::uint8_t>(r.port);
  put(m, 8, r.qpn, 4);
  const auto header = [&m](unsigned size, unsigned id) {
    const std::size_t at = m.size();
    m.resize(at + size);
    m[at] = static_cast<std::uint8_t>(size / 4);
    put(m, at + 2, id, 2);
    return at;
  };
  if (r.ethernet) {
    const std::size_t h = header(48, 0xe001);
    put(m, h + 10, r.dmac.value, 6);
    put(m, h + 18, r.dmac.mask, 6);
    put(m, h + 26, r.smac.value, 6);
    put(m, h + 34, r.smac.mask, 6);
    m[h + 41] = r.has_type ? 1 : 0;
    put(m, h + 42, r.ether_type, 2);
    put(m, h + 44, r.vlan.mask, 2);
    put(m, h + 46, r.vlan.value, 2);
  }
  if (r.ip) {
    const std::size_t h = header(24, 0xe002);
    put(m, h + 8, r.destination.value, 4);
    put(m, h + 12, r.destination.mask, 4);
    put(m, h + 16, r.source.value, 4);
    put(m, h + 20, r.source.mask, 4);
  }
  if (r.l4 != carries::nothing) {
    const std::size_t h = header(24, r.l4 == carries::tcp ? 0xe004 : 0xe006);
    put(m, h + 10, r.to.value, 2);
    put(m, h + 14, r.to.mask, 2);
    put(m, h + 18, r.from.value, 2);
    put(m, h + 22, r.from.mask, 2);
  }
  if (r.roce) {
    const std::size_t h = header(48, 0xe005);
    put(m, h + 8, r.group_qpn.value, 4);
    put(m, h + 12, r.group_qpn.mask, 4);
    for (unsigned i = 0; i < 2; ++i) {
      put(m, h + 16 + 8 * i, r.gid[i].value, 8);
      put(m, h + 32 + 8 * i, r.gid[i].mask, 8);
    }
  }
  return m;
}

/// Entries in the order in which they are asked.
class reference {
 public:
  abi::status attach(const plain_rule& r) {
    // For groups by its type and for a single address by its header, or the other way round.
    const bool of_group = (r.dmac.value & r.dmac.mask) >> 40 & 1;
    if (r.is_sniffer() && (r.dmac.mask >> 40 & 1) != 0 && of_group != (r.type == 7)) return abi::status::bad_param;
    std::vector<plain_rule*> mates;
    unsigned sniffers = 0;
    for (auto& e : entries_)
      for (plain_rule& other : e) {
        sniffers += other.is_sniffer() ? 1 : 0;
        const bool mate = r.is_default() ? other.is_default() && other.port == r.port
                                         : other.same_match(r) && (r.is_sniffer() || other.priority == r.priority);
        if (mate) mates.push_back(&other);
      }
    for (const plain_rule* other : mates)
      if (other->exclusive || r.exclusive || other->qpn == r.qpn) return abi::status::resource_busy;
    if (r.is_sniffer() && sniffers == 8) return abi::status::exceed_lim;
    if (mates.empty()) {
      entries_.insert(r.lifo ? entries_.begin() : entries_.end(), std::vector<plain_rule>{r});
      return abi::status::ok;
    }
    for (auto& e : entries_)
      if (&e.front() <= mates[0] && mates[0] <= &e.back()) {
        e.push_back(r);
        break;
      }
    return abi::status::ok;
  }
  void detach(std::uint64_t id) {
    for (auto& e : entries_) e.erase(std::remove_if(e.begin(), e.end(), [&](auto& r) { return r.id == id; }), e.end());
    entries_.erase(std::remove_if(entries_.begin(), entries_.end(), [](auto& e) { return e.empty(); }), entries_.end());
  }
  /// In no order.
  std::vector<std::uint32_t> takers(const packet& p, bool own) const {
    std::vector<std::uint32_t> all;
    const auto give = [&](const plain_rule& r) {
      if (!own || r.loopback) all.push_back(r.qpn);
    };
    const std::vector<plain_rule>* best = nullptr;
    for (const auto& e : entries_) {
      const bool regular = !e[0].is_default() && !e[0].is_sniffer();
      if (regular && e[0].takes(p) && (best == nullptr || e[0].priority < (*best)[0].priority)) best = &e;
      if (e[0].is_sniffer() && e[0].takes(p))
        for (const plain_rule& r : e) give(r);
    }
    if (best != nullptr)
      for (const plain_rule& r : *best) give(r);
    else
      for (const auto& e : entries_)
        for (const plain_rule& r : e)
          if (r.is_default() && r.takes(p)) give(r);
    std::sort(all.begin(), all.end());
    return all;
  }
  std::string text() const {
    std::string all;
    for (const auto& e : entries_) {
      all += "entry\n";
      for (const plain_rule& r : e) {
        all += "  priority " + std::to_string(r.priority) + " type " + std::to_string(r.type) + " ->" +
               std::to_string(r.qpn) + (r.loopback ? " loopback:" : ":");
        for (const std::uint8_t b : mailbox_of(r)) {
          constexpr char digits[] = "0123456789abcdef";
          all += {digits[b >> 4], digits[b & 15]};
        }
        all += "\n";
      }
    }
    return all;
  }
  std::vector<std::uint64_t> ids() const {
    std::vector<std::uint64_t> all;
    for (const auto& e : entries_)
      for (const plain_rule& r : e) all.push_back(r.id);
    return all;
  }

 private:
  std::vector<std::vector<plain_rule>> entries_;
};

octets frame_of(const packet& p) {
  octets b(14);
  put(b, 0, p.dmac, 6);
  put(b, 6, p.smac, 6);
  if (p.tci) {
    b.resize(18);
    put(b, 12, 0x8100, 2);
    put(b, 14, *p.tci, 2);
  }
  put(b, b.size() - 2, p.type, 2);
  const unsigned protocol = p.what == carries::tcp ? 6 : p.what == carries::udp ? 17 : 1;
  if (p.ipv4 || p.ipv6) {
    const std::size_t at = b.size();
    const unsigned head = p.ipv6 ? 40 : p.options ? 28 : 20;
    b.resize(at + head + 40);
    if (p.ipv4) {
      b[at] = static_cast<std::uint8_t>(0x40 | head / 4);
      put(b, at + 2, head + 40, 2);
      put(b, at + 6, p.fragment ? 0x2000 : 0x4000, 2);
      b[at + 8] = 64;
      b[at + 9] = static_cast<std::uint8_t>(protocol);
      put(b, at + 12, p.source, 4);
      put(b, at + 16, p.destination, 4);
    } else {
      b[at] = 0x60;
      put(b, at + 4, 40, 2);
      b[at + 6] = static_cast<std::uint8_t>(protocol);
      b[at + 7] = 64;
    }
    put(b, at + head, p.from, 2);
    put(b, at + head + 2, p.to, 2);
    if (p.what == carries::tcp) b[at + head + 12] = 0x50;
    if (p.what == carries::udp) put(b, at + head + 4, 40, 2);
  }
  b.resize(std::max<std::size_t>(b.size(), 60));
  return b;
}

// ---------------------------------------------------------------- what is random

class dice {
 public:
  explicit dice(unsigned seed) : random_(seed) {}
  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }
  bool one_in(unsigned n) { return below(n) == 0; }
  template <class T>
  T of(std::initializer_list<T> all) {
    return all.begin()[below(static_cast<unsigned>(all.size()))];
  }
  std::uint64_t mac() {
    return of<std::uint64_t>({0x020000000b01, 0x020000000b02, 0x02000000ff02, 0x01005e000001, 0xffffffffffff});
  }
  std::uint32_t ip() { return of<std::uint32_t>({0x0a000001, 0x0a000002, 0x0a010001}); }
  std::uint16_t number() { return of<std::uint16_t>({80, 81, 0x1250}); }
  std::uint16_t tci() { return of<std::uint16_t>({5, 6, 0x6005, 0}); }
  std::array<std::uint64_t, 2> gid() {
    return {of<std::uint64_t>({0xff0e'0000'0000'0000, 0}), of<std::uint64_t>({9, 10, 0xffff'e000'0001})};
  }
  /// `full`: all bits of the field.
  test_of_field test(std::uint64_t value, std::uint64_t full) {
    return {value, of<std::uint64_t>({0, full, full, full & 0xffff'ffff'ffff'ff00, full & 1})};
  }

  packet any_packet() {
    packet p;
    p.port = 1 + below(2);
    p.roce = one_in(6);
    p.qpn = one_in(2) ? 0xffffff : 0x44;
    p.gid = gid();
    p.dmac = mac();
    p.smac = mac();
    if (one_in(2)) p.tci = tci();
    p.ipv4 = !one_in(3);
    p.ipv6 = !p.ipv4 && one_in(2);
    p.type = p.ipv4 ? 0x0800 : p.ipv6 ? 0x86dd : of<std::uint16_t>({0x0806, 0x88b5});
    p.options = one_in(4);
    p.source = ip();
    p.destination = ip();
    if (p.ipv4 || p.ipv6) p.what = of({carries::nothing, carries::tcp, carries::udp});
    p.fragment = p.ipv4 && one_in(5);
    p.from = number();
    p.to = number();
    return p;
  }
  plain_rule any_rule() {
    plain_rule r;
    r.type = of({0u, 0u, 0u, 0u, 0u, 0u, 1u, 3u, 6u, 7u});
    // Domains of the kernel, and priorities in them; queue pairs of several functions.
    r.priority = r.type == 0 ? of({0x1000u, 0x1003u, 0x2000u, 0x3000u, 0x5000u}) : 0u;
    r.port = 1 + below(2);
    r.qpn = 0x400 * below(4) + below(3);
    r.lifo = one_in(4);
    r.exclusive = one_in(12);
    r.loopback = !one_in(4);
    if (r.is_default()) return r;
    if (r.type == 0 && one_in(6)) {
      r.roce = true;
      r.group_qpn = test(0xffffff, 0xffffff);
      const auto named = gid();
      for (unsigned i = 0; i < 2; ++i) r.gid[i] = test(named[i], ~std::uint64_t{0});
      return r;
    }
    r.ip = one_in(3);
    r.l4 = of({carries::nothing, carries::nothing, carries::tcp, carries::udp});
    r.ethernet = !one_in(4) || (r.type == 0 && !r.ip && r.l4 == carries::nothing);
    if (r.ethernet) {
      r.dmac = test(mac(), 0xffffffffffff);
      if (one_in(3)) r.smac = test(mac(), 0xffffffffffff);
      if (one_in(3)) r.vlan = {tci(), of<std::uint64_t>({0x0fff, 0xffff, 0xe000})};
      r.has_type = one_in(4);
      r.ether_type = of<std::uint16_t>({0x0800, 0x0806, 0x86dd});
    }
    if (r.ip) {
      r.source = test(ip(), 0xffffffff);
      r.destination = test(ip(), 0xffffffff);
    }
    if (r.l4 != carries::nothing) {
      r.from = test(number(), 0xffff);
      r.to = test(number(), 0xffff);
    }
    return r;
  }

 private:
  std::mt19937 random_;
};

// ---------------------------------------------------------------- the way through firmware and tables

struct owner : sim::clocked_block {
  owner(const std::string& name, sim::clock_domain& d, sim::statistics& stats)
      : clocked_block(name, d), table(name + ".flows", *this, wide(), stats) {}
  static flow_table_config wide() {
    flow_table_config c;
    c.rules = 128;
    c.compared_per_cycle = 4096;
    return c;
  }
  void tick() override {}
  flow_table table;
};

/// Registers of the two tables; there is nothing else.
struct tables_alone final : firmware::hardware_if {
  explicit tables_alone(sim::clock_domain& d, sim::statistics& stats)
      : frames("frames", d, stats), datagrams("datagrams", d, stats) {}
  flow_table* table_at(std::uint32_t address, std::uint32_t* offset) {
    const std::uint32_t first[] = {
        static_cast<std::uint32_t>(cr_base::steering) + ethernet::cr::flows,
        static_cast<std::uint32_t>(cr_base::transport) + transport::cr::multicast_offset + transport::cr::flows};
    for (unsigned t = 0; t < 2; ++t)
      if (*offset = address - first[t]; *offset < cr::bytes) return t == 0 ? &frames.table : &datagrams.table;
    return nullptr;
  }
  std::uint32_t cr_read(std::uint32_t address) override {
    std::uint32_t offset = 0;
    flow_table* const t = table_at(address, &offset);
    return t != nullptr ? t->cr_read(offset) : 0;
  }
  void cr_write(std::uint32_t address, std::uint32_t value) override {
    std::uint32_t offset = 0;
    if (flow_table* const t = table_at(address, &offset)) t->cr_write(offset, value);
  }
  bool dma_read(std::uint16_t, std::uint64_t, void*, std::size_t) override { return false; }
  bool dma_write(std::uint16_t, std::uint64_t, const void*, std::size_t) override { return false; }
  bool icm_read(std::uint64_t, void*, std::size_t) override { return false; }
  bool icm_write(std::uint64_t, const void*, std::size_t) override { return false; }
  void spend(std::uint64_t) override {}
  owner frames, datagrams;
};

std::vector<std::uint32_t> takers(tables_alone& hardware, payload::frame& f, const packet& p, bool own) {
  f.port = static_cast<std::uint8_t>(p.port - 1);
  flow_table& table = p.roce ? hardware.datagrams.table : hardware.frames.table;
  if (p.roce) {
    f.packet.bth.dest_qp = p.qpn;
    octets gid(16);
    put(gid, 0, p.gid[0], 8);
    put(gid, 8, p.gid[1], 8);
    std::copy(gid.begin(), gid.end(), f.packet.dgid.begin());
  } else {
    const octets b = frame_of(p);
    f.length = static_cast<std::uint32_t>(b.size());
    std::copy(b.begin(), b.end(), f.data());
  }
  table.begin(p.roce ? key_of_datagram(f) : key_of_frame(f), own);
  EXPECT_NE(table.step(), flow_table::result::waiting);
  std::vector<std::uint32_t> got = table.members();
  std::sort(got.begin(), got.end());
  return got;
}

class random_rules : public testing::TestWithParam<unsigned> {};

TEST_P(random_rules, a_packet_goes_to_whom_a_plain_list_says) {
  constexpr unsigned sets = 1'250, packets = 24;  // eight times: 10 000 sets
  sim::timebase base;
  sim::clock_domain core("core", base, {1000, 1, 0});
  sim::statistics stats;
  tables_alone hardware(core, stats);
  sc_core::sc_start(500, sc_core::SC_PS);
  const firmware::firmware_config config;
  firmware::chip chip(hardware, config);
  firmware::flow_rules rules(chip);
  payload::frame_pool pool;
  const payload::frame_ptr f = pool.get();
  f->begin = payload::frame::payload_start;
  dice d(GetParam());
  std::array<std::uint64_t, 3> by_number{};
  unsigned refused = 0;
  for (unsigned set = 0; set < sets; ++set) {
    rules.start(128);
    reference plain;
    for (unsigned steps = 4 + d.below(16); steps != 0; --steps) {
      const std::vector<std::uint64_t> ids = plain.ids();
      if (!ids.empty() && d.one_in(5)) {
        const std::uint64_t gone = ids[d.below(static_cast<unsigned>(ids.size()))];
        ASSERT_EQ(rules.detach(gone), abi::status::ok);
        plain.detach(gone);
        continue;
      }
      plain_rule r = d.any_rule();
      const octets mailbox = mailbox_of(r);
      const abi::status s = rules.attach(mailbox.data(), mailbox.size() / 4, 2, &r.id);
      ASSERT_EQ(s, plain.attach(r)) << "set " << set << " of seed " << GetParam();
      refused += s == abi::status::ok ? 0 : 1;
    }
    for (unsigned i = 0; i < packets; ++i) {
      const packet p = d.any_packet();
      const bool own = d.one_in(4);
      const std::vector<std::uint32_t> expected = plain.takers(p, own);
      ASSERT_EQ(takers(hardware, *f, p, own), expected)
          << "packet " << i << " of set " << set << " of seed " << GetParam() << (own ? ", its own: " : ": ")
          << testing::PrintToString(frame_of(p)) << '\n'
          << plain.text();
      ++by_number[std::min<std::size_t>(expected.size(), 2)];
    }
    for (const std::uint64_t id : plain.ids()) ASSERT_EQ(rules.detach(id), abi::status::ok);
  }
  for (const std::uint64_t n : by_number) EXPECT_GT(n, 500u) << "nobody, one, several";
  EXPECT_GT(refused, 50u);
}
INSTANTIATE_TEST_SUITE_P(flow, random_rules, testing::Range(1u, 9u));

}  // namespace
}  // namespace rnic::flow
