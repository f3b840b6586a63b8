// SPDX-License-Identifier: Apache-2.0
// udaddy and mckey: datagrams to a service, and to a group.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "host_driver/hosts/connection.h"
#include "model/wire/ethernet.h"
#include "testbenches/serve/cm/cm_program.h"

namespace rnic::serve {

using namespace host_driver;

namespace {

constexpr std::uint32_t udp_qkey = 0x01234567;  // RDMA_UDP_QKEY
constexpr std::uint32_t multicast_qpn = 0xffffff;
constexpr std::uint64_t join_ps = 3 * sim::ps_per_s;  // before the first datagram to a group

class datagrams : protected cm_program {
 public:
  using cm_program::cm_program;

 protected:
  struct node {
    completion_queue* cq = nullptr;
    queue_pair* qp = nullptr;
    address_handle* ah = nullptr;
    std::uint32_t remote_qpn = 0, remote_qkey = udp_qkey;
    app_buffer out, in;
  };
  node make_node(bool receives);
  void send(node& n, application_result& r);
  void take(node& n, application_result& r);
  void answer_to(node& n, const ibv_wc& wc);
};

datagrams::node datagrams::make_node(bool receives) {
  node n;
  const unsigned depth = count(message_count);
  const std::uint32_t bytes = size(message_size) + grh_bytes;
  n.cq = objects_.cq(2 * depth);
  n.qp = make_qp(IBV_QPT_UD, n.cq, n.cq, depth);
  n.out = objects_.buffer(bytes, IBV_ACCESS_LOCAL_WRITE, 0x5a);
  n.in = objects_.buffer(bytes);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qkey = udp_qkey;
  hosts::require(device_.modify_qp(n.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
                 "modify_qp to INIT");
  attr.qp_state = IBV_QPS_RTR;
  hosts::require(device_.modify_qp(n.qp, &attr, IBV_QP_STATE), "modify_qp to RTR");
  attr.qp_state = IBV_QPS_RTS;
  hosts::require(device_.modify_qp(n.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), "modify_qp to RTS");
  for (unsigned i = 0; receives && i < depth; ++i) post_receive(device_, n.qp, id_receive, n.in.sge(bytes));
  return n;
}

void datagrams::send(node& n, application_result& r) {
  ibv_send_wr wr{};
  wr.wr_id = id_send;
  wr.opcode = IBV_WR_SEND_WITH_IMM;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.imm_data = __builtin_bswap32(n.qp->qp_num);
  wr.wr.ud.ah = n.ah;
  wr.wr.ud.remote_qpn = n.remote_qpn;
  wr.wr.ud.remote_qkey = n.remote_qkey;
  for (unsigned i = 0; i < count(message_count); ++i) post(device_, n.qp, wr, n.out.sge(size(message_size)));
  for (unsigned i = 0; i < count(message_count); ++i, ++r.sent) next_completion(device_, n.cq, o_.route.patience_ps);
}

/// The sender of a datagram: address from the headers, number from the immediate data.
void datagrams::answer_to(node& n, const ibv_wc& wc) {
  cm::address from;
  if ((wc.wc_flags & IBV_WC_WITH_IMM) == 0) throw peer_failure("a datagram came without the sender's number");
  if (!service_.find_own(n.in.at(), from)) throw peer_failure("a datagram came with addresses that are not ours");
  n.ah = objects_.ah(path_to(from.gid, from.gid_index, o_.route.service_level, 64, o_.route.traffic_class),
                     device_.last_source(*n.cq));
  n.remote_qpn = __builtin_bswap32(wc.imm_data) & 0xffffff;
}

void datagrams::take(node& n, application_result& r) {
  for (unsigned i = 0; i < count(message_count); ++i, ++r.received) {
    const ibv_wc wc = next_completion(device_, n.cq, o_.route.patience_ps);
    if (wc.byte_len != size(message_size) + grh_bytes)
      throw peer_failure(fmt::format("a message of {} bytes came instead of {}", wc.byte_len, size(message_size)));
    if (n.ah == nullptr && o_.app == "udaddy") answer_to(n, wc);
  }
}

class udaddy : private datagrams {
 public:
  using datagrams::datagrams;
  void run(reception* clients, application_result& r);

 private:
  void ask(node& n);
  void serve(reception& clients, application_result& r);
};

/// Where the service's queue pair is.
void udaddy::ask(node& n) {
  const cm::address peer = find_peer(host_, o_.peer, o_.route);
  cm::service_data service;
  service.service_id = cm::service_id(cm::port_space::udp, port(udaddy_port));
  const auto id =
      service_.manager().ask_service(peer, service, addressed_private(own(), o_.peer, udaddy_port), service_.now_ps());
  const auto e = service_.wait_of(id, o_.route.patience_ps);
  if (!e || e->what != cm::event::kind::service_reply) {
    service_.manager().abandon(id, service_.now_ps());
    throw peer_failure("the peer does not answer");
  }
  if (e->message.service.status != 0)
    throw peer_failure(fmt::format("the peer refused: status {}", e->message.service.status));
  n.remote_qpn = e->message.service.qpn;
  n.remote_qkey = e->message.service.qkey;
  n.ah = objects_.ah(path_to(peer.gid, peer.gid_index, o_.route.service_level, 64, o_.route.traffic_class), peer.mac);
}

void udaddy::serve(reception& clients, application_result& r) {
  std::vector<node> all;
  while (all.size() < connections(1)) {
    const auto request = clients.next_question(all.empty() ? for_ever : next_connection_ps);
    if (!request) throw peer_failure(fmt::format("{} clients asked: more are asked for by --qps", all.size()));
    all.push_back(make_node(true));
    cm::service_data reply;
    reply.qpn = all.back().qp->qp_num;
    reply.qkey = udp_qkey;
    service_.manager().answer_service(request->id, reply, {});
  }
  clients.enough();
  for (node& n : all) take(n, r);
  for (node& n : all) send(n, r);
}

void udaddy::run(reception* clients, application_result& r) {
  if (!o_.client) return serve(*clients, r);
  std::vector<node> all;
  for (unsigned i = 0; i < connections(1); ++i) {
    all.push_back(make_node(true));
    ask(all.back());
  }
  for (node& n : all) send(n, r);
  for (node& n : all) take(n, r);
}

/// The host is in a multicast group as long as this lives, and with it a queue pair, if one is given. As rdma_cm does
/// (core/cma.c:cma_iboe_join_multicast), the network is told if the group's datagrams are RoCE v2, which is IP; of IPv6
/// groups as well, with which that kernel refuses RoCE v2.
class membership {
 public:
  membership(served_host& host, queue_pair* qp, const gid_bytes& group, ibv_gid_type type)
      : host_(host), qp_(qp), group_(group), told_(type == IBV_GID_TYPE_ROCE_V2) {
    std::copy(group.begin(), group.end(), gid_.raw);
    if (told_) host_.join_group(group_);
    if (qp_ != nullptr) hosts::require(host_.device().attach_mcast(qp_, &gid_), "attach_mcast");
  }
  ~membership() {
    if (qp_ != nullptr) host_.device().detach_mcast(qp_, &gid_);
    if (told_) host_.leave_group(group_);
  }
  membership(const membership&) = delete;
  membership& operator=(const membership&) = delete;

 private:
  served_host& host_;
  queue_pair* qp_;
  gid_bytes group_;
  ibv_gid gid_{};
  bool told_;
};

class mckey : private datagrams {
 public:
  using datagrams::datagrams;
  void run(application_result& r);
};

void mckey::run(application_result& r) {
  node n = make_node(!o_.client);
  const ibv_gid_type type = device_.port(1).gids[static_cast<std::size_t>(o_.route.gid_index)].type;
  const membership member(host_, o_.client ? nullptr : n.qp, o_.peer, type);  // the tool joins on both sides
  if (o_.client) {
    n.ah = objects_.ah(path_to(o_.peer, o_.route.gid_index, o_.route.service_level, 64, o_.route.traffic_class),
                       *implied_mac(o_.peer));
    n.remote_qpn = multicast_qpn;
    sc_core::wait(sc_core::sc_time::from_value(join_ps));
    return send(n, r);
  }
  fmt::print("joined {}\n", wire::to_string(o_.peer));
  std::fflush(stdout);
  take(n, r);
}

}  // namespace

void run_udaddy(served_host& host, cm_service& service, reception* clients, const cm_application_options& o,
                application_result& r) {
  udaddy(host, service, o).run(clients, r);
}

void run_mckey(served_host& host, cm_service& service, reception* /*clients*/, const cm_application_options& o,
               application_result& r) {
  mckey(host, service, o).run(r);
}

}  // namespace rnic::serve
