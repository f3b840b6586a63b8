// SPDX-License-Identifier: Apache-2.0
// QP1 of a host or a function, and requests to send datagrams, for tests that write management datagrams themselves.
#pragma once

#include <stdexcept>

#include "testbenches/system/verbs/pair.h"

namespace rnic::system_test {

/// Gives `s` QP1 of port 1, with completion queues of its own and places for `requests` of one buffer each way.
inline void open_gsi(side& s, unsigned requests) {
  s.send_cq = s.dev().create_cq(64);
  s.receive_cq = s.dev().create_cq(64);
  ibv_qp_init_attr init{};
  init.send_cq = s.send_cq;
  init.recv_cq = s.receive_cq;
  init.cap.max_send_wr = init.cap.max_recv_wr = requests;
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  s.qp = s.dev().create_gsi(s.at.pd, &init, 1);
  if (s.qp == nullptr) throw std::runtime_error("create_gsi");
}

/// A SEND of what `sge` names, or of nothing where that is empty, to a queue pair by the way of `to`; signalled.
inline ibv_send_wr datagram_request(ibv_sge& sge, ibv_ah* to, std::uint32_t qpn, std::uint32_t qkey) {
  ibv_send_wr wr{};
  wr.sg_list = &sge;
  wr.num_sge = sge.length != 0 ? 1 : 0;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.ud.ah = to;
  wr.wr.ud.remote_qpn = qpn;
  wr.wr.ud.remote_qkey = qkey;
  return wr;
}

}  // namespace rnic::system_test
