// SPDX-License-Identifier: Apache-2.0
// Raw packet queue pairs of a function that pretend to be another one, under what an administrator sets of functions.
#include <algorithm>

#include "model/abi/contexts.h"
#include "model/wire/bytes.h"
#include "model/wire/icrc.h"
#include "model/wire/packet.h"
#include "testbenches/system/ethernet/station.h"
#include "testbenches/system/functions/shared_card.h"

namespace rnic::system_test {
namespace {

using host_driver::command_channel;
using host_driver::function_settings;

constexpr std::uint64_t administered = 0x02ad'0000'0010;

bytes mac_of_function(const hosts::endpoint& e) {
  const auto& mac = e.device->port(1).mac;
  return {mac.begin(), mac.end()};
}

bytes from_address(bytes frame, const bytes& mac) {
  std::copy(mac.begin(), mac.end(), frame.begin() + 6);
  return frame;
}

bytes tagged(bytes frame, std::uint16_t type, std::uint16_t tci) {
  const std::uint16_t words[] = {type, tci};
  bytes tag;
  for (const std::uint16_t w : words)
    tag.insert(tag.end(), {static_cast<std::uint8_t>(w >> 8), static_cast<std::uint8_t>(w)});
  frame.insert(frame.begin() + 12, tag.begin(), tag.end());
  return frame;
}

/// Functions 1 and 2 of host a, of which 2 forges; host b looks at all that comes.
struct forge {
  explicit forge(hosts::two_nodes& system)
      : victim_end(end_of(system.node_a(), 1)), thief_end(end_of(system.node_a(), 2)), thief(thief_end), b(system.b()) {
    b.steer_all(IBV_FLOW_ATTR_ALL_DEFAULT);
    b.post_receives(8);
  }
  void lost(const bytes& frame, const char* what) {
    thief.send(frame);
    EXPECT_EQ(thief.wait_sent().status, IBV_WC_SUCCESS) << what << ": nobody says so";
    EXPECT_TRUE(b.silent()) << what;
  }
  hosts::endpoint victim_end, thief_end;
  station thief, b;
};

void with_forge(const function_settings& thief, const std::function<void(hosts::two_nodes&, forge&)>& body) {
  hosts::two_nodes_config c = shared_cards(2);
  c.node.function_settings = {{}, thief};
  hosts::two_nodes system(c);
  run(system, [&] {
    forge f(system);
    body(system, f);
  });
}

}  // namespace

/// Hardware compares the source with the row of the MAC table that the path names, and that is the administrator's.
TEST(Forgery, SourceAddressUnderACheckIsTheAdministrators) {
  function_settings s;
  s.spoof_check = true;
  s.mac = administered;
  with_forge(s, [](hosts::two_nodes& system, forge& f) {
    const bytes own = mac_of_function(f.thief_end);
    EXPECT_EQ(own, (bytes{0x02, 0xad, 0, 0, 0, 0x10}));
    f.lost(from_address(frames::udp4, mac_of_function(f.victim_end)), "the victim's");
    f.lost(from_address(frames::udp4, {0x02, 0xad, 0, 0, 0, 0x11}), "that of its other port");
    f.lost(from_address(frames::arp, broadcast), "a group's");
    EXPECT_EQ(tally(system, "a.adapter.requester.ethernet_blocked"), 3u);
    // Each segment of a large send has the header of the request.
    f.thief.send_segmented(from_address(frames::lso4_header, mac_of_function(f.victim_end)), frames::lso_body, 1000);
    EXPECT_TRUE(f.b.silent());
    EXPECT_EQ(tally(system, "a.adapter.requester.ethernet_blocked"), 6u);
    const bytes right = from_address(frames::udp4, own);
    f.thief.send(right);
    EXPECT_EQ(f.b.receive().frame, right);
  });
}

/// VST: no tag of the function's own, in whichever form, and the administrator's on what has none or a priority alone.
TEST(Forgery, AFunctionWithAVlanHasNoOther) {
  function_settings s;
  s.vlan = 50;
  s.priority = 2;
  with_forge(s, [](hosts::two_nodes& system, forge& f) {
    for (const std::uint16_t vid : std::initializer_list<std::uint16_t>{60, 50, 4094}) {
      f.lost(tagged(frames::udp4, 0x8100, vid), "a C-tag in the frame");
      f.lost(tagged(frames::udp4, 0x88a8, vid), "an S-tag in the frame");
    }
    EXPECT_EQ(tally(system, "a.adapter.requester.ethernet_blocked"), 6u);
    const auto comes_with = [&](const bytes& sent) {
      f.thief.send(sent);
      EXPECT_EQ(f.b.receive().frame, tagged(sent, 0x8100, 2 << 13 | 50));
    };
    comes_with(frames::udp4);
    const bytes priority = tagged(frames::udp4, 0x8100, 7 << 13);
    comes_with(priority);
    const bytes hidden = tagged(tagged(frames::udp4, 0x8100, 60), 0x8100, 7 << 13);  // behind a tag of priority alone
    comes_with(hidden);
  });
}

/// The same in the other direction: of what it is not in it gets nothing, and it does not see the tag, even where its
/// queue pair asks for it.
TEST(Forgery, AFunctionWithAVlanSeesNoTag) {
  function_settings s;
  s.vlan = 50;
  hosts::two_nodes_config c = shared_cards(2);
  c.node.function_settings = {{}, s};
  hosts::two_nodes system(c);
  run(system, [&] {
    hosts::endpoint end = end_of(system.node_a(), 2);
    station guest(end), b(system.b());  // which asks for whole frames
    ASSERT_NE(guest.steer(mac_of_function(end)), nullptr);
    guest.post_receives(4);
    const bytes plain = with_destination(frames::udp4, mac_of_function(end));
    b.send(plain);
    b.send(tagged(plain, 0x8100, 60));
    b.send(tagged(plain, 0x8100, 7 << 13));
    EXPECT_TRUE(guest.silent());
    b.send(tagged(plain, 0x8100, 50));
    const arrival a = guest.receive();
    EXPECT_EQ(a.frame, plain);
    EXPECT_EQ(a.plain.tci, 0u);
  });
}

/// VGT: frames have the tag that the function gives them.
TEST(Forgery, AFunctionWithoutAVlanTagsAsItLikes) {
  with_forge({}, [](hosts::two_nodes&, forge& f) {
    const bytes sent = tagged(frames::udp4, 0x8100, 60);
    f.thief.send(sent);
    EXPECT_EQ(f.b.receive().frame, sent);
  });
}

namespace {

/// The WRITE of 64 bytes that the peer of `victim` expects next, with the victim's addresses.
bytes forged_write(const link& victim, const hosts::buffer& to, std::uint32_t psn) {
  constexpr std::uint32_t length = 64;
  wire::packet p;
  p.smac = victim.a.at.mac;
  p.dmac = victim.b.at.mac;
  p.encap = wire::encapsulation::roce_v2_ipv4;
  p.sgid = victim.a.at.gid;
  p.dgid = victim.b.at.gid;
  p.udp_source = 0xc123;
  p.bth.opcode = wire::make_opcode(wire::transport::rc, wire::operation::write_only);
  p.bth.dest_qp = victim.b.qp->qp_num;
  p.bth.psn = wire::psn_t(psn);
  p.reth = {to.address(), to.region->rkey, length};
  p.payload_length = length;
  bytes room(256, 0x66);
  std::uint8_t* const begin = wire::build(p, room.data() + 128);
  wire::store_le32(begin + p.icrc_offset, wire::icrc(begin, p));
  return {begin, begin + p.icrc_offset + 4};
}

}  // namespace

/// RoCE from a raw queue pair, with the addresses, numbers and PSN of another function's: a check of source addresses
/// is what holds it, as on hardware, and so does a VLAN where the victim has another one. Else it is the victim's word.
TEST(Forgery, RoceInAnothersName) {
  struct {
    bool check;
    std::uint16_t vlan, victims_vlan;
    bool arrives;
  } const cases[] = {{false, 0, 0, true}, {true, 0, 0, false}, {false, 50, 60, false}, {false, 60, 60, true}};
  for (const auto& now : cases) {
    SCOPED_TRACE(testing::Message() << now.check << ' ' << now.vlan);
    in_child([&] {
      hosts::two_nodes_config c = shared_cards(2);
      function_settings s;
      s.spoof_check = now.check;
      s.vlan = now.vlan;
      c.node.function_settings = {{}, s};
      c.node.function_settings[0].vlan = now.victims_vlan;
      hosts::two_nodes system(c);
      run(system, [&] {
        hosts::connection_options o;
        const link victim = connect(system.node_a(), 1, system.node_b(), 1, 11, o);
        hosts::endpoint end = end_of(system.node_a(), 2);
        station thief(end);
        const hosts::buffer to = hosts::make_buffer(victim.b.at, 4096);
        ibv_qp_attr attr{};
        ibv_qp_init_attr init{};
        ASSERT_EQ(victim.b.dev().query_qp(victim.b.qp, &attr, IBV_QP_RQ_PSN, &init), 0);
        thief.send(forged_write(victim, to, attr.rq_psn));
        EXPECT_EQ(thief.wait_sent().status, IBV_WC_SUCCESS);
        end.bus->spend_ps(20 * us);
        EXPECT_EQ(to.at()[0], now.arrives ? 0x66 : 0);
        EXPECT_EQ(at_b(system, "port1.rx_frames") != 0, !now.check);
      });
      return std::string();
    });
  }
}

namespace {

struct lie {
  const char* what;
  unsigned service;
  std::uint8_t link_type;
};

/// What INIT2RTR says of a queue pair of function 2 that is something else: `said`; the command's error.
int tell(host_driver::device& dev, std::uint32_t qpn, const lie& said) {
  namespace q = abi::qpc;
  namespace p = abi::path;
  command_channel& channel = dev.commands();
  command_channel::mailbox box(channel);
  std::uint8_t* const c = box.data() + abi::qp_mailbox::context;
  abi::set(box.data(), abi::qp_mailbox::optional, abi::qp_mailbox::opt_primary_path);
  abi::set(c, q::service, said.service);
  abi::set(c, q::mtu_msgmax, std::uint8_t{3 << 5 | 31});
  abi::set(c, q::roce_mode, q::roce_mode_v2);
  std::uint8_t* const path = c + q::primary_path;
  abi::set(path, p::grh, 1);
  abi::set(path, p::link_type, said.link_type);
  abi::set(path, p::mac_index, static_cast<std::uint8_t>(dev.port(1).mac_index));
  abi::set(path, p::sched_queue, std::uint8_t{0x83});
  return channel.write(box, abi::opcode::init2rtr_qp, qpn);
}

/// Of the queue pair's path, by the host's numbers.
unsigned gid_index_of(host_driver::device& host, std::uint32_t qpn) {
  command_channel::mailbox box(host.commands());
  EXPECT_EQ(host.commands().read(box, abi::opcode::query_qp, qpn), 0);
  return abi::get(box.data() + abi::qp_mailbox::context + abi::qpc::primary_path, abi::path::gid_index);
}

}  // namespace

/// A queue pair is what its first command has made of it. One of plain frames whose later command says that it is
/// something else would otherwise have a path that nobody looks at, and be one whose programs write all headers
/// themselves, past the check of source addresses (hardware: no Ethernet link type, RoCE v2); a connection would send
/// with the physical function's address.
TEST(Forgery, AQueuePairIsWhatItBeganAs) {
  constexpr unsigned rc = 0, uc = 1, ud = 3, xrc = 6, mlx = 7;
  function_settings s;
  s.spoof_check = true;
  hosts::two_nodes_config c = shared_cards(2);
  c.node.function_settings = {{}, s};
  hosts::two_nodes system(c);
  run(system, [&] {
    host_driver::device& host = system.node_a().device(0);
    hosts::endpoint end = end_of(system.node_a(), 2);
    station::options o;
    o.start = false;
    for (const lie& said : {lie{"datagrams", ud, 0}, {"a connection", rc, 0}, {"UC", uc, 0}, {"XRC", xrc, 0}}) {
      station raw(end, o);
      ibv_qp_attr attr{};
      attr.port_num = 1;
      attr.qp_state = IBV_QPS_INIT;
      ASSERT_EQ(raw.dev().modify_qp(raw.qp(), &attr, IBV_QP_STATE | IBV_QP_PORT), 0);
      EXPECT_NE(tell(raw.dev(), raw.qp()->qp_num, said), 0) << said.what;
      EXPECT_EQ(tell(raw.dev(), raw.qp()->qp_num, {said.what, said.service, abi::path::link_ethernet}), 0)
          << "a word without meaning";
    }
    hosts::set_address(end, {}, 21);
    host_driver::completion_queue* const cq = end.device->create_cq(15);
    const auto begun = [&](ibv_qp_type type) {
      hosts::connection_options as;
      as.type = type;
      host_driver::queue_pair* const qp = hosts::make_qp(end, as, *cq, *cq);
      ibv_qp_attr attr{};
      attr.port_num = 1;
      attr.qp_state = IBV_QPS_INIT;
      attr.qkey = 1;
      EXPECT_EQ(end.device->modify_qp(qp, &attr,
                                      IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
                                          (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)),
                0);
      return qp->qp_num;
    };
    const unsigned own_row = system.node_a().master().ports().gids_of(2, 1).first;
    ASSERT_NE(own_row, 0u);
    for (const lie& said : {lie{"plain frames", mlx, abi::path::link_ethernet}, {"datagrams", ud, 0}}) {
      const std::uint32_t qpn = begun(IBV_QPT_RC);
      EXPECT_EQ(tell(*end.device, qpn, said), 0) << said.what;
      EXPECT_EQ(gid_index_of(host, qpn), own_row) << said.what;
    }
    for (const lie& said : {lie{"plain frames", mlx, abi::path::link_ethernet}, {"a connection", rc, 0}}) {
      const std::uint32_t qpn = begun(IBV_QPT_UD);
      EXPECT_EQ(tell(*end.device, qpn, said), 0) << said.what;
      EXPECT_EQ(gid_index_of(host, qpn), 0x80 | own_row) << said.what;
    }
  });
}

}  // namespace rnic::system_test
