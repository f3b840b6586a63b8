// SPDX-License-Identifier: Apache-2.0
// What the tests of XRC have in common: processes with receive queues at one host, and one at the other that sends.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "testbenches/system/verbs/keys.h"

namespace rnic::system_test::xrc {

using hosts::connection_options;
using fate = fabric::cable_fault_if::fate;
using host_driver::completion_queue;
using host_driver::queue_pair;
using host_driver::shared_receive_queue;
using host_driver::xrc_domain;

inline constexpr std::uint32_t place = 16384;
inline constexpr unsigned places = 16;

/// A process at host b: a receive queue, where its completions go, and memory under its own protection domain.
struct process {
  hosts::endpoint at;
  completion_queue* cq = nullptr;
  shared_receive_queue* srq = nullptr;
  hosts::buffer memory;

  int post(std::uint64_t id) const {
    ibv_sge sges[2] = {{memory.address(id * place), 100, memory.region->lkey},
                       {memory.address(id * place + 100), place - 100, memory.region->lkey}};
    ibv_recv_wr wr{}, *bad = nullptr;
    wr.wr_id = id;
    wr.sg_list = sges;
    wr.num_sge = 2;
    return at.device->post_srq_recv(srq, &wr, &bad);
  }
  ibv_wc wait(std::uint64_t timeout_ps = 100 * ms) const {
    ibv_wc wc{};
    EXPECT_EQ(at.device->wait_cq(cq, 1, &wc, timeout_ps), 1) << "no completion";
    return wc;
  }
  bool silent() const {
    ibv_wc wc{};
    return at.device->poll_cq(cq, 1, &wc) == 0;
  }
};

/// A receive queue with the protection domain and the completion queue of `p`, in an XRC domain or, nullptr, in none.
inline ibv_srq_init_attr_ex queue_attributes(const process& p, xrc_domain* in, unsigned requests = 64) {
  ibv_srq_init_attr_ex attr{};
  attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  attr.srq_type = in != nullptr ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
  attr.pd = p.at.pd;
  attr.xrcd = in;
  attr.cq = p.cq;
  attr.attr.max_wr = requests;
  attr.attr.max_sge = 2;
  return attr;
}

inline connection_options quick() {
  connection_options o;
  o.mtu = 1024;
  o.ack_timeout = 6;
  o.retries = 3;
  return o;
}

/// Host a sends, host b receives.
class town {
 public:
  explicit town(hosts::two_nodes& system) : options_(quick()), first_(make_link(system, options_)) {
    domain = first_.b.dev().open_xrcd();
    EXPECT_NE(domain, nullptr);
    near = hosts::make_buffer(first_.a.at, place * places);
    fill_random(near.at(), place * places, random);
  }
  process new_process(xrc_domain* in) {
    process p;
    p.at = first_.b.at;
    p.at.pd = p.at.device->alloc_pd();
    p.cq = p.at.device->create_cq(256);
    ibv_srq_init_attr_ex attr = queue_attributes(p, in);
    p.srq = p.at.device->create_srq_ex(&attr);
    EXPECT_NE(p.srq, nullptr);
    p.memory = hosts::make_buffer(p.at, place * places);
    std::memset(p.memory.at(), 0, place * places);
    return p;
  }
  queue_pair* make(hosts::endpoint& e, ibv_qp_type type, completion_queue* cq, xrc_domain* in,
                   const std::uint32_t* wanted = nullptr) {
    ibv_qp_init_attr_ex attr{};
    attr.comp_mask = type == IBV_QPT_XRC_RECV ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD;
    attr.qp_type = type;
    attr.pd = e.pd;
    attr.xrcd = in;
    attr.send_cq = cq;
    attr.cap = {64, 0, 2, 0, 64};
    queue_pair* const qp = e.device->create_qp_ex(&attr, nullptr, wanted);
    EXPECT_NE(qp, nullptr);
    ibv_qp_attr init{};
    init.qp_state = IBV_QPS_INIT;
    init.port_num = 1;
    init.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    hosts::require(e.device->modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
                   "modify_qp to INIT");
    return qp;
  }
  void join(const link& l) {
    psn_ += 1000;
    hosts::connect(const_cast<hosts::endpoint&>(l.a.at), options_, *l.a.qp, l.b.at, l.b.qp->qp_num, psn_, psn_ + 7);
    hosts::connect(const_cast<hosts::endpoint&>(l.b.at), options_, *l.b.qp, l.a.at, l.a.qp->qp_num, psn_ + 7, psn_);
  }
  /// A queue pair that sends and one that receives into `in` (nullptr: one that sends as well).
  link lane(xrc_domain* in, const std::uint32_t* wanted = nullptr) {
    link l = first_;
    l.a.qp = make(l.a.at, IBV_QPT_XRC_SEND, l.a.send_cq, nullptr);
    l.b.qp = in != nullptr ? make(l.b.at, IBV_QPT_XRC_RECV, nullptr, in, wanted)
                           : make(l.b.at, IBV_QPT_XRC_SEND, l.b.send_cq, nullptr);
    join(l);
    return l;
  }
  void post(const link& l, ibv_wr_opcode opcode, std::uint32_t srqn, std::uint64_t from, std::uint32_t bytes,
            std::uint64_t remote = 0, std::uint32_t rkey = 0) const {
    ibv_sge sge{near.address(from), bytes, near.region->lkey};
    ibv_send_wr wr{}, *bad = nullptr;
    wr.opcode = opcode;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.imm_data = __builtin_bswap32(0xabcd0000 | bytes);
    wr.wr.rdma = {remote, rkey};
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) hosts::make_atomic(wr, false, remote, rkey, 0);
    wr.qp_type.xrc.remote_srqn = srqn;
    hosts::require(l.a.dev().post_send(l.a.qp, &wr, &bad), "post_send");
  }
  void settle() const { first_.b.at.bus->spend_ps(20 * us); }
  link& first() { return first_; }

  xrc_domain* domain = nullptr;
  hosts::buffer near;
  std::mt19937_64 random{5};

 private:
  connection_options options_;
  link first_;
  std::uint32_t psn_ = 0;
};

template <class Body>
void in_town(Body body, fabric::cable_fault_if* fault = nullptr) {
  hosts::two_nodes system(default_system());
  if (fault != nullptr) system.cable().set_fault(fault);
  run(system, [&] {
    town t(system);
    body(t);
  });
}

/// Looks at the bytes of requests on the cable: behind the base transport header is the queue's number.
class watcher : public fabric::cable_fault_if {
 public:
  fate on_frame(unsigned, payload::frame& f) override {
    wire::packet p;
    if (wire::decode(f.data(), f.length, p) != wire::decode_error::none || (p.bth.opcode >> 5) != 5) return fate::pass;
    const std::uint8_t* const h = f.data() + p.bth_offset + 12;
    const unsigned code = p.bth.opcode & 0x1f;
    if (code >= 0x0d && code <= 0x12) {
      ++answers;
      return fate::pass;
    }
    ++requests;
    seen.push_back(std::uint32_t{h[0]} << 24 | std::uint32_t{h[1]} << 16 | std::uint32_t{h[2]} << 8 | h[3]);
    if (lose != 0 && --lose == 0) return fate::lose;
    return fate::pass;
  }
  unsigned requests = 0, answers = 0, lose = 0;
  std::vector<std::uint32_t> seen;
};

}  // namespace rnic::system_test::xrc
