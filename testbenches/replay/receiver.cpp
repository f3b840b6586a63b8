// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/receiver.h"

#include <algorithm>
#include <utility>

namespace rnic::replay {

namespace {
constexpr std::uint32_t no_key = 0xffffff00;  // of no region: its place is behind all that are used
}  // namespace

receiver::receiver(host_driver::device& device, config c) : device_(&device), config_(std::move(c)) {
  find_limit(0);
  post();
}

void receiver::find_limit(std::size_t from) {
  const std::vector<receive_rule>& rules = config_.rules;
  late_ = from;
  while (late_ < rules.size() && rules[late_].after == no_frame) ++late_;
  allowed_ = late_ < rules.size() ? rules[late_].number : config_.receives;
}

void receiver::sent(std::size_t frame) {
  if (late_ >= config_.rules.size() || config_.rules[late_].after != frame) return;
  find_limit(late_ + 1);
  post();
}

void receiver::post() {
  while (posted_ < allowed_ && post_one()) {
  }
}

bool receiver::post_one() {
  const std::vector<receive_rule>& rules = config_.rules;
  while (rule_ < rules.size() && rules[rule_].number < posted_) ++rule_;
  const std::uint32_t bytes = config_.memory.length;
  ibv_sge sge[2] = {config_.memory, {}};
  if (rule_ < rules.size() && rules[rule_].number == posted_) {
    const receive_rule& r = rules[rule_];
    if (r.short_of || r.bad_key) sge[0].length = std::min(r.bytes, bytes);
    if (r.bad_key) sge[r.bytes == 0 ? 0 : 1] = {sge[0].addr + sge[0].length, bytes - sge[0].length, no_key};
  }
  ibv_recv_wr wr{};
  wr.wr_id = config_.wr_id;
  wr.sg_list = sge;
  wr.num_sge = sge[0].length == 0 ? 0 : sge[1].length == 0 ? 1 : 2;
  ibv_recv_wr* bad = nullptr;
  const int error = config_.srq != nullptr ? device_->post_srq_recv(config_.srq, &wr, &bad)
                                           : device_->post_recv(config_.qp, &wr, &bad);
  if (error != 0) return false;
  ++posted_;
  return true;
}

}  // namespace rnic::replay
