// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/host/ethernet_ring.h"

#include <algorithm>
#include <utility>

#include "host_driver/device.h"
#include "model/sim/check.h"
#include "testbenches/serve/host/application.h"

namespace rnic::serve {

using host_driver::mac_address;

namespace {

constexpr mac_address broadcast{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, all_nodes{0x33, 0x33, 0, 0, 0, 1};
constexpr unsigned source_offset = 6;

}  // namespace

ethernet_ring::ethernet_ring(const hosts::endpoint& at, receiver take)
    : at_(at), take_(std::move(take)), own_(at.device->port(at.port).mac) {
  if (at_.pd == nullptr) at_.pd = made(at_.device->alloc_pd(), "alloc_pd");
  send_cq_ = made(at_.device->create_cq(4), "create_cq");
  receive_cq_ = made(at_.device->create_cq(receives), "create_cq");
  ibv_qp_init_attr init{};
  init.send_cq = send_cq_;
  init.recv_cq = receive_cq_;
  init.qp_type = IBV_QPT_RAW_PACKET;
  init.cap = {2, receives, 1, 1, 0};
  qp_ = made(at_.device->create_qp(at_.pd, &init), "create_qp");
  sends_ = hosts::make_buffer(at_, frame_bytes);
  receives_ = hosts::make_buffer(at_, std::size_t{receives} * frame_bytes);
  ibv_qp_attr attr{};
  attr.port_num = static_cast<std::uint8_t>(at_.port);
  attr.qp_state = IBV_QPS_INIT;
  hosts::require(at_.device->modify_qp(qp_, &attr, IBV_QP_STATE | IBV_QP_PORT), "modify_qp to INIT");
  for (const ibv_qp_state to : {IBV_QPS_RTR, IBV_QPS_RTS}) {
    attr.qp_state = to;
    hosts::require(at_.device->modify_qp(qp_, &attr, IBV_QP_STATE), "modify_qp");
  }
  for (unsigned slot = 0; slot < receives; ++slot) post_receive(slot);
  for (const mac_address& mac : {own_, broadcast, all_nodes}) listen(mac);
  sc_core::sc_spawn([this] { receive(); }, sc_core::sc_gen_unique_name("network_receive"));
  sc_core::sc_spawn([this] { send(); }, sc_core::sc_gen_unique_name("network_send"));
}

void ethernet_ring::listen(const mac_address& mac) {
  if (std::find(heard_.begin(), heard_.end(), mac) != heard_.end()) return;
  heard_.push_back(mac);
  const auto steer = [this, &mac](unsigned port) {
    if (at_.device->create_flow(qp_, port, mac) == nullptr)
      throw sim::config_error(
          "--functions: a function has too few steering rules for a network interface, which needs " +
          std::to_string(heard_.size()) + ": fewer functions leave more to each");
  };
  steer(at_.port);
  if (at_.device->is_bonded()) steer(3 - at_.port);
}

void ethernet_ring::listen_for(const host_driver::gid_bytes& address) {
  constexpr host_driver::gid_bytes mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0};
  if (std::equal(mapped.begin(), mapped.begin() + 12, address.begin())) return;
  listen({0x33, 0x33, 0xff, address[13], address[14], address[15]});
}

void ethernet_ring::post_receive(unsigned slot) {
  const std::uint64_t offset = std::uint64_t{slot} * frame_bytes;
  serve::post_receive(*at_.device, qp_, slot, {receives_.address(offset), frame_bytes, receives_.region->lkey});
}

void ethernet_ring::receive() {
  for (;;) {
    ibv_wc wc{};
    hosts::require(at_.device->wait_cq(receive_cq_, 1, &wc), "wait_cq");
    const auto slot = static_cast<unsigned>(wc.wr_id);
    const std::uint8_t* frame = receives_.at(std::uint64_t{slot} * frame_bytes);
    // What the host sends to a group that it is in comes back to it.
    const bool of_others = !std::equal(own_.begin(), own_.end(), frame + source_offset);
    if (wc.status == IBV_WC_SUCCESS && of_others) take_(frame, std::min(wc.byte_len, frame_bytes));
    post_receive(slot);
  }
}

void ethernet_ring::transmit(const std::uint8_t* frame, std::size_t length) {
  if (waiting_.size() >= most_waiting || length > frame_bytes) {
    ++dropped_;
    return;
  }
  waiting_.emplace_back(frame, frame + length);
  something_to_send_.notify(sc_core::SC_ZERO_TIME);
}

void ethernet_ring::send() {
  for (;;) {
    while (waiting_.empty()) sc_core::wait(something_to_send_);
    const std::vector<std::uint8_t> frame = std::move(waiting_.front());
    waiting_.pop_front();
    sending_ = true;
    std::copy(frame.begin(), frame.end(), sends_.at());
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    post(*at_.device, qp_, wr, {sends_.address(), static_cast<std::uint32_t>(frame.size()), sends_.region->lkey});
    ibv_wc wc{};
    hosts::require(at_.device->wait_cq(send_cq_, 1, &wc), "wait_cq");
    sending_ = false;
  }
}

}  // namespace rnic::serve
