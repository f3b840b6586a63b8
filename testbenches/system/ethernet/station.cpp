// SPDX-License-Identifier: Apache-2.0
#include "testbenches/system/ethernet/station.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace rnic::system_test {

namespace {

constexpr unsigned send_slots = 16, send_slot_bytes = 16384;

}  // namespace

station::station(hosts::endpoint& at, const options& o) : at_(at), options_(o) {
  if (at_.pd == nullptr) at_.pd = dev().alloc_pd();
  if (o.pd != nullptr) at_.pd = static_cast<host_driver::protection_domain*>(o.pd);
  send_cq_ = dev().create_cq(256);
  receive_cq_ =
      o.receive_cq != nullptr ? static_cast<host_driver::completion_queue*>(o.receive_cq) : dev().create_cq(256);
  ibv_qp_init_attr init{};
  init.send_cq = send_cq_;
  init.recv_cq = receive_cq_;
  init.qp_type = IBV_QPT_RAW_PACKET;
  init.cap = {64, o.receives, 8, o.receive_sges, o.inline_bytes};
  qp_ = dev().create_qp(at_.pd, &init, o.qpn);
  if (qp_ == nullptr) throw std::runtime_error("create_qp failed");
  qp_->ethernet = o.ethernet;
  sends_ = hosts::make_buffer(at_, std::size_t{send_slots} * send_slot_bytes);
  receives_ = hosts::make_buffer(at_, std::size_t{o.receives} * o.receive_bytes);
  std::fill_n(receives_.at(), std::size_t{o.receives} * o.receive_bytes, std::uint8_t{0xee});
  if (o.start) to_rts();
}

void station::to_rts() {
  ibv_qp_attr attr{};
  attr.port_num = static_cast<std::uint8_t>(at_.port);
  attr.qp_state = IBV_QPS_INIT;
  hosts::require(dev().modify_qp(qp_, &attr, IBV_QP_STATE | IBV_QP_PORT), "modify_qp to INIT");
  for (const ibv_qp_state to : {IBV_QPS_RTR, IBV_QPS_RTS}) {
    attr.qp_state = to;
    hosts::require(dev().modify_qp(qp_, &attr, IBV_QP_STATE), "modify_qp");
  }
}

void station::post_receives(unsigned count) {
  const std::uint32_t part = options_.receive_bytes / options_.receive_sges;
  for (unsigned i = 0; i < count; ++i) {
    const unsigned slot = next_receive_++ % options_.receives;
    std::vector<ibv_sge> sges;
    for (unsigned s = 0; s < options_.receive_sges; ++s)
      sges.push_back(
          {receives_.address(std::uint64_t{slot} * options_.receive_bytes + s * part), part, receives_.region->lkey});
    ibv_recv_wr wr{}, *bad = nullptr;
    wr.wr_id = slot;
    wr.sg_list = sges.data();
    wr.num_sge = static_cast<int>(sges.size());
    hosts::require(dev().post_recv(qp_, &wr, &bad), "post_recv");
  }
}

int station::post(ibv_send_wr& wr) {
  ibv_send_wr* bad = nullptr;
  return dev().post_send(qp_, &wr, &bad);
}

void station::send(const bytes& frame, const send_options& o) {
  const std::uint64_t at = std::uint64_t{next_send_++ % send_slots} * send_slot_bytes;
  std::copy(frame.begin(), frame.end(), sends_.at(at));
  std::vector<ibv_sge> sges;
  std::uint32_t from = 0;
  std::vector<std::uint32_t> ends = o.cuts;
  ends.push_back(static_cast<std::uint32_t>(frame.size()));
  for (const std::uint32_t end : ends) {
    sges.push_back({sends_.address(at + from), end - from, sends_.region->lkey});
    from = end;
  }
  ibv_send_wr wr{};
  wr.wr_id = o.id;
  wr.sg_list = sges.data();
  wr.num_sge = static_cast<int>(sges.size());
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = o.flags;
  wr.imm_data = __builtin_bswap32(o.tci);
  hosts::require(post(wr), "post_send");
}

