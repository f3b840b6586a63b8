// SPDX-License-Identifier: Apache-2.0
#include "host_driver/control_frames.h"

#include <algorithm>
#include <cerrno>

namespace rnic::host_driver {

int control_frames::open() {
  const device::kernel_memory kernel(dev_);
  constexpr std::uint8_t control_priority = 7;  // TC_PRIO_CONTROL, with which lldpad and the bonding driver send
  const auto slots = static_cast<unsigned>(ports_.size()) * receives;
  pd_ = dev_.alloc_pd();
  if (pd_ == nullptr) return -errno;
  send_cq_ = dev_.create_cq(static_cast<int>(sends));
  receive_cq_ = dev_.create_cq(static_cast<int>(slots));
  if (send_cq_ == nullptr || receive_cq_ == nullptr) return -errno;
  memory_ = dev_.allocate_buffer(std::size_t{sends + slots} * frame_bytes);
  if (memory_.pointer == nullptr) return -ENOMEM;
  region_ = dev_.reg_mr(pd_, memory_.pointer, memory_.bytes, IBV_ACCESS_LOCAL_WRITE);
  if (region_ == nullptr) return -errno;
  for (const unsigned port : ports_)
    if (const int error = make_queue_pair(port, control_priority)) return error;
  return 0;
}

int control_frames::make_queue_pair(unsigned port, std::uint8_t priority) {
  ibv_qp_init_attr init{};
  init.send_cq = send_cq_;
  init.recv_cq = receive_cq_;
  init.qp_type = IBV_QPT_RAW_PACKET;
  init.cap = {sends, receives, 1, 1, 0};
  queue_pair* qp = dev_.create_qp(pd_, &init);
  if (qp == nullptr) return -errno;
  const auto first = static_cast<unsigned>(qps_.size()) * receives;
  qps_.push_back(qp);
  qp->ethernet.priority = priority;
  qp->ethernet.physical_port = true;
  ibv_qp_attr attr{};
  attr.port_num = static_cast<std::uint8_t>(port);
  attr.qp_state = IBV_QPS_INIT;
  if (const int error = dev_.modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT)) return error;
  for (const ibv_qp_state to : {IBV_QPS_RTR, IBV_QPS_RTS}) {
    attr.qp_state = to;
    if (const int error = dev_.modify_qp(qp, &attr, IBV_QP_STATE)) return error;
  }
  for (unsigned slot = first; slot < first + receives; ++slot)
    if (const int error = post_receive(slot)) return error;
  steering_flow* const flow = dev_.create_flow(qp, port, group_);
  if (flow == nullptr) return -errno;
  flows_.push_back(flow);
  return 0;
}

int control_frames::close() {
  int first = 0;
  const auto note = [&first](int error) {
    if (first == 0) first = error;
  };
  for (steering_flow* f : flows_) note(dev_.destroy_flow(f));
  for (queue_pair* q : qps_) note(dev_.destroy_qp(q));
  for (completion_queue* q : {send_cq_, receive_cq_})
    if (q != nullptr) note(dev_.destroy_cq(q));
  if (region_ != nullptr) note(dev_.dereg_mr(region_));
  if (memory_.pointer != nullptr) dev_.free_buffer(memory_);
  if (pd_ != nullptr) note(dev_.dealloc_pd(pd_));
  flows_.clear();
  qps_.clear();
  waiting_.clear();
  under_way_ = 0;
  send_cq_ = receive_cq_ = nullptr;
  region_ = nullptr;
  memory_ = {};
  pd_ = nullptr;
  return first;
}

int control_frames::post_receive(unsigned slot) {
  ibv_sge sge{region_->iova + std::uint64_t{sends + slot} * frame_bytes, frame_bytes, region_->lkey};
  ibv_recv_wr wr{}, *bad = nullptr;
  wr.wr_id = slot;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  return dev_.post_recv(qps_[slot / receives], &wr, &bad);
}

void control_frames::queue(unsigned port, const std::uint8_t* frame, std::size_t length) {
  if (waiting_.size() == sends) waiting_.pop_front();  // the port is stopped
  if (length <= frame_bytes) waiting_.push_back({port, {frame, frame + length}});
}

void control_frames::post_waiting() {
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
    const auto nth = std::find(ports_.begin(), ports_.end(), frame.port) - ports_.begin();
    ++under_way_;
    if (dev_.post_send(qps_[static_cast<std::size_t>(nth)], &wr, &bad) != 0) --under_way_;
  }
}

void control_frames::take_received(std::uint64_t processing_ps, const receiver& take) {
  ibv_wc wc{};
  while (dev_.poll_cq(receive_cq_, 1, &wc) > 0) {
    const auto slot = static_cast<unsigned>(wc.wr_id);
    const std::uint8_t* frame = memory_.pointer + std::size_t{sends + slot} * frame_bytes;
    if (wc.status == IBV_WC_SUCCESS) {
      bus_.sleep_ps(processing_ps);
      take(ports_[slot / receives], frame, std::min(wc.byte_len, frame_bytes));
    }
    post_receive(slot);
  }
}

void control_frames::wait(std::uint64_t timeout_ps) {
  constexpr std::uint64_t longest_ps = 3'600'000'000'000'000;
  ibv_wc none{};
  dev_.wait_cq(receive_cq_, 0, &none, std::min(timeout_ps, longest_ps));
}

void control_frames::drain(std::uint64_t timeout_ps) {
  ibv_wc none{};
  const std::uint64_t until = bus_.now_ps() + timeout_ps;
  while (under_way_ != 0 && bus_.now_ps() < until && dev_.wait_cq(send_cq_, 0, &none, until - bus_.now_ps()) >= 0)
    post_waiting();
}

void control_frames::end_wait() {
  if (receive_cq_ != nullptr) dev_.end_wait(receive_cq_);
}

}  // namespace rnic::host_driver
