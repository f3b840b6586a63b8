// SPDX-License-Identifier: Apache-2.0
// QP1 of a function with a connection manager on it, for tests that drive several from one program.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "host_driver/cm/connection_manager.h"
#include "host_driver/functions/mad_rules.h"
#include "model/abi/paravirtual.h"
#include "testbenches/system/functions/shared_card.h"
#include "testbenches/system/verbs/gsi.h"

namespace rnic::system_test {

namespace cm = host_driver::cm;

/// A function's end of management: its address, QP1 of port 1 with receives, and who answers.
class gsi_end final : public cm::mad_output_if {
 public:
  static constexpr std::uint32_t area = 40, datagram = host_driver::mad_bytes;

  /// `host`: number of the address.
  gsi_end(hosts::node& n, unsigned number, unsigned host, const hosts::connection_options& o = {},
          std::uint32_t first_id = 1)
      : options(o), manager(*this, settings(host, first_id)) {
    s.at = end_of(n, number);
    hosts::set_address(s.at, options, host);
    open();
  }
  void open() {
    open_gsi(s, slots);
    memory = hosts::make_buffer(s.at, 4096 * (slots + 1));
    for (unsigned i = 0; i < slots; ++i) post_one(i);
  }
  cm::address to(const gsi_end& other) const {
    cm::address a;
    a.gid = other.s.at.gid;
    a.mac = other.s.at.mac;
    a.gid_index = s.at.gid_index;
    return a;
  }
  host_driver::address_handle* handle(const cm::address& to) const {
    ibv_ah_attr a{};
    a.is_global = 1;
    std::copy(to.gid.begin(), to.gid.end(), a.grh.dgid.raw);
    a.grh.sgid_index = static_cast<std::uint8_t>(to.gid_index);
    a.grh.hop_limit = 64;
    a.grh.traffic_class = to.traffic_class;
    a.sl = to.service_level;
    a.port_num = 1;
    host_driver::address_handle* const h = s.dev().create_ah(s.at.pd, &a, &to.mac);
    if (h == nullptr) throw std::runtime_error("create_ah");
    return h;
  }
  /// The status of its completion.
  ibv_wc_status send(const cm::address& to, const void* message, std::uint32_t bytes = datagram,
                     std::uint32_t qkey = host_driver::gsi_qkey) const {
    std::memcpy(outgoing(), message, bytes);
    ibv_sge sge{memory.address(4096 * slots), bytes, memory.region->lkey};
    ibv_send_wr wr = datagram_request(sge, handle(to), 1, qkey), *bad = nullptr;
    if (s.dev().post_send(s.qp, &wr, &bad) != 0) return IBV_WC_GENERAL_ERR;
    return s.wait_send().status;
  }
  void send_mad(const cm::address& to, const cm::mad& message) override {
    EXPECT_EQ(send(to, message.data()), IBV_WC_SUCCESS);
  }

  /// What came, if anything does within `timeout_ps`.
  struct arrival {
    bool any = false;
    ibv_wc wc{};
    host_driver::mac_address source{};
    host_driver::mad_rules::network_ends ends;
    cm::mad message{};
  };
  arrival receive(std::uint64_t timeout_ps = 100 * us) {
    arrival a;
    if (s.dev().wait_cq(s.receive_cq, 1, &a.wc, timeout_ps) <= 0) return a;
    a.any = true;
    EXPECT_EQ(a.wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(a.wc.byte_len, area + datagram);
    a.source = s.dev().last_source(*s.receive_cq);
    const std::uint8_t* const at = memory.at() + a.wc.wr_id * 4096;
    a.ends = host_driver::mad_rules::ends_of(at);
    std::copy_n(at + area, datagram, a.message.begin());
    post_one(a.wc.wr_id);
    return a;
  }
  /// Takes what has come into the manager; whether there was something.
  bool pump() {
    const arrival a = receive();
    if (!a.any) return false;
    cm::address from;
    from.gid = a.ends.source;
    from.mac = a.source;
    from.gid_index = s.at.gid_index;
    manager.receive(from, a.message.data(), a.message.size(), s.at.bus->now_ps());
    return true;
  }
  cm::event next(cm::event::kind what) {
    EXPECT_TRUE(manager.has_event()) << "instead of event " << static_cast<int>(what);
    if (!manager.has_event()) return {};
    cm::event e = manager.take_event();
    EXPECT_EQ(e.what, what);
    return e;
  }
  std::uint8_t* outgoing() const { return memory.at() + 4096 * slots; }

  hosts::connection_options options;
  side s;
  hosts::buffer memory;
  cm::connection_manager manager;

 private:
  static constexpr unsigned slots = 16;
  static cm::connection_manager_config settings(unsigned host, std::uint32_t first_id) {
    cm::connection_manager_config c;
    c.ca_guid = 0x1000 + host;
    c.first_id = first_id;
    return c;
  }
  void post_one(std::uint64_t i) const {
    post_receive(s, {{memory.address(4096 * i), area + datagram, memory.region->lkey}}, i);
  }
};

/// Until nothing is under way any more.
inline void settle(std::initializer_list<gsi_end*> ends) {
  for (bool moved = true; moved;) {
    moved = false;
    for (gsi_end* e : ends)
      while (e->pump()) moved = true;
  }
}

inline constexpr std::uint64_t some_service = cm::service_id(cm::port_space::tcp, 7174);

/// A REQ with the path from one to the other.
inline cm::contents request_from(const gsi_end& a, const gsi_end& b) {
  cm::contents c;
  c.kind = cm::message::req;
  c.transaction = 0x77;
  c.local_id = 9;
  c.connection.service_id = some_service;
  c.connection.qpn = 0x123;
  c.connection.mtu_code = 3;
  c.connection.path.local = a.s.at.gid;
  c.connection.path.remote = b.s.at.gid;
  return c;
}

}  // namespace rnic::system_test