void station::send_segmented(const bytes& header, const bytes& body, unsigned mss, const send_options& o) {
  const std::uint64_t at = std::uint64_t{next_send_++ % send_slots} * send_slot_bytes;
  std::copy(body.begin(), body.end(), sends_.at(at));
  bytes copy = header;
  ibv_sge sge{sends_.address(at), static_cast<std::uint32_t>(body.size()), sends_.region->lkey};
  ibv_send_wr wr{};
  wr.wr_id = o.id;
  wr.sg_list = &sge;
  wr.num_sge = body.empty() ? 0 : 1;
  wr.opcode = IBV_WR_TSO;
  wr.send_flags = o.flags;
  wr.imm_data = __builtin_bswap32(o.tci);
  wr.tso.hdr = copy.data();
  wr.tso.hdr_sz = static_cast<std::uint16_t>(copy.size());
  wr.tso.mss = static_cast<std::uint16_t>(mss);
  hosts::require(post(wr), "post_send");
}

ibv_wc station::wait_sent() {
  ibv_wc wc{};
  const int n = dev().wait_cq(send_cq_, 1, &wc, 1000 * station_us);
  EXPECT_EQ(n, 1) << "no completion of a send";
  if (n != 1) wc.status = IBV_WC_GENERAL_ERR;
  return wc;
}

arrival station::take(ibv_wc wc, const host_driver::ethernet_receive& plain) {
  arrival a;
  a.wc = wc;
  a.plain = plain;
  if (wc.status != IBV_WC_SUCCESS) return a;
  const std::uint8_t* at = receives_.at(wc.wr_id * options_.receive_bytes);
  a.frame.assign(at, at + std::min(wc.byte_len, options_.receive_bytes));
  return a;
}

arrival station::receive(std::uint64_t timeout_ps) {
  ibv_wc wc{};
  host_driver::ethernet_receive plain;
  const int n = dev().wait_cq(receive_cq_, 1, &wc, timeout_ps, &plain);
  EXPECT_EQ(n, 1) << "no frame";
  if (n != 1) wc.status = IBV_WC_GENERAL_ERR;
  return take(wc, plain);
}

arrival station::poll() {
  ibv_wc wc{};
  host_driver::ethernet_receive plain;
  return dev().poll_cq(receive_cq_, 1, &wc, &plain) == 1 ? take(wc, plain) : arrival{};
}

bool station::silent() {
  at_.bus->spend_ps(20 * station_us);
  ibv_wc wc{};
  return dev().poll_cq(receive_cq_, 1, &wc) == 0;
}

ibv_qp_state station::state() const {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  hosts::require(at_.device->query_qp(qp_, &attr, IBV_QP_STATE, &init), "query_qp");
  return attr.qp_state;
}

host_driver::steering_flow* station::steer(const bytes& mac, ibv_qp* to) {
  host_driver::mac_address address{};
  std::copy_n(mac.begin(), address.size(), address.begin());
  host_driver::steering_flow* flow = dev().create_flow(to != nullptr ? to : qp_, at_.port, address);
  EXPECT_NE(flow, nullptr) << std::strerror(errno);
  return flow;
}

host_driver::steering_flow* station::steer_all(ibv_flow_attr_type type) {
  ibv_flow_attr attr{};
  attr.type = type;
  attr.size = sizeof attr;
  attr.port = static_cast<std::uint8_t>(at_.port);
  host_driver::steering_flow* flow = dev().create_flow(qp_, &attr);
  EXPECT_NE(flow, nullptr) << std::strerror(errno);
  return flow;
}

void run_stations(hosts::two_nodes& system, const std::function<void()>& body) {
  system.run(
      [&] {
        system.meet();
        body();
      },
      [&] { system.meet(); });
}

std::uint64_t tally(hosts::two_nodes& system, const std::string& part) {
  std::uint64_t sum = 0;
  bool known = false;
  for (const auto& [name, value] : system.statistics().all()) {
    if (name.size() < part.size() || name.compare(name.size() - part.size(), part.size(), part) != 0) continue;
    known = true;
    sum += *value;
  }
  if (!known) throw std::runtime_error("no counter ends in " + part);
  return sum;
}

bytes padded(bytes frame) {
  if (frame.size() < 60) frame.resize(60);
  return frame;
}

bytes with_destination(bytes frame, const bytes& mac) {
  std::copy(mac.begin(), mac.end(), frame.begin());
  return frame;
}

}  // namespace rnic::system_test
