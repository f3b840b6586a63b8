// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/stream.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace rnic::bench {

namespace {

constexpr unsigned poll_batch = 16;

host_driver::completion_queue* new_cq(endpoint& e, std::uint64_t entries) {
  host_driver::completion_queue* cq = e.device->create_cq(static_cast<int>(std::min<std::uint64_t>(entries, 1u << 20)));
  if (cq == nullptr) throw std::runtime_error("create_cq failed");
  return cq;
}

}  // namespace

stream::stream(two_nodes& system, endpoint& sender, endpoint& receiver, const connection_options& connection,
               const stream_config& config)
    : system_(system), sender_(sender), receiver_(receiver), connection_(connection), config_(config) {
  connection_.send_sges = connection_.receive_sges = message_segments::needed(config.largest);
  stride_ = (std::uint64_t{std::max(config.largest, 64u)} + 63) / 64 * 64;
  lanes_.resize(config.qps);
  signal_every_ = std::max(1u, std::min(config.depth / 2, 100u));
}

void stream::set_up(endpoint& at) {
  const bool sends = &at == &sender_;
  const std::uint64_t bytes = stride_ * places();
  buffer& mine = sends ? source_ : destination_;
  mine = make_buffer(at, bytes);
  const bool fills = sends != (config_.verb == stream_verb::read);  // READ brings the receiver's bytes to the sender
  for (std::uint64_t i = 0; i < bytes; ++i)
    mine.memory.pointer[i] = fills ? static_cast<std::uint8_t>((i * 2654435761u) >> 13) : std::uint8_t{0};
  const std::uint64_t entries = std::uint64_t{config_.qps} * config_.depth + 64;
  (sends ? send_cq_ : receive_cq_) = new_cq(at, entries);
  unused_cq_[sends ? 0 : 1] = new_cq(at, 64);
  for (lane& l : lanes_)
    l.qp[sends ? 0 : 1] =
        make_qp(at, connection_, *(sends ? send_cq_ : unused_cq_[1]), *(sends ? unused_cq_[0] : receive_cq_));
  system_.meet();
  const endpoint& peer = sends ? receiver_ : sender_;
  for (std::uint32_t i = 0; i < lanes_.size(); ++i)
    connect(at, connection_, *lanes_[i].qp[sends ? 0 : 1], peer, lanes_[i].qp[sends ? 1 : 0]->qp_num, i, i);
  system_.meet();
}

void stream::post(lane& l, std::uint32_t index, std::uint32_t size, std::uint64_t count) {
  std::array<ibv_send_wr, 32> wr;  // as much of it as is used is set below
  std::array<message_segments, 32> segments;
  for (std::uint64_t k = 0; k < count; ++k) {
    wr[k] = {};
    const std::uint64_t place = slot(index, l.posted);
    segments[k] = message_segments(source_.address(place), size, source_.region->lkey);
    wr[k].wr_id = index;
    wr[k].sg_list = segments[k].list.data();
    wr[k].num_sge = segments[k].count;
    wr[k].next = k + 1 < count ? &wr[k + 1] : nullptr;
    ++l.posted;
    if (l.posted % signal_every_ == 0 || l.posted == l.target) wr[k].send_flags = IBV_SEND_SIGNALED;
    const bool fetches = config_.verb == stream_verb::read || atomic();
    if (!fetches && size <= config_.inline_bytes) wr[k].send_flags |= IBV_SEND_INLINE;
    wr[k].opcode = config_.verb == stream_verb::write  ? IBV_WR_RDMA_WRITE
                   : config_.verb == stream_verb::send ? IBV_WR_SEND
                                                       : IBV_WR_RDMA_READ;
    wr[k].wr.rdma.remote_addr = destination_.address(place);
    wr[k].wr.rdma.rkey = destination_.region->rkey;
    if (atomic())
      make_atomic(wr[k], config_.verb == stream_verb::compare_swap, destination_.address(slot(index)),
                  destination_.region->rkey, l.operations++);
  }
  ibv_send_wr* bad = nullptr;
  require(sender_.device->post_send(l.qp[0], wr.data(), &bad), "post_send");
}

/// Messages of the next call of post_send, 0: the window has no room for a batch.
std::uint64_t stream::postable(const lane& l) const {
  const std::uint64_t batch = std::clamp<std::uint64_t>(config_.batch, 1, 32);
  const std::uint64_t room = std::min<std::uint64_t>(config_.depth - (l.posted - l.completed), l.target - l.posted);
  return room < batch && l.target - l.posted >= batch ? 0 : std::min(room, batch);
}

void stream::note_room(std::uint32_t index) {
  const std::uint64_t bit = std::uint64_t{1} << (index % 64);
  with_room_[index / 64] = postable(lanes_[index]) != 0 ? with_room_[index / 64] | bit : with_room_[index / 64] & ~bit;
}

/// Posts what fits into the windows of all queue pairs; true when something was posted.
bool stream::fill(std::uint32_t size) {
  bool any = false;
  for (std::uint32_t word = 0; word < with_room_.size(); ++word) {
    for (std::uint64_t rest = with_room_[word]; rest != 0; rest &= rest - 1) {
      const std::uint32_t i = word * 64 + static_cast<std::uint32_t>(__builtin_ctzll(rest));
      post(lanes_[i], i, size, postable(lanes_[i]));
      note_room(i);
      any = true;
    }
  }
  return any;
}

