// SPDX-License-Identifier: Apache-2.0
// Frames of anybody at the end of the cable, for those who speak with it: the agents of LLDP and LACP, and a host's
// memberships in groups (IGMP, MLD). Time passes as the input says, and they are called when they ask for it.
#include <algorithm>
#include <vector>

#include "host_driver/dcb/lldp_agent.h"
#include "host_driver/groups/memberships.h"
#include "host_driver/lacp/lacp_agent.h"
#include "model/wire/lldp.h"
#include "testbenches/fuzz/input.h"
#include "testbenches/fuzz/property.h"

namespace rnic::fuzz {
namespace {

using namespace host_driver;

constexpr std::uint64_t ps_per_ms = 1'000'000'000, ps_per_s = 1000 * ps_per_ms, never = ~std::uint64_t{0};
constexpr mac_address own{2, 0, 0, 0, 0, 1}, other{2, 0, 0, 0, 0, 2};
constexpr std::size_t ethernet_bytes = 14, most_frame = 1514;

void try_decode(const std::uint8_t* data, std::size_t size) {
  wire::lldp_faults faults;
  const auto unit = wire::decode_lldp(data, size, faults);
  if (!unit) return;
  const std::vector<std::uint8_t> bytes = wire::encode_lldp(*unit);
  wire::lldp_faults none;
  const auto again = wire::decode_lldp(bytes.data(), bytes.size(), none);
  demand(again.has_value() && none.tlvs_discarded == 0 && none.tlvs_unrecognized == 0,
         "what was understood can be said");
  demand(wire::encode_lldp(*again) == bytes, "and says the same again");
}

/// Frames as they come: bytes, or such behind a header that somebody would look at.
std::vector<std::uint8_t> frame_of(input& in) {
  const unsigned kind = in.below(4);
  std::vector<std::uint8_t> frame;
  if (kind != 0) {
    constexpr std::uint16_t types[] = {0, wire::lldp_ethertype, 0x0800, 0x86dd};
    const mac_address to = kind == 1 ? wire::lldp_nearest_bridge : mac_address{0x01, 0x00, 0x5e, 0, 0, 1};
    frame.assign(to.begin(), to.end());
    const mac_address& from = in.below(8) == 0 ? own : other;
    frame.insert(frame.end(), from.begin(), from.end());
    frame.back() = static_cast<std::uint8_t>(frame.back() + in.below(16));
    frame.push_back(static_cast<std::uint8_t>(types[kind] >> 8));
    frame.push_back(static_cast<std::uint8_t>(types[kind]));
  }
  const auto rest = in.bytes(in.u16() % (most_frame - ethernet_bytes));
  frame.insert(frame.end(), rest.begin(), rest.end());
  return frame;
}

class outlet final : public frame_output_if {
 public:
  void transmit(const std::uint8_t* frame, std::size_t length) override {
    demand(length >= ethernet_bytes && length <= most_frame, "what is sent is a frame");
    demand(std::equal(own.begin(), own.end(), frame + 6), "from the own address");
    last.assign(frame, frame + length);
    ++sent;
  }
  std::vector<std::uint8_t> last;
  std::uint64_t sent = 0;
};

/// Calls `who` whenever it asks for it until `until`. That a time that was served comes again is a standstill.
template <class Who, class Next, class Tick>
void pass(Who& who, std::uint64_t& now, std::uint64_t until, Next next, Tick tick) {
  for (std::uint64_t at = next(who); at <= until; at = next(who)) {
    now = std::max(now, at);
    tick(who, now);
    demand(next(who) > now, "what was due is done");
  }
  now = std::max(now, until);
}

void play_lldp(input in) {
  dcb::lldp_timers timers;
  timers.tx_interval_s = 1 + in.u8();
  timers.fast_tx_s = 1 + in.u8();
  timers.tx_hold = 1 + in.below(100);
  timers.credit_max = 1 + in.below(10);
  outlet out;
  dcb::lldp_agent agent(own, timers, out);
  wire::lldp_unit unit;
  unit.chassis = {wire::lldp_id::chassis_mac, {own.begin(), own.end()}};
  unit.port = {wire::lldp_id::port_mac, {own.begin(), own.end()}};
  std::uint64_t now = ps_per_s;
  const std::uint64_t begun = now;
  agent.start(unit, now);
  while (!in.empty()) {
    switch (in.below(4)) {
      case 0:
        pass(
            agent, now, now + in.u16() * 10 * ps_per_ms, [](auto& a) { return a.next_ps(); },
            [](auto& a, std::uint64_t at) { a.tick(at); });
        break;
      case 1:
        unit.system_name = in.text(in.u8());
        agent.change(unit, now);
        break;
      default: {
        const auto frame = frame_of(in);
        agent.receive(frame.data(), frame.size(), now);
      }
    }
    demand(agent.neighbours().size() <= dcb::lldp_agent::most_neighbours, "there is room for so many neighbours");
    demand(out.sent <= timers.credit_max + (now - begun) / ps_per_s + 1, "no more is sent than there is credit for");
    wire::lldp_faults faults;
    demand(out.last.empty() ||
               wire::decode_lldp(out.last.data() + ethernet_bytes, out.last.size() - ethernet_bytes, faults),
           "the own unit can be understood");
  }
  agent.stop(now);
  demand(agent.next_ps() == never, "one that has stopped asks for no time");
}

class two_outlets final : public lacp::port_output_if {
 public:
  void transmit(unsigned port, const std::uint8_t* frame, std::size_t length) override {
    demand((port == 1 || port == 2) && frame[12] == wire::slow_protocols_ethertype >> 8, "by one of two ports");
    demand(length >= ethernet_bytes && length <= most_frame, "what is sent is a frame");
    ++sent;
  }
  std::uint64_t sent = 0;
};

void play_lacp(input in) {
  lacp::settings settings;
  settings.active = in.bit();
  two_outlets out;
  lacp::lacp_agent agent(own, {own, mac_address{2, 0, 0, 0, 0, 3}}, settings, out);
  std::uint64_t now = ps_per_s, heard = 0;
  const std::uint64_t begun = now;
  while (!in.empty()) {
    const unsigned port = 1 + in.below(2);
    switch (in.below(4)) {
      case 0:
        pass(
            agent, now, now + in.u16() * 10 * ps_per_ms, [](auto& a) { return a.next_ps(); },
            [](auto& a, std::uint64_t at) { a.tick(at); });
        break;
      case 1:
        agent.set_link(port, in.below(4) != 0, in.bit() ? 40'000 : 10'000, now);
        break;
      default: {
        std::vector<std::uint8_t> frame(wire::slow_protocols_address.begin(), wire::slow_protocols_address.end());
        frame.insert(frame.end(), other.begin(), other.end());
        frame.push_back(static_cast<std::uint8_t>(wire::slow_protocols_ethertype >> 8));
        frame.push_back(static_cast<std::uint8_t>(wire::slow_protocols_ethertype & 0xff));
        const auto rest = in.bytes(in.below(128));
        frame.insert(frame.end(), rest.begin(), rest.end());
        agent.receive(port, frame.data(), frame.size(), now);
        ++heard;
      }
    }
    demand(agent.distributing() < 4, "there are two ports");
    // Three units a second and port, and an answer to each marker.
    demand(out.sent <= 2 * 3 * ((now - begun) / ps_per_s + 2) + heard, "no more is sent than is permitted");
  }
}

void play_groups(input in) {
  outlet out;
  groups::interface_addresses from;
  from.mac = own;
  if (in.bit()) from.vlan = static_cast<std::uint16_t>(1 + in.below(255));
  from.ipv4 = ipv4_gid(0x0a000001);
  from.link_local = default_gid(own);
  groups::memberships member(from, out, static_cast<groups::igmp_version>(in.below(3)), in.u8());
  const auto group = [&in] {
    gid_bytes g{0xff, static_cast<std::uint8_t>(in.below(16))};
    if (in.bit())
      g = ipv4_gid(0xe0000000u | in.below(4));
    else
      g[15] = static_cast<std::uint8_t>(in.below(4));
    return g;
  };
  std::uint64_t now = ps_per_s;
  const auto go_on = [&](std::uint64_t until) {
    pass(
        member, now, until, [](auto& m) { return m.deadline_ps(); }, [](auto& m, std::uint64_t at) { m.tick(at); });
  };
  while (!in.empty()) {
    switch (in.below(8)) {
      case 0:
        member.join(group(), now);
        break;
      case 1:
        member.leave(group(), now);
        break;
      case 2:
        go_on(now + in.u16() * 10 * ps_per_ms);
        break;
      case 6:
        member.report_again(now);
        break;
      case 7:
        member.leave_all(now);
        break;
      default: {
        const auto frame = frame_of(in);
        member.receive(frame.data(), frame.size(), now);
      }
    }
  }
  go_on(now + 3600 * 24 * ps_per_s);  // more than any query can give time for
  demand(member.deadline_ps() == never, "without queries nothing more is said");
}

}  // namespace
}  // namespace rnic::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rnic::fuzz;
  try_decode(data, size);
  play_lldp(input(data, size));
  play_lacp(input(data, size));
  play_groups(input(data, size));
  return 0;
}
