// SPDX-License-Identifier: Apache-2.0
#include "host_driver/lacp/service.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace rnic::host_driver::lacp {

namespace {

constexpr std::uint8_t control_priority = 7;         // TC_PRIO_CONTROL (net/bonding/bond_3ad.c: ad_lacpdu_send)
constexpr std::uint64_t processing_ps = 20'000'000;  // of a frame, in the kernel's receive path
constexpr std::uint64_t longest_wait_ps = 3'600'000'000'000'000;

std::array<mac_address, 2> addresses_of(const std::array<member, 2>& members) {
  return {members[0].mac, members[1].mac};
}

}  // namespace

/// The bond has the address of its first member.
service::service(device& dev, bus_if& bus, const settings& s, const std::array<member, 2>& members)
    : dev_(dev), bus_(bus), members_(members), agent_(members[0].mac, addresses_of(members), s, *this) {}

int service::start() {
  protection_domain* pd = dev_.alloc_pd();
  if (pd == nullptr) return -errno;
  send_cq_ = dev_.create_cq(static_cast<int>(sends));
  receive_cq_ = dev_.create_cq(static_cast<int>(ports * receives));
  if (send_cq_ == nullptr || receive_cq_ == nullptr) return -errno;
  memory_ = dev_.allocate_buffer(std::size_t{sends + ports * receives} * frame_bytes);
  if (memory_.pointer == nullptr) return -ENOMEM;
  region_ = dev_.reg_mr(pd, memory_.pointer, memory_.bytes, IBV_ACCESS_LOCAL_WRITE);
  if (region_ == nullptr) return -errno;
  for (unsigned port = 1; port <= ports; ++port)
    if (const int error = make_queue_pair(pd, port)) return error;
  apply_links(dev_.links());
  return 0;
}

int service::make_queue_pair(protection_domain* pd, unsigned port) {
  ibv_qp_init_attr init{};
  init.send_cq = send_cq_;
  init.recv_cq = receive_cq_;
  init.qp_type = IBV_QPT_RAW_PACKET;
  init.cap = {sends, receives, 1, 1, 0};
  queue_pair* qp = dev_.create_qp(pd, &init);
  if (qp == nullptr) return -errno;
  qps_[port - 1] = qp;
  qp->ethernet.priority = control_priority;
  qp->ethernet.physical_port = true;
  ibv_qp_attr attr{};
  attr.port_num = static_cast<std::uint8_t>(port);
  attr.qp_state = IBV_QPS_INIT;
  if (const int error = dev_.modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT)) return error;
  for (const ibv_qp_state to : {IBV_QPS_RTR, IBV_QPS_RTS}) {
    attr.qp_state = to;
    if (const int error = dev_.modify_qp(qp, &attr, IBV_QP_STATE)) return error;
  }
  for (unsigned slot = (port - 1) * receives; slot < port * receives; ++slot)
    if (const int error = post_receive(slot)) return error;
  return dev_.create_flow(qp, port, wire::slow_protocols_address) == nullptr ? -errno : 0;
}

int service::post_receive(unsigned slot) {
  ibv_sge sge{region_->iova + std::uint64_t{sends + slot} * frame_bytes, frame_bytes, region_->lkey};
  ibv_recv_wr wr{}, *bad = nullptr;
  wr.wr_id = slot;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  return dev_.post_recv(qps_[slot / receives], &wr, &bad);
}

void service::transmit(unsigned port, const std::uint8_t* frame, std::size_t length) {
  if (waiting_.size() == sends) waiting_.pop_front();  // a port is stopped: what is new says more
  waiting_.push_back({port, {frame, frame + length}});
}

/// What there is room for. Of a port that has no link the adapter drops it.
void service::post_waiting() {
  ibv_wc done{};
  while (dev_.poll_cq(send_cq_, 1, &done) > 0) --under_way_;
  while (!waiting_.empty() && under_way_ < sends) {
    const std::uint64_t at = std::uint64_t{next_send_++ % sends} * frame_bytes;
    const waiting_frame frame = std::move(waiting_.front());
    waiting_.pop_front();
    std::copy(frame.bytes.begin(), frame.bytes.end(), memory_.pointer + at);
    ibv_sge sge{region_->iova + at, static_cast<std::uint32_t>(frame.bytes.size()), region_->lkey};
    ibv_send_wr wr{}, *bad = nullptr;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    ++under_way_;
    if (dev_.post_send(qps_[frame.port - 1], &wr, &bad) != 0) --under_way_;
  }
}

void service::take_received() {
  ibv_wc wc{};
  while (dev_.poll_cq(receive_cq_, 1, &wc) > 0) {
    const auto slot = static_cast<unsigned>(wc.wr_id);
    const std::uint8_t* frame = memory_.pointer + std::size_t{sends + slot} * frame_bytes;
    if (wc.status == IBV_WC_SUCCESS) {
      bus_.sleep_ps(processing_ps);
      if (agent_.receive(slot / receives + 1, frame, std::min(wc.byte_len, frame_bytes), bus_.now_ps()) && tell_)
        tell_();
    }
    post_receive(slot);
  }
}

bool service::apply_links(unsigned links) {
  bool changed = false;
  for (unsigned port = 1; port <= ports; ++port) {
    const bool up = (links >> (port - 1) & 1) != 0;
    changed |= agent_.set_link(port, up, members_[port - 1].rate_mbps, bus_.now_ps());
  }
  return changed;
}

void service::set_links(unsigned links) {
  if (apply_links(links) && tell_) tell_();
  dev_.end_wait(receive_cq_);  // who runs it may have something to send, or less time
}

/// What has come in, what is due, what is to be sent; then it waits: for ever, or until the agent has settled, until
/// `until_ps` at most.
void service::turn(std::uint64_t until_ps) {
  take_received();
  if (agent_.tick(bus_.now_ps()) && tell_) tell_();
  post_waiting();
  if (stopping_ || (until_ps != never && agent_.settled())) return;
  const std::uint64_t now = bus_.now_ps(), next = std::min(agent_.next_ps(), until_ps);
  ibv_wc none{};
  if (next > now) dev_.wait_cq(receive_cq_, 0, &none, std::min(next - now, longest_wait_ps));
}

void service::run() {
  while (!stopping_) turn(never);
}

void service::run_until_settled(std::uint64_t longest_ps) {
  const std::uint64_t end = bus_.now_ps() + longest_ps;
  while (!stopping_ && !agent_.settled() && bus_.now_ps() < end) turn(end);
}

void service::stop() {
  stopping_ = true;
  if (receive_cq_ != nullptr) dev_.end_wait(receive_cq_);
}

}  // namespace rnic::host_driver::lacp