bool stream::take_completions() {
  std::array<ibv_wc, poll_batch> wc{};
  const int n = sender_.device->poll_cq(send_cq_, poll_batch, wc.data());
  require(n, "poll_cq");
  for (int i = 0; i < n; ++i) {
    if (wc[static_cast<unsigned>(i)].status != IBV_WC_SUCCESS) throw message_failed(wc[static_cast<unsigned>(i)]);
    lane& l = lanes_[wc[static_cast<unsigned>(i)].wr_id];
    const std::uint64_t done = std::min((l.completed / signal_every_ + 1) * signal_every_, l.target);
    completed_ += done - l.completed;
    l.completed = done;
    note_room(static_cast<std::uint32_t>(wc[static_cast<unsigned>(i)].wr_id));
  }
  return n > 0;
}

void stream::post_receives(std::uint32_t size) {
  for (std::uint32_t word = 0; word < without_receives_.size(); ++word) {
    for (std::uint64_t rest = std::exchange(without_receives_[word], 0); rest != 0; rest &= rest - 1) {
      const std::uint32_t i = word * 64 + static_cast<std::uint32_t>(__builtin_ctzll(rest));
      lane& l = lanes_[i];
      while (l.receives_posted < l.target && l.receives_posted - l.received < config_.depth) {
        message_segments segments(destination_.address(slot(i)), size, destination_.region->lkey);
        ibv_recv_wr wr{};
        wr.wr_id = i;
        wr.sg_list = segments.list.data();
        wr.num_sge = segments.count;
        ibv_recv_wr* bad = nullptr;
        require(receiver_.device->post_recv(l.qp[1], &wr, &bad), "post_recv");
        ++l.receives_posted;
      }
    }
  }
}

bool stream::take_receives() {
  std::array<ibv_wc, poll_batch> wc{};
  const int n = receiver_.device->poll_cq(receive_cq_, poll_batch, wc.data());
  require(n, "poll_cq");
  for (int i = 0; i < n; ++i) {
    if (wc[static_cast<unsigned>(i)].status != IBV_WC_SUCCESS)
      throw std::runtime_error("a receive completed with status " +
                               std::to_string(wc[static_cast<unsigned>(i)].status));
    const std::uint64_t index = wc[static_cast<unsigned>(i)].wr_id;
    ++lanes_[index].received;
    without_receives_[index / 64] |= std::uint64_t{1} << (index % 64);
    ++received_;
  }
  return n > 0;
}

void stream::start_lanes(bool sends, bool receives) {
  for (auto* mask : {sends ? &with_room_ : nullptr, receives ? &without_receives_ : nullptr})
    if (mask != nullptr) mask->assign((lanes_.size() + 63) / 64, 0);
  for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
    if (sends) note_room(i);
    if (receives) without_receives_[i / 64] |= std::uint64_t{1} << (i % 64);
  }
}

void stream::run_host(endpoint& e, const work& w) {
  stream* out = w.sends;
  stream* in = w.receives != nullptr && w.receives->config_.verb == stream_verb::send ? w.receives : nullptr;
  for (stream* s : {out, in}) {
    if (s == nullptr) continue;
    const std::uint64_t lanes = s->lanes_.size();
    for (std::uint64_t i = 0; i < lanes; ++i) {
      lane& l = s->lanes_[i];
      if (s == in) l.receives_posted = l.received = 0;
      if (s == out) l.posted = l.completed = 0;
      l.target = w.messages / lanes + (i < w.messages % lanes ? 1 : 0);
    }
    s->start_lanes(s == out, s == in);
    if (s == in) s->received_ = 0;
    if (s == out) s->completed_ = 0;
    s->target_ = w.messages;
  }
  if (in != nullptr) in->post_receives(w.size);
  e.bus->spend_ps(1);
  for (;;) {
    const bool sending = out != nullptr && out->completed_ < out->target_;
    const bool receiving = in != nullptr && in->received_ < in->target_;
    if (!sending && !receiving) return;
    bool moved = false;
    if (sending) moved |= out->fill(w.size);
    if (sending) moved |= out->take_completions();
    if (receiving && in->take_receives()) {
      in->post_receives(w.size);
      moved = true;
    }
    if (moved) continue;
    // Nothing to do: the polling loop spins on the queue that will move next.
    std::array<ibv_wc, 1> none{};
    if (sending)
      e.device->wait_cq(out->send_cq_, 0, none.data(), receiving ? 200 * sim::ps_per_ns : 0);
    else
      e.device->wait_cq(in->receive_cq_, 0, none.data(), 0);
  }
}

void stream::check_content(std::uint32_t size) const {
  if (atomic()) return check_counters();
  for (std::uint32_t i = 0; i < places(); ++i)
    if (std::memcmp(source_.at(i * stride_), destination_.at(i * stride_), size) != 0)
      throw std::runtime_error("the bytes of place " + std::to_string(i) + " did not arrive as they were sent");
}

void stream::check_counters() const {
  for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
    std::uint64_t counter = 0, last = 0;
    std::memcpy(&counter, destination_.at(slot(i)), sizeof counter);
    std::memcpy(&last, source_.at(slot(i)), sizeof last);
    if (counter != lanes_[i].operations || (counter != 0 && last != counter - 1))
      throw std::runtime_error("the counter of queue pair " + std::to_string(i) + " is " + std::to_string(counter) +
                               " after " + std::to_string(lanes_[i].operations) + " operations, the last one found " +
                               std::to_string(last));
  }
}

}  // namespace rnic::bench
