// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/perftest/conversation.h"

#include <fmt/format.h>

#include <algorithm>

#include "host_driver/hosts/connection.h"

namespace rnic::serve::perftest {

using namespace host_driver;

cm_conversation::cm_conversation(served_host& host, cm_service& service, const rdma_route& route)
    : device_(host.device()),
      service_(service),
      route_(route),
      objects_(device_),
      send_cq_(objects_.cq(1)),
      receive_cq_(objects_.cq(1)),
      out_(objects_.buffer(longest)),
      in_(objects_.buffer(longest)),
      connection_(host, service, route_) {
  ibv_qp_init_attr init{};
  init.send_cq = send_cq_;
  init.recv_cq = receive_cq_;
  init.qp_type = IBV_QPT_RC;
  init.cap.max_send_wr = init.cap.max_recv_wr = 1;
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  connection_.prepare(objects_.qp(init));
  post_next();
}

void cm_conversation::post_next() { post_receive(device_, connection_.qp(), 0, in_.sge(longest)); }

std::optional<ibv_wc> cm_conversation::next(completion_queue* cq, sim::time_ps timeout_ps,
                                            const std::function<void()>& meanwhile) {
  const sim::time_ps now = service_.now_ps();
  const sim::time_ps deadline = timeout_ps > for_ever - now ? for_ever : now + timeout_ps;
  while (service_.now_ps() < deadline) {
    ibv_wc wc{};
    const int n = device_.wait_cq(cq, 1, &wc, look_for_end_ps);
    hosts::require(n, "poll_cq");
    if (n != 0) return wc.status == IBV_WC_SUCCESS ? std::optional(wc) : std::nullopt;
    if (connection_.released()) return std::nullopt;
    if (meanwhile) meanwhile();
  }
  return std::nullopt;
}

bool cm_conversation::send(const std::string& bytes) {
  std::copy(bytes.begin(), bytes.end(), out_.at());
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  post(device_, connection_.qp(), wr, out_.sge(static_cast<std::uint32_t>(bytes.size())));
  return next(send_cq_, exchange_ps).has_value();
}

std::optional<std::string> cm_conversation::receive(std::size_t bytes, sim::time_ps timeout_ps,
                                                    const std::function<void()>& meanwhile) {
  const auto wc = next(receive_cq_, timeout_ps, meanwhile);
  if (!wc) return std::nullopt;
  if (wc->byte_len != bytes)
    throw peer_failure(fmt::format("the peer said {} bytes instead of {}: is it the same test?", wc->byte_len, bytes));
  const std::string word(in_.at(), in_.at(bytes));
  post_next();
  return word;
}

void cm_conversation::end(bool client) {
  if (client)
    connection_.disconnect();
  else
    connection_.wait_released();
}

}  // namespace rnic::serve::perftest
