// SPDX-License-Identifier: Apache-2.0
#include "testbenches/system/verbs/pair.h"

#include <cstring>
#include <stdexcept>

#include "testbenches/bench/child.h"

namespace rnic::system_test {

namespace {

side make_side(hosts::endpoint& at, const hosts::connection_options& options, unsigned host) {
  side s;
  s.at = at;
  hosts::set_address(s.at, options, host);
  s.send_cq = s.dev().create_cq(1024);
  s.receive_cq = s.dev().create_cq(1024);
  if (s.send_cq == nullptr || s.receive_cq == nullptr) throw std::runtime_error("create_cq failed");
  s.qp = hosts::make_qp(s.at, options, *s.send_cq, *s.receive_cq);
  return s;
}

void join(link& l, const hosts::connection_options& options, std::uint32_t psn) {
  hosts::connect(l.a.at, options, *l.a.qp, l.b.at, l.b.qp->qp_num, psn, psn + 7);
  hosts::connect(l.b.at, options, *l.b.qp, l.a.at, l.a.qp->qp_num, psn + 7, psn);
}

}  // namespace

ibv_wc side::wait(host_driver::completion_queue& cq, std::uint64_t timeout_ps) const {
  ibv_wc wc{};
  const int n = at.device->wait_cq(&cq, 1, &wc, timeout_ps);
  EXPECT_EQ(n, 1) << "no completion";
  if (n != 1) wc.status = IBV_WC_GENERAL_ERR;
  return wc;
}

bool side::silent() const {
  ibv_wc wc{};
  return dev().poll_cq(send_cq, 1, &wc) == 0 && dev().poll_cq(receive_cq, 1, &wc) == 0;
}

ibv_qp_state side::state() const {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  hosts::require(at.device->query_qp(qp, &attr, IBV_QP_STATE, &init), "query_qp");
  return attr.qp_state;
}

link make_link(hosts::two_nodes& system, const hosts::connection_options& options, unsigned hosts) {
  return make_link(system.a(), system.b(), options, hosts);
}

link make_link(hosts::endpoint& a, hosts::endpoint& b, const hosts::connection_options& options, unsigned hosts) {
  link l{make_side(a, options, hosts), make_side(b, options, hosts + 1)};
  join(l, options, 0xfffff0);  // the packet numbers wrap soon
  return l;
}

link make_sibling(const link& first, const hosts::connection_options& options, std::uint32_t psn) {
  link l = first;
  for (side* s : {&l.a, &l.b}) s->qp = hosts::make_qp(s->at, options, *s->send_cq, *s->receive_cq);
  join(l, options, psn);
  return l;
}

host_driver::queue_pair* make_datagram_qp(const side& s, std::uint32_t qkey, unsigned depth, unsigned sges,
                                          std::uint32_t psn, unsigned inline_receive) {
  ibv_qp_init_attr init{};
  init.send_cq = s.send_cq;
  init.recv_cq = s.receive_cq;
  init.qp_type = IBV_QPT_UD;
  init.cap.max_send_wr = init.cap.max_recv_wr = depth;
  init.cap.max_send_sge = init.cap.max_recv_sge = sges;
  host_driver::queue_pair* qp = hosts::create_qp(s.at, init, inline_receive);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qkey = qkey;
  hosts::require(s.dev().modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), "INIT");
  attr.qp_state = IBV_QPS_RTR;
  hosts::require(s.dev().modify_qp(qp, &attr, IBV_QP_STATE), "RTR");
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = psn;
  hosts::require(s.dev().modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS");
  return qp;
}

void run(hosts::two_nodes& system, const std::function<void()>& body) {
  system.run(
      [&] {
        system.meet();
        body();
      },
      [&] { system.meet(); });
}

void post(const side& s, const request& r) {
  std::vector<ibv_sge> sges = r.sges;
  ibv_send_wr wr{};
  wr.wr_id = r.id;
  wr.sg_list = sges.data();
  wr.num_sge = static_cast<int>(sges.size());
  wr.opcode = r.opcode;
  wr.send_flags = r.flags;
  wr.imm_data = __builtin_bswap32(r.immediate);
  wr.wr.rdma.remote_addr = r.remote;
  wr.wr.rdma.rkey = r.rkey;
  ibv_send_wr* bad = nullptr;
  hosts::require(s.dev().post_send(s.qp, &wr, &bad), "post_send");
}

void post_write(const side& s, const hosts::buffer& from, const hosts::buffer& to, std::uint32_t bytes,
                std::uint64_t id, std::uint64_t offset, unsigned flags) {
  request r;
  r.sges.push_back({from.address(offset), bytes, from.region->lkey});
  r.remote = to.address(offset);
  r.rkey = to.region->rkey;
  r.flags = flags;
  r.id = id;
  post(s, r);
}

void post_receive(const side& s, std::vector<ibv_sge> sges, std::uint64_t id) {
  ibv_recv_wr wr{};
  wr.wr_id = id;
  wr.sg_list = sges.data();
  wr.num_sge = static_cast<int>(sges.size());
  ibv_recv_wr* bad = nullptr;
  hosts::require(s.dev().post_recv(s.qp, &wr, &bad), "post_recv");
}

void fill_random(std::uint8_t* to, std::size_t bytes, std::mt19937_64& random) {
  for (std::size_t i = 0; i < bytes; i += 8) {
    const std::uint64_t r = random();
    std::memcpy(to + i, &r, std::min<std::size_t>(8, bytes - i));
  }
}

std::string in_child(const std::function<std::string()>& body) {
  try {
    return bench::in_child([&body] {
      std::string text = body();
      if (testing::Test::HasFailure()) throw std::runtime_error("a failure in the other process");
      return text;
    });
  } catch (const std::runtime_error& e) {
    ADD_FAILURE() << e.what();
    return {};
  }
}

std::uint64_t counted(hosts::two_nodes& system, const std::string& part) {
  std::uint64_t sum = 0;
  bool any = false;
  for (const auto& [name, counter] : system.statistics().all()) {
    if (name.find(part) == std::string::npos) continue;
    any = true;
    sum += *counter;
  }
  if (!any) throw std::runtime_error("no counter " + part);
  return sum;
}

void expect_works(const link& l) {
  const hosts::buffer near = hosts::make_buffer(l.a.at, 100'000), far = hosts::make_buffer(l.b.at, 100'000);
  std::mt19937_64 random(23);
  for (const ibv_wr_opcode verb : {IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ}) {
    for (const bool forth : {true, false}) {
      const side& from = forth ? l.a : l.b;
      const side& to = forth ? l.b : l.a;
      const hosts::buffer& here = forth ? near : far;
      const hosts::buffer& there = forth ? far : near;
      fill_random(near.at(), 100'000, random);
      fill_random(far.at(), 100'000, random);
      if (verb == IBV_WR_SEND) post_receive(to, {{there.address(), 100'000, there.region->lkey}});
      request r;
      r.opcode = verb;
      r.sges = {{here.address(), 100'000, here.region->lkey}};
      r.remote = there.address();
      r.rkey = there.region->rkey;
      post(from, r);
      ASSERT_EQ(from.wait_send().status, IBV_WC_SUCCESS);
      if (verb == IBV_WR_SEND) {
        ASSERT_EQ(to.wait_receive().status, IBV_WC_SUCCESS);
      }
      ASSERT_EQ(std::memcmp(near.at(), far.at(), 100'000), 0);
    }
  }
}

}  // namespace rnic::system_test
