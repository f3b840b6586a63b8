// SPDX-License-Identifier: Apache-2.0
#include "host_driver/workloads/workload_receiver.h"

#include <algorithm>
#include <array>

namespace rnic::workloads {

namespace {
constexpr sim::time_ps silence = 1'000 * sim::ps_per_us;  // behind which nothing of UC and UD is expected any more
}  // namespace

workload_receiver::workload_receiver(workload& of, unsigned host,
                                     std::vector<std::unique_ptr<workload_sender>>& senders)
    : of_(of),
      host_(host),
      sending_(senders.size()),
      headroom_(of.config_.connection.type == IBV_QPT_UD ? datagram_headroom : 0) {
  stride_ = headroom_ + (std::uint64_t{std::max(of.config_.sizes.largest(), 64u)} + 63) / 64 * 64;
  for (auto& s : senders)
    for (workload_lane& l : s->lanes())
      if (l.to == host) lanes_.push_back(&l);
}

void workload_receiver::create() {
  hosts::endpoint& e = of_.system_.end(host_);
  const std::uint64_t receives = of_.takes_receives() ? 2 * std::uint64_t{of_.config_.depth} * lanes_.size() : 0;
  if (receives != 0) memory_ = hosts::make_buffer(e, stride_ * lanes_.size());
  cq_ = new_cq(e, receives + poll_batch);
  unused_ = new_cq(e, poll_batch);
  for (workload_lane* l : lanes_) l->ends[1].create(of_.at(host_, l->nth), of_.config_.connection, *unused_, *cq_);
}

void workload_receiver::connect() {
  for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
    workload_lane& l = *lanes_[i];
    l.ends[1].connect(l.ends[0], l.nth, l.nth);
    for (unsigned n = 0; of_.takes_receives() && n < 2 * of_.config_.depth; ++n) post_receive(i);
  }
}

void workload_receiver::post_receive(std::uint32_t index) {
  lanes_[index]->ends[1].post_receive(memory_.address(headroom_ + index * stride_), of_.config_.sizes.largest(),
                                      memory_.region->lkey, index);
}

bool workload_receiver::has_all(sim::time_ps since) const {
  if (sending_ != 0) return false;
  return !of_.unreliable() || of_.system_.now_ps() >= std::max(since, over_at_) + silence;
}

void workload_receiver::run(const workload_times& t) {
  std::array<ibv_wc, poll_batch> wc{};
  host_driver::device& device = *of_.system_.end(host_).device;
  const std::uint32_t header = of_.config_.connection.type == IBV_QPT_UD ? datagram_header : 0;
  sim::time_ps last = 0;
  while (!has_all(last)) {
    const int n = device.wait_cq(cq_, poll_batch, wc.data(), sending_ == 0 ? silence : 0);
    hosts::require(n, "poll_cq");
    for (int i = 0; i < n; ++i) {
      const ibv_wc& c = wc[static_cast<std::size_t>(i)];
      if (c.status != IBV_WC_SUCCESS) return;  // its queue pair has ended, as the sender's has or will
      last = of_.system_.now_ps();
      const auto index = static_cast<std::uint32_t>(c.wr_id);
      workload_result& r = of_.results_[lanes_[index]->pair];
      ++r.received;
      if (t.is_measured(last, of_.config_.end)) {
        ++r.received_in_time;
        r.received_bytes += c.byte_len - header;
      }
      post_receive(index);
    }
  }
}

void workload_receiver::sender_has_ended() {
  if (--sending_ != 0) return;
  over_at_ = of_.system_.now_ps();
  of_.system_.end(host_).device->end_wait(cq_);
}

}  // namespace rnic::workloads
