// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/perftest/messages.h"

#include <fmt/format.h>

#include "host_driver/hosts/connection.h"

namespace rnic::serve::perftest {

using namespace host_driver;

void messages::post_receive_of(lane& l) {
  ibv_sge list[2] = {headers_.sge(grh_bytes), l.in.sge(size_, places_.offset(l.receives))};
  const bool datagram = o_.type == IBV_QPT_UD;
  ibv_recv_wr wr{}, *bad = nullptr;
  wr.wr_id = receive_bit | static_cast<std::uint64_t>(&l - lanes_.data());
  wr.sg_list = datagram ? list : list + 1;
  wr.num_sge = datagram ? 2 : 1;
  hosts::require(device_.post_recv(l.qp, &wr, &bad), "post_recv");
  ++l.receives;
}

void messages::post_receives() {
  if (headers_.region == nullptr) headers_ = objects_.buffer(grh_bytes);
  for (lane& l : lanes_)
    while (l.receives < std::min<std::uint64_t>(o_.receive_depth, iterations_)) post_receive_of(l);
}

void messages::take_received(const ibv_wc& wc, application_result& r) {
  const std::uint32_t expected = size_ + (o_.type == IBV_QPT_UD ? grh_bytes : 0);
  if (wc.byte_len != expected)
    throw peer_failure(fmt::format("a message of {} bytes came instead of {}", wc.byte_len, expected));
  lane& l = lane_of(wc);
  ++l.received;
  ++r.received;
  if (l.receives < iterations_) post_receive_of(l);
}

void messages::take_completions(application_result& r) {
  for (const ibv_wc& wc : completions()) {
    if ((wc.wr_id & receive_bit) != 0) {
      take_received(wc, r);
      continue;
    }
    lane& l = lane_of(wc);
    ++l.completed;
    ++r.sent;
    if (!o_.latency && l.posted < iterations_) post_request(l);
  }
}

void messages::stream(application_result& r) {
  const std::uint64_t all = iterations_ * lanes_.size(), before = r.sent + r.received,
                      to_send = r.sent + (asks() ? all : 0), to_receive = r.received + (answers() ? all : 0);
  start();
  for (lane& l : lanes_)
    while (asks() && l.posted < std::min<std::uint64_t>(depth_, iterations_)) post_request(l);
  while ((r.sent < to_send || r.received < to_receive) && !over()) take_completions(r);
  r.took_ps = took();
  give_up();
  print_bandwidth(r.sent + r.received - before, r.took_ps);
}

/// The client sends first; each sends when it has received, and when its message before has ended.
void messages::in_turns(application_result& r) {
  std::vector<sim::time_ps> times;
  lane& l = lanes_.front();
  const auto say = [&] {
    while (l.completed < l.posted && !over()) take_completions(r);
    if (!over()) post_request(l);
  };
  start();
  for (std::uint64_t i = 0; i < iterations_ && !over(); ++i) {
    const sim::time_ps began = now();
    if (client()) say();
    while (l.received == i && !over()) take_completions(r);
    if (!client()) say();
    times.push_back((now() - began) / 2);
  }
  while (l.completed < iterations_ && !over()) take_completions(r);
  r.took_ps = took();
  print_latency(std::move(times));
}

void messages::test(application_result& r) {
  for (const std::uint32_t size : sizes()) {
    set_size(size);
    if (answers() || o_.latency) post_receives();
    tell();
    if (o_.latency)
      in_turns(r);
    else
      stream(r);
    if (o_.both_directions && !timed()) exchange_->tell(bandwidth(iterations_ * lanes_.size(), r.took_ps));
    if (o_.all_sizes && !o_.latency) tell(true);
  }
  end();
  const bool received = answers() || o_.latency;
  report_memory(r, !received);
}

}  // namespace rnic::serve::perftest
